"""MiniMax M1: JSON objects, one per line, between tags.

A turn (MiniMaxAI/MiniMax-M1-80k)::

    I will look that up.<tool_calls>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_calls>
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Object, Opt, Seq, WireFormat

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))
_LINES = Many(_CALL, separator=Lit("\n"), min=1)

MINIMAX_M1 = ToolStyle(
    "minimax_m1",
    WireFormat(
        Seq(Opt(Content()), Opt(Seq(Mark("<tool_calls>"), Lit("\n"), _LINES, Lit("\n"), Mark("</tool_calls>"))))
    ),
    "JSON objects between <tool_calls> tags: MiniMax M1",
)
