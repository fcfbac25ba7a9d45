"""A recogniser of grammars, exact and independent of any engine.

What may follow is a set of stacks, kept as a graph that shares what is common to them: a frame is a node of the
grammar, how far it got (an offset, an index, a count, a state) and all the frames that one may go on with after it.
Frames at the same place are one frame, so that ambiguity does not multiply. A state is such a set, and its steps are
remembered: where a grammar is regular, it runs as a deterministic automaton that is built while it is used. All tables
grow by `dict.setdefault` alone, which makes a matcher safe to share by threads. Tables that became large are begun
anew; a thread that still has frames of the old ones loses no more than what these would share with the new.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as SequenceABC
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import NamedTuple

from toolgram.errors import GrammarError
from toolgram.grammar.excepts import Trees, in_trees
from toolgram.grammar.frames import Frame, Node, Stacks, place_of, rests
from toolgram.grammar.ir import (
    NOTHING,
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
    members,
)
from toolgram.grammar.orders import MOST_MEMBERS, in_rules, most_free
from toolgram.grammar.sampler import sample
from toolgram.grammar.shape import Shape, beginnings, check_references, checked, cost_of
from toolgram.grammar.until import automaton
from toolgram.grammar.walk import fresh, reachable, renamed, uses


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Any of `frames` may go on from here."""

    frames: Stacks
    steps: dict[str, _State | None] = field(default_factory=dict[str, "_State | None"])


class _Closure(NamedTuple):
    """The frames that read a character next, and whether the sentence may end here."""

    leaves: tuple[Frame, ...]
    final: bool


_MOST_REMEMBERED = 50_000
"""How many frames, unions and steps are kept from one text to the next: some ten megabytes."""

_AHEAD = 16
"""How many characters at the beginning of a text, after which the grammar is wanted, are read with a look ahead."""

_DEEPEST_MERGE = 3
"""How far down equal places of two stacks are merged; what lies deeper is merged when it comes to the top."""


class Matcher:
    """Recognises, samples and derives the grammar `rules`, whose start is the rule `root`.

    More members than Lark takes in any order come in one. Raises GrammarError for a reference that is not defined, and
    for left recursion.
    """

    def __init__(self, rules: Rules) -> None:
        self._unordered = rules
        rules = in_rules(rules, MOST_MEMBERS)
        used = uses(rules)
        check_references(used)
        self._given = rules
        self._costs = checked(rules, used)
        self._rules = dict(rules)  # and those of the trees that are met
        self._trees = Trees(self._rules)
        self._lock = Lock()
        self._nodes: dict[tuple[object, ...], Node] = {}
        self._heads: dict[str, Node] = {}
        self._begin()

    def _begin(self) -> None:
        """Begin the tables, with nothing in them but the start."""
        self._frames: dict[tuple[Node, int, Stacks], Frame] = {}
        self._unions: dict[tuple[Stacks, Stacks], Stacks] = {}
        self._states: dict[Stacks, _State] = {}
        self._closures: dict[_State, _Closure] = {}
        self._begun: dict[str, _State] = {}
        self._steps = 0
        has_sentence = self._costs["root"] is not None
        self._start = self._state((self._frame(self._head("root"), 0, (None,)),) if has_sentence else ())

    def accepts(self, text: str) -> bool:
        """Whether the whole text is a sentence."""
        state = self._run(text)
        return state is not None and self._closed(state).final

    def viable(self, text: str) -> bool:
        """Whether the text begins a sentence."""
        state = self._run(text)
        return state is not None and bool(state.frames)

    def sample(self, seed: int) -> str:
        """A random sentence, rich in what readers stumble over. Raises GrammarError where there is no sentence."""
        return sample(*self._whole, seed)

    @cached_property
    def _whole(self) -> tuple[Rules, Shape, int]:
        rules = in_trees(self._given)
        return rules, Shape.of(rules), most_free(self._unordered)

    def after(self, text: str) -> Rules:
        """The grammar of what may follow `text`. Raises GrammarError where nothing may."""
        self._make_room()
        state = self._go_on(self._begun_with(text[:_AHEAD]), text[_AHEAD:])
        if state is None or not state.frames:
            raise GrammarError(f"no sentence begins with {text!r}")
        if state is self._start:
            return self._given
        heads = {node: name for name, node in self._heads.items() if name != "root" and isinstance(node.expr, Sequence)}
        return _rooted({**self._rules, **rests(state.frames, self._rules, heads)})

    def _begun_with(self, text: str) -> _State:
        """The state after a beginning, found without a look into what begins otherwise: most of it are other calls."""
        state = self._begun.get(text)
        if state is None:
            frames = self._start.frames
            for at, char in enumerate(text):
                frames = self._read_all(self._closure(frames, text[at:]).leaves, char)
            state = self._begun.setdefault(text, self._state(frames))
        return state

    def known_of(self, rules: Rules) -> dict[str, int | None]:
        """The lengths of the shortest sentences of those rules of `after` that are its own."""
        return {name: self._costs[name] for name, expr in rules.items() if self._given.get(name) is expr}

    def _run(self, text: str) -> _State | None:
        self._make_room()
        return self._go_on(self._start, text)

    def _make_room(self) -> None:
        if self._steps + len(self._frames) + len(self._unions) + len(self._begun) > _MOST_REMEMBERED:
            self._begin()

    def _go_on(self, state: _State | None, text: str) -> _State | None:
        for char in text:
            if state is None:
                return None
            try:
                state = state.steps[char]
            except KeyError:
                state = state.steps.setdefault(char, self._step(state, char))
                self._steps += 1
        return state

    def _step(self, state: _State, char: str) -> _State | None:
        read = self._read_all(self._closed(state).leaves, char)
        return self._state(read) if read else None

    def _read_all(self, leaves: Iterable[Frame], char: str) -> Stacks:
        read = [reached for frame in leaves if (reached := self._read(frame, char))]
        return self._union_of(read) if read else ()

    def _read(self, frame: Frame, char: str) -> Stacks:
        node, at, below = frame.node, frame.at, frame.below
        match node.expr:
            case CharSet() as charset:
                return below if char in charset else ()
            case Text(without, seen):
                target = automaton(without, seen)[at].step(char)
                return () if target is None else (self._frame(node, target, below),)
            case Literal(text) | Token(text) if text[at] == char:
                return below if at + 1 == len(text) else (self._frame(node, at + 1, below),)
            case _:
                return ()

    def _state(self, frames: Stacks) -> _State:
        state = self._states.get(frames)
        return self._states.setdefault(frames, _State(frames)) if state is None else state

    def _closed(self, state: _State) -> _Closure:
        """Where one gets to from a state; found where that is asked for, which is not where a text only ends."""
        closed = self._closures.get(state)
        return self._closures.setdefault(state, self._closure(state.frames)) if closed is None else closed

    def _closure(self, frames: Stacks, ahead: str = "") -> _Closure:
        """The frames that read a character next, and whether the sentence may end here.

        Options that begin with another text than what is `ahead` may be left out: most are the calls of tools.
        """
        final = False
        found: dict[tuple[Node, int], Stacks] = {}
        waiting = list(reversed(frames))
        while waiting:
            frame = waiting.pop()
            if frame is None:
                final = True
                continue
            place = (frame.node, frame.at)
            known = found.get(place)
            below = frame.below if known is None else self._union(known, frame.below)
            if below is not known:
                found[place] = below
                waiting.extend(reversed(self._expand(frame.node, frame.at, below, ahead)))
        leaves = (self._frame(node, at, below) for (node, at), below in found.items() if _reads(node.expr))
        return _Closure(tuple(leaves), final)

    def _expand(self, node: Node, at: int, below: Stacks, ahead: str) -> Stacks:
        """Where one can get from this place without reading."""
        match node.expr:
            case Literal(text) | Token(text):
                return () if text else below
            case Text():
                return below
            case Sequence():
                if not node.parts:
                    return below
                # The last part goes on with what follows the sequence, so that right recursion does not pile up.
                rest = below if at + 1 == len(node.parts) else (self._frame(node, at + 1, below),)
                return (self._frame(node.parts[at], 0, rest),)
            case Choice():
                parts = filter(lambda part: self._may_be(part.expr, ahead), node.parts) if ahead else node.parts
                return tuple(self._frame(part, 0, below) for part in parts)
            case Ref(name):
                return (self._frame(self._head(name), 0, below),)
            case Repeat(_, low, high):
                more: Stacks = ()
                if node.parts and (high is None or at < high):
                    count = min(at + 1, low) if high is None else at + 1
                    rest = below if count == high else (self._frame(node, count, below),)
                    more = (self._frame(node.parts[0], 0, rest),)
                return (*more, *below) if at >= low else more
            case Except():
                return (self._frame(self._head(self._tree(node.expr)), 0, below),)
            case Members():
                return self._expand_members(node, node.expr, at, below)
            case CharSet():
                return ()

    def _may_be(self, expr: Expr, ahead: str) -> bool:
        """Whether an expression may begin with this text, or be over before: a quick look, which says so too often."""
        while isinstance(expr, Ref):
            expr = self._rules[expr.name]
        texts = beginnings(expr)
        return texts is None or any(ahead.startswith(text) or text.startswith(ahead) for text in texts)

    def _expand_members(self, node: Node, expr: Members, at: int, below: Stacks) -> Stacks:
        """Where one can get to among members: before one where `at` is even, behind one where it is odd.

        Half of it has a bit for each of the items that is taken, but those that may come any number of times.
        """
        taken = at >> 1
        if at & 1:
            more: Stacks = ()
            if expr.first(taken):
                more = (self._frame(self._node(Literal(expr.between)), 0, (self._frame(node, at - 1, below),)),)
            return (*more, *below) if expr.may_end(taken) else more
        firsts: list[Frame] = []
        for index in expr.first(taken):
            after = expr.with_one(taken, index)
            rest = (self._frame(node, 2 * after + 1, below),) if expr.first(after) else below
            firsts.append(self._frame(node.parts[index], 0, rest))
        return tuple(firsts)

    def _union(self, left: Stacks, right: Stacks, depth: int = 0) -> Stacks:
        """Both sets of stacks; `left` itself if it holds the right one already. Frames at the same place are merged."""
        if not left or not right or left == right:
            return left or right
        if depth == _DEEPEST_MERGE:
            return left if set(right) <= set(left) else tuple(dict.fromkeys((*left, *right)))
        merged = self._unions.get((left, right))
        if merged is None:
            merged = self._unions.setdefault((left, right), self._merged(left, right, depth))
        return left if merged == left else merged

    def _union_of(self, some: SequenceABC[Stacks]) -> Stacks:
        """All of these sets of stacks."""
        if len(some) == 1:
            return some[0]
        places: dict[tuple[Node, int] | None, Frame | None] = {}
        for stacks in some:
            self._merge(places, stacks, 0)
        return tuple(places.values())

    def _merged(self, left: Stacks, right: Stacks, depth: int) -> Stacks:
        places: dict[tuple[Node, int] | None, Frame | None] = {}
        for stacks in (left, right):  # of which each may have a place twice, where it was too deep to be merged
            self._merge(places, stacks, depth)
        return tuple(places.values())

    def _merge(self, places: dict[tuple[Node, int] | None, Frame | None], more: Stacks, depth: int) -> None:
        for frame in more:
            place = place_of(frame)
            known = places.get(place)
            if known is not None and frame is not None and known is not frame:
                frame = self._frame(frame.node, frame.at, self._union(known.below, frame.below, depth + 1))
            places[place] = frame

    def _frame(self, node: Node, at: int, below: Stacks) -> Frame:
        key = (node, at, below)
        frame = self._frames.get(key)
        return self._frames.setdefault(key, Frame(node, at, below)) if frame is None else frame

    def _head(self, name: str) -> Node:
        """The node of a rule, made when it is first met: most rules of a large grammar never are."""
        node = self._heads.get(name)
        return self._heads.setdefault(name, self._node(self._rules[name])) if node is None else node

    def _tree(self, expr: Except) -> str:
        """The rule of the tree that says what the expression is; all its rules have sentences."""
        with self._lock:
            name = self._trees.rule(expr, "string").name
            if name not in self._costs:
                self._costs.update(dict.fromkeys(self._rules.keys() - self._costs.keys(), 1))
            return name

    def _node(self, expr: Expr) -> Node:
        """The node of an expression, without the parts that no sentence can hold."""
        if isinstance(expr, Members) and any(cost_of(item, self._costs) is None for item in expr.items):
            possible = (item if cost_of(item, self._costs) is not None else NOTHING for item in expr.items)
            return self._node(members(possible, expr.occurs, expr.between))
        inside = () if isinstance(expr, Except) else children(expr)
        parts = tuple(self._node(part) for part in inside if cost_of(part, self._costs) is not None)
        match expr:
            case Sequence() | Choice():
                key: tuple[object, ...] = (type(expr), parts)
            case Repeat(_, low, high):
                key = (Repeat, low, high, parts)
            case _:
                key = (expr,)
        return self._nodes.setdefault(key, Node(expr, parts))


def _reads(expr: Expr) -> bool:
    return isinstance(expr, CharSet | Text) or (isinstance(expr, Literal | Token) and bool(expr.text))


def _rooted(rules: Rules) -> Rules:
    """The rule "" as the root, with the rules that it uses; an old root that is still used gets another name."""
    names = {"root": fresh("root", rules), "": "root"}
    return {names.get(name, name): renamed(expr, names) for name, expr in reachable(rules, "").items()}
