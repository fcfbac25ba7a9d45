"""Granite 3.3: a JSON list after a token. Granite 4 writes as Hermes does.

A turn (ibm-granite/granite-3.3-2b-instruct; 3.0 is the same, 3.1 has <tool_call> as its marker)::

    <think>The weather is needed.</think><|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.wire.format import Arguments, Array, Call, Content, Mark, Name, Object, Opt, Seq, WireFormat

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))

GRANITE_3_3 = ToolStyle(
    "granite_3_3",
    WireFormat(
        Seq(
            think(after_opener="", before_closer="", after=""),
            Opt(Content()),
            Opt(Seq(Mark("<|tool_call|>", ("<tool_call>",)), Array(_CALL))),
        )
    ),
    "a JSON list after <|tool_call|>: Granite 3.3",
    announced_by="<|tool_call|>",
    reasons=True,
)
