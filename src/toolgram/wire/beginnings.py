"""What begins as a call that no mark opens: an answer may begin as all else does, and is read as one.

Not every text that begins so is a call, but a grammar must know it soon: it has no second look, as the reader has.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Iterable, Iterator

from toolgram.wire.json_shapes import CALL_TYPE, TYPE, ArrayShape, Leaf, ObjectShape, Shape

_SPACE = " \n\r\t"
_TELLING = 4  # letters of a tool's name that tell a call from text: whole names of many tools would be long
_OF_TOOLS = f"{string.ascii_lowercase}_\\"
"""With what names of tools begin, a model's own inventions too, and those of people and places hardly."""


def of_json(shape: Shape, names: Collection[str]) -> tuple[str, ...]:
    """Texts of which one begins each value that may be a call of one of these tools, or a list of them; none where it
    is neither.

    They are a brace and a key that a call may begin with, and what its value tells, or white space: a model that breaks
    the line there may have either in mind, and only calls on one line are admitted.
    """
    match shape:
        case ArrayShape(item):
            return _behind("[", of_json(item, names))
        case ObjectShape(members) if called := [key for key, member in members if member == Leaf("name")]:
            nested = (f'{{"{key}"' for key, member in members if isinstance(member, ObjectShape))
            letters = sorted({*_OF_TOOLS, *(name[0] for name in names if name)})
            told = (*((key, letters) for key in called), (TYPE, (CALL_TYPE[:_TELLING],)))
            return (*(f"{{{char}" for char in _SPACE), *nested, *(text for each in told for text in _of_member(*each)))
        case _:
            return ()


def of_names(before: str, names: Iterable[str]) -> tuple[str, ...]:
    """Texts of which one begins each text of which a part is prescribed, and behind it one of these names."""
    return _behind(before, dict.fromkeys(name[:_TELLING] for name in names))


def _of_member(key: str, begun: Iterable[str]) -> Iterator[str]:
    """Texts of which one begins each object whose first member is this, a string that begins so."""
    for space in ("", " "):
        yield from (f'{{"{key}":{space}"{text}' for text in begun)


def _behind(before: str, begun: Iterable[str]) -> tuple[str, ...]:
    """What begins all texts that begin so, with white space or none before one of these; none where there are none."""
    begun = tuple(begun)
    spaced = (f" {letter}" for letter in dict.fromkeys((*(text[:1] for text in begun), *_SPACE)))
    return tuple(before + text for text in (*begun, *spaced, "\n", "\r", "\t")) if begun else ()
