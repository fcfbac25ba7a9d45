"""Places in a grammar that is being read, and what remains to be read from them, as rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolgram.grammar.ir import (
    EMPTY,
    Expr,
    Literal,
    Members,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    Token,
    choice,
    repeat,
    seq,
)
from toolgram.grammar.until import text_after
from toolgram.grammar.walk import fresh


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An expression with its parts; equal expressions are one node, compared by identity."""

    expr: Expr
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A place in an expression that is being read, and where reading goes on when it is over."""

    node: Node
    at: int
    below: Stacks


Stacks = tuple[Frame | None, ...]
"""The tops of some stacks; None is the end of the sentence."""


def place_of(frame: Frame | None) -> tuple[Node, int] | None:
    """The place of a frame, whatever it goes on with; None for the end of the sentence."""
    return None if frame is None else (frame.node, frame.at)


def rests(frames: Stacks, taken: Rules, heads: Mapping[Node, str]) -> Rules:
    """What remains to be read of these stacks, as a rule ""; stacks that share their lower part share a rule.

    A rule (`heads`: by their nodes) that was begun is cut in two, so that what remains of it is written once.
    """
    names: dict[Stacks, str] = {frames: ""}
    rules: dict[str, Expr] = {}
    waiting = [frames]

    def left(frame: Frame) -> Expr:
        return _cut(frame, heads, taken, rules) or _remainder(frame.node.expr, frame.at)

    def after(below: Stacks) -> Expr:
        items: list[Expr] = []
        while len(below) == 1 and (frame := below[0]) is not None:
            items.append(left(frame))
            below = frame.below
        if len(below) > 1:
            if below not in names:
                names[below] = fresh(f"then-{len(names)}", taken)
                waiting.append(below)
            items.append(Ref(names[below]))
        return seq(*items)

    for stacks in waiting:
        lower: dict[Stacks, list[Expr]] = {}
        for frame in stacks:
            lower.setdefault(() if frame is None else frame.below, []).append(EMPTY if frame is None else left(frame))
        rules[names[stacks]] = choice(*(seq(choice(*begun), after(below)) for below, begun in lower.items()))
    return rules


def _cut(frame: Frame, heads: Mapping[Node, str], taken: Rules, rules: dict[str, Expr]) -> Ref | None:
    """What remains of a rule as a rule, with which it ends from now on; None where it is none, or was cut elsewhere."""
    name, expr = heads.get(frame.node), frame.node.expr
    if name is None or not frame.at or not isinstance(expr, Sequence):
        return None
    rest = Ref(fresh(f"{name}-rest", taken))
    cut = seq(*expr.items[: frame.at], rest)
    if rules.setdefault(name, cut) != cut:
        return None
    rules[rest.name] = seq(*expr.items[frame.at :])
    return rest


def _remainder(expr: Expr, at: int) -> Expr:
    match expr:
        case Literal(text):
            return Literal(text[at:])
        case Token(text):
            return Literal(text[at:]) if at else expr
        case Text():
            return text_after(expr, at)
        case Sequence(items):
            return seq(*items[at:])
        case Repeat(item, low, high):
            return repeat(item, max(low - at, 0), None if high is None else high - at)
        case Members():
            return expr.rest(at >> 1) if at & 1 else expr.before(at >> 1)
        case _:
            return expr
