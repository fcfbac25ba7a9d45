"""Expressions as Lark spells them: literals in quotes, regular expressions between slashes, terminals by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby

from toolgram.caching import counted
from toolgram.grammar.dialects.lark.text import text_expression
from toolgram.grammar.hashing import found_once
from toolgram.grammar.ir import (
    EMPTY,
    MAX_CODE_POINT,
    CharSet,
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Sequence,
    Text,
    choice,
    is_empty,
    not_chars,
    seq,
)
from toolgram.grammar.walk import names_in

_QUOTED = re.compile(r'["\\\x00-\x1f\x7f]')
"""What is not itself between quotes."""
_LONGEST_KEPT = 64  # characters of a literal of which the spelling is kept
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def terminal(expr: Expr, names: Mapping[str, str], tightness: int = 0) -> str:
    """The body of a terminal; what has no references in it is one regular expression.

    It stands in parentheses where something binds tighter around it (1: a sequence, 2: a repetition).
    """
    match expr:
        case Ref(name):
            return names[name]
        case Sequence(items) if _refers(expr):
            runs = [list(run) for _, run in groupby(items, _refers)]
            parts = [part for run in runs for part in (run if _refers(run[0]) else [seq(*run)])]
            text = " ".join(terminal(part, names, 1) for part in parts)
            return f"({text})" if tightness > 1 else text
        case Choice(options) if _refers(expr):
            plain = [option for option in options if not _refers(option)]
            parts = [*([choice(*plain)] if plain else []), *(option for option in options if _refers(option))]
            text = " | ".join(terminal(part, names) for part in parts)
            return f"({text})" if tightness else text
        case Repeat(item, least, most) if _refers(expr):
            inner = terminal(item, names, 2)
            return (f"({inner})" if isinstance(item, Repeat) else inner) + count(least, most)
        case Literal(text):
            return quoted(text)
        case _:
            return f"/{regex(expr)}/"


def _refers(expr: Expr) -> bool:
    return bool(names_in(expr))


def count(least: int, most: int | None) -> str:
    """How often something stands, written after it."""
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    if (least, most) == (0, 1):
        return "?"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def quoted(text: str) -> str:
    """A literal between quotes."""
    return _quoted(text) if len(text) <= _LONGEST_KEPT else _in_quotes(text)


@counted(4096)
def _quoted(text: str) -> str:
    return _in_quotes(text)


def _in_quotes(text: str) -> str:
    return f'"{_QUOTED.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if char in '"\\':
        return "\\" + char
    return _NAMED_ESCAPES.get(char) or f"\\u{ord(char):04x}"


def regex(expr: Expr, tightness: int = 0) -> str:
    """An expression as what stands between slashes (1: inside a sequence, 2: under a repetition)."""
    if isinstance(expr, Text):
        return regex(text_expression(expr), tightness)
    return f"({_regex(expr)})" if tightness > _looseness(expr) else _regex(expr)


def _looseness(expr: Expr) -> int:
    """How tight things may bind around an expression that stands in no parentheses."""
    if isinstance(expr, Literal):
        return 2 if len(expr.text) == 1 else 1
    if isinstance(expr, Choice):
        return 1 if EMPTY in expr.options else 0
    return 1 if isinstance(expr, Sequence | Repeat) else 2


@found_once
def _regex(expr: Expr) -> str:
    if isinstance(expr, Literal):
        return "".join(map(_in_regex, expr.text))
    if isinstance(expr, CharSet):
        return _class(expr)
    if isinstance(expr, Sequence):
        return "".join([regex(item, 1) for item in expr.items])
    if isinstance(expr, Choice):
        full = [option for option in expr.options if not is_empty(option)]
        if len(full) == len(expr.options):
            return "|".join(map(regex, full))
        if len(full) == 1:
            return regex(full[0], 2) + "?"
        return f"({'|'.join(map(regex, full))})" + ("?" if full else "")
    if isinstance(expr, Repeat):
        return regex(expr.item, 2) + count(expr.min, expr.max)
    raise TypeError(f"not a regular expression: {expr!r}")


def _in_regex(char: str) -> str:
    if char in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[char]
    if not (" " <= char <= "~"):
        return f"\\x{{{ord(char):x}}}"
    return char if char.isalnum() or char in " <>_=:;,!@%'\"`" else "\\" + char


def _class(charset: CharSet) -> str:
    if len(charset.ranges) == 1 and charset.ranges[0][0] == charset.ranges[0][1]:
        return _in_regex(chr(charset.ranges[0][0]))
    outside = not_chars(*charset.ranges)
    if not outside.ranges:
        return "(?s:.)"
    if charset.ranges[-1][1] == MAX_CODE_POINT:
        return f"[^{_ranges(outside)}]"
    return f"[{_ranges(charset)}]"


def _ranges(charset: CharSet) -> str:
    return "".join(
        _in_regex(chr(low)) if low == high else f"{_in_regex(chr(low))}-{_in_regex(chr(high))}"
        for low, high in charset.ranges
    )
