"""Random sentences of a grammar, rich in what readers stumble over: half markers, quotes, astral characters."""

from __future__ import annotations

from functools import lru_cache
from random import Random

from toolgram.errors import GrammarError
from toolgram.grammar.ir import (
    MUST,
    CharSet,
    Choice,
    Except,
    Expr,
    Literal,
    Members,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    Token,
    by_first,
)
from toolgram.grammar.orders import has_few_orders
from toolgram.grammar.shape import Shape
from toolgram.grammar.until import automaton

_NASTY = (
    "\"'\\<>[]{}|/&,:;=`#$%@-_ \t\n\r09azAZ"
    "\0\x1b\x7f\x85\xa0é▁｜\u200b\u2028\u2029\ud7ff\ue000\ufeff\ufffd\uffff😀\U0010ffff"
)
_BUDGETS = (0, 8, 32, 128, 512)
"""How long a sentence may grow before it takes the shortest way out."""


def sample(rules: Rules, shape: Shape, most: int, seed: int) -> str:
    """A random sentence; the same seed gives the same one; of members so many at `most` come in any order.

    Raises GrammarError where there is no sentence.
    """
    if shape.cost(rules["root"]) is None:
        raise GrammarError("the grammar has no sentence")
    rng = Random(seed)  # noqa: S311 - sentences for tests, no secret
    budget = rng.choice(_BUDGETS)
    out: list[str] = []
    length = 0
    waiting: list[Expr] = [rules["root"]]
    while waiting:
        expr = waiting.pop()
        # What waits will be written too, so it counts: else a tree could branch for ever within its budget.
        left = budget - length - len(waiting)
        match expr:
            case Literal(text) | Token(text):
                out.append(text)
                length += len(text)
            case CharSet():
                out.append(_pick(expr, rng))
                length += 1
            case Text(without, seen):
                out.append(_text(without, seen, rng, max(left, 0)))
                length += len(out[-1])
            case Ref(name):
                waiting.append(rules[name])
            case Except():
                raise TypeError("the matcher gives rules that are written `in_trees`")
            case Sequence(items):
                waiting.extend(reversed(items))
            case Choice(options):
                waiting.append(_option(options, shape, rng, left))
            case Members() if has_few_orders(expr, most):
                waiting.append(by_first(expr))
            case Members():
                waiting.extend(reversed(_in_order(expr, shape, rng, left)))
            case Repeat(item, low, high):
                waiting.extend([item] * _count(low, high, rng, 0 if shape.cost(item) is None else left))
    return "".join(out)


def _option(options: tuple[Expr, ...], shape: Shape, rng: Random, left: int) -> Expr:
    possible = [(option, cost) for option in options if (cost := shape.cost(option)) is not None]
    if left > 0:
        return rng.choice(possible)[0]
    return min(possible, key=lambda pair: pair[1])[0]


def _in_order(expr: Members, shape: Shape, rng: Random, left: int) -> list[Expr]:
    """Some of the members, in the order that all dialects have."""
    possible = [
        (item, times) for item, times in zip(expr.items, expr.occurs, strict=True) if shape.cost(item) is not None
    ]
    some = [item for item, times in possible if times in MUST or (left > 0 and rng.random() < 0.5)]
    chosen = some or [rng.choice(possible)[0]]
    return [part for item in chosen for part in (Literal(expr.between), item)][1:]


def _count(low: int, high: int | None, rng: Random, left: int) -> int:
    """Often few, sometimes all that there is room for."""
    if left <= 0:
        return low
    most = low + left if high is None else min(high, low + left)
    few = min(most, low + 3)
    return rng.choice((low, few, rng.randint(low, few), rng.randint(low, few), rng.randint(low, most), most))


def _text(without: tuple[str, ...], seen: str, rng: Random, budget: int) -> str:
    """Text without the markers, full of their beginnings and ends."""
    states = automaton(without, seen)
    state = states[0]
    out: list[str] = []
    wish = ""  # what to write next, so far as the automaton lets it
    for _ in range(rng.randint(0, min(budget // 2, 48))):
        if not wish and without and rng.random() < 0.3:
            marker = rng.choice(without)
            wish = marker[: rng.randint(1, len(marker))] if rng.random() < 0.7 else marker[rng.randrange(len(marker)) :]
        target = state.step(wish[0]) if wish else None
        if target is not None:
            char, wish = wish[0], wish[1:]
        else:
            wish = ""
            edges = [(charset, end) for charset, end in state.edges if charset.ranges]
            if not edges:
                break
            charset, target = edges[0] if rng.random() < 0.6 else rng.choice(edges)
            char = _pick(charset, rng)
        out.append(char)
        state = states[target]
    return "".join(out)


def _pick(charset: CharSet, rng: Random) -> str:
    """A character of the set: a nasty one, an ASCII one, one at a border, or any."""
    nasty, ascii_part = _favourites(charset)
    way = rng.random()
    if way < 0.3 and nasty:
        return rng.choice(nasty)
    low, high = rng.choice(ascii_part if way < 0.7 and ascii_part else charset.ranges)
    return chr(rng.choice((low, high)) if way > 0.85 else rng.randint(low, high))


@lru_cache(maxsize=1024)
def _favourites(charset: CharSet) -> tuple[str, tuple[tuple[int, int], ...]]:
    nasty = "".join(char for char in _NASTY if char in charset)
    return nasty, tuple((low, min(high, 0x7E)) for low, high in charset.ranges if low <= 0x7E)
