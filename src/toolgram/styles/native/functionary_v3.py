"""Functionary 3.2: `>>>` and a recipient before each part.

A turn (chat template of meetkai/functionary-medium-v3.2, which ends the prompt with the first `>>>`)::

    >>>all
    I will look that up.>>>get_weather
    {"city": "Paris"}
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Call, Chain, Content, Lit, Many, Mark, NamedMark, Opt, Seq, WireFormat

# With a recipient: alone it may stand in an answer, as Python writes it before a statement.
_CALL = Call(Seq(NamedMark(">>>", "\n", anywhere=True), Arguments()))

WIRE = WireFormat(Chain(Opt(Seq(Mark(">>>all\n"), Content())), Many(_CALL), join=Lit("")))

FUNCTIONARY_V3 = ToolStyle("functionary_v3", WIRE, ">>> and a recipient before each part: Functionary 3.2")
