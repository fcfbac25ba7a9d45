"""What begins as a call that no mark opens: an answer may begin as all else does, and is read as one.

Not every text that begins so is a call, but a grammar must know it soon: it has no second look, as the reader has.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolgram.wire.json_shapes import BESIDE_CALLS, ArrayShape, Leaf, ObjectShape, Shape

_SPACE = " \n\r\t"
_TELLING = 4  # letters of a tool's name that tell a call from text: whole names of many tools would be long


def of_json(shape: Shape) -> tuple[str, ...]:
    """Texts of which one begins each value that may be a call, or a list of them; none where it is neither.

    They are a brace and a key that a call may begin with, or that may be one by an escape, or white space: a model that
    breaks the line there may have either in mind, and only calls on one line are admitted.
    """
    match shape:
        case ArrayShape(item):
            return _behind("[", of_json(item))
        case ObjectShape(members) if names := [key for key, member in members if member == Leaf("name")]:
            nested = [key for key, member in members if isinstance(member, ObjectShape)]
            keys = (*names, *nested, *BESIDE_CALLS)
            escaped = (f"{key[:end]}\\" for key in keys for end in range(len(key) + 1))
            begun = (f'{{"{text}' for text in (*(f'{key}"' for key in keys), *escaped))
            return tuple(dict.fromkeys((*(f"{{{char}" for char in _SPACE), *begun)))
        case _:
            return ()


def of_names(before: str, names: Iterable[str]) -> tuple[str, ...]:
    """Texts of which one begins each text of which a part is prescribed, and behind it one of these names."""
    return _behind(before, dict.fromkeys(name[:_TELLING] for name in names))


def _behind(before: str, begun: Iterable[str]) -> tuple[str, ...]:
    """What begins all texts that begin so, with white space or none before one of these; none where there are none."""
    begun = tuple(begun)
    spaced = (f" {letter}" for letter in dict.fromkeys((*(text[:1] for text in begun), *_SPACE)))
    return tuple(before + text for text in (*begun, *spaced, "\n", "\r", "\t")) if begun else ()
