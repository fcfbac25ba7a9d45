"""What remains of expressions once their prescribed beginning is written."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from toolgram.grammar.ir import (
    EMPTY,
    Choice,
    Expr,
    Literal,
    Members,
    Ref,
    Repeat,
    Sequence,
    Token,
    by_first,
    choice,
    repeat,
    seq,
)
from toolgram.grammar.walk import fresh


def rest_after(expr: Expr, text: str, rules: MutableMapping[str, Expr]) -> Expr:
    """What may follow this text where the expression begins with it; only prescribed text is looked at.

    A rule inside of which the text ends is cut in two there, so that what remains of it is written once.
    """
    return choice(*(rest for _, rest, left in _cuts(expr, text, rules) if not left))


def _cuts(expr: Expr, text: str, rules: MutableMapping[str, Expr]) -> Iterator[tuple[Expr, Expr, str]]:
    """The ways through the beginning: what is taken of an expression, what remains, and what of the text is left."""
    match expr:
        case Literal(said) | Token(said):
            if text.startswith(said):
                yield expr, EMPTY, text[len(said) :]
            elif said.startswith(text):
                yield Literal(text), Literal(said[len(text) :]), ""
        case Sequence((first, *others)):
            for head, rest, left in _cuts(first, text, rules):
                if not (left and others):
                    yield head, seq(rest, *others), left
                    continue
                for more, after, still in _cuts(seq(*others), left, rules):
                    yield seq(head, more), after, still
        case Choice(options):
            cuts = [cut for option in options for cut in _cuts(option, text, rules)]
            for head, left in dict.fromkeys((head, left) for head, _, left in cuts):
                yield head, choice(*(rest for begun, rest, still in cuts if (begun, still) == (head, left))), left
        case Repeat(item, low, high):
            again = repeat(item, max(low - 1, 0), None if high is None else high - 1)
            yield from _cuts(seq(item, again), text, rules)
            if not low:
                yield EMPTY, EMPTY, text
        case Members():
            yield from _cuts(by_first(expr), text, rules)
        case Ref(name):
            cuts = list(_cuts(rules[name], text, rules))
            match cuts:
                case [(head, rest, "")] if (before := _before(rest, rules[name])) is not None:
                    after = fresh(f"{name}-rest", rules)
                    rules[after] = rest
                    rules[name] = seq(before, Ref(after))
                    yield head, Ref(after), ""
                case _:
                    yield from cuts
        case _:
            return


def _before(end: Expr, expr: Expr) -> Expr | None:
    """What comes before this end in an expression, in all ways to it; None where the expression does not end so."""
    (first, *others), items = _items(end), _items(expr)
    at = len(items) - 1 - len(others)
    if at < 0 or items[at + 1 :] != tuple(others):
        return None
    match first, items[at]:
        case Literal(said), Literal(whole) if whole.endswith(said):
            return seq(*items[:at], whole[: len(whole) - len(said)])
        case begun, whole if begun == whole:
            return seq(*items[:at])
        case _:
            return None


def _items(expr: Expr) -> tuple[Expr, ...]:
    return expr.items if isinstance(expr, Sequence) else (expr,)
