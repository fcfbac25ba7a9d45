"""Steps by many characters to the same place, as rules that all who take them share.

XGrammar looks through the whole vocabulary for each state in which many characters may come, unless they lead back to
that state, which takes 10 ms. The states of an automaton differ in few characters: `[^<a] x`, `[^<b] x`, `[^<] x` are
`rest | b`, `rest | a`, `rest | a | b` with the rules `rest ::= [^<ab] x`, `a ::= "a" x`, `b ::= "b" x`. A state that
only refers to rules takes no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TypeGuard

from toolgram.grammar.ir import CharSet, Expr, Ref, Rules, Sequence, chars, children, choice, seq
from toolgram.grammar.walk import fresh, names_in, reachable, with_children

_BROAD = 1000
"""Characters in a row; a set of more takes a good part of any vocabulary."""
_MANY = 16
"""Characters; some letters begin a good part of any vocabulary too."""
_MOST_PARTS = 40
"""Steps that differ in more ways are left as they are."""

_After = tuple[Expr, ...]
"""What comes after the character."""
_Shared = Mapping[_After, Mapping[CharSet, Ref]]
"""By what comes then the rules for disjoint sets of characters."""


def is_broad(expr: Expr) -> TypeGuard[CharSet]:
    """Whether an expression is one character out of most."""
    return isinstance(expr, CharSet) and expr.ranges[-1][1] - expr.ranges[-1][0] > _BROAD


def is_one_of_many(expr: Expr) -> TypeGuard[CharSet]:
    """Whether an expression is one character out of many."""
    return isinstance(expr, CharSet) and sum(high - low + 1 for low, high in expr.ranges) >= _MANY


def shared_steps(rules: Rules, lookaheads: Mapping[str, str]) -> dict[str, Expr]:
    """The rules that `root` needs, and lookaheads, in which steps that several states make are rules."""
    kept = reachable(rules)
    for name in lookaheads.values():
        kept |= reachable(rules, name)
    found: dict[_After, list[CharSet]] = {}
    for name, expr in kept.items():
        if name in lookaheads:
            continue
        for charset, after in _steps(expr, name):
            found.setdefault(after, []).append(charset)
    shared: dict[_After, dict[CharSet, Ref]] = {}
    for after, charsets in found.items():
        parts = _parts(list(dict.fromkeys(charsets))) if len(charsets) > 1 else ()
        if 0 < len(parts) <= _MOST_PARTS:
            shared[after] = {}
            for part in parts:
                shared[after][part] = Ref(fresh("step", kept))  # a short name: there are many places for it
                kept[shared[after][part].name] = seq(part, *after)
    steps = {ref.name for refs in shared.values() for ref in refs.values()}
    steps |= lookaheads.keys()
    return {name: expr if name in steps else _sharing(expr, name, shared) for name, expr in kept.items()}


def _steps(expr: Expr, rule: str) -> Iterator[tuple[CharSet, _After]]:
    """The steps by many characters, and what comes then, where that is a rule."""
    if (step := _step(expr)) is not None:
        yield step
    for part in _open(expr, rule):
        yield from _steps(part, "")


def _step(expr: Expr) -> tuple[CharSet, _After] | None:
    if isinstance(expr, Sequence) and is_one_of_many(charset := expr.items[0]) and names_in(expr):
        return charset, expr.items[1:]
    return None


def _open(expr: Expr, rule: str) -> tuple[Expr, ...]:
    """The parts of an expression in which steps are looked for: not the loop that a rule is."""
    if any(isinstance(part, Sequence) and part.items[-1] == Ref(rule) for part in children(expr)):
        return ()
    return children(expr)


def _sharing(expr: Expr, rule: str, shared: _Shared) -> Expr:
    step = _step(expr)
    if step is not None and step[1] in shared:
        charset, after = step
        return choice(*(ref for part, ref in shared[after].items() if chr(part.ranges[0][0]) in charset))
    if not _open(expr, rule):
        return expr
    return with_children(expr, lambda part: _sharing(part, "", shared))


def _parts(charsets: list[CharSet]) -> list[CharSet]:
    """Disjoint sets of which all of these are made."""
    borders = sorted({border for charset in charsets for low, high in charset.ranges for border in (low, high + 1)})
    by_sets: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    for low, after in pairwise(borders):
        within = tuple([chr(low) in charset for charset in charsets])
        if any(within):
            by_sets.setdefault(within, []).append((low, after - 1))
    return [chars(*ranges) for ranges in by_sets.values()]
