"""The probes. Small models can answer what is asked: that one knows a capital is not what a probe is about."""

from __future__ import annotations

from collections.abc import Mapping

from toolgram.doctor.probe import Probe
from toolgram.doctor.probes.calls import CALLS
from toolgram.doctor.probes.grammars import GRAMMARS
from toolgram.doctor.probes.reasoning import REASONING
from toolgram.doctor.probes.server import SERVER
from toolgram.doctor.probes.turns import TURNS

SECTIONS: Mapping[str, tuple[Probe, ...]] = {
    "Turns": TURNS,
    "Grammars": GRAMMARS,
    "Calls": CALLS,
    "Reasoning": REASONING,
    "Server": SERVER,
}
PROBES = tuple(probe for section in SECTIONS.values() for probe in section)
