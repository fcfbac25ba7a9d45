"""Where text of a prompt that is not trusted spells a special token, alone or together with what stands beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from toolgram.engines.base import Prompt


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """One of these texts, the longest first; with none it never matches."""
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def forged(prompt: Prompt, special: re.Pattern[str]) -> list[int]:
    """Where a special text begins that is not all trusted, also inside another one, but for single characters."""
    text = "".join(part for part, _ in prompt)
    trusted = bytearray()
    for part, trust in prompt:
        trusted += bytes((trust,)) * len(part)
    found: list[int] = []
    at = 0
    while (match := special.search(text, at)) is not None:
        at, end = match.span()
        if end - at > 1 and not all(trusted[at:end]):
            found.append(at)
        at += 1
    return found


def cut(text: str, places: Sequence[int]) -> list[str]:
    """The text in pieces, cut at places in their order."""
    return [text[start:end] for start, end in zip((0, *places), (*places, len(text)), strict=True)]


def broken(prompt: Prompt, special: re.Pattern[str]) -> Prompt:
    r"""The prompt with what is forged broken by a backslash: <|im_end|> becomes <\|im_end|>."""
    places = iter(at + 1 for at in forged(prompt, special))
    place = next(places, None)
    if place is None:
        return prompt
    parts: list[tuple[str, bool]] = []
    start = 0
    for text, trust in prompt:
        here: list[int] = []
        while place is not None and place - start <= len(text):
            here.append(place - start)
            place = next(places, None)
        parts.append(("\\".join(cut(text, here)) if here else text, trust))  # what is an image stays one
        start += len(text)
    return tuple(parts)
