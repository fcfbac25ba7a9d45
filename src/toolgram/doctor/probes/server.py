"""Does it serve: several at once, clients that leave, and what saves time."""

from __future__ import annotations

from dataclasses import replace

from toolgram.doctor import judges
from toolgram.doctor.probe import Probe
from toolgram.doctor.probes.common import CAPITAL, COUNT, RAIN, RAIN_AUTO

SERVER = (
    Probe("together", "server", "Are four at once answered?", (RAIN,) * 4, judges.all_end, at_once=True),
    Probe(
        "leaving", "server", "Is one answered after another left?", (replace(COUNT, leave=3), CAPITAL), judges.goes_on
    ),
    Probe("repeatable", "extra", "Is the same prompt answered alike?", (COUNT,) * 2, judges.same),
    Probe("remembers", "extra", "Is a prompt that was read remembered?", (RAIN_AUTO,) * 2, judges.remembers),
    Probe("forces", "extra", "Are tokens that are certain not sampled?", (RAIN,), judges.forces),
    Probe("weighs", "extra", "Does it tell the odds of a call?", (RAIN_AUTO,), judges.weighs),
)
