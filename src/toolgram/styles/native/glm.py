"""GLM 4.5 to 4.7, Laguna: a name, then keys and values between tags.

A turn (chat template of zai-org/GLM-4.7-Flash)::

    <think>The weather is needed.</think>I will look that
    up.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>

(on one line). GLM 4.5 and 4.6 put each on its own line. GLM-4, before them, wrote an answer or one call (chat
templates of GLM-4 0414, which has a space behind the name, and glm-4-9b-chat, as Xinference has them)::

    get_weather
    {"city": "Paris"}
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import thinking
from toolgram.wire.encodings import Tagged
from toolgram.wire.format import (
    Alt,
    Arguments,
    Call,
    Content,
    Lenient,
    Lit,
    Many,
    Mark,
    Name,
    NamedMark,
    Object,
    Opt,
    Seq,
    WireFormat,
)

_TIGHT = Tagged("glm", open="<arg_key>", after_key=(("", "</arg_key><arg_value>"),), close="</arg_value>")
_LINES = Tagged("glm_lines", open="<arg_key>", after_key=(("", "</arg_key>\n<arg_value>"),), close="</arg_value>\n")

# Some write JSON (ml-explore/mlx-lm#792): after the name, or with it.
_JSON = Object(("name", Name()), ("arguments", Arguments()))


def _wire(parameters: Tagged, line: str) -> WireFormat:
    """Each part begins with `line`, so that a call may follow an answer or come first."""
    named = Seq(Name(), Lit(line), Lenient(Arguments(parameters), Arguments()))
    call = Seq(Mark("<tool_call>"), Lenient(named, _JSON), Mark("</tool_call>"))
    calls = Many(Call(call), separator=Lit(line), min=1)
    reasoning = thinking("<think>", "</think>", before=line)
    return WireFormat(Seq(reasoning, Opt(Seq(Lit(line), Content())), Opt(Seq(Lit(line), calls))))


GLM_4_7 = ToolStyle(
    "glm_4_7",
    _wire(_TIGHT, ""),
    "keys and values between tags: GLM 4.7, Laguna S",
    calls_close_reasoning=True,  # as turns show: vllm-project/vllm#56635, anomalyco/opencode#6883
)
GLM_4_5 = ToolStyle(
    "glm_4_5",
    _wire(_LINES, "\n"),
    "as glm_4_7, but each on its own line: GLM 4.5, 4.6, Laguna XS",
    calls_close_reasoning=True,  # sgl-project/sglang#17714
)

_NAMED = Call(Seq(Alt(NamedMark("", "\n"), NamedMark("", " \n")), Arguments()))

GLM_4 = ToolStyle(
    "glm_4",
    WireFormat(Alt(Seq(Lit("", others=("\n",)), _NAMED), Opt(Seq(Lit("\n"), Content())))),
    "a name, and JSON on the next line: GLM-4 of 2024 and 2025",
)
