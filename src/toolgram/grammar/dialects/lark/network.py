"""Where a grammar's lexemes would be cut in the wrong place: pairs of them that meet at the same place in a text.

The rules are a recursive network of states; a thread of the parser is a state and a stack of the states to return to.
Two threads that stand at the same place in the same text are a pair. Of their stacks only what they do not share is
kept, so the pairs are few, and what follows a rule is told apart by who called it. Where that stack would grow beyond
`depth`, its bottom is forgotten and the thread may return to any caller: that finds more conflicts, never fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from toolgram.grammar.dialects.lark.lexicon import Lexicon
from toolgram.grammar.dialects.lark.tree import Call, Fork, Lexeme, Loop, Node, Row, Special, Tree
from toolgram.grammar.dialects.lark.work import Work

_ANYWHERE = -1  # at the bottom of a stack: return to any caller
_MOST_PAIRS = 2_000  # beyond those of a thread with itself

_Stack = tuple[int, ...]
Thread = tuple[int, _Stack]
"""A place in the network: the state, and the states to return to, the innermost last."""


class Head(NamedTuple):
    """What a thread may take next, and where that leads."""

    leaf: Lexeme | Special
    number: int
    after: Thread


@dataclass(frozen=True, slots=True)
class Reach:
    """All that a thread may take next, the numbers of that, and whether the thread may leave the rule that its stack
    begins in."""

    heads: tuple[Head, ...]
    numbers: tuple[int, ...]
    leaves: bool


@dataclass(frozen=True, slots=True)
class Conflict:
    """`ended` may end where a character of `over` follows, over whose first byte at least `running` runs on."""

    ended: Lexeme
    running: Lexeme
    over: int


class Network:
    """The states of all rules: `empty` steps for nothing, `takes` a numbered leaf, `enters` a rule and returns."""

    def __init__(self, tree: Tree, lexicon: Lexicon, work: Work) -> None:
        self.lexicon = lexicon
        self.work = work
        self.empty: list[list[int]] = []
        self.takes: list[list[tuple[Lexeme | Special, int, int]]] = []
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
            case Call(name):
                end = self._state()
                self.enters[begin].append((name, end))
                self.returns[name].append(end)
                self.targets.append(end)
                return end
            case Lexeme() | Special():
                end = self._state()
                number = self.lexicon.numbers[node.expr] if isinstance(node, Lexeme) else -1 - node.id
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
        self.work.spend(len(seen))
        return Reach(tuple(found), tuple([head.number for head in found]), leaves)

    def follow(self, thread: Thread, depth: int) -> int:
        """The characters that may come next, whoever called the rule that the thread's stack begins in."""
        reach = self.reach(thread, depth)
        if reach.leaves:
            state, stack = thread
            reach = self.reach((state, (_ANYWHERE, *stack)), depth)
        mask = 0
        for number in reach.numbers:
            mask |= self.lexicon.letters[number].first if number >= 0 else 0
        return mask

    def home(self, thread: Thread) -> str:
        """The rule that the thread's stack begins in."""
        state, stack = thread
        return self.rule_of[stack[0] if stack else state]


def _pushed(stack: _Stack, state: int, depth: int) -> _Stack:
    longer = (*stack, state)
    return longer if len(longer) <= depth else (_ANYWHERE, *longer[len(longer) - depth + 1 :])


def conflicts(tree: Tree, lexicon: Lexicon, work: Work) -> list[Conflict]:
    """Every pair of lexemes that might be cut in the wrong place; none means that the lexer is exact.

    Raises TooMuchWork where it takes more than is left.
    """
    for depth, limit in ((6, _MOST_PAIRS), (2, _MOST_PAIRS)):
        found = _explore(Network(tree, lexicon, work), depth, limit)
        if found is not None:
            return found
    return _explore(Network(tree, lexicon, work), 1, None) or []


def _explore(network: Network, depth: int, limit: int | None) -> list[Conflict] | None:
    """The conflicts; None where there are more pairs to look at than the limit."""
    found: dict[tuple[Lexeme, Lexeme], int] = {}
    places = dict.fromkeys(network.onward(state) for state in (*network.entry.values(), *network.targets))
    alone: list[Thread] = [(state, ()) for state in places if _has_a_choice(network, state)]
    waiting = [(thread, thread) for thread in alone]
    seen = set(waiting)
    while waiting:
        if limit is not None and len(seen) > limit + len(alone):
            return None
        pair = waiting.pop()
        for met in _meet(network, *pair, depth, found):
            if met[0] != met[1] and met not in seen:
                seen.add(met)
                waiting.append(met)
    return [Conflict(ended, running, over) for (ended, running), over in found.items()]


def _has_a_choice(network: Network, state: int) -> bool:
    """Whether two threads that both stand here can part, or a lexeme run on over what follows it.

    Where the one way on is a call, the rule's own entry says so.
    """
    if network.empty[state] or len(network.takes[state]) + len(network.enters[state]) > 1:
        return True
    return any(number >= 0 and network.lexicon.meet(number, number)[0] for _, number, _ in network.takes[state])


def _meet(
    network: Network, one: Thread, other: Thread, depth: int, found: dict[tuple[Lexeme, Lexeme], int]
) -> Iterator[tuple[Thread, Thread]]:
    """Record the conflicts of what two threads may take, and give the pairs of threads that come after."""
    left = network.reach(one, depth)
    right = left if one == other else network.reach(other, depth)
    pairs = network.lexicon.rivals(left.numbers, right.numbers)
    network.work.spend(4 + len(pairs))
    for place, rivals in pairs:
        head, rival = left.heads[place], right.heads[rivals]
        if one == other and (rivals < place or _same_call(head, rival)):
            continue
        if _together(network, head, rival, depth, found) and head.after != rival.after:
            yield _normal(head.after, rival.after)
    for stays, goes, both in ((one, other, right.leaves and left.heads), (other, one, left.leaves and right.heads)):
        if both:
            for back in network.returns[network.home(goes)]:
                yield _normal(_under(back, stays, depth), (back, ()))


def _together(network: Network, head: Head, rival: Head, depth: int, found: dict[tuple[Lexeme, Lexeme], int]) -> bool:
    """Record what the two may do to one another; whether they can end together."""
    one, other = head.leaf, rival.leaf
    if isinstance(one, Special) or isinstance(other, Special):
        return isinstance(one, Special) and isinstance(other, Special) and one.id == other.id
    over, back, together = network.lexicon.meet(head.number, rival.number)
    if over and (over := over & network.follow(head.after, depth)):
        found[one, other] = found.get((one, other), 0) | over
    if back and (back := back & network.follow(rival.after, depth)):
        found[other, one] = found.get((other, one), 0) | back
    return together


def _same_call(head: Head, rival: Head) -> bool:
    """Whether both are inside the same call, so that the pair of threads at that rule's entry tells."""
    one, other = head.after[1], rival.after[1]
    return bool(one and other and one[0] == other[0] != _ANYWHERE)


def _under(back: int, thread: Thread, depth: int) -> Thread:
    """The thread with one more state to return to, below all others."""
    state, stack = thread
    if stack[:1] == (_ANYWHERE,):
        return thread
    deeper = (back, *stack)
    return state, deeper if len(deeper) <= depth else (_ANYWHERE, *deeper[len(deeper) - depth + 1 :])


def _normal(one: Thread, other: Thread) -> tuple[Thread, Thread]:
    """The pair without the stack that both share, in a fixed order."""
    (state, stack), (away, returns) = one, other
    shared = 0
    for here, there in zip(stack, returns, strict=False):
        if here != there or here == _ANYWHERE:
            break
        shared += 1
    left, right = (state, stack[shared:]), (away, returns[shared:])
    return (left, right) if left <= right else (right, left)
