"""What a template renders behind the question: the turns that discovery compares with one another."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

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

_THOUGHTS = (
    TurnProbe((), CONTENT, REASONING),
    TurnProbe((ONE,), "", REASONING),
    TurnProbe((ONE,), CONTENT, REASONING),
)
_PRINTED = re.compile("[\"']thinking[\"']")  # in a list of parts that is written as Python or JSON has it


@dataclass(frozen=True)
class Tails:
    """Turns with content, reasoning, a call, and some of these together; None for what is not shown as it was said.

    `prompt` opens a turn; `question_end` is what of it closes the question, `question_close` that without its stop.
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
        """All that a template renders; None where it does not show a call, or an answer."""
        prompt, question = tail(scene, None, prompts=True), tail(scene, None) or ""
        content, call_ = _drawn(scene, TurnProbe((), CONTENT)), _drawn(scene, TurnProbe((ONE,)))
        if prompt is None or content is None or call_ is None:
            return None
        thoughts = [_drawn(scene, turn) for turn in _THOUGHTS]
        if not any(thoughts):
            parts = [_drawn(scene, replace(turn, in_parts=True)) for turn in _THOUGHTS]
            thoughts = [text if text and not _PRINTED.search(text) else None for text in parts]
        return Tails(
            prompt,
            common_prefix(prompt, question),
            without_end(scene, question, 0),
            content,
            call_,
            _drawn(scene, TurnProbe((ONE,), CONTENT)),
            _drawn(scene, TurnProbe((ONE, TWO))),
            *thoughts,
        )

    @property
    def thinks(self) -> str | None:
        """A turn that shows its reasoning."""
        return self.reasoning or self.reasoning_call or self.reasoning_content_call

    @property
    def behind_content(self) -> str:
        """What stands behind an answer that ends its turn."""
        return self.content.partition(CONTENT)[2]

    @property
    def to_call(self) -> str | None:
        """What stands between an answer and a call behind it."""
        return None if self.content_call is None else _between(self.content_call, CONTENT, first_of_call)

    @property
    def thought_to_answer(self) -> str | None:
        """What stands between reasoning and an answer."""
        return None if self.reasoning is None else _between(self.reasoning, REASONING, lambda text: text.index(CONTENT))

    @property
    def thought_to_call(self) -> str | None:
        """What stands between reasoning and a call."""
        return None if self.reasoning_call is None else _between(self.reasoning_call, REASONING, first_of_call)


def _drawn(scene: Scene, turn: TurnProbe) -> str | None:
    """The turn as the template shows it, without what ends it; None where not all is shown, and all but names once."""
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
    """Where something of the first call stands first: its name, its id, or a key."""
    return min(at for word in (ONE.name, ONE.id, *ONE.arguments) if (at := text.find(word)) >= 0)


def last_of_call(text: str) -> int:
    """Where the first call has been said."""
    return max(text.rindex(word) + len(word) for word in (ONE.name, *_values(ONE)))
