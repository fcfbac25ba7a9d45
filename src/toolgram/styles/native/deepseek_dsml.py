"""DeepSeek V3.2: a markup of its own, "DSML", whose parameters tell whether they are strings.

A turn (encoding published with deepseek-ai/DeepSeek-V3.2)::

    <think>The weather is needed.</think>

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

DeepSeek V4 (deepseek-ai/DeepSeek-V4) has <｜DSML｜tool_calls> in its place.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.wire.encodings import Tagged
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


def _style(name: str, section: str, other: str, about: str) -> ToolStyle:
    """The style with its calls in a section of this name; the reader takes the other's too."""
    calls = Seq(
        Lit("\n\n"),
        Mark(f"<｜DSML｜{section}>", (f"<｜DSML｜{other}>",)),
        Lit("\n"),
        Many(Call(_INVOKE), min=1),
        Mark(f"</｜DSML｜{section}>", (f"</｜DSML｜{other}>",)),
    )
    thought = think(after_opener="", before_closer="", after="")
    return ToolStyle(name, WireFormat(Seq(thought, Opt(Content()), Opt(calls))), about)


DEEPSEEK_V3_2 = _style("deepseek_v3_2", "function_calls", "tool_calls", "DSML: DeepSeek V3.2")
DEEPSEEK_V4 = _style("deepseek_v4", "tool_calls", "function_calls", "as deepseek_v3_2, but tool_calls: DeepSeek V4")
