"""Llama 4: bare JSON objects, one after the other.

A turn (chat template of meta-llama/Llama-4-Scout-17B-16E-Instruct, which writes what was said before a call, or
nothing, between two tokens)::

    <|python_start|>I will look that up.<|python_end|>{"name": "get_weather", "parameters": {"city": "Paris"}}

The template asks for nothing but the object, and the models at times put the two tokens around it.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Alt, Arguments, Call, Content, Lenient, Many, Mark, Name, Object, Opt, Seq, WireFormat

_START, _END = Mark("<|python_start|>"), Mark("<|python_end|>")
_CALLS = Many(Call(Object(("name", Name()), ("parameters", Arguments()))), min=1)

LLAMA_4 = ToolStyle(
    "llama_4",
    WireFormat(
        Alt(
            Lenient(_CALLS, Seq(_START, _CALLS, _END)),
            Seq(_START, Opt(Content()), _END, _CALLS),
            Opt(Content()),
        )
    ),
    "bare JSON objects: Llama 4",
)
