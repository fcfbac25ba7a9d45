"""Kimi K3: channels, calls and arguments between control tokens; every argument tells its type.

A turn (chat template of moonshotai/Kimi-K3, which ends the prompt with the first `<|open|>think<|sep|>`)::

    <|open|>think<|sep|>The weather is needed.<|close|>think<|sep|><|open|>response<|sep|>I will look that
    up.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument
    key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>

(on one line).
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.arguments import Tagged
from toolgram.wire.format import (
    Arguments,
    Call,
    CallId,
    Content,
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
)

_CALL = Seq(
    Mark('<|open|>call tool="'),
    Name(),
    Lit('" index="'),
    CallId("0-9", 1),
    Lit('"<|sep|>'),
    Arguments(ARGUMENTS),
    _close("call"),
)
_RESPONSE = Seq(_open("response"), Content(), _close("response"))

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
