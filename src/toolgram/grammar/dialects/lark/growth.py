"""Lexemes grow by what follows them: a text takes the marker that ends it, and so knows where to end.

What the lexeme and the beginning of what follows it spell together is regular, so that one lexeme can spell it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from toolgram.grammar.components import components
from toolgram.grammar.dialects.lark.openings import Opening, Place, Way, opening_of
from toolgram.grammar.dialects.lark.taken import (
    is_before_marker,
    may_be_empty,
    merged,
    optional_spelling,
    runs_on,
    until_marker,
)
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Fork,
    InTheWay,
    Lexeme,
    Loop,
    Node,
    Only,
    Row,
    Sealed,
    Special,
    Tree,
    begins_anew,
    call_of,
    calls,
    factored,
    fork,
    leaves,
    reachable,
    row,
    weight,
)
from toolgram.grammar.hashing import HashedOnce
from toolgram.grammar.ir import Expr, Literal
from toolgram.work import give_way, spend

_LONGEST_COPIED = 4  # leaves that are written once more for each option before them
_LETTERS = 8  # of the name of a rule that is made, which are a step
_DEEPEST = 40  # of rules put in the place of their calls, one in another
_MOST_CALLS = 1_000  # that are so replaced in one pass, or three for each rule


class Overgrown(Exception):
    """What follows would be written too often."""


class _After(NamedTuple):
    """What comes after a character that may begin a mark: the ways on; those of them that begin in every place, and
    what else may follow a text; and the rules of the places."""

    ways: list[Way]
    begun: tuple[Node, ...]
    others: tuple[Node, ...]
    rules: dict[Place, str]


@dataclass
class Growth:
    """One pass that lets lexemes grow by what follows them. Raises InTheWay where that is sealed, Overgrown where one
    rule has more than `largest` leaves."""

    rules: dict[str, Node]
    growing: set[Lexeme]
    before: dict[tuple[Expr, str], str]
    largest: int
    _ends: dict[str, bool] = field(default_factory=dict[str, bool])
    _recursive: dict[str, bool] = field(default_factory=dict[str, bool])
    _due: list[tuple[str, Lexeme, str]] = field(default_factory=list[tuple[str, Lexeme, str]])
    _depth: int = 0
    _put_in: int = 0
    _openings: dict[tuple[Opening, tuple[Node, ...]], _After] = field(
        default_factory=dict[tuple[Opening, tuple[Node, ...]], _After]
    )
    _within: str = ""  # the rule in which something grows
    _most: int = field(init=False)

    def __post_init__(self) -> None:
        graph = {name: tuple(calls(node)) for name, node in self.rules.items()}
        groups = components(graph)
        self._recursive = {name: len(group) > 1 or name in graph[name] for group in groups for name in group}
        self._most = max(_MOST_CALLS, 3 * len(graph))

    def tree(self) -> Tree:
        """The rules after the pass, those that are no longer used left out."""
        names = list(self.rules)
        for name in names:  # which grows: what is left of a rule may become a rule, and has lexemes that grow
            give_way()
            known = len(self.rules)
            self._within = name
            if self._holds_growing(self.rules[name]):
                self.rules[name] = self._grown(self.rules[name])
            names += list(self.rules)[known:]
        for new, lexeme, name in self._due:
            self._within = new
            self.rules[new] = self._longer(lexeme, (self._inside(name),))
        return reachable(self.rules, ["root"])

    def _holds_growing(self, node: Node) -> bool:
        """Whether there is a lexeme in the node that is to grow, or a rule that one may come last in."""
        return any(
            leaf in self.growing if isinstance(leaf, Lexeme) else isinstance(leaf, Call) and self._ends_growing(leaf)
            for leaf in leaves(node)
        )

    def _grown(self, node: Node) -> Node:
        match node:
            case Row(items):
                rest: tuple[Node, ...] = ()
                weighs = 0
                for item in reversed(items):
                    grown = self._grown(item)
                    if rest and self._ends_growing(grown):
                        rest = (self._joined(grown, rest),)
                        weighs = weight(rest[0])
                    else:
                        rest = (grown, *rest)
                        weighs += weight(grown)
                    if weighs > self.largest:
                        raise Overgrown
                return row(*rest)
            case Fork(options):
                return fork(*map(self._grown, options))
            case Loop(item, least, most):
                rotated = self._rotated(item, least, most, ())
                return Loop(self._grown(item), least, most) if rotated is None else rotated
            case _:
                return node

    def _ends_growing(self, node: Node) -> bool:
        """Whether a lexeme that is to grow may come last in the node."""
        if isinstance(node, Call):
            if node.name not in self._ends:
                self._ends[node.name] = self._reaches_growing(node)
            return self._ends[node.name]
        return self._reaches_growing(node)

    def _reaches_growing(self, node: Node) -> bool:
        """The same, looked up anew; a recursive rule cannot be put in the place of its call, so none is entered."""
        seen: set[str] = set()
        waiting = [node]
        while waiting:
            last = waiting.pop()
            match last:
                case Lexeme() if last in self.growing:
                    return True
                case Row(items):
                    waiting.extend(items[-1:])
                case Fork(options):
                    waiting.extend(options)
                case Loop(item):
                    waiting.append(item)
                case Call(name) if name not in seen and self._ends.get(name, True) and not self._stays(last):
                    seen.add(name)
                    waiting.append(self.rules[name])
                case _:
                    pass
        self._ends.update(dict.fromkeys(seen, False))
        return False

    def _is_recursive(self, name: str) -> bool:
        """Whether a rule calls itself, however deep; growing does not change that."""
        if name not in self._recursive:
            found = reachable(self.rules, calls(self.rules[name]))
            spend(len(found))
            self._recursive[name] = name in found
        return self._recursive[name]

    def _joined(self, node: Node, rest: tuple[Node, ...]) -> Node:
        """The node and what follows it, where its last lexemes grow."""
        if not self._ends_growing(node):
            return row(node, *rest)
        match node:
            case Lexeme():
                return self._longer(node, rest)
            case Row(items):
                return row(*items[:-1], self._joined(items[-1], rest))
            case Fork(options):
                return factored([self._joined(option, rest) for option in options])
            case Loop(item, least, most):
                rotated = self._rotated(item, least, most, rest)
                if rotated is not None:
                    return rotated
                before = _loop(item, max(least - 1, 0), None if most is None else most - 1)
                once = row(*before, self._joined(item, rest))
                return once if least else fork(once, row(*rest))
            case Call(name) if not self._stays(node) and self._can_put_in():
                self._depth += 1
                joined = self._joined(self.rules[name], rest)
                self._depth -= 1
                return joined
            case Call():
                return row(node, *rest)
            case Special() | Only() | Sealed():
                return row(node, *rest)

    def _rotated(self, item: Node, least: int, most: int | None, rest: tuple[Node, ...]) -> Node | None:
        """`(x t)+ rest` as `x (t x)* t rest`, where `t` is followed by `x` or by the rest in plain sight."""
        if most == 1 or not (isinstance(item, Row) and len(item.items) > 1 and item.items[-1] in self.growing):
            return None
        *before, last = item.items
        again = _loop(self._joined(last, tuple(before)), max(least - 1, 0), None if most is None else most - 1)
        once = row(*before, *again, self._joined(last, rest))
        return once if least else fork(once, row(*rest))

    def _longer(self, lexeme: Lexeme, rest: tuple[Node, ...]) -> Node:
        """The lexeme with the beginning of what follows it taken in."""
        if not rest:
            return lexeme
        spend(1)
        following, *others = rest
        tail = tuple(others)
        if isinstance(following, HashedOnce) and (opening := opening_of(lexeme.expr, following, self.rules)):
            after = self._after(opening, rest)
            if after.ways:
                return fork(*self._going_on(opening, opening.first, after))
        match following:
            case Lexeme():
                taken, left = until_marker(lexeme, following)
                longer = merged(lexeme, taken)
                return row(longer, *left, *tail) if left or not is_before_marker(longer) else self._longer(longer, tail)
            case Special():
                return row(lexeme, *rest)
            case Only():
                return row(following, self._longer(lexeme, tail))
            case Sealed():
                if runs_on(lexeme.expr):
                    raise InTheWay
                return row(lexeme, *rest)
            case Row(items):
                return self._longer(lexeme, (*items, *tail))
            case Call() if self._stays(following) or not self._can_put_in():
                return row(
                    self._before_rule(lexeme, following) if runs_on(lexeme.expr) else row(lexeme, following), *tail
                )
            case Call(name):
                self._depth += 1
                longer = self._longer(lexeme, (self._inside(name), *tail))
                self._depth -= 1
                return longer
            case Fork(options):
                spelled = optional_spelling(following, lexeme)
                if spelled is not None:
                    return self._longer(merged(lexeme, spelled), tail)
                tail = self._written_once(tail) if isinstance(lexeme.expr, Literal) else tail
                return factored([self._longer(lexeme, (option, *tail)) for option in options])
            case Loop(item, least, most):
                spelled = optional_spelling(following, lexeme)
                if spelled is not None:
                    return self._longer(merged(lexeme, spelled), tail)
                rotated = self._rotated(item, least, most, tail)
                if rotated is not None:
                    return self._longer(lexeme, (rotated,))
                again = _loop(item, max(least - 1, 0), None if most is None else most - 1)
                once = self._longer(lexeme, (item, *again, *tail))
                return once if least else fork(once, self._longer(lexeme, tail))

    def _after(self, opening: Opening, rest: tuple[Node, ...]) -> _After:
        """What comes after a character that may begin a mark, which is the same wherever a text began."""
        key = opening._replace(first=frozenset()), rest
        if key not in self._openings:
            ways, ended = self._ways_on(opening, rest)
            others = self._written_once((fork(*ended),)) if ways and ended else ()
            begun = tuple(opening.begun(opening.base, ways))
            if begun:
                begun = (factored(begun),)
            if len(opening.places) > 1:
                begun = self._written_once(begun)
            self._openings[key] = _After(ways, begun, others, {})
        return self._openings[key]

    def _opened(self, opening: Opening, place: Place, after: _After) -> Call:
        """The rule of a place."""
        if place not in after.rules:
            name = after.rules[place] = self._fresh(f"{self._within}-opened")
            self._recursive[name] = True
            self.rules[name] = row()  # so that the name is taken
            more = opening.begun(place - opening.base, after.ways)
            begun = [*after.begun, *([factored(more)] if more else [])]
            self.rules[name] = fork(*begun, *self._going_on(opening, place, after))
        every = [part for way in after.ways for part in (*way.only, way.after)]
        return call_of(after.rules[place], row(*every, *after.others))

    def _going_on(self, opening: Opening, place: Place, after: _After) -> list[Node]:
        """What a text may go on with in a place: up to the next character that may begin a mark, or to its end."""
        found: list[Node] = [row(opening.up_to(place), self._opened(opening, opening.base, after))]
        for lead, to in opening.onward(place).items():
            found.append(row(opening.leading(lead), self._opened(opening, to, after)))
        if after.others:
            found.append(self._longer(Lexeme(opening.text(place)), after.others))
        return found

    def _ways_on(self, opening: Opening, rest: tuple[Node, ...]) -> tuple[list[Way], list[Node]]:
        """The ways on that begin with a mark, and the others."""
        if not rest:
            return [], [row()]
        following, *others = rest
        tail = tuple(others)
        match following:
            case Lexeme(expr) if (way := opening.after(expr)) is not None:
                return [way._replace(after=row(way.after, *tail))], []
            case Row(items):
                return self._ways_on(opening, (*items, *tail))
            case Fork(options):
                tail = self._written_once(tail)
                ways = [self._ways_on(opening, (option, *tail)) for option in options]
                return [way for begun, _ in ways for way in begun], [way for _, ended in ways for way in ended]
            case Only():
                begun, ended = self._ways_on(opening, tail)
                return [way._replace(only=(following, *way.only)) for way in begun], [
                    row(following, way) for way in ended
                ]
            case Loop(item, least, most) if not may_be_empty(item):
                again = _loop(item, max(least - 1, 0), None if most is None else most - 1)
                begun, ended = self._ways_on(opening, (item, *again, *tail))
                more, without = ([], []) if least else self._ways_on(opening, tail)
                return [*begun, *more], [*ended, *without]
            case Call(name) if not self._stays(following) and self._can_put_in():
                self._depth += 1
                ways = self._ways_on(opening, (self._inside(name), *tail))
                self._depth -= 1
                return ways
            case _:
                return [], [row(*rest)]

    def _written_once(self, tail: tuple[Node, ...]) -> tuple[Node, ...]:
        """What follows a fork as a rule, where it is long: it is written after each option that a lexeme grows by."""
        if sum(map(weight, tail)) <= _LONGEST_COPIED:
            return tail
        name = self._fresh(f"{self._within}-rest")
        self.rules[name] = row(*tail)
        self._recursive[name] = any(map(self._is_recursive, calls(self.rules[name])))
        return (call_of(name, self.rules[name]),)

    def _before_rule(self, lexeme: Lexeme, call: Call) -> Node:
        """The lexeme and a recursive rule as a rule of its own, which the recursion then comes back to; it grows when
        all others have."""
        name = call.name
        key = (lexeme.expr, name)
        if self.before.get(key) not in self.rules:
            self.before[key] = new = self._fresh(f"before-{name}")
            self.rules[new] = Row((lexeme, call_of(name, self.rules[name])))
            self._due.append((new, lexeme, name))
        return Call(self.before[key], call.among)

    def _stays(self, call: Call) -> bool:
        """Whether what a rule is made of cannot be put in the place of its call."""
        return self._is_recursive(call.name) or begins_anew(call, self.rules)

    def _can_put_in(self) -> bool:
        """Whether one more rule can be put in the place of its call: neither too deep nor after too many others."""
        self._put_in += 1
        return self._depth < _DEEPEST and self._put_in <= self._most

    def _fresh(self, name: str) -> str:
        while name in self.rules:
            name += "-again"
        spend(1 + len(name) // _LETTERS)  # where rules of rules of rules are made, names grow with each
        return name

    def _inside(self, name: str) -> Node:
        """What the rule is made of; the rest of a row becomes a rule, so that it is not written twice."""
        node = self.rules[name]
        if isinstance(node, Row) and len(node.items) > 2:
            rest = self._fresh(f"{name}-rest")
            self.rules[rest] = Row(node.items[1:])
            if not self._is_recursive(name):
                self._recursive[rest] = False
            node = self.rules[name] = Row((node.items[0], call_of(rest, self.rules[rest])))
        return node


def _loop(item: Node, least: int, most: int | None) -> tuple[Node, ...]:
    return () if most == 0 else (Loop(item, least, most),)
