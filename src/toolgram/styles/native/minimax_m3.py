"""MiniMax M3: nested elements, each tag after the same marker.

A turn (chat template of MiniMaxAI/MiniMax-M3)::

    <mm:think>The weather is needed.</mm:think>I will look that up.]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

A turn without reasoning begins with </mm:think>. A parameter that is null has no tags.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.encodings import Elements
from toolgram.wire.format import Alt, Arguments, Call, Content, Lit, Many, Mark, Name, Opt, Reasoning, Seq, WireFormat

_LEAD = "]<]minimax[>["
_NO_MORE_THOUGHTS = Mark("</mm:think>")
_THOUGHTS = Opt(Alt(_NO_MORE_THOUGHTS, Seq(Mark("<mm:think>"), Reasoning(), _NO_MORE_THOUGHTS)))
_INVOKE = Seq(
    Mark(_LEAD + '<invoke name="'),
    Name(),
    Lit('">'),
    Arguments(Elements("minimax_m3", _LEAD, omits_null=True)),
    Mark(_LEAD + "</invoke>"),
    Lit("\n"),
)
_CALLS = Seq(Mark(_LEAD + "<tool_call>"), Lit("\n"), Many(Call(_INVOKE), min=1), Mark(_LEAD + "</tool_call>"))

MINIMAX_M3 = ToolStyle(
    "minimax_m3",
    WireFormat(Seq(_THOUGHTS, Opt(Content()), Opt(_CALLS))),
    "nested elements: MiniMax M3",
)
