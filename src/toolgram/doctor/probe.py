"""What a probe is: a question about a model and its server, the requests that find it out, and who judges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolgram.chat import Reply
from toolgram.conversation.events import Event
from toolgram.engines.base import Sampling
from toolgram.planning.plan import Plan

Body = Mapping[str, Any]
Kind = Literal["enforced", "server", "model", "extra"]
"""Whose a probe is: the grammar guarantees it; the server must do it; the model may be able to; it is good to have."""
Outcome = Literal["yes", "no", "untried"]

TURN_END = "⟨end of turn⟩"
"""Stands in a body for the text of the token that ends a turn of the template."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request: a chat-completions body, put with `max_tokens` and `stop` strings, at temperature 0.

    `hidden` is a response format that the grammar enforces and the prompt does not tell: what keeps to it was made to.
    With `leave` the stream is closed after so many pieces of text.
    """

    body: Body
    max_tokens: int = 96
    stop: tuple[str, ...] = ()
    hidden: Mapping[str, Any] | None = None
    leave: int | None = None

    @property
    def sampling(self) -> Sampling:
        """How it is sampled."""
        return Sampling(max_tokens=self.max_tokens, stop=self.stop, seed=1)


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a request, which took `seconds`, in `pieces` of text; `reply` is None if it was left, or failed.

    `free`: the engine says itself that it enforces nothing. `too_long`: its context does not hold the prompt.
    """

    plan: Plan
    reply: Reply | None
    events: tuple[Event, ...]
    pieces: int
    seconds: float
    free: bool = False
    error: str = ""
    too_long: bool = False

    @property
    def whole(self) -> Reply:
        """The reply, where there is one."""
        if self.reply is None:
            raise ValueError("nothing is judged of a request without a reply")
        return self.reply


Judgement = tuple[Outcome, str]
Judge = Callable[[tuple[Seen, ...]], Judgement]
"""Says of all that came whether the question is answered with yes, and what shows it."""


def _nothing(_plan: Plan) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question that yes is the good answer to. Its requests are put one after the other, or all `at_once`.

    `mend` is what to do where the answer is no. `needs` says of a plan why the question makes no sense for this
    template; "" where it does.
    """

    name: str
    kind: Kind
    question: str
    asks: tuple[Ask, ...]
    judge: Judge
    mend: str = ""
    at_once: bool = False
    needs: Callable[[Plan], str] = _nothing


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to a probe's question, what shows it, and how long that took."""

    probe: Probe
    outcome: Outcome
    evidence: str
    seconds: float
