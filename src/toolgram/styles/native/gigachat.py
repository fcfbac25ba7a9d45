"""GigaChat 3: a JSON object in a separate message.

A turn (ai-sage/GigaChat3-10B-A1.8B)::

    I will look that up.<|message_sep|>

    function call<|role_sep|>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Call, Content, Lit, Mark, Name, Object, Opt, Seq, WireFormat

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))

GIGACHAT = ToolStyle(
    "gigachat",
    WireFormat(
        Seq(
            Opt(Content()),
            Opt(Seq(Mark("<|message_sep|>"), Lit("\n\nfunction call"), Mark("<|role_sep|>"), Lit("\n"), _CALL)),
        )
    ),
    "a JSON object in a separate message: GigaChat 3",
)
