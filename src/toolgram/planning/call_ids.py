"""Ids for calls to which the model gave none, in the form that the model's family knows."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from toolgram.conversation.request import Request
from toolgram.wire import format as wire

IdMaker = Callable[[str, int], str]
"""The id of a call, from the name of its tool and its place among the calls of the turn."""

_SHORT, _LONG = 9, 24


@dataclass(frozen=True, slots=True)
class CallIds:
    """Which form ids have: the wire's own, nine characters where the template takes no others, else OpenAI's."""

    on_wire: wire.CallId | None
    short: bool
    before: int
    """How many calls the conversation has already: an id that is a number counts over all of it."""

    @staticmethod
    def of(request: Request, format_: wire.WireFormat, *, short: bool) -> CallIds:
        """The form for a request."""
        return CallIds(
            format_.call_id, short, sum(len(message.get("tool_calls") or ()) for message in request.messages)
        )

    def maker(self, seed: int | None, prompt: Callable[[], str]) -> IdMaker:
        """Makes ids: new ones, or with a seed those of the seed and the prompt, so that turns have different ones."""
        random = secrets.SystemRandom() if seed is None else _seeded(f"{seed}\n{prompt()}")

        def make(name: str, index: int) -> str:
            wire_id = self.on_wire
            if wire_id is not None and wire_id.alphabet == "0-9":
                return wire_id.form.format(name=name, id=self.before + index)
            if wire_id is not None:
                letters = _letters(wire_id.alphabet)
                return wire_id.form.format(name=name, id="".join(random.choices(letters, k=wire_id.length)))
            if self.short:
                return "".join(random.choices(_letters("a-zA-Z0-9"), k=_SHORT))
            return f"call_{random.getrandbits(4 * _LONG):0{_LONG}x}"

        return make


def _seeded(text: str) -> Random:
    return Random(hashlib.sha256(text.encode(errors="surrogatepass")).digest())  # noqa: S311 - ids are no secrets


def _letters(alphabet: str) -> str:
    """The characters of a class as in "a-zA-Z0-9"."""

    def between(match: re.Match[str]) -> str:
        return "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1)))

    return re.sub(r"(.)-(.)", between, alphabet)
