"""Where a grammar's lexemes would be cut in the wrong place: pairs of them that meet at the same place in a text.

Threads that stand at the same place in the same text are a crowd: those that took the same lexeme go on together, so
that the ways on from a comma are one crowd, however many keys may follow it. Of their stacks only what they do not all
share is kept, so the crowds are few, and what follows a rule depends on who called it. What a stack forgets (`network`)
finds more conflicts, never fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.lexing.network import (
    ANYWHERE,
    SEALED,
    VALUE,
    Head,
    Network,
    Thread,
    is_anywhere,
    under,
)
from toolgram.grammar.dialects.lark.lexing.values import safe_values
from toolgram.grammar.dialects.lark.tree import InTheWay, Lexeme, Node, Tree, calls
from toolgram.work import spend

_Found = TypeVar("_Found")
_MOST_CROWDS = 2_000  # beyond those of a thread alone
_FEW_CROWDS = 100  # the same: so few are looked at with long stacks at once
_LONG = 6  # states to return to


@dataclass(frozen=True, slots=True)
class Conflict:
    """`ended` may end where a character of `over` follows, over whose first byte at least `running` runs on."""

    ended: Lexeme
    running: Lexeme
    over: int


def conflicts(tree: Tree, lexicon: Lexicon) -> list[Conflict]:
    """Every pair of lexemes that might be cut in the wrong place; none means that the lexer is exact.

    Raises TooLarge where it takes more work than is left, and InTheWay where that needs to know what is sealed.
    """
    return _beside_values(tree, "root", safe_values(tree, lexicon), partial(_conflicts, lexicon))


def first_of_safe(tree: Tree, name: str, lexicon: Lexicon, values: Mapping[str, str]) -> int | None:
    """The characters that a rule may begin with if, whatever comes before and after it, nothing is in the way of
    anything inside of it, and it never ends where it may go on as well; else none.

    `values`: the safe ones of the tree. Raises TooLarge where it takes more work than is left.
    """
    return _beside_values(tree, name, values, partial(_first_of_safe, name, lexicon))


def _beside_values(
    tree: Tree, start: str, values: Mapping[str, str], look: Callable[[Tree, Mapping[str, str]], _Found]
) -> _Found:
    """What a look finds in a rule and what it needs, its values taken whole, if nothing is in their way."""
    if values:
        try:
            return look(_around(tree, values, start), values)
        except InTheWay:
            pass
    return look(tree, {})


def _first_of_safe(name: str, lexicon: Lexicon, tree: Tree, values: Mapping[str, str]) -> int | None:
    if name in values:
        return lexicon.alphabet.of_char(values[name])
    network = Network(tree, lexicon, values, name)
    if _explore(network, 1, None) or network.is_open:
        return None
    return network.follow((network.entry[name], ()), 1)


def _around(tree: Tree, values: Container[str], start: str) -> Tree:
    """The rules that a rule needs outside of values."""
    found: dict[str, Node] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in values:
            found[name] = tree[name]
            waiting.extend(calls(tree[name]))
    return found


def _conflicts(lexicon: Lexicon, tree: Tree, values: Mapping[str, str]) -> list[Conflict]:
    network = Network(tree, lexicon, values)
    found = _explore(network, _LONG, _FEW_CROWDS)
    if found is not None:
        return found
    shallow = _explore(network.unseen(), 1, None)
    if not shallow:
        return []
    for depth in (_LONG, 2):
        found = _explore(network.unseen(), depth, _MOST_CROWDS)
        if found is not None:
            return found
    return shallow


_Crowd = tuple[Thread, ...]
"""Threads that stand at the same place in the same text: different ones, in order, without the stack that all share."""


def _explore(network: Network, depth: int, limit: int | None) -> list[Conflict] | None:
    """The conflicts; None where there are more crowds to look at than the limit."""
    look = _Look(network, depth)
    places = dict.fromkeys(network.onward(state) for state in (*network.entry.values(), *network.targets))
    waiting: list[_Crowd] = [((state, ()),) for state in places if _has_a_choice(network, state, depth)]
    seen = set(waiting)
    alone = len(seen)
    while waiting:
        if limit is not None and len(seen) > limit + alone:
            return None
        for crowd in look.at(waiting.pop()):
            if crowd not in seen:
                seen.add(crowd)
                waiting.append(crowd)
    return [Conflict(ended, running, over) for (ended, running), over in look.found.items()]


def _has_a_choice(network: Network, state: int, depth: int) -> bool:
    """Whether two threads that both stand here can part, or a lexeme run on over what follows it.

    Where the one way on is a call, the rule's own entry says so, unless the rule may be empty.
    """
    takes, enters = network.takes[state], network.enters[state]
    if network.empty[state] or len(takes) + len(enters) > 1:
        return True
    if enters:
        return network.reach((network.entry[enters[0][0]], ()), depth).leaves
    return bool(takes and network.runs_on(takes[0][1], (takes[0][2], ()), depth))


@dataclass(slots=True)
class _Look:
    """Looks at crowds one by one; `found`: by the lexeme that may end and the one that runs on, over what.

    `parted`: the rules of which the crowds were given in which threads part again.
    """

    network: Network
    depth: int
    found: dict[tuple[Lexeme, Lexeme], int] = field(default_factory=dict[tuple[Lexeme, Lexeme], int])
    parted: set[str] = field(default_factory=set[str])

    def at(self, crowd: _Crowd) -> Iterator[_Crowd]:
        """Record the conflicts of what the threads may take, and give the crowds that come after."""
        network, depth = self.network, self.depth
        reaches = [network.reach(thread, depth) for thread in crowd]
        by_number: dict[int, list[Head]] = {}
        for reach in reaches:
            for head in reach.heads:
                by_number.setdefault(head.number, []).append(head)
        if any(number <= VALUE and self._has_in_the_way(number, by_number) for number in by_number):
            raise InTheWay
        spend(4 + len(by_number))
        if network.lexicon.are_apart(by_number):
            for heads in by_number.values():
                yield from self._together(heads, crowd)
        else:
            yield from self._rivals(by_number, crowd)
        if not by_number:
            return
        network.is_open |= any(reach.ends for reach in reaches)
        leaving = next((thread for thread, reach in zip(crowd, reaches, strict=True) if reach.leaves), None)
        if leaving is not None:
            after_rule, ends = network.after_rule(network.home(leaving))
            network.is_open |= ends
            for back in after_rule:
                yield _normal({(back, ()), *(network.settled(under(back, thread, depth)) for thread in crowd)})

    def _has_in_the_way(self, whole: int, by_number: Collection[int]) -> bool:
        """Whether another leaf that may come next might begin like one that is taken whole: special tokens may be what
        something sealed begins with."""
        network = self.network
        begins = network.begins[whole]
        return any(
            network.first(other) & begins or (whole <= SEALED and VALUE < other < 0)
            for other in by_number
            if other != whole
        )

    def _rivals(self, by_number: Mapping[int, list[Head]], crowd: _Crowd) -> Iterator[_Crowd]:
        """Record the conflicts of lexemes that may do something to one another, and give the crowds after them."""
        network, depth = self.network, self.depth
        ends_with: dict[int, set[int]] = {number: set() for number in by_number}
        for number, heads in by_number.items():
            if network.may_run_on(number) and any(network.runs_on(number, head.after, depth) for head in heads):
                self._cut(heads, heads, network.lexicon.meet(number, number)[0])
        for one, other in network.lexicon.rivals(tuple(by_number)):
            over, back, together = network.lexicon.meet(one, other)
            self._cut(by_number[one], by_number[other], over)
            self._cut(by_number[other], by_number[one], back)
            if together:
                ends_with[one].add(other)
                ends_with[other].add(one)
        for number, others in ends_with.items():
            for other in [other for other in others if other > number] or ([] if others else [number]):
                heads = by_number[number] if other == number else [*by_number[number], *by_number[other]]
                yield from self._together(heads, crowd)

    def _together(self, heads: list[Head], crowd: _Crowd) -> Iterable[_Crowd]:
        """The crowd after heads that took the same text, where there is something new in it."""
        if len(heads) == 1 and not is_anywhere(heads[0].after):  # as nearly all are
            return ()
        afters = {self.network.settled(head.after) for head in heads}
        if len(afters) > 1 and not (len(crowd) == 1 and _in_one_call(heads)):
            return (_normal(afters),)
        return self._merged(afters) if len(crowd) > 1 or any(map(is_anywhere, crowd)) else ()

    def _merged(self, afters: Iterable[Thread]) -> Iterator[_Crowd]:
        """The crowds where threads that came to one may part again, since they were called from different places, which
        are forgotten: in its rule they go on alike, and they return together. Each is given once."""
        for state, stack in filter(is_anywhere, afters):
            rule = self.network.rule_of[stack[1] if len(stack) > 1 else state]
            if rule not in self.parted:
                self.parted.add(rule)
                for left in self.network.may_leave(rule, self.depth):
                    yield ((left, (ANYWHERE,)),)

    def _cut(self, ended: list[Head], running: list[Head], over: int) -> None:
        """Record where those that run on over some characters cut those that ended."""
        if over:
            spend(len(ended))
            for head in ended:
                if lost := over & self.network.follow(head.after, self.depth):
                    spend(len(running))
                    for rival in running:
                        self._record(head, rival, lost)

    def _record(self, ended: Head, running: Head, over: int) -> None:
        if isinstance(ended.leaf, Lexeme) and isinstance(running.leaf, Lexeme):
            key = ended.leaf, running.leaf
            self.found[key] = self.found.get(key, 0) | over


def _in_one_call(heads: Iterable[Head]) -> bool:
    """Whether all are inside the same call, so that the crowd at that rule's entry is enough."""
    bottoms = {stack[0] if stack else ANYWHERE for stack in (head.after[1] for head in heads)}
    return len(bottoms) == 1 and ANYWHERE not in bottoms


def _normal(threads: Iterable[Thread]) -> _Crowd:
    """The threads without the stack that all share, in a fixed order."""
    crowd = sorted(set(threads))
    stacks = [stack for _, stack in crowd]
    shared = 0
    for level in zip(*stacks, strict=False):
        if level[0] == ANYWHERE or level.count(level[0]) < len(level):
            break
        shared += 1
    return tuple((state, stack[shared:]) for state, stack in crowd) if shared else tuple(crowd)
