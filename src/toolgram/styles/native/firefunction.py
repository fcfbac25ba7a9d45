"""Firefunction v2: one word and a JSON list.

A turn (chat template of fireworks-ai/llama-3-firefunction-v2)::

    I will look that up. functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Array, Call, Content, Lit, Mark, Name, Object, Opt, Seq, WireFormat

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))

FIREFUNCTION = ToolStyle(
    "firefunction",
    WireFormat(Seq(Opt(Content()), Opt(Seq(Lit(" "), Mark("functools"), Array(_CALL))))),
    "functools and a JSON list: Firefunction v2",
)
