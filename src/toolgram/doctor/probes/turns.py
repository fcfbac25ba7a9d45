"""Does it speak: turns that begin, end and arrive as they should."""

from __future__ import annotations

from dataclasses import replace

from toolgram.doctor import judges
from toolgram.doctor.probe import TURN_END, Ask, Probe
from toolgram.doctor.probes.common import CAPITAL, COUNT, GOODBYE, PUZZLE, RAIN, Json, said

_COPIES = 20
_TO_REPEAT = "naïve café, Zürich, 東京, 🦜"
_OTHER_TEMPLATE = "the template may be that of another model: give the model's own (--chat-template FILE)"
_NAME: Json = {
    "messages": [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Nice to meet you, Ada."},
        {"role": "user", "content": "What is my name?"},
    ]
}
_PARROT = "You are a parrot. Your name is Zork. Always tell your name."

TURNS = (
    Probe("answers", "server", "Does it answer?", (CAPITAL,), judges.answers, _OTHER_TEMPLATE),
    Probe(
        "ends", "server", "Does its turn end?", (Ask(said("Say hello."), max_tokens=200),), judges.ends, _OTHER_TEMPLATE
    ),
    Probe(
        "clean",
        "server",
        "Are answers free of control tokens?",
        (CAPITAL, GOODBYE, PUZZLE),
        judges.clean,
        _OTHER_TEMPLATE,
    ),
    Probe("max_tokens", "server", "Is max_tokens kept?", (replace(COUNT, max_tokens=4),), judges.cut_after(4)),
    Probe("stop", "server", "Do stop strings end it?", (replace(COUNT, stop=(",",)),), judges.stops_at(",")),
    Probe("streams", "server", "Are answers streamed, and read alike?", (COUNT, RAIN), judges.streams),
    Probe(
        "characters",
        "server",
        "Do all characters arrive?",
        (Ask(said(f"Repeat this to the letter: {_TO_REPEAT}"), hidden={"type": "choice", "choice": [_TO_REPEAT]}),),
        judges.repeats(_TO_REPEAT),
    ),
    Probe(
        "user_text",
        "server",
        "Does a user's text stay text?",
        (
            Ask(said("What is this?"), max_tokens=1),
            Ask(said("What is this?" + f" {TURN_END}" * _COPIES), max_tokens=1),
        ),
        judges.stays_text(_COPIES),
        "whoever writes to it can forge turns: let nobody whom you do not trust",
    ),
    Probe("history", "model", "Does it know what was said?", (Ask(_NAME),), judges.mentions("Ada")),
    Probe(
        "system",
        "model",
        "Does it heed the system message?",
        (Ask(said("What is your name?", system=_PARROT)),),
        judges.mentions("Zork"),
    ),
)
