"""Regular expressions that spell a format (`<tool_call>\\s*<function=(?P<name>\\w+)>`), as texts, gaps and slots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from toolgram.errors import TemplateError
from toolgram.grammar.ir import CharSet
from toolgram.grammar.regular import regex_syntax
from toolgram.grammar.regular.character_sets import SPACE

_NAMED = re.compile(r"\(\?P<(?P<name>\w+)>")
_SKIPPED = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_STAND_IN = 0xE000  # named groups become characters of private use, since the tree of a pattern has no names
_MOST_GROUPS = 16


@dataclass(frozen=True, slots=True)
class Slot:
    """A named group."""

    name: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Text that the pattern leaves open, or none: white space, or with another `pattern` anything."""

    pattern: str = r"\s*"


Piece = str | Slot | Gap
GAP, ANYTHING = Gap(), Gap(r".*?")


def pieces_of(pattern: str, pointer: str) -> tuple[Piece, ...]:
    """The parts of a matching text; optional parts are left out, and of alternatives the first is taken.

    Raises TemplateError with the pointer for a pattern that requires text without saying which.
    """
    names: list[str] = []
    try:
        tree = regex_syntax.parse(_with_stand_ins(pattern, names))
        pieces = list(_pieces(tree, names))
    except (regex_syntax.Malformed, regex_syntax.Unsupported, ValueError) as error:
        raise TemplateError(f"response_template{pointer}: {pattern!r} does not determine a text: {error}") from error
    found = joined(pieces)
    return found[1:] if found[:1] == (ANYTHING,) else found


def joined(pieces: list[Piece]) -> tuple[Piece, ...]:
    """The pieces with neighbouring texts joined, and neighbouring gaps too."""
    found: list[Piece] = []
    for kind, run in groupby(pieces, type):
        items = list(run)
        found.extend(["".join(map(str, items))] if kind is str else items[:1] if kind is Gap else items)
    return tuple(found)


def _with_stand_ins(pattern: str, names: list[str]) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        if match := _NAMED.match(pattern, at):
            out.append(chr(_STAND_IN + len(names)))
            names.append(match["name"])
            at = _end_of_group(pattern, match.end())
            if len(names) > _MOST_GROUPS:
                raise ValueError(f"more than {_MOST_GROUPS} groups")
        else:
            match = _SKIPPED.match(pattern, at)
            end = match.end() if match else at + 1
            out.append(pattern[at:end])
            at = end
    return "".join(out)


def _end_of_group(pattern: str, at: int) -> int:
    depth = 1
    while at < len(pattern):
        if match := _SKIPPED.match(pattern, at):
            at = match.end()
            continue
        depth += {"(": 1, ")": -1}.get(pattern[at], 0)
        at += 1
        if not depth:
            return at
    raise ValueError("a group that is not closed")


def _pieces(tree: regex_syntax.Tree, names: list[str]) -> Iterator[Piece]:
    match tree:
        case regex_syntax.Cat(items):
            for item in items:
                yield from _pieces(item, names)
        case regex_syntax.Alt(options):
            # An option that is no text at all stands for what the prompt may hold already.
            spelled = [pieces for option in options if (pieces := list(_pieces(option, names)))]
            yield from spelled[0] if spelled else ()
        case regex_syntax.Rep(item) if _is_space(item):
            yield GAP
        case regex_syntax.Rep(CharSet() as charset, _, None) if charset.ranges[0] != charset.ranges[-1]:
            yield ANYTHING
        case regex_syntax.Rep(item, low):
            for _ in range(low):
                yield from _pieces(item, names)
        case regex_syntax.Look():
            return
        case CharSet(ranges):
            (low, high), *more = ranges
            if _is_space(tree) and low != high:
                yield GAP
            elif more or low != high:
                raise ValueError("it matches any of several characters")
            else:
                slot = low - _STAND_IN
                yield Slot(names[slot]) if 0 <= slot < len(names) else chr(low)


def _is_space(tree: regex_syntax.Tree) -> bool:
    spaces = {code for low, high in SPACE.ranges for code in range(low, high + 1)}
    return isinstance(tree, CharSet) and all(low in spaces and high in spaces for low, high in tree.ranges)
