"""Kimi K2 and K3.

A turn of K2 (chat template of moonshotai/Kimi-K2-Instruct); the ids of calls count up over the conversation::

    I will look that up.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0
    <|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>

(on one line). K3 has channels, calls and arguments between control tokens; every argument states its
type. A turn (chat template of moonshotai/Kimi-K3, which ends the prompt with the first `<|open|>think<|sep|>`)::

    <|open|>think<|sep|>The weather is needed.<|close|>think<|sep|><|open|>response<|sep|>I will look that
    up.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument
    key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>

(on one line).
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.wire.encodings import Tagged
from toolgram.wire.format import (
    COUNT,
    NOTHING_WRITTEN,
    Arguments,
    Call,
    CallId,
    Content,
    Lenient,
    Lit,
    Many,
    Mark,
    Name,
    Opt,
    Reasoning,
    Seq,
    WireFormat,
)


def _open(what: str) -> Mark:
    return Mark(f"<|open|>{what}<|sep|>")


def _close(what: str) -> Mark:
    return Mark(f"<|close|>{what}<|sep|>")


_TYPES = ("string", "number", "boolean", "object", "array", "null")
ARGUMENTS = Tagged(
    "kimi_k3",
    open='<|open|>argument key="',
    after_key=tuple((kind, f'" type="{kind}"<|sep|>') for kind in _TYPES),
    close="<|close|>argument<|sep|>",
    escapes=(("&", "&amp;"), ('"', "&quot;")),
)

_CALL = Seq(
    Mark('<|open|>call tool="'),
    Name(),
    Lit('" index="'),
    COUNT,
    Lit('"<|sep|>'),
    Arguments(ARGUMENTS),
    _close("call"),
)
# Where there are calls alone, it is empty.
_RESPONSE = Seq(_open("response"), Opt(Content()), _close("response"))

_K2_CALL = Seq(
    Mark("<|tool_call_begin|>"),
    Lenient(Lit("functions."), NOTHING_WRITTEN),
    Name(),
    Lit(":"),
    CallId("0-9", 1, "functions.{name}:{id}", most=3),
    Mark("<|tool_call_argument_begin|>"),
    Arguments(),
    Mark("<|tool_call_end|>"),
)
# The models sometimes forget the section, or write it in the singular.
_K2_OPENER = Lenient(Mark("<|tool_calls_section_begin|>", ("<|tool_call_section_begin|>",)), NOTHING_WRITTEN)
_K2_CLOSER = Mark("<|tool_calls_section_end|>", ("<|tool_call_section_end|>",))
_K2_SECTION = Seq(_K2_OPENER, Many(Call(_K2_CALL), min=1), _K2_CLOSER)

KIMI_K2 = ToolStyle(
    "kimi_k2",
    WireFormat(Seq(think(after_opener="", before_closer="", after=""), Opt(Content()), Opt(_K2_SECTION))),
    "functions.name:0 and JSON between control tokens: Kimi K2",
    announced_by="tool_declare<|im_middle|>",
    reasons=True,
    calls_close_reasoning=True,  # K2 Thinking and later: vllm-project/vllm#32216, sgl-project/sglang#18199
)
KIMI_K3 = ToolStyle(
    "kimi_k3",
    WireFormat(
        Seq(
            Opt(Seq(_open("think"), Reasoning(), _close("think"))),
            Opt(_RESPONSE),
            Opt(Seq(_open("tools"), Many(Call(_CALL), min=1), _close("tools"))),
            Opt(_close("message")),
        )
    ),
    "channels, calls and arguments between control tokens: Kimi K3",
)
