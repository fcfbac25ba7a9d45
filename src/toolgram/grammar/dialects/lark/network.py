"""Where a grammar's lexemes would be cut in the wrong place: pairs of them that meet at the same place in a text.

The rules are a recursive network of states; a thread of the parser is a state and a stack of the states to return to.
Threads that stand at the same place in the same text are a crowd: those that took the same lexeme go on together, so
that the ways on from a comma are one crowd, however many keys may follow it. Of their stacks only what they do not all
share is kept, so the crowds are few, and what follows a rule depends on who called it. Where that stack would
grow beyond `depth`, its bottom is forgotten and the thread may return to any caller: that finds more conflicts, never
fewer.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from toolgram.grammar.dialects.lark.lexicon import Lexicon
from toolgram.grammar.dialects.lark.tree import Call, Fork, Lexeme, Loop, Node, Row, Special, Tree, calls
from toolgram.grammar.dialects.lark.values import safe_values
from toolgram.work import spend

_ANYWHERE = -1  # at the bottom of a stack: return to any caller
_VALUE = -(1 << 40)  # below the numbers of all special tokens
_MOST_CROWDS = 2_000  # beyond those of a thread alone

_Stack = tuple[int, ...]
Thread = tuple[int, _Stack]
"""A place in the network: the state, and the states to return to, the innermost last."""


class Head(NamedTuple):
    """What a thread may take next, and where that leads."""

    leaf: Lexeme | Special | Call
    number: int
    after: Thread


@dataclass(frozen=True, slots=True)
class Reach:
    """All that a thread may take next, and whether it may leave the rule that its stack begins in."""

    heads: tuple[Head, ...]
    leaves: bool


@dataclass(frozen=True, slots=True)
class Conflict:
    """`ended` may end where a character of `over` follows, over whose first byte at least `running` runs on."""

    ended: Lexeme
    running: Lexeme
    over: int


class InTheWay(Exception):
    """A lexeme may begin where a value does, and like it, so that what is inside of the value must be looked at too."""


class Network:
    """The states of all rules: `empty` steps for nothing, `takes` a numbered leaf, `enters` a rule and returns.

    A call of one of `values` is taken whole, like a lexeme of which only the first character is known.
    """

    def __init__(self, tree: Tree, lexicon: Lexicon, values: Mapping[str, str]) -> None:
        self.lexicon = lexicon
        self._values = {name: _VALUE - ord(bracket) for name, bracket in values.items()}
        brackets = set(values.values())
        self.value_begins = {_VALUE - ord(each): lexicon.alphabet.of_char(each) for each in brackets}
        self.empty: list[list[int]] = []
        self.takes: list[list[tuple[Lexeme | Special | Call, int, int]]] = []
        self.enters: list[list[tuple[str, int]]] = []
        self.entry = {name: self._state() for name in tree}
        self.exit = {self._state(): name for name in tree}
        self.returns: dict[str, list[int]] = {name: [] for name in tree}
        self.rule_of: list[str] = []
        self.targets: list[int] = []
        for (name, node), end in zip(tree.items(), self.exit, strict=True):
            self.empty[self._build(node, self.entry[name])].append(end)
            self.rule_of.extend([name] * (len(self.empty) - len(self.rule_of)))
        for state, name in (*((s, n) for n, s in self.entry.items()), *self.exit.items()):
            self.rule_of[state] = name
        self._reaches: dict[Thread, Reach] = {}
        self._follows: dict[Thread, int] = {}

    def _state(self) -> int:
        self.empty.append([])
        self.takes.append([])
        self.enters.append([])
        return len(self.empty) - 1

    def _build(self, node: Node, begin: int) -> int:
        match node:
            case Row(items):
                for item in items:
                    begin = self._build(item, begin)
                return begin
            case Fork(options):
                end = self._state()
                for option in options:
                    self.empty[self._build(option, begin)].append(end)
                return end
            case Loop(item, least, most):
                return self._build_loop(item, least, most, begin)
            case Call(name) if name in self._values:
                end = self._state()
                self.takes[begin].append((node, self._values[name], end))
                self.targets.append(end)
                return end
            case Call(name):
                end = self._state()
                self.enters[begin].append((name, end))
                self.returns[name].append(end)
                self.targets.append(end)
                return end
            case Lexeme() | Special():
                end = self._state()
                number = self.lexicon.numbers[node] if isinstance(node, Lexeme) else -1 - node.id
                self.takes[begin].append((node, number, end))
                self.targets.append(end)
                if number >= 0 and self.lexicon.letters[number].nullable:
                    self.empty[begin].append(end)
                return end

    def _build_loop(self, item: Node, least: int, most: int | None, begin: int) -> int:
        """A loop without its counts, which can only report too many conflicts."""
        inside = self._state()
        self.empty[begin].append(inside)
        end = self._build(item, inside)
        if most != 1:
            self.empty[end].append(inside)
        if least:
            return end
        after = self._state()
        self.empty[begin].append(after)
        self.empty[end].append(after)
        return after

    def onward(self, state: int) -> int:
        """The state, or the first one after it from which there is more to do than to go on to the next."""
        while len(self.empty[state]) == 1 and not (self.takes[state] or self.enters[state]):
            state = self.empty[state][0]
        return state

    def reach(self, thread: Thread, depth: int) -> Reach:
        """What the thread may take next; always asked with the same depth."""
        if thread not in self._reaches:
            self._reaches[thread] = self._reach(thread, depth)
        return self._reaches[thread]

    def _reach(self, thread: Thread, depth: int) -> Reach:
        found: list[Head] = []
        leaves = False
        seen = {thread}
        waiting = [thread]
        while waiting:
            state, stack = waiting.pop()
            for leaf, number, target in self.takes[state]:
                found.append(Head(leaf, number, (target, stack)))
            onward = [(target, stack) for target in self.empty[state]]
            for name, back in self.enters[state]:
                onward.append((self.entry[name], _pushed(stack, back, depth)))
            if state in self.exit:
                if not stack:
                    leaves = True
                elif stack[-1] == _ANYWHERE:
                    onward += [(back, stack) for back in self.returns[self.exit[state]]]
                else:
                    onward.append((stack[-1], stack[:-1]))
            for step in onward:
                if step not in seen:
                    seen.add(step)
                    waiting.append(step)
        spend(len(seen))
        return Reach(tuple(found), leaves)

    def follow(self, thread: Thread, depth: int) -> int:
        """The characters that may come next, whoever called the rule that the thread's stack begins in."""
        if thread in self._follows:
            return self._follows[thread]
        reach = self.reach(thread, depth)
        if reach.leaves:
            state, stack = thread
            reach = self.reach((state, (_ANYWHERE, *stack)), depth)
        mask = 0
        for number in {head.number for head in reach.heads}:
            mask |= self.lexicon.letters[number].first if number >= 0 else self.value_begins.get(number, 0)
        self._follows[thread] = mask
        return mask

    def runs_on(self, number: int, after: Thread, depth: int) -> int:
        """The characters after a lexeme over which it can run on itself, after which the thread goes on so."""
        over = self.lexicon.may_run_on(number) if number >= 0 else 0
        lost = over and over & self.follow(after, depth)
        return lost and lost & self.lexicon.meet(number, number)[0]

    def home(self, thread: Thread) -> str:
        """The rule that the thread's stack begins in."""
        state, stack = thread
        return self.rule_of[stack[0] if stack else state]


def _pushed(stack: _Stack, state: int, depth: int) -> _Stack:
    longer = (*stack, state)
    return longer if len(longer) <= depth else (_ANYWHERE, *longer[len(longer) - depth + 1 :])


def conflicts(tree: Tree, lexicon: Lexicon) -> list[Conflict]:
    """Every pair of lexemes that might be cut in the wrong place; none means that the lexer is exact.

    Raises TooLarge where it takes more work than is left.
    """
    values = safe_values(tree, lexicon)
    if values:
        try:
            return _conflicts(_around(tree, values), lexicon, values)
        except InTheWay:
            pass
    return _conflicts(tree, lexicon, {})


def _around(tree: Tree, values: Container[str]) -> Tree:
    """The rules that the root needs outside of values."""
    found: dict[str, Node] = {}
    waiting = ["root"]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in values:
            found[name] = tree[name]
            waiting.extend(calls(tree[name]))
    return found


def _conflicts(tree: Tree, lexicon: Lexicon, values: Mapping[str, str]) -> list[Conflict]:
    shallow = _explore(Network(tree, lexicon, values), 1, None)
    if not shallow:
        return []
    for depth in (6, 2):
        found = _explore(Network(tree, lexicon, values), depth, _MOST_CROWDS)
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
    """Looks at crowds one by one; `found`: by the lexeme that may end and the one that runs on, over what."""

    network: Network
    depth: int
    found: dict[tuple[Lexeme, Lexeme], int] = field(default_factory=dict[tuple[Lexeme, Lexeme], int])

    def at(self, crowd: _Crowd) -> Iterator[_Crowd]:
        """Record the conflicts of what the threads may take, and give the crowds that come after."""
        network, depth = self.network, self.depth
        reaches = [network.reach(thread, depth) for thread in crowd]
        by_number: dict[int, list[Head]] = {}
        for reach in reaches:
            for head in reach.heads:
                by_number.setdefault(head.number, []).append(head)
        for number, begins in network.value_begins.items():
            if number in by_number and any(
                other >= 0 and network.lexicon.letters[other].first & begins for other in by_number
            ):
                raise InTheWay
        spend(4 + len(by_number))
        if network.lexicon.are_apart(by_number):
            for heads in by_number.values():
                if len(heads) > 1:
                    yield from self._together(heads, crowd)
        else:
            yield from self._rivals(by_number, crowd)
        if by_number and any(reach.leaves for reach in reaches):
            for back in network.returns[network.home(crowd[0])]:
                yield _normal({_under(back, thread, depth) for thread in crowd})

    def _rivals(self, by_number: Mapping[int, list[Head]], crowd: _Crowd) -> Iterator[_Crowd]:
        """Record the conflicts of lexemes that may do something to one another, and give the crowds after them."""
        network, depth = self.network, self.depth
        ends_with: dict[int, set[int]] = {number: set() for number in by_number}
        for number, heads in by_number.items():
            if any(network.runs_on(number, head.after, depth) for head in heads):
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

    def _together(self, heads: list[Head], crowd: _Crowd) -> Iterator[_Crowd]:
        """The crowd after heads that took the same text, where there is something new in it."""
        afters = {head.after for head in heads}
        if len(afters) > 1 and not (len(crowd) == 1 and _in_one_call(heads)):
            yield _normal(afters)

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
    bottoms = {stack[0] if stack else _ANYWHERE for stack in (head.after[1] for head in heads)}
    return len(bottoms) == 1 and _ANYWHERE not in bottoms


def _under(back: int, thread: Thread, depth: int) -> Thread:
    """The thread with one more state to return to, below all others."""
    state, stack = thread
    if stack[:1] == (_ANYWHERE,):
        return thread
    deeper = (back, *stack)
    return state, deeper if len(deeper) <= depth else (_ANYWHERE, *deeper[len(deeper) - depth + 1 :])


def _normal(threads: Iterable[Thread]) -> _Crowd:
    """The threads without the stack that all share, in a fixed order."""
    crowd = sorted(threads)
    stacks = [stack for _, stack in crowd]
    shared = 0
    for level in zip(*stacks, strict=False):
        if level[0] == _ANYWHERE or level.count(level[0]) < len(level):
            break
        shared += 1
    return tuple((state, stack[shared:]) for state, stack in crowd) if shared else tuple(crowd)
