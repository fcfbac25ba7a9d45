"""Strings that are none of some, in the shape that XGrammar masks quickly.

XGrammar takes, untried, the tokens of characters by which a rule leads back to itself. So such a string parts at its
end from those that are left out: it is any characters, then one that none of them has at that place, and from there
on one of their endings. Where `ape` and `shape` are left out, `grape` is "g", then "r", which stands before "ape" in
neither, then "ape". One loop serves all the strings of a grammar, whichever are left out of each: they differ in the
endings that may be all there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from toolgram.grammar.ir import EMPTY, CharSet, Choice, Except, Expr, Literal, Ref, chars, choice, not_chars, seq
from toolgram.grammar.walk import fresh

_NONE = chars()
_WHOLE = 0
"""The ending of no characters."""


@dataclass(slots=True)
class _Endings:
    """The endings of some texts, each by a number; the first is empty, and the others have one character more each."""

    firsts: list[str] = field(default_factory=lambda: [""])
    rests: list[int] = field(default_factory=lambda: [_WHOLE])
    """What is left of each without its first character."""
    longer: list[dict[str, int]] = field(default_factory=lambda: [{}])
    """By a character the ending that it makes when it is put before."""

    def add(self, text: str) -> int:
        """The number of the text, which is added with all its endings."""
        at = _WHOLE
        for char in reversed(text):
            there = self.longer[at].get(char)
            if there is None:
                there = self.longer[at][char] = len(self.firsts)
                self.firsts.append(char)
                self.rests.append(at)
                self.longer.append({})
            at = there
        return at

    def by_first(self, some: Iterable[int]) -> dict[str, frozenset[int]]:
        """By their first characters what is left of them; not of the empty one."""
        found: dict[str, list[int]] = defaultdict(list)
        for each in some:
            if each != _WHOLE:
                found[self.firsts[each]].append(self.rests[each])
        return {first: frozenset(found[first]) for first in sorted(found)}


@dataclass(slots=True)
class Others:
    """The rules for strings of the same characters, of which some are left out."""

    raw: CharSet
    escaped: Expr
    quote: str
    close: Expr
    """What stands after the characters of such a string: its quote, and more where more follows all of them."""
    rules: dict[str, Expr]
    """Where rules are added."""
    _asked: list[tuple[str, frozenset[int]]] = field(default_factory=list[tuple[str, frozenset[int]]])
    """The rules that were asked for, with what is left out of each."""
    _endings: _Endings = field(default_factory=_Endings)
    _all: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    """By their first characters what is left of all endings: the endings before which that character may not stand."""
    _firsts: dict[tuple[str, frozenset[int]], Ref] = field(default_factory=dict[tuple[str, frozenset[int]], Ref])
    _rests: dict[frozenset[int], Expr] = field(default_factory=dict[frozenset[int], Expr])
    _due: list[tuple[str, str, frozenset[int]]] = field(default_factory=list[tuple[str, str, frozenset[int]]])
    """Rules that are named and not yet written: texts may be longer than calls are deep."""
    _count: int = 0

    def rule(self, expr: Except, inside: str) -> Ref:
        """The rule for such strings, which is named like the rule that it is in. `finish` must come after the last."""
        name = fresh(f"{inside}-key", self.rules)
        self.rules[name] = EMPTY  # holds the name
        self._asked.append((name, frozenset(map(self._endings.add, expr.texts))))
        return Ref(name)

    def finish(self) -> None:
        """Write the rules: by now all the texts are known."""
        self._all = self._endings.by_first(range(len(self._endings.firsts)))
        loop = self._named()
        for name, texts in self._asked:
            # The endings have a rule of their own: beside the loop, each such string takes XGrammar 2 ms to compile.
            ends = self._ends(texts)
            ends = self._named(ends) if isinstance(ends, Choice) and ends.options else ends
            self.rules[name] = seq(self.quote, choice(loop, ends))
        self.rules[loop.name] = choice(*self._loop(loop))
        for name, first, rests in self._due:  # which grows
            self.rules[name] = seq(first, self._one_of(rests))

    def _loop(self, loop: Ref) -> Iterator[Expr]:
        """Any character and on, or one that is not what some texts have there, and an ending."""
        yield from (seq(self.raw, loop), seq(self.escaped, loop))
        # Every token of the vocabulary that leads there is tried: without rules in between that takes half as long.
        whole = self._named(
            choice(self.close, *(seq(first, self._one_of(rests)) for first, rests in self._all.items()))
        )
        others = not_chars(*self._all, *not_chars(*self.raw.ranges).ranges)
        yield from (seq(char, whole) for char in (others, self.escaped) if char != _NONE)
        closing = chars(*(char for char, rests in self._all.items() if _WHOLE not in rests))
        if closing != _NONE:
            yield seq(closing, self.close)
        longer = {char: self._endings.by_first(rests) for char, rests in self._all.items()}
        for first, rests in self._all.items():
            free = chars(*(char for char, without in longer.items() if first not in without))
            if free != _NONE:
                yield seq(free, self._begins(first, rests))
            for char, without in longer.items():
                if left := rests - without[first] if first in without else frozenset[int]():
                    yield seq(Literal(char), self._begins(first, left))

    def _ends(self, but: frozenset[int]) -> Expr:
        """The endings but these, and what closes the string."""
        without = self._endings.by_first(but)
        left = {first: rests - without[first] if first in without else rests for first, rests in self._all.items()}
        return self._begun(left, whole=_WHOLE not in but)

    def _one_of(self, endings: frozenset[int]) -> Expr:
        """One of some endings, and the quote: one rule for all places, since those share their masks."""
        if endings not in self._rests:
            begun = self._begun(self._endings.by_first(endings), whole=_WHOLE in endings)
            self._rests[endings] = self._named(begun) if isinstance(begun, Choice) else begun
        return self._rests[endings]

    def _begun(self, endings: Mapping[str, frozenset[int]], *, whole: bool) -> Expr:
        """The quote if `whole`, or one of the endings, given as what is left of them by their first characters."""
        options = [self.close] if whole else []
        options += [self._begins(first, rests) for first, rests in endings.items() if rests]
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _begins(self, first: str, rests: frozenset[int]) -> Expr:
        """The endings that begin so and go on in these ways."""
        ref = self._firsts.get((first, rests))
        if ref is None:
            ref = self._firsts[first, rests] = self._named()
            self._due.append((ref.name, first, rests))
        return ref

    def _named(self, body: Expr = EMPTY) -> Ref:
        while (name := f"other-{self._count}" if self._count else "other") in self.rules:
            self._count += 1
        self.rules[name] = body
        return Ref(name)
