"""Llama 4: bare JSON objects, one after the other.

A turn (chat template of meta-llama/Llama-4-Scout-17B-16E-Instruct, which writes what was said before a call, or
nothing, between two tokens)::

    <|python_start|>I will look that up.<|python_end|>{"name": "get_weather", "parameters": {"city": "Paris"}}

The template asks for nothing but the object, and the models at times put the two tokens around it. Scout writes it in
the form of OpenAI's API as well (vllm-project/vllm#46863)::

    {"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.llama3 import CALL, TYPED
from toolgram.wire.format import Alt, Content, Lenient, Many, Mark, Opt, Seq, WireFormat

_START, _END = Mark("<|python_start|>"), Mark("<|python_end|>")


def _turn(calls: Many) -> WireFormat:
    return WireFormat(
        Alt(
            Lenient(calls, Seq(_START, calls, _END)),
            Seq(_START, Opt(Content()), _END, calls),
            Opt(Content()),
        )
    )


_CALLS = Many(CALL, min=1)

LLAMA_4 = ToolStyle(
    "llama_4",
    _turn(_CALLS),
    "bare JSON objects: Llama 4",
    own_ways=_turn(Many(Alt(CALL, TYPED), min=1)),
    calls_after_words=_CALLS,
)
