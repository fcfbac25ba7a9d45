"""Text that several marks may end, told by the character with which all of these begin.

Up to there the text is the same for all of them, and what follows is either one of the marks, or more text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from toolgram.grammar.dialects.lark.tree import Call, Fork, Lexeme, Loop, Node, Row, Tree, row
from toolgram.grammar.ir import START, Expr, Literal, Text, seq


class Opening(NamedTuple):
    """What `marks` begin with: a text ends as `text` before the first `char`, and as `quoting` after each: what is no
    mark, up to the next one."""

    char: str
    marks: frozenset[str]
    text: Text
    quoting: Text

    def after(self, literal: Expr) -> Node | None:
        """What is left of a literal without the character, if it begins with one of the marks: that, and the rest."""
        mark = next(_beginnings(literal.text, self.marks), "") if isinstance(literal, Literal) else ""
        if not (mark and isinstance(literal, Literal)):
            return None
        left = literal.text[len(mark) :]
        return row(Lexeme(Literal(mark[1:])), *((Lexeme(Literal(left)),) if left else ()))


def up_to(text: Text, char: str) -> Lexeme:
    """The text with the character that it is without."""
    return Lexeme(seq(text, char), merged=1)


def opening_of(text: Expr, following: Node, rules: Tree) -> Opening | None:
    """What the marks begin with that may end a text before this node, where several of them begin alike.

    None where that character is in the midst of a mark, which could begin with it as well.
    """
    if not isinstance(text, Text):
        return None
    without = frozenset(text.without)
    ahead = {mark for begun in _literals_first(following, rules) for mark in _beginnings(begun, without)}
    by_char: dict[str, set[str]] = {}
    for mark in sorted(ahead):
        by_char.setdefault(mark[0], set()).add(mark)
    char, marks = max(by_char.items(), key=lambda group: len(group[1]), default=("", set[str]()))
    if len(marks) < 2:
        return None
    rests = [mark[1:] for mark in text.without if mark[0] == char]
    others = [mark for mark in text.without if mark[0] != char]
    if not all(rests) or any(char in part for part in (*rests, *others)):
        return None
    inside = (char, *(mark for mark in others if not mark.startswith(START)))
    first = _beginning_with_none(inside, _begun(text))
    return Opening(char, frozenset(marks), first, _beginning_with_none(inside, rests))


def _beginning_with_none(without: tuple[str, ...], first: Iterable[str]) -> Text:
    """The text without these, that begins with none of `first`."""
    not_first = tuple(START + begin for begin in first)
    return Text((*without, *not_first), START) if not_first else Text(without)


def _begun(text: Text) -> list[str]:
    """What must not come first in a text, since what came before it begins one of its markers."""
    ends = range(1, len(text.seen) + 1)
    return [mark[end:] for mark in text.without for end in ends if text.seen.endswith(mark[:end])]


def _beginnings(text: str, marks: frozenset[str]) -> Iterator[str]:
    """The marks with which a text begins, the shortest first."""
    return (text[:end] for end in range(1, len(text) + 1) if text[:end] in marks)


def _literals_first(node: Node, rules: Tree) -> set[str]:
    """The literals with which a node may begin."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        match waiting.pop():
            case Lexeme(Literal(text)):
                found.add(text)
            case Row((first, *_)):
                waiting.append(first)
            case Fork(options):
                waiting += options
            case Loop(item):
                waiting.append(item)
            case Call(name) if name not in seen:
                seen.add(name)
                waiting.append(rules[name])
            case _:
                pass
    return found
