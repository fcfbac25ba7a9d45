"""The rules of a tree as a recursive network of states, in which threads of the parser go on.

A thread is a state and a stack of the states to return to. Where that stack would grow beyond `depth`, its bottom is
forgotten, and the thread may return to any caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Fork,
    Leaf,
    Lexeme,
    Loop,
    Node,
    Only,
    Row,
    Sealed,
    Special,
    Tree,
)
from toolgram.work import spend

ANYWHERE = -1
"""At the bottom of a stack: return to any caller."""
VALUE = -(1 << 40)
"""Below the numbers of all special tokens are those of values, and below these those of what is sealed."""
SEALED = 2 * VALUE

_Stack = tuple[int, ...]
Thread = tuple[int, _Stack]
"""A place in the network: the state, and the states to return to, the innermost last."""


class Head(NamedTuple):
    """What a thread may take next, and where that leads."""

    leaf: Leaf
    number: int
    after: Thread


@dataclass(frozen=True, slots=True)
class Reach:
    """All that a thread may take next, whether it may leave the rule that its stack begins in, and whether it may come
    to the end of the whole, having forgotten who called it."""

    heads: tuple[Head, ...]
    leaves: bool
    ends: bool


class Network:
    """The states of all rules: `empty` steps for nothing, `takes` a numbered leaf, `enters` a rule and returns.

    A call of one of `values` is taken whole, like a lexeme of which only the first character is known, and so is what
    is sealed. Anything may come after the rule `whole`.
    """

    def __init__(self, tree: Tree, lexicon: Lexicon, values: Mapping[str, str], whole: str = "") -> None:
        self.lexicon = lexicon
        self.whole = whole
        self._values = {name: VALUE - ord(bracket) for name, bracket in values.items()}
        brackets = set(values.values())
        self.begins = {VALUE - ord(each): lexicon.alphabet.of_char(each) for each in brackets}  # of what is taken whole
        self.empty: list[list[int]] = []
        self.takes: list[list[tuple[Leaf, int, int]]] = []
        self.enters: list[list[tuple[str, int]]] = []
        self.entry = {name: self._state() for name in tree}
        self.exit = {self._state(): name for name in tree}
        self.returns: dict[str, list[int]] = {name: [] for name in tree}
        self._sealed: dict[str, int] = {}
        self.rule_of: list[str] = []
        self.targets: list[int] = []
        for (name, node), end in zip(tree.items(), self.exit, strict=True):
            self.empty[self._build(node, self.entry[name])].append(end)
            self.rule_of.extend([name] * (len(self.empty) - len(self.rule_of)))
        for state, name in (*((s, n) for n, s in self.entry.items()), *self.exit.items()):
            self.rule_of[state] = name
        self._by_rule: dict[str, list[int]] = {}
        self._after_rule: dict[str, tuple[list[int], bool]] = {}
        self.unseen()

    def unseen(self) -> Network:
        """The network, of which is forgotten what was found at some depth."""
        self.is_open = False  # where `whole` was seen to end although it may go on as well
        self._may_leave: dict[str, list[int]] = {}
        self._reaches: dict[Thread, Reach] = {}
        self._follows: dict[Thread, int] = {}
        return self

    def _state(self) -> int:
        self.empty.append([])
        self.takes.append([])
        self.enters.append([])
        return len(self.empty) - 1

    def _build(self, node: Node, begin: int) -> int:
        if isinstance(node, Row):
            for item in node.items:
                begin = self._build(item, begin)
            return begin
        if isinstance(node, Only):
            return begin
        if isinstance(node, Loop):
            return self._build_loop(node, begin)
        end = self._state()
        if isinstance(node, Fork):
            for option in node.options:
                self.empty[self._build(option, begin)].append(end)
            return end
        self.targets.append(end)
        if isinstance(node, Call) and node.name not in self._values:
            self.enters[begin].append((node.name, end))
            self.returns[node.name].append(end)
            return end
        number = self._number(node)
        self.takes[begin].append((node, number, end))
        if number >= 0 and self.lexicon.letters[number].nullable:
            self.empty[begin].append(end)
        return end

    def _number(self, leaf: Lexeme | Special | Call | Sealed) -> int:
        if isinstance(leaf, Lexeme):
            return self.lexicon.numbers[leaf]
        if isinstance(leaf, Special):
            return -1 - leaf.id
        if isinstance(leaf, Call):
            return self._values[leaf.name]
        number = self._sealed.setdefault(leaf.name, SEALED - len(self._sealed))
        self.begins[number] = self.lexicon.alphabet.alike(self.lexicon.alphabet.of_set(leaf.first))
        return number

    def _build_loop(self, loop: Loop, begin: int) -> int:
        """A loop without its counts, which can only report too many conflicts."""
        inside = self._state()
        self.empty[begin].append(inside)
        end = self._build(loop.item, inside)
        if loop.max != 1:
            self.empty[end].append(inside)
        if loop.min:
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

    def settled(self, thread: Thread) -> Thread:
        """The thread where there is more to do for it than to return."""
        state, stack = self.onward(thread[0]), thread[1]
        while state in self.exit and stack and stack[-1] != ANYWHERE:
            state, stack = self.onward(stack[-1]), stack[:-1]
        return state, stack

    def after_rule(self, name: str) -> tuple[list[int], bool]:
        """The states that a rule is followed by, where there is more to do than to return, whoever called it; and
        whether `whole` may end with it."""
        if name not in self._after_rule:
            found: dict[int, None] = {}
            seen, waiting = {name}, [name]
            while waiting:
                for back in map(self.onward, self.returns[waiting.pop()]):
                    if back not in self.exit:
                        found[back] = None
                    elif self.exit[back] not in seen:
                        seen.add(self.exit[back])
                        waiting.append(self.exit[back])
            self._after_rule[name] = list(found), self.whole in seen
        return self._after_rule[name]

    def may_leave(self, rule: str, depth: int) -> list[int]:
        """The states of a rule in which it may end."""
        if rule not in self._may_leave:
            states = dict.fromkeys(map(self.onward, (self.entry[rule], *self._states_of(rule))))
            self._may_leave[rule] = [state for state in states if self.reach((state, ()), depth).leaves]
        return self._may_leave[rule]

    def _states_of(self, rule: str) -> list[int]:
        """The states of a rule after which something was taken or left."""
        if not self._by_rule:
            for state in self.targets:
                self._by_rule.setdefault(self.rule_of[state], []).append(state)
        return self._by_rule.get(rule, [])

    def reach(self, thread: Thread, depth: int) -> Reach:
        """What the thread may take next; always asked with the same depth."""
        if thread not in self._reaches:
            self._reaches[thread] = self._reach(thread, depth)
        return self._reaches[thread]

    def _reach(self, thread: Thread, depth: int) -> Reach:
        found: list[Head] = []
        leaves = ends = False
        seen = {thread}
        waiting = [thread]
        while waiting:
            state, stack = waiting.pop()
            for leaf, number, target in self.takes[state]:
                found.append(Head(leaf, number, (target, stack)))
            onward = [(target, stack) for target in self.empty[state]]
            for name, back in self.enters[state]:
                goes_on = not stack or stack[-1] == ANYWHERE or self.onward(back) not in self.exit
                onward.append((self.entry[name], _pushed(stack, back, depth) if goes_on else stack))
            if state in self.exit:
                if not stack:
                    leaves = True
                elif stack[-1] == ANYWHERE:
                    name = self.exit[state]
                    ends = ends or name == self.whole
                    onward += [(back, stack) for back in self.returns[name]]
                else:
                    onward.append((stack[-1], stack[:-1]))
            for step in onward:
                if step not in seen:
                    seen.add(step)
                    waiting.append(step)
        spend(len(seen))
        return Reach(tuple(found), leaves, ends)

    def follow(self, thread: Thread, depth: int) -> int:
        """The characters that may come next, whoever called the rule that the thread's stack begins in."""
        if thread in self._follows:
            return self._follows[thread]
        reach = self.reach(thread, depth)
        if reach.leaves:
            state, stack = thread
            reach = self.reach((state, (ANYWHERE, *stack)), depth)
        mask = self.lexicon.alphabet.everything if reach.ends else 0
        for number in {head.number for head in reach.heads}:
            mask |= self.first(number)
        self._follows[thread] = mask
        return mask

    def first(self, number: int) -> int:
        """The characters that a leaf may begin with, by its number."""
        return self.lexicon.letters[number].first if number >= 0 else self.begins.get(number, 0)

    def runs_on(self, number: int, after: Thread, depth: int) -> int:
        """The characters after a lexeme over which it can run on itself, after which the thread goes on so."""
        over = self.may_run_on(number)
        lost = over and over & self.follow(after, depth)
        return lost and lost & self.lexicon.meet(number, number)[0]

    def may_run_on(self, number: int) -> int:
        """All characters that a leaf might run on over: a quick look, never too few."""
        return self.lexicon.may_run_on(number) if number >= 0 else 0

    def home(self, thread: Thread) -> str:
        """The rule that the thread's stack begins in."""
        state, stack = thread
        return self.rule_of[stack[0] if stack else state]


def is_anywhere(thread: Thread) -> bool:
    """Whether it is forgotten who called the rule that the thread's stack begins in."""
    return thread[1][:1] == (ANYWHERE,)


def under(back: int, thread: Thread, depth: int) -> Thread:
    """The thread with one more state to return to, below all others."""
    if is_anywhere(thread):
        return thread
    state, stack = thread
    deeper = (back, *stack)
    return state, deeper if len(deeper) <= depth else (ANYWHERE, *deeper[len(deeper) - depth + 1 :])


def _pushed(stack: _Stack, state: int, depth: int) -> _Stack:
    longer = (*stack, state)
    return longer if len(longer) <= depth else (ANYWHERE, *longer[len(longer) - depth + 1 :])
