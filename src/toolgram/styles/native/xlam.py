"""xLAM 2: a bare JSON list; a turn is either calls or an answer.

A turn (the chat templates in vLLM's examples)::

    [{"name": "get_weather", "arguments": {"city": "Paris"}}]
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Alt, Arguments, Array, Call, Content, Name, Object, Opt, WireFormat

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))

_CALLS = Array(_CALL)

XLAM = ToolStyle(
    "xlam",
    WireFormat(Alt(_CALLS, Opt(Content()))),
    "a bare JSON list: xLAM 2",
    calls_after_words=_CALLS,
)
