"""Strings that are none of some: a tree of rules in a grammar, and in Lark all strings without these few.

llguidance sees quickly what may follow inside all strings without some; in the tree it has to try every token.
"""

from __future__ import annotations

from typing import NamedTuple

from toolgram.grammar.ir import CharSet, Choice, Expr, Literal, Ref, Repeat, Rules, Sequence, chars, repeat, seq

_LONGEST = 200  # characters of a string that is left out
_MOST = 1_000

_Letters = dict[str, CharSet]
"""Characters as a string spells them: by what stands before the last character of the spelling, if it is escaped."""


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
        found: list[str] = []
        covered: list[_Letters] = []
        ends = False
        for option in node.options if isinstance(node, Choice) else (node,):
            head, *tail = option.items if isinstance(option, Sequence) else (option,)
            if option == Literal('"'):
                ends = True
                continue
            letters = self._letters_of(head)
            if letters is None or not tail:
                return None
            missing = self._missing(seq(*tail), char, depth + 1)
            if missing is None or (missing and not isinstance(head, Literal)):
                return None
            covered.append(letters)
            found += [head.text + text for text in missing] if isinstance(head, Literal) else []
            if len(found) > _MOST:
                return None
        if _union(covered) != self._letters_of(char) or _count(covered) != _count([_union(covered)]):
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
                parts = [self._letters_of(option) for option in options]
                return None if None in parts else _union([part for part in parts if part is not None])
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
        and all(mark not in letters.get("", CharSet(())) for mark in '"\\')
        and "u" not in letters.get("\\", CharSet(()))
    )


def _union(parts: list[_Letters]) -> _Letters:
    ranges: dict[str, list[tuple[int, int]]] = {}
    for part in parts:
        for before, charset in part.items():
            ranges.setdefault(before, []).extend(charset.ranges)
    return {before: chars(*found) for before, found in ranges.items()}


def _count(parts: list[_Letters]) -> int:
    return sum(high - low + 1 for part in parts for charset in part.values() for low, high in charset.ranges)
