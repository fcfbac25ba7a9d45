"""Apriel 1.5 and Hunyuan A13B: a JSON list between tags.

A turn of Apriel (chat template of ServiceNow-AI/Apriel-1.5-15b-Thinker)::

    I will look that up.
    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>

Hunyuan A13B (the chat template in vLLM's examples) writes the same without a line break before it.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Array, Call, Content, Lit, Mark, Name, Object, Opt, Seq, WireFormat

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))
_CALLS = Seq(Mark("<tool_calls>"), Array(_CALL), Mark("</tool_calls>"))

APRIEL = ToolStyle(
    "apriel",
    WireFormat(Seq(Opt(Content()), Opt(Seq(Lit("\n"), *_CALLS.items)))),
    "a JSON list between <tool_calls> tags: Apriel 1.5",
)
HUNYUAN = ToolStyle(
    "hunyuan",
    WireFormat(Seq(Opt(Content()), Opt(_CALLS))),
    "a JSON list between <tool_calls> tags: Hunyuan A13B",
)
