"""What a template renders after the question: the turns that discovery compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolgram.styles.probes import (
    CONTENT,
    ONE,
    REASONING,
    TWO,
    CallProbe,
    Scene,
    TurnProbe,
    common_prefix,
    tail,
    without_end,
)

_REASONED = (
    TurnProbe((), CONTENT, REASONING),
    TurnProbe((ONE,), "", REASONING),
    TurnProbe((ONE,), CONTENT, REASONING),
)


@dataclass(frozen=True)
class Tails:
    """Turns with content, reasoning, a call, and several of these; None for what is not shown as it was given.

    `prompt` opens a turn; `question_end` is the part of it that closes the question, `question_close` that without the
    stop string.
    """

    prompt: str
    question_end: str
    question_close: str
    content: str
    call: str
    content_call: str | None
    calls: str | None
    reasoning: str | None
    reasoning_call: str | None
    reasoning_content_call: str | None

    @staticmethod
    def of(scene: Scene) -> Tails | None:
        """All the renderings of a template; None if it does not show a call, or an answer."""
        prompt, question = tail(scene, None, prompts=True), tail(scene, None) or ""
        content, call_ = _drawn(scene, TurnProbe((), CONTENT)), _drawn(scene, TurnProbe((ONE,)))
        if prompt is None or content is None or call_ is None:
            return None
        reasoned = [_drawn(scene, turn) for turn in _REASONED]
        return Tails(
            prompt,
            common_prefix(prompt, question),
            without_end(scene, question, 0),
            content,
            call_,
            _drawn(scene, TurnProbe((ONE,), CONTENT)),
            _drawn(scene, TurnProbe((ONE, TWO))),
            *reasoned,
        )

    @property
    def thinks(self) -> str | None:
        """A turn that shows its reasoning."""
        return self.reasoning or self.reasoning_call or self.reasoning_content_call

    @property
    def after_content(self) -> str:
        """The text after an answer that ends its turn."""
        return self.content.partition(CONTENT)[2]

    @property
    def to_call(self) -> str | None:
        """The text between an answer and a call after it."""
        return None if self.content_call is None else _between(self.content_call, CONTENT, first_of_call)

    @property
    def thought_to_answer(self) -> str | None:
        """The text between reasoning and an answer."""
        return None if self.reasoning is None else _between(self.reasoning, REASONING, lambda text: text.index(CONTENT))

    @property
    def thought_to_call(self) -> str | None:
        """The text between reasoning and a call."""
        return None if self.reasoning_call is None else _between(self.reasoning_call, REASONING, first_of_call)


def _drawn(scene: Scene, turn: TurnProbe) -> str | None:
    """The turn as the template shows it, without what ends it; None unless all is shown, and all but names once."""
    text = tail(scene, turn)
    names = [probe.name for probe in turn.calls]
    words = [word for probe in turn.calls for word in _values(probe)]
    words += [word for word in (turn.content, turn.reasoning) if word]
    if text is None or any(text.count(word) != 1 for word in words) or any(name not in text for name in names):
        return None
    words += names
    return without_end(scene, text, max(text.rindex(word) + len(word) for word in words))


def _between(text: str, word: str, until: Callable[[str], int]) -> str | None:
    start, end = text.index(word) + len(word), until(text)
    return text[start:end] if start <= end else None


def _values(probe: CallProbe) -> tuple[str, ...]:
    return tuple(str(value) for value in probe.arguments.values())


def first_of_call(text: str) -> int:
    """Where the first part of the first call begins: its name, its id or a key."""
    return min(at for word in (ONE.name, ONE.id, *ONE.arguments) if (at := text.find(word)) >= 0)


def last_of_call(text: str) -> int:
    """Where the last part of the first call ends."""
    return max(text.rindex(word) + len(word) for word in (ONE.name, *_values(ONE)))
