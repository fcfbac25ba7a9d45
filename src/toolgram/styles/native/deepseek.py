"""DeepSeek R1, V3 and V3.1: calls between control tokens; V3.2 and V4: a markup of their own, "DSML".

A turn of R1 (chat template of deepseek-ai/DeepSeek-R1-Distill-Qwen-32B)::

    <think>
    The weather is needed.
    </think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Paris"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

and of V3.1 (chat template of deepseek-ai/DeepSeek-V3.1)::

    <think>The weather is needed.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city":
    "Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>

(on one line). The parameters of DSML say whether they are strings. A turn of V3.2 (encoding published with
deepseek-ai/DeepSeek-V3.2)::

    <think>The weather is needed.</think>

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

V4 (deepseek-ai/DeepSeek-V4) has <｜DSML｜tool_calls> in its place. Where a call has no parameters, that encoding writes
an empty line in their place, which llama.cpp's template of V3.2 leaves out.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.wire.encodings import Tagged
from toolgram.wire.format import (
    NOTHING_WRITTEN,
    Arguments,
    Call,
    Content,
    Lenient,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    Opt,
    Seq,
    WireFormat,
)

_BEGIN, _END = Mark("<｜tool▁call▁begin｜>"), Mark("<｜tool▁call▁end｜>")
_SEPARATOR = Mark("<｜tool▁sep｜>")


# The distilled models of R1 confuse its signs (ggml-org/llama.cpp#11607).
_SECTION = Mark(
    "<｜tool▁calls▁begin｜>",
    ("<｜tool_calls_begin｜>", "<｜tool calls begin｜>", "<｜tool\\_calls\\_begin｜>", "<｜tool▁calls｜>"),
)


def _section(call: Node, separator: Node) -> Node:
    calls = Many(Call(call), separator=separator, min=1)
    return Opt(Seq(Lenient(_SECTION, NOTHING_WRITTEN), calls, Mark("<｜tool▁calls▁end｜>")))


_R1_CALL = Seq(_BEGIN, Lit("function"), _SEPARATOR, Name(), Lit("\n```json\n"), Arguments(), Lit("\n```"), _END)
_V3_CALL = Seq(_BEGIN, Name(), _SEPARATOR, Arguments(), _END)

DSML = Tagged(
    "dsml",
    open='<｜DSML｜parameter name="',
    after_key=(("string", '" string="true">'), ("", '" string="false">')),
    close="</｜DSML｜parameter>\n",
    followed_by="<",
)

_DSML_INVOKE = Seq(
    Mark('<｜DSML｜invoke name="'),
    Name(),
    Lit('">\n'),
    Arguments(DSML),
    Lit("", ("\n",)),
    Mark("</｜DSML｜invoke>"),
    Lit("\n"),
)


def _dsml(name: str, section: str, other: str, about: str) -> ToolStyle:
    """The style with its calls in a section of this name; the reader accepts the other name too."""
    opener = Mark(f"<｜DSML｜{section}>", (f"<｜DSML｜{other}>",))
    calls = Seq(
        Lit("\n\n"),
        Lenient(Seq(opener, Lit("\n")), NOTHING_WRITTEN),  # the models sometimes forget it
        Many(Call(_DSML_INVOKE), min=1),
        Mark(f"</｜DSML｜{section}>", (f"</｜DSML｜{other}>",)),
    )
    reasoning = think(after_opener="", before_closer="", after="")
    wire = WireFormat(Seq(reasoning, Opt(Content()), Opt(calls)))
    return ToolStyle(name, wire, about, calls_close_reasoning=True)  # as the parsers of llama.cpp have it


DEEPSEEK_R1 = ToolStyle(
    "deepseek_r1",
    WireFormat(
        Seq(think(after_opener="\n", before_closer="\n", after="\n\n"), Opt(Content()), _section(_R1_CALL, Lit("\n")))
    ),
    "calls as fenced JSON between control tokens: DeepSeek R1, V3",
)
DEEPSEEK_V3_1 = ToolStyle(
    "deepseek_v3_1",
    WireFormat(Seq(think(after_opener="", before_closer="", after=""), Opt(Content()), _section(_V3_CALL, Lit("")))),
    "name and JSON between control tokens: DeepSeek V3.1",
    calls_close_reasoning=True,  # where it thinks: sgl-project/sglang#9446
)
DEEPSEEK_V3_2 = _dsml("deepseek_v3_2", "function_calls", "tool_calls", "DSML: DeepSeek V3.2")
DEEPSEEK_V4 = _dsml("deepseek_v4", "tool_calls", "function_calls", "as deepseek_v3_2, but tool_calls: DeepSeek V4")
