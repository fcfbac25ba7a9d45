"""Apriel 1.5, Hunyuan A13B and Jamba: a JSON list between tags.

A turn of Apriel (chat template of ServiceNow-AI/Apriel-1.5-15b-Thinker)::

    Here are my reasoning steps:
    The weather is needed.
    [BEGIN FINAL RESPONSE]
    I will look that up.
    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>

Its template asks for the last line of the reasoning, and for [END FINAL RESPONSE] behind an answer; it leaves both out
of the history. Some templates open the reasoning in the prompt.

Hunyuan A13B (the chat template in vLLM's examples) writes the same without a line break before it, Jamba with line
breaks in the list.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import thinking
from toolgram.wire.format import Arguments, Array, Call, Content, Lit, Mark, Name, Object, Opt, Seq, WireFormat

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))
_CALLS = Seq(Mark("<tool_calls>"), Array(_CALL), Mark("</tool_calls>"))

_THOUGHTS = thinking(
    "Here are my reasoning steps:",
    "[BEGIN FINAL RESPONSE]",
    after_opener="\n",
    before_closer="\n",
    after="\n",
)
_END = Opt(Seq(Lit("\n"), Mark("[END FINAL RESPONSE]")))

# First, as what fits both says nothing of reasoning.
HUNYUAN = ToolStyle(
    "hunyuan",
    WireFormat(Seq(Opt(Content()), Opt(_CALLS))),
    "a JSON list between <tool_calls> tags: Hunyuan A13B, Jamba",
)
APRIEL = ToolStyle(
    "apriel",
    WireFormat(Seq(_THOUGHTS, Opt(Content()), Opt(Seq(Lit("\n"), *_CALLS.items)), _END)),
    "a JSON list between <tool_calls> tags: Apriel 1.5",
    reasons=True,
)
