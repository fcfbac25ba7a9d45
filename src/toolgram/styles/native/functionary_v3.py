"""Functionary 3.2: `>>>` and a recipient before each part.

A turn (chat template of meetkai/functionary-medium-v3.2, which ends the prompt with the first `>>>`)::

    >>>all
    I will look that up.>>>get_weather
    {"city": "Paris"}
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Call, Chain, Content, Lit, Many, Mark, Name, Opt, Seq, WireFormat

_LEAD = Mark(">>>")

WIRE = WireFormat(
    Chain(
        Opt(Seq(_LEAD, Lit("all\n"), Content())),
        Many(Call(Seq(_LEAD, Name(), Lit("\n"), Arguments()))),
        join=Lit(""),
    )
)

FUNCTIONARY_V3 = ToolStyle("functionary_v3", WIRE, ">>> and a recipient before each part: Functionary 3.2")
