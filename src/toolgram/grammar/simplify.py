"""Rules that say the same with less, and whose alternatives begin differently where they can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

from toolgram.caching import weighed
from toolgram.grammar.hashing import HashedOnce, facts_of
from toolgram.grammar.ir import (
    EMPTY,
    CharSet,
    Choice,
    Expr,
    Literal,
    Members,
    Ref,
    Repeat,
    Rules,
    Sequence,
    children,
    choice,
    seq,
)
from toolgram.grammar.shape import NOT_KNOWN, Lengths
from toolgram.grammar.tidy import tidy
from toolgram.grammar.walk import found_given, reachable, uses, weight, with_children

_SMALL = 8
"""A rule that is used once is written where it is used, if it has no more parts than this: more is better named."""


def simplify(rules: Rules) -> dict[str, Expr]:
    """The same language in fewer rules, in the order of their first use, `root` first.

    Parts that match nothing and rules that are not used are dropped, small rules inlined, common beginnings of
    alternatives factored out. Raises GrammarError as `tidy` does.
    """
    return factored(shortened(rules))


def shortened(rules: Rules, known: Lengths = NOT_KNOWN) -> dict[str, Expr]:
    """The first part of it: tidy rules, small ones inlined; `known` as in `tidy`, which says what it raises."""
    return reachable(_inlined(tidy({name: _as_before(expr) for name, expr in rules.items()}, known)))


def _as_before(expr: Expr) -> Expr:
    """The very expression that was equal to it before, of which much may be known."""
    return expr if isinstance(expr, HashedOnce) and _kept in facts_of(expr) else _kept(expr)


@weighed(weight)
def _kept(expr: Expr) -> Expr:
    if isinstance(expr, HashedOnce):
        facts_of(expr)[_kept] = True  # which is found sooner
    return expr


def factored(rules: Rules) -> dict[str, Expr]:
    """The second part of it: common beginnings of alternatives are written once."""
    return reachable({name: _factored(expr) for name, expr in rules.items()})


def _inlined(rules: Rules) -> dict[str, Expr]:
    used = uses(rules)
    count = Counter(name for names in used.values() for name in names)
    done: dict[str, Expr] = {}
    inlined: dict[str, Expr] = {}
    waiting = [*rules]
    begun: set[str] = set()
    # What a rule uses is done before it, so that sizes are known; in a cycle one reference stays what it is.
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        if name in begun:
            alone = inlined.keys().isdisjoint(used[name])
            done[name] = body = rules[name] if alone else _expanded_rule(rules[name], inlined)
            if _fits(body, count[name]):
                inlined[name] = body
            continue
        begun.add(name)
        waiting.append(name)
        waiting.extend(part for part in used[name] if part not in begun)
    return done


def _fits(body: Expr, count: int) -> bool:
    """Whether a rule that is used so many times is better written where it is used."""
    return _is_tiny(body) or (count == 1 and _is_small(body))


def _expanded(expr: Expr, bodies: Mapping[str, Expr]) -> Expr:
    """The expression with these rules put in."""
    if isinstance(expr, Ref):
        return bodies.get(expr.name, expr)
    return with_children(expr, lambda part: _expanded(part, bodies))


_expanded_rule = found_given(_expanded)


def _is_tiny(expr: Expr) -> bool:
    match expr:
        case Ref():
            return True
        case Literal(text):
            return len(text) <= 16
        case CharSet(ranges):
            return len(ranges) <= 4
        case _:
            return False


def _is_small(expr: Expr) -> bool:
    parts = [expr]
    for part in parts:
        parts.extend(children(part))
        if len(parts) > _SMALL:
            return False
    return True


def _factored(expr: Expr) -> Expr:
    if isinstance(expr, Sequence | Choice | Repeat | Members):
        expr = with_children(expr, _factored)
    if not isinstance(expr, Choice) or _is_factored(expr):
        return expr
    options = [option.items if isinstance(option, Sequence) else (option,) for option in expr.options]
    return _choice([() if option == (EMPTY,) else option for option in options])


def _is_factored(expr: Choice) -> bool:
    """Whether its options begin differently, an empty one last."""
    heads = [_head(option.items[0] if isinstance(option, Sequence) else option) for option in expr.options]
    different = set(heads)
    return len(different) == len(heads) and ("" not in different or heads[-1] == "")


def _head(first: Expr) -> Hashable:
    """What options are grouped by: an expression that begins one, or the first character of a literal."""
    return first.text[:1] if isinstance(first, Literal) else first


def _choice(options: list[tuple[Expr, ...]]) -> Expr:
    """A choice of sequences; those that begin alike are written with their beginning once."""
    groups: dict[Hashable, list[tuple[Expr, ...]]] = {}
    for option in options:
        if option:
            groups.setdefault(_head(option[0]), []).append(option)
    factored = [_group(group) for group in groups.values()]
    return choice(*factored, *([] if all(options) else [EMPTY]))


def _group(options: list[tuple[Expr, ...]]) -> Expr:
    first = options[0][0]
    if len(options) == 1:
        return seq(*options[0])
    if not isinstance(first, Literal):
        return seq(first, _choice([option[1:] for option in options]))
    prefix = _common([option[0].text for option in options if isinstance(option[0], Literal)])
    rests = [_without(prefix, option) for option in options]
    return seq(prefix, _choice(rests))


def _common(texts: list[str]) -> str:
    """What all the texts begin with: what the first and the last of them in order begin with."""
    first, last = min(texts), max(texts)
    return next((first[:end] for end, char in enumerate(first) if char != last[end]), first)


def _without(prefix: str, option: tuple[Expr, ...]) -> tuple[Expr, ...]:
    first, *rest = option
    left = first.text[len(prefix) :] if isinstance(first, Literal) else ""
    return (Literal(left), *rest) if left else tuple(rest)
