"""Rules without the two things that engines choke on: parts that match nothing, and repeats of what may be empty."""

from __future__ import annotations

from collections.abc import Mapping

from toolgram.errors import GrammarError
from toolgram.grammar.ir import (
    EMPTY,
    NOTHING,
    CharSet,
    Choice,
    Expr,
    Members,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    by_first,
    choice,
    is_empty,
    members,
    repeat,
    seq,
)
from toolgram.grammar.shape import NOT_KNOWN, Lengths, check_references, checked, cost_of, shortest
from toolgram.grammar.until import automaton, text_after
from toolgram.grammar.walk import found_given, fresh, reachable, uses, with_children


def tidy(rules: Rules, known: Lengths = NOT_KNOWN) -> dict[str, Expr]:
    """The same language, with no part that matches nothing, no repeat of what may be empty, and no rule unused.

    `known`: the lengths of the shortest sentences of some of the rules, and of all those that these use. Raises
    GrammarError for a reference that is not defined, for left recursion, and for rules without a sentence.
    """
    names = uses(rules)
    check_references(names)
    used = reachable(rules, used=names)
    cost = checked(used, names, known)
    if cost["root"] is None:
        raise GrammarError("the grammar has no sentence")
    untidy = {name: expr for name, expr in used.items() if not _is_tidy_rule(expr, cost)}
    if not untidy:
        return used
    strict = _Strict(used, untidy, cost)
    if strict.twins:
        used |= strict.rules
        cost = shortest(used, uses(used))
    return reachable({**used, **{name: _possible(expr, cost) for name, expr in strict.rules.items()}})


def _is_tidy(expr: Expr, cost: Mapping[str, int | None]) -> bool:
    """Whether there is nothing to do, which is nearly always so; in a choice or a sequence also nothing to flatten."""
    if isinstance(expr, Sequence):
        for item in expr.items:
            if isinstance(item, Sequence) or is_empty(item) or not _is_tidy(item, cost):
                return False
        return len(expr.items) > 1
    if isinstance(expr, Choice):
        for option in expr.options:
            if isinstance(option, Choice) or not _is_tidy(option, cost):
                return False
        return len(expr.options) > 1
    if isinstance(expr, Ref):
        return cost[expr.name] is not None
    if isinstance(expr, Members):
        return all(_is_tidy(item, cost) for item in expr.items)
    if isinstance(expr, Repeat):
        possible = expr.max is None or 0 < expr.max >= expr.min
        return possible and bool(cost_of(expr.item, cost)) and _is_tidy(expr.item, cost)
    return not isinstance(expr, CharSet) or bool(expr.ranges)


_is_tidy_rule = found_given(_is_tidy)


def _possible(expr: Expr, cost: Mapping[str, int | None]) -> Expr:
    """The expression without what matches nothing; NOTHING if nothing is left of it."""
    match expr:
        case Ref(name):
            return NOTHING if cost[name] is None else expr
        case CharSet(ranges):
            return expr if ranges else NOTHING
        case Repeat(item, low, high):
            inner = _possible(item, cost)
            if (high is not None and high < low) or (inner == NOTHING and low > 0):
                return NOTHING
            return EMPTY if inner == NOTHING else repeat(inner, low, high)
        case Choice(options):
            return choice(*(part for option in options if (part := _possible(option, cost)) != NOTHING))
        case Sequence(items):
            return seq(*(_possible(item, cost) for item in items))
        case Members(items, occurs, between):
            return members([_possible(item, cost) for item in items], occurs, between)
        case _:
            return expr


class _Strict:
    """The untidy rules with repeats of what is not empty; a rule that may be empty gets a twin that is not, where
    needed."""

    def __init__(self, rules: Rules, untidy: Rules, cost: Mapping[str, int | None]) -> None:
        self._old = rules
        self._cost = cost
        self.twins: dict[str, str] = {}
        self._due: list[str] = []
        self.rules = {name: self._strict(expr) for name, expr in untidy.items()}
        for name in self._due:
            self.rules[self.twins[name]] = self._nonempty(rules[name])

    def _strict(self, expr: Expr) -> Expr:
        if isinstance(expr, Repeat) and cost_of(expr, self._cost) is None:
            return NOTHING
        if isinstance(expr, Repeat) and cost_of(expr.item, self._cost) == 0:
            return repeat(self._nonempty(expr.item), 0, expr.max)
        return with_children(expr, self._strict)

    def _nonempty(self, expr: Expr) -> Expr:
        """The sentences of the expression but the empty one."""
        if cost_of(expr, self._cost) != 0:
            return self._strict(expr)
        match expr:
            case Ref(name):
                return Ref(self._twin(name))
            case Text(without, seen):
                states = automaton(without, seen)
                return choice(*(seq(char, text_after(expr, end)) for char, end in states[0].edges))
            case Choice(options):
                return choice(*(self._nonempty(option) for option in options))
            case Members():
                return self._nonempty(by_first(expr))
            case Sequence(items) if items:
                begun = seq(self._nonempty(items[0]), *(self._strict(item) for item in items[1:]))
                return choice(begun, self._nonempty(seq(*items[1:])))
            case Repeat(item, _, high) if high != 0:
                return repeat(self._nonempty(item), 1, high)
            case _:
                return NOTHING

    def _twin(self, name: str) -> str:
        if name not in self.twins:
            self.twins[name] = fresh(f"{name}-nonempty", {*self._old, *self.twins.values()})
            self._due.append(name)
        return self.twins[name]
