"""Phi-4-mini: a JSON list.

A turn, inferred from the names of its tokens, since its template writes no calls (microsoft/Phi-4-mini-instruct)::

    <|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|/tool_call|>

With the templates of vLLM and SGLang, which ask for it, it writes as in `functools`.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.functools import FUNCTOOLS_LIST
from toolgram.wire.format import (
    NOTHING_WRITTEN,
    Arguments,
    Array,
    Call,
    Content,
    Lenient,
    Mark,
    Name,
    Object,
    Opt,
    Seq,
    WireFormat,
)

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))
_LIST = Seq(Mark("<|tool_call|>"), Array(_CALL))
_END = Lenient(Mark("<|/tool_call|>"), NOTHING_WRITTEN)

PHI_4_MINI = ToolStyle(
    "phi_4_mini",
    WireFormat(Seq(Opt(Content()), Opt(Seq(Lenient(_LIST, FUNCTOOLS_LIST), _END)))),
    "a JSON list between <|tool_call|> tokens: Phi-4-mini",
    announced_by="<|/tool|>",
)
