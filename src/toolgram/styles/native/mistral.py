"""Mistral: `[TOOL_CALLS]`, in the three forms that its tokenizers have had.

Nemo (chat template of mistralai/Mistral-Nemo-Instruct-2407)::

    [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "a1b2c3d4e"}]

Small 3.2 (mistralai/Mistral-Small-3.2-24B-Instruct-2506)::

    [TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Paris"}

Ministral 3, Devstral and Magistral, with reasoning (mistralai/Ministral-3-14B-Reasoning-2512)::

    [THINK]The weather is needed.[/THINK][TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}

A model may write the form of another tokenizer than its template's, and servers leave out the tokens between name and
arguments (vllm-project/vllm, mistral_tool_parser.py, which reads all of these; ml-explore/mlx-lm#1374): each is read.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import thinking
from toolgram.wire.format import (
    NOTHING_WRITTEN,
    Arguments,
    Array,
    Call,
    CallId,
    Content,
    Lenient,
    Many,
    Mark,
    Name,
    Object,
    Opt,
    Seq,
    WireFormat,
)

_CALLS, _ARGS = Mark("[TOOL_CALLS]"), Mark("[ARGS]")
_ID_AND_ARGS = Seq(Mark("[CALL_ID]"), CallId(), _ARGS)
_JSON = Call(Object(("name", Name()), ("arguments", Arguments()), ("id", CallId())))
_PLAIN = Seq(Name(), Lenient(_ARGS, _ID_AND_ARGS, NOTHING_WRITTEN), Arguments())
_WITH_ID = Seq(Name(), Lenient(_ID_AND_ARGS, _ARGS, NOTHING_WRITTEN), Arguments())
_AS_JSON = Seq(_CALLS, Lenient(Array(_JSON), _JSON))

MISTRAL_NEMO = ToolStyle(
    "mistral_nemo",
    WireFormat(Seq(Opt(Content()), Opt(Seq(_CALLS, Lenient(Array(_JSON), _JSON, Call(_PLAIN)))))),
    "a JSON list after [TOOL_CALLS]: Mistral Nemo, Mistral 7B v0.3",
)
MISTRAL_SMALL = ToolStyle(
    "mistral_small",
    WireFormat(Seq(Opt(Content()), Many(Lenient(Call(Seq(_CALLS, _WITH_ID)), _AS_JSON)))),
    "[TOOL_CALLS] name [CALL_ID] id [ARGS] JSON: Mistral Small 3.2",
)
MINISTRAL = ToolStyle(
    "ministral",
    WireFormat(
        Seq(thinking("[THINK]", "[/THINK]"), Opt(Content()), Many(Lenient(Call(Seq(_CALLS, _PLAIN)), _AS_JSON)))
    ),
    "[TOOL_CALLS] name [ARGS] JSON: Ministral 3, Magistral, Devstral",
    reasons=True,
)
