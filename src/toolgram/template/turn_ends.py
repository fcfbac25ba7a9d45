"""What stands around a turn of the model: what its prompt begins it with, and what ends it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from toolgram.template.markers import DOUBLED, MARKER
from toolgram.template.probe_turns import ANSWER, MORE, SECOND, USER, VALUE, Message, assistant, user

Draw = Callable[..., str | None]
"""Renders the messages of a probe; None where the template refuses them."""


def prompt_for_a_turn(draw: Draw, eos_token: str) -> str:
    """What a template adds for the model to begin its turn."""
    without, with_ = draw([user()]), draw([user()], add_generation_prompt=True)
    if with_ is None or without is None:
        return ""
    ended = without.removesuffix(eos_token) if eos_token else without
    for text in (without, ended):
        if with_.startswith(text):
            return with_[len(text) :]
    # If it changes the text before the question as well, it is what it adds after it.
    after, more = without.rpartition(USER)[2], with_.rpartition(USER)[2]
    if USER in without and len(after) < len(more) and more.startswith(after):
        return more[len(after) :]
    shared = len(_shared(with_, without))
    # If both continue with a marker, they share its first characters: go back to where it begins.
    begins = [match.start() for match in MARKER.finditer(with_) if match.start() <= shared < match.end()]
    return with_[min([shared, *begins]) :]


def turn_ends(draw: Draw, calling: Sequence[Message], eos_token: str) -> tuple[str, tuple[str, ...]]:
    """What follows an assistant's content, and the strings at which a turn of the model ends.

    `calling` are a turn with one call and one with two, or nothing where the template takes no calls.
    """
    whole = draw([user(), assistant()])
    last = _after(whole, ANSWER)
    middle = _after(draw([user(), assistant(), user(MORE)]), ANSWER, MORE)
    turn_end = _before_next_turn(_shared(last, middle), whole or "")
    ends = [_stop(turn_end, last, middle), eos_token]
    if calling:
        one, two = (draw([user(), turn], tools=True) for turn in calling)
        # A marker right after the arguments' own brackets, and then nothing, ends the turn, like harmony's <|call|>.
        match = re.fullmatch(rf"[\"'\]}})]*\s*({MARKER.pattern})\s*", _after(one, VALUE))
        if match and not _closes_a_call(match[1], two or ""):
            ends.append(match[1])
    return turn_end, tuple(dict.fromkeys(end for end in ends if end.strip()))


def _closes_a_call(mark: str, two: str) -> bool:
    """Whether a mark belongs to the calls: it closes what another opens, or stands between two of them."""
    return mark.startswith("</") or (SECOND in two and mark in _after(two, VALUE, SECOND))


def _before_next_turn(text: str, conversation: str) -> str:
    """Cuts a text where the next turn begins: at the marker with which conversations begin, or inside a marker."""
    first = MARKER.match(conversation)
    for match in MARKER.finditer(text):
        if first is not None and match[0] == first[0]:
            return text[: match.start()]
    return re.sub(r"<[|｜]?\Z", "", text)


def _stop(turn_end: str, last: str, middle: str) -> str:
    """The last marker of what ends a turn; if nothing ends it, the first marker of what follows, or that text."""
    if markers := DOUBLED.findall(turn_end):
        return markers[-1]
    if turn_end.strip():
        return turn_end.strip()
    for text in (last, middle):
        if match := MARKER.match(text.lstrip()):
            return match[0]
    return middle.rstrip()


def _shared(first: str, second: str) -> str:
    """The common prefix of two texts."""
    length = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    return first[:length] if length is not None else min(first, second, key=len)


def _after(text: str | None, word: str, before: str | None = None) -> str:
    rest = (text or "").rpartition(word)[2] if before is None else (text or "").partition(word)[2]
    return rest.partition(before)[0] if before is not None else rest
