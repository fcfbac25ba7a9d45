"""Hermes 2 and 3, Qwen 2.5 and 3, QwQ, Granite 4: JSON between `<tool_call>` tags.

A turn (chat template of Qwen/Qwen3-0.6B; the others have no reasoning, or other white space around it)::

    <think>
    The weather is needed.
    </think>

    I will look that up.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call>
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.wire.format import Arguments, Break, Call, Content, Lit, Many, Mark, Name, Object, Opt, Seq, WireFormat

_JSON = Object(("name", Name()), ("arguments", Arguments()))
_CALL = Call(Seq(Mark("<tool_call>"), Lit("\n"), _JSON, Lit("\n"), Mark("</tool_call>")))
_CALLS = Opt(Seq(Break("\n"), Many(_CALL, separator=Lit("\n"), min=1)))

HERMES = ToolStyle(
    "hermes",
    WireFormat(Seq(think(), Opt(Content()), _CALLS)),
    "JSON between <tool_call> tags: Hermes, Qwen 2.5 and 3, QwQ, Granite 4",
)
