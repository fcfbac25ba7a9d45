"""What is known of a grammar before any text is read: is it well formed, and how short may its sentences be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from toolgram.errors import GrammarError
from toolgram.grammar.components import components
from toolgram.grammar.hashing import found_once
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
    children,
)
from toolgram.grammar.walk import Uses, found_given, uses

Lengths = Mapping[str, int | None]
"""Of the shortest sentences of rules; None where a rule has none."""
NOT_KNOWN: Lengths = {}
_MOST_BEGINNINGS = 8  # that are compared with a text, sooner than the whole is looked into


@dataclass(frozen=True, slots=True)
class Shape:
    """The length of the shortest sentence of each rule and of each expression in it (None: it has no sentence)."""

    rules: Rules
    by_rule: dict[str, int | None]
    by_expr: dict[int, int | None]
    """By the identity of the expression; `rules` keeps them alive."""

    @classmethod
    def of(cls, rules: Rules) -> Shape:
        """Raises GrammarError if there is no root, a reference is not defined, or a rule is left-recursive."""
        used = uses(rules)
        check_references(used)
        by_rule = checked(rules, used)
        by_expr: dict[int, int | None] = {}
        waiting = list(rules.values())
        while waiting:
            expr = waiting.pop()
            by_expr[id(expr)] = cost_of(expr, by_rule)
            waiting.extend(children(expr))
        return cls(rules, by_rule, by_expr)

    def cost(self, expr: Expr) -> int | None:
        """The length of the shortest sentence of an expression of these rules, or one made of such."""
        known = id(expr) in self.by_expr
        return self.by_expr[id(expr)] if known else cost_of(expr, self.by_rule)


def check_references(used: Uses) -> None:
    """Raises GrammarError if there is no root, or a reference is not defined."""
    if "root" not in used:
        raise GrammarError("there is no rule root")
    for name, names in used.items():
        for part in names:
            if part not in used:
                raise GrammarError(f"rule {name} uses {part}, which is not defined")


def shortest(rules: Rules, used: Uses) -> dict[str, int | None]:
    """The length of the shortest sentence of each rule; None where there is no sentence."""
    return _shortest(rules, used, components({name: used[name] for name in rules}), NOT_KNOWN)


def checked(rules: Rules, used: Uses, known: Lengths = NOT_KNOWN) -> dict[str, int | None]:
    """The same. Raises GrammarError where a rule begins with itself: llama.cpp would take all memory on some.

    `known`: what it found of some of the rules, and of all those that these use.
    """
    new = {name: expr for name, expr in rules.items() if name not in known} if known else rules
    onward = {name: [part for part in used[name] if part in new] if known else used[name] for name in new}
    groups = components(onward)
    found = _shortest(rules, used, groups, known)
    recurring = {name for group in groups if _recurs(group, used) for name in group}
    if cycle := left_recursion({name: expr for name, expr in rules.items() if name in recurring}, found):
        raise GrammarError(f"left recursion: {' → '.join(cycle)}")
    return found


def _recurs(group: list[str], used: Uses) -> bool:
    return len(group) > 1 or group[0] in used[group[0]]


def _shortest(rules: Rules, used: Uses, groups: list[list[str]], known: Lengths) -> dict[str, int | None]:
    """The same, of rules in groups of those that use one another, each after what it uses; the others are known."""
    found = {name: known.get(name) for name in rules}
    for group in groups:
        if not _recurs(group, used):
            found[group[0]] = _cost_of_rule(rules[group[0]], found)
            continue
        users: dict[str, list[str]] = {name: [] for name in group}
        for name in group:
            for part in users.keys() & used[name]:
                users[part].append(name)
        waiting = dict.fromkeys(group)
        while waiting:  # the least fixed point of rules that use one another
            name, _ = waiting.popitem()
            cost = _cost_of_rule(rules[name], found)
            if cost != found[name]:
                found[name] = cost
                waiting.update(dict.fromkeys(users[name]))
    return found


def cost_of(expr: Expr, by_rule: Mapping[str, int | None]) -> int | None:
    """The length of the shortest sentence of an expression, from those of the rules."""
    if isinstance(expr, Literal):
        return len(expr.text)
    if isinstance(expr, Ref):
        return by_rule[expr.name]
    if isinstance(expr, Sequence):
        total = 0
        for item in expr.items:
            cost = cost_of(item, by_rule)
            if cost is None:
                return None
            total += cost
        return total
    if isinstance(expr, Choice):
        least: int | None = None
        for option in expr.options:
            cost = cost_of(option, by_rule)
            if cost is not None and (least is None or cost < least):
                least = cost
        return least
    if isinstance(expr, CharSet):
        return 1 if expr.ranges else None
    if isinstance(expr, Token):
        return len(expr.text)
    if isinstance(expr, Text):
        return 0
    if isinstance(expr, Except):
        return 2 if "" not in expr.texts else 3
    if isinstance(expr, Members):
        return _cost_of_members(expr, by_rule)
    if expr.max is not None and expr.max < expr.min:
        return None
    cost = cost_of(expr.item, by_rule) if expr.min else 0
    return None if cost is None else expr.min * cost


def _cost_of_members(expr: Members, by_rule: Mapping[str, int | None]) -> int | None:
    costs = [cost_of(item, by_rule) for item in expr.items]
    needed = [cost for cost, times in zip(costs, expr.occurs, strict=True) if times in MUST]
    if not needed:
        return min((cost for cost in costs if cost is not None), default=None)
    total = len(expr.between) * (len(needed) - 1)
    for cost in needed:
        if cost is None:
            return None
        total += cost
    return total


_cost_of_rule = found_given(cost_of)


@found_once
def beginnings(expr: Expr) -> tuple[str, ...] | None:
    """Texts of which each sentence begins with one, or is one; None where they are many, or it takes a rule to know."""
    match expr:
        case Literal(text) | Token(text):
            return (text,)
        case Choice(options):
            if len(options) > _MOST_BEGINNINGS:
                return None
            every = [beginnings(option) for option in options]
            found = [text for texts in every for text in texts or ()]
            return None if None in every or len(found) > _MOST_BEGINNINGS else tuple(found)
        case Sequence(items):
            found = list[str]()
            for item in items:
                texts = beginnings(item)
                if texts is None or len(found) > _MOST_BEGINNINGS:
                    return None
                found += filter(None, texts)
                if "" not in texts:
                    return tuple(found)
            return (*found, "")
        case _:
            return None


def longest(rules: Rules) -> int | None:
    """How many bytes the longest sentence has in UTF-8, free text (`Text`) aside; None where there is no bound."""
    known: dict[str, float] = {}
    for group in components(uses(rules)):
        for name in group:  # each after what it uses; what uses itself goes on as long as it likes
            known[name] = inf if len(group) > 1 else _most(rules[name], known)
    most = known["root"]
    return None if most == inf else int(most)


def _most(expr: Expr, by_rule: Mapping[str, float]) -> float:
    match expr:
        case Literal(text) | Token(text):
            return len(text.encode(errors="surrogatepass"))
        case CharSet(ranges):
            return len(chr(ranges[-1][1]).encode()) if ranges else 0
        case Ref(name):
            return by_rule.get(name, inf)
        case Sequence(items):
            return sum(_most(item, by_rule) for item in items)
        case Choice(options):
            return max((_most(option, by_rule) for option in options), default=0)
        case Repeat(item, _, high):
            each = _most(item, by_rule)
            return each and (inf if high is None else each * high)
        case Text():
            return 0
        case Except():
            return inf
        case Members(items, occurs, between):
            each = [_most(item, by_rule) for item in items]
            return inf if "*" in occurs else sum(each) + len(between.encode()) * (len(items) - 1)


def left_recursion(rules: Rules, by_rule: Mapping[str, int | None]) -> list[str]:
    """The names on a cycle of rules that begin with one another, the first one again at its end; empty without any."""
    first = {name: _first_of_rule(expr, by_rule) for name, expr in rules.items()}
    done: set[str] = set()
    for start in rules:
        path: dict[str, None] = {}
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                del path[name]
                done.add(name)
            elif name in path:
                return [*list(path)[list(path).index(name) :], name]
            elif name not in done:
                path[name] = None
                stack.append((name, True))
                stack.extend((used, False) for used in first[name] if used in first)
    return []


@found_given
def _first_of_rule(expr: Expr, by_rule: Mapping[str, int | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_leftmost(expr, by_rule)))


def _leftmost(expr: Expr, by_rule: Mapping[str, int | None]) -> Iterable[str]:
    """The rules that may begin where this expression begins."""
    match expr:
        case Ref(name):
            yield name
        case Sequence(items):
            for item in items:
                yield from _leftmost(item, by_rule)
                if cost_of(item, by_rule) != 0:
                    return
        case Except():
            return
        case _:
            for child in children(expr):
                yield from _leftmost(child, by_rule)
