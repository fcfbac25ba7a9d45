"""DeepSeek V3.2: a markup of its own, "DSML", whose parameters tell whether they are strings.

A turn (encoding published with deepseek-ai/DeepSeek-V3.2)::

    <think>The weather is needed.</think>

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.parts import think
from toolgram.wire.arguments import Tagged
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Opt, Seq, WireFormat

PARAMETERS = Tagged(
    "dsml",
    open='<｜DSML｜parameter name="',
    after_key=(("string", '" string="true">'), ("", '" string="false">')),
    close="</｜DSML｜parameter>\n",
)

_INVOKE = Seq(
    Mark('<｜DSML｜invoke name="'), Name(), Lit('">\n'), Arguments(PARAMETERS), Mark("</｜DSML｜invoke>"), Lit("\n")
)
_SECTION = Seq(
    Lit("\n\n"),
    Mark("<｜DSML｜function_calls>", ("<｜DSML｜tool_calls>",)),
    Lit("\n"),
    Many(Call(_INVOKE), min=1),
    Mark("</｜DSML｜function_calls>", ("</｜DSML｜tool_calls>",)),
)

DEEPSEEK_V3_2 = ToolStyle(
    "deepseek_v3_2",
    WireFormat(Seq(think(after_opener="", before_closer="", after=""), Opt(Content()), Opt(_SECTION))),
    "DSML: DeepSeek V3.2",
)
