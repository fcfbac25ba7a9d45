"""Automata as grammar expressions that stay small and legible.

The states are written in the shape of regular expressions: what all ways from a state lead through (its immediate
post-dominator) comes after a choice of these ways, chains of one step become counted repetitions, a state that leads to
itself becomes `x*`. States that lead to one another in larger loops become right-linear rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial

from toolgram.caching import weighed
from toolgram.grammar.components import components
from toolgram.grammar.ir import (
    EMPTY,
    NOTHING,
    CharSet,
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Sequence,
    children,
    choice,
    seq,
)
from toolgram.grammar.regular.automata import Automaton, of_lengths, weight

Rule = Callable[[str, Callable[[], Expr]], Ref]
"""Makes a rule with a name like the hint; its body is asked for later, once."""

_NESTING = 12  # levels inside one expression before a rule breaks it
_SHARED_SIZE = 6  # what is larger and used more than once becomes a rule
_LONGEST_LITERAL = 16
_END = -1
_RANGES_OF_PART = 2


def expression(
    automaton: Automaton,
    char: Callable[[CharSet], Expr],
    rule: Rule,
    hint: str,
    low: int = 0,
    high: int | None = None,
) -> Expr:
    """The texts of the language that have `low` to `high` characters, each character written as `char` says.

    Raises TooLarge where lengths and language together have too many states.
    """
    char = cache(char)  # few sets of characters are in many places
    if automaton.has_lengths_within(low, high):
        limited = automaton
    elif (counted := _counted(automaton, low, high)) is not None:
        return _spelled(counted, char)
    else:
        limited = of_lengths(automaton, low, high)
    if limited.is_empty:
        return NOTHING
    if limited.is_plain and limited.plain:
        return _spelled(limited.plain, char)
    body, bodies = _written(limited)
    refs: dict[str, Expr] = {}
    for number, plain in enumerate(bodies):
        refs[str(number)] = rule(hint, partial(_spelled, plain, char, refs))
    return _spelled(body, char, refs)


@weighed(weight)  # of the formats, above all, which are in many documents
def _written(automaton: Automaton) -> tuple[Expr, tuple[Expr, ...]]:
    """The language in plain characters, and the bodies of the rules that it refers to by their number."""
    return numbered(lambda rule: _Writer(automaton, partial(rule, "")).expression())


def numbered(write: Callable[[Rule], Expr]) -> tuple[Expr, tuple[Expr, ...]]:
    """What is written, and the bodies of the rules that it asks for, to which it refers by their numbers."""
    makers: list[Callable[[], Expr]] = []

    def rule(_: str, make: Callable[[], Expr]) -> Ref:
        makers.append(make)
        return Ref(str(len(makers) - 1))

    expr = write(rule)
    return expr, tuple(make() for make in makers)


def counts_apart(automaton: Automaton, low: int, high: int | None) -> bool:
    """Whether `expression` limits the lengths without more states."""
    return _counted(automaton, low, high) is not None


def _counted(automaton: Automaton, low: int, high: int | None) -> Expr | None:
    """The texts of these lengths, where they depend on one repetition alone, so that it needs no more states."""
    plain = automaton.plain or _steps_and_loop(automaton)
    return None if plain is None else _within(plain, low, high)


def _steps_and_loop(automaton: Automaton) -> Expr | None:
    """The expression of a language that is some fixed steps and then C*."""
    last = len(automaton.states) - 1
    for number, state in enumerate(automaton.states):
        if state.accepts is not (number == last) or len(state.edges) != 1:
            return None
        if state.edges[0][1] != min(number + 1, last):
            return None
    *steps, loop = [state.edges[0][0] for state in automaton.states]
    return _join(*steps, Repeat(loop, 0, None))


def _within(expr: Expr, low: int, high: int | None) -> Expr | None:
    """The texts of `low` to `high` characters; None where it takes more than to change one count in each sequence."""
    if high is not None and high < max(low, 0):
        return NOTHING
    fixed = _fixed_length(expr)
    if fixed is not None:
        return expr if low <= fixed and (high is None or fixed <= high) else NOTHING
    match expr:
        case Choice(options):
            found = [_within(option, low, high) for option in options]
            return None if None in found else choice(*(option for option in found if option is not None))
        case Sequence(items):
            lengths = [_fixed_length(item) for item in items]
            if lengths.count(None) > 1:
                return None
            at, others = lengths.index(None), sum(length or 0 for length in lengths)
            inner = _within(items[at], low - others, None if high is None else high - others)
            return None if inner is None else seq(*items[:at], inner, *items[at + 1 :])
        case Repeat(item, 0, 1):
            return _within(Choice((item, EMPTY)), low, high)
        case Repeat(item, least, most):
            size = _fixed_length(item)
            if not size:
                return None
            least = max(least, -(-low // size))
            most = most if high is None else high // size if most is None else min(most, high // size)
            return NOTHING if most is not None and most < least else _times(item, least, most)
        case _:
            return None


def _fixed_length(expr: Expr) -> int | None:
    """The length of all texts of a plain expression, if they have the same."""
    match expr:
        case CharSet():
            return 1
        case Literal(text):
            return len(text)
        case Sequence(parts) | Choice(parts):
            lengths = [_fixed_length(part) for part in parts]
            if None in lengths or (isinstance(expr, Choice) and len(set(lengths)) != 1):
                return None
            return sum(length or 0 for length in (lengths if isinstance(expr, Sequence) else lengths[:1]))
        case Repeat(item, low, high):
            length = _fixed_length(item)
            return None if length is None or low != high else length * low
        case _:
            return None


def _spelled(expr: Expr, char: Callable[[CharSet], Expr], refs: Mapping[str, Expr] | None = None) -> Expr:
    """The plain expression with its characters as `char` writes them, and the rules that it refers to."""
    match expr:
        case CharSet():
            return char(expr)
        case Literal(text):
            return seq(*(char(CharSet(((ord(c), ord(c)),))) for c in text))
        case Sequence(items):
            return seq(*[_spelled(item, char, refs) for item in items])
        case Choice(options):
            return choice(*[_spelled(option, char, refs) for option in options])
        case Repeat(item, low, high):
            spelled = _spelled(item, char, refs)
            if low == high and low <= _LONGEST_LITERAL and isinstance(spelled, Literal):
                return Literal(spelled.text * low)
            return choice(spelled, EMPTY) if (low, high) == (0, 1) else Repeat(spelled, low, high)
        case Ref(name) if refs:
            return refs[name]
        case _:
            return expr


@dataclass(slots=True)
class _Writer:
    """Writes one automaton in plain characters; `rule` makes a rule, whose body is asked for in the end."""

    automaton: Automaton
    rule: Callable[[Callable[[], Expr]], Ref]
    _join_of: dict[int, int] = field(default_factory=dict[int, int])  # entry → the place that all its ways lead through
    _depth: dict[int, int] = field(default_factory=lambda: {_END: 0})
    _way: dict[int, Expr] = field(default_factory=dict[int, Expr])  # entry → the ways to its join
    _uses: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _shared: dict[tuple[int, int], Ref] = field(default_factory=dict[tuple[int, int], Ref])

    def expression(self) -> Expr:
        """The whole language."""
        states = enumerate(self.automaton.states)
        groups = components({number: [target for _, target in state.edges] for number, state in states})
        component_of = {number: index for index, component in enumerate(groups) for number in component}
        entered = {0}
        for number, state in enumerate(self.automaton.states):
            entered.update(t for _, t in state.edges if component_of[t] != component_of[number])
        for component in groups:
            self._find_join(component, entered)
        for component in groups:
            self._write(component, [number for number in component if number in entered])
        return self._ways(0, _END)

    def _find_join(self, component: list[int], entered: set[int]) -> None:
        states = [self.automaton.states[number] for number in component]
        inside = set(component)
        leaving = [target for state in states for _, target in state.edges if target not in inside]
        exits = set(leaving)
        if any(state.accepts for state in states):
            exits.add(_END)
        join = exits.pop()
        for other in exits:
            join = self._meet(join, other)
        for number in component:
            if number in entered:
                self._join_of[number] = join
                self._depth[number] = self._depth[join] + 1
        for target in leaving:
            self._uses[target, join] = self._uses.get((target, join), 0) + 1

    def _meet(self, left: int, right: int) -> int:
        while left != right:
            if self._depth[left] >= self._depth[right]:
                left = self._join_of[left]
            else:
                right = self._join_of[right]
        return left

    def _ways(self, number: int, stop: int) -> Expr:
        """All ways from an entry to a place that they lead through."""
        if (number, stop) in self._shared:
            return self._shared[number, stop]
        parts: list[Expr] = []
        at = number
        while at != stop:
            parts.append(self._way[at])
            at = self._join_of[at]
        expr = _join(*parts)
        if self._uses.get((number, stop), 0) > 1 and size(expr) > _SHARED_SIZE:
            self._shared[number, stop] = self.rule(lambda: expr)
            return self._shared[number, stop]
        return expr

    def _write(self, component: list[int], entries: list[int]) -> None:
        """The ways from the entries of a component to their join."""
        stop = self._join_of[entries[0]]
        heads: set[int] = set()
        if len(component) > 1:
            steps = [(number, target) for number in component for _, target in self.automaton.states[number].edges]
            sources = Counter(target for number, target in steps if target != number)
            heads = {number for number in component if number in entries or sources[number] > 1}
        inside = set(component)
        bodies: dict[int, Expr] = {}
        known: dict[int, Expr] = {
            head: self.rule(lambda head=head: bodies[head]) for head in component if head in heads
        }
        for number in self._backwards(component, heads):
            bodies[number] = self._body(number, inside, stop, known)
            known.setdefault(number, bodies[number])
        self._way.update({entry: self._broken(known[entry]) for entry in entries})

    def _backwards(self, component: list[int], heads: set[int]) -> list[int]:
        """The states of a component so that steps lead back in the list, except those to heads."""
        inside = set(component)
        waiting = {
            n: {t for _, t in self.automaton.states[n].edges if t in inside and t != n and t not in heads}
            for n in component
        }
        sources: dict[int, list[int]] = {n: [] for n in component}
        for number, targets in waiting.items():
            for target in targets:
                sources[target].append(number)
        order = [number for number in component if not waiting[number]]
        for number in order:
            for source in sources[number]:
                waiting[source].discard(number)
                if not waiting[source]:
                    order.append(source)
        return order

    def _body(self, number: int, inside: set[int], stop: int, known: dict[int, Expr]) -> Expr:
        state = self.automaton.states[number]
        loop: Expr = EMPTY
        options: list[Expr] = []
        for charset, target in state.edges:
            if target == number:
                loop = Repeat(charset, 0, None)
            elif target in inside:
                options.append(_join(charset, self._broken(known[target])))
            else:
                options.append(_join(charset, self._ways(target, stop)))
        if state.accepts:
            options.append(EMPTY)
        return _join(loop, _either(options))

    def _broken(self, expr: Expr) -> Expr:
        """The expression, or a rule for it where it is nested deeply."""
        return self.rule(lambda: expr) if _nesting(expr) > _NESTING else expr


def _nesting(expr: Expr) -> int:
    return 1 + max(map(_nesting, children(expr)), default=0)


def written_size(automaton: Automaton) -> int:
    """How many parts the expression of a language has, with the rules that it needs."""
    body, bodies = _written(automaton)
    return sum(map(_as_written, (body, *bodies)))


def size(expr: Expr) -> int:
    return 1 + sum(map(size, children(expr)))


def _as_written(expr: Expr) -> int:
    """As `size`; a set of many characters takes as much to write as many parts."""
    ranges = len(expr.ranges) // _RANGES_OF_PART if isinstance(expr, CharSet) else 0
    return 1 + ranges + sum(map(_as_written, children(expr)))


def _items(expr: Expr) -> tuple[Expr, ...]:
    return expr.items if isinstance(expr, Sequence) else () if expr == EMPTY else (expr,)


def _join(*parts: Expr) -> Expr:
    """These in a sequence; neighbours that repeat the same become one repetition."""
    joined: list[Expr] = []
    for item in (item for part in parts for item in _items(part)):
        if joined and (merged := _merged(joined[-1], item)):
            joined[-1] = merged
        else:
            joined.append(item)
    return joined[0] if len(joined) == 1 else Sequence(tuple(joined)) if joined else EMPTY


def _merged(left: Expr, right: Expr) -> Expr | None:
    (item, low, high), (other, more, most) = _count(left), _count(right)
    if item != other or isinstance(item, Ref):
        return None
    return _times(item, low + more, None if high is None or most is None else high + most)


def _count(expr: Expr) -> tuple[Expr, int, int | None]:
    return (expr.item, expr.min, expr.max) if isinstance(expr, Repeat) else (expr, 1, 1)


def _times(item: Expr, low: int, high: int | None) -> Expr:
    return item if (low, high) == (1, 1) else EMPTY if high == 0 else Repeat(item, low, high)


def _either(options: Iterable[Expr]) -> Expr:
    """Any of these; where one of them ends with a choice of the others, only its beginning is a choice."""
    distinct = sorted(dict.fromkeys(options), key=lambda option: -len(_items(option)))
    for number, option in enumerate(distinct):
        end = _items(choice(*distinct[:number], *distinct[number + 1 :]))
        cut = len(_items(option)) - len(end)
        if end and cut > 0 and _items(option)[cut:] == end:
            return _join(_optional(_join(*_items(option)[:cut])), *end)
    if len(distinct) == 2 and distinct[1] == EMPTY:
        return _optional(distinct[0])
    return choice(*distinct)


def _optional(expr: Expr) -> Expr:
    *first, last = _items(expr)
    if first and isinstance(last, Repeat) and last.min == 0 and _join(*first) == last.item:
        return Repeat(last.item, 0, None if last.max is None else last.max + 1)
    item, low, high = _count(expr)
    return expr if low == 0 else Repeat(item, 0, high) if low == 1 else Repeat(expr, 0, 1)
