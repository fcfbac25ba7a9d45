"""DeepSeek R1, V3 and V3.1: calls between control tokens.

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

(on one line).
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Node, Opt, Seq, WireFormat

_BEGIN, _END = Mark("<｜tool▁call▁begin｜>"), Mark("<｜tool▁call▁end｜>")
_SEPARATOR = Mark("<｜tool▁sep｜>")


def _section(call: Node, separator: Node) -> Node:
    calls = Many(Call(call), separator=separator, min=1)
    return Opt(Seq(Mark("<｜tool▁calls▁begin｜>"), calls, Mark("<｜tool▁calls▁end｜>")))


_R1_CALL = Seq(_BEGIN, Lit("function"), _SEPARATOR, Name(), Lit("\n```json\n"), Arguments(), Lit("\n```"), _END)
_V3_CALL = Seq(_BEGIN, Name(), _SEPARATOR, Arguments(), _END)

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
)
