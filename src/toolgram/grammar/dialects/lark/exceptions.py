"""Strings that are none of some: a tree of rules in a grammar, and in Lark all strings without these few.

llguidance sees quickly what may follow inside all strings without some; in the tree it has to try every token.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from toolgram.grammar.ir import CharSet, Choice, Expr, Literal, Ref, Repeat, Rules, Sequence, chars, repeat, seq

_LONGEST = 200  # characters of a string that is left out
_MOST = 1_000

_Letters = dict[str, CharSet]
"""Characters as a string spells them: by what stands before the last character of the spelling, if it is escaped."""


_NONE = CharSet(())


class Except(NamedTuple):
    """All strings of `char`, in their quotes, but these texts."""

    char: Expr
    texts: tuple[str, ...]

    @property
    def every(self) -> Expr:
        """All the strings."""
        return seq('"', repeat(self.char), '"')


class Exceptions:
    """Finds such strings among the expressions of some rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._letters: dict[Expr, _Letters | None] = {}

    def find(self, parts: list[Expr]) -> Except | None:
        """What the parts of a string say, if it is this, and it can be told for sure which texts are missing."""
        if len(parts) != 2 or parts[0] != Literal('"') or not isinstance(parts[1], Choice):
            return None
        ends = (option.items[-2:] if isinstance(option, Sequence) else () for option in parts[1].options)
        char = next((char for end in ends if (char := self._repeated(end)) is not None), None)
        if char is None or not _tells_apart(self._letters_of(char)):
            return None
        missing = self._missing(parts[1], char, 0)
        return Except(char, tuple('"' + text for text in missing)) if missing and len(missing) <= _MOST else None

    def _repeated(self, end: tuple[Expr, ...]) -> Expr | None:
        """The character that is repeated up to the quote in the last two parts of something, or in the last one."""
        body = self._rules[end[-1].name] if end and isinstance(end[-1], Ref) else Sequence(end)
        match body:
            case Sequence((Repeat(item, 0, None), Literal('"'))):
                return item
            case _:
                return None

    @staticmethod
    def _joined(parts: list[_Letters | None]) -> _Letters | None:
        joined: _Letters = {}
        for part in parts:
            if part is None:
                return None
            for before, charset in part.items():
                known = joined.get(before)
                joined[before] = charset if known is None else chars(*known.ranges, *charset.ranges)
        return joined

    def _is_rest(self, node: Expr, char: Expr) -> bool:
        """Whether the node is `char` any number of times, and the quote."""
        body = self._rules[node.name] if isinstance(node, Ref) else node
        return body == Sequence((Repeat(char, 0, None), Literal('"')))

    def _missing(self, node: Expr, char: Expr, depth: int) -> list[str] | None:
        """The ends of strings of `char` that the node has not; None if it is not made so that they can be told."""
        if depth > _LONGEST:
            return None
        if self._is_rest(node, char):
            return []
        if isinstance(node, Ref):
            return self._missing(self._rules[node.name], char, depth + 1)
        every = self._letters_of(char)
        found: list[str] = []
        others: _Letters | None = None
        heads: set[str] = set()
        ends = False
        for option in node.options if isinstance(node, Choice) else (node,):
            head, *tail = option.items if isinstance(option, Sequence) else (option,)
            if option == Literal('"'):
                ends = True
                continue
            letters = self._letters_of(head)
            missing = self._missing(seq(*tail), char, depth + 1) if tail and letters is not None else None
            if missing is None:
                return None
            if isinstance(head, Literal) and head.text not in heads:
                heads.add(head.text)
                found += [head.text + text for text in missing]
            elif missing or others is not None:
                return None
            else:
                others = letters
            if len(found) > _MOST:
                return None
        if every is None or not _are_all(every, others or {}, heads):
            return None
        return found if ends else [*found, '"']

    def _letters_of(self, expr: Expr) -> _Letters | None:
        """The characters of an expression that spells one character of a string; None if it is none."""
        match expr:
            case CharSet():
                return {"": expr}
            case Literal(text) if len(text) == 1 or (text[:1] == "\\" and len(text) in (2, 6)):
                return {text[:-1]: chars(text[-1])}
            case Sequence((Literal(text), CharSet() as charset)) if text[:1] == "\\" and len(text) in (1, 5):
                return {text: charset}
            case Choice(options):
                return self._joined([self._letters_of(option) for option in options])
            case Ref():
                if expr not in self._letters:
                    self._letters[expr] = None  # while it is looked at: one that refers to itself is no character
                    self._letters[expr] = self._letters_of(self._rules[expr.name])
                return self._letters[expr]
            case _:
                return None


def _tells_apart(letters: _Letters | None) -> bool:
    """Whether no spelling of a character is the beginning of another, so that each text is spelled in one way."""
    return (
        letters is not None
        and all(mark not in letters.get("", _NONE) for mark in '"\\')
        and "u" not in letters.get("\\", _NONE)
    )


def _are_all(every: _Letters, others: _Letters, heads: set[str]) -> bool:
    """Whether each character is either among the others or one of the heads."""
    for head in heads:
        before, char = head[:-1], head[-1]
        if char not in every.get(before, _NONE) or char in others.get(before, _NONE):
            return False
    return sum(map(_count, others.values())) + len(heads) == sum(map(_count, every.values())) and all(
        before in every and _is_within(charset, every[before]) for before, charset in others.items()
    )


@lru_cache(maxsize=1024)
def _is_within(inner: CharSet, outer: CharSet) -> bool:
    return all(any(begin <= low and high <= end for begin, end in outer.ranges) for low, high in inner.ranges)


def _count(charset: CharSet) -> int:
    return sum(high - low + 1 for low, high in charset.ranges)
