"""A recogniser of grammars, exact and independent of any engine.

What may follow is a set of stacks of frames. A frame is a node of the grammar, how far it got (an offset, an index, a
count, a state) and the frame to go on with after it; frames are interned, so that stacks share their tails. A state is
such a set, and its steps are remembered: where a grammar is regular, it runs as a deterministic automaton that is
built while it is used. All tables grow by `dict.setdefault` alone, which makes a matcher safe to share by threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgram.errors import GrammarError
from toolgram.grammar.ir import (
    CharSet,
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    Token,
    children,
    choice,
    repeat,
    seq,
)
from toolgram.grammar.sampler import sample
from toolgram.grammar.shape import Shape
from toolgram.grammar.until import automaton
from toolgram.grammar.walk import fresh, reachable, renamed


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """An expression with its parts; equal expressions are one node, compared by identity."""

    expr: Expr
    parts: tuple[_Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    node: _Node
    at: int
    then: _Frame | None
    """What comes after it; None for the end of the sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Any of `frames` may go on from here; `leaves` are those that read a character next."""

    frames: tuple[_Frame | None, ...]
    leaves: tuple[_Frame, ...]
    final: bool
    steps: dict[str, _State | None] = field(default_factory=dict[str, "_State | None"])


class Matcher:
    """Recognises, samples and derives the grammar `rules`, whose start is the rule `root`.

    Raises GrammarError for a reference that is not defined, and for left recursion.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = dict(rules)
        self._shape = Shape.of(self._rules)
        self._nodes: dict[tuple[object, ...], _Node] = {}
        self._frames: dict[tuple[_Node, int, _Frame | None], _Frame] = {}
        self._states: dict[tuple[_Frame | None, ...], _State] = {}
        self._heads = {name: self._node(expr) for name, expr in self._rules.items()}
        root = self._frame(self._heads["root"], 0, None)
        self._start = self._state((root,) if self._shape.cost(self._rules["root"]) is not None else ())

    def accepts(self, text: str) -> bool:
        """Whether the whole text is a sentence."""
        state = self._run(text)
        return state is not None and state.final

    def viable(self, text: str) -> bool:
        """Whether the text begins a sentence."""
        state = self._run(text)
        return state is not None and bool(state.frames)

    def sample(self, seed: int) -> str:
        """A random sentence, rich in what readers stumble over. Raises GrammarError where there is no sentence."""
        return sample(self._rules, self._shape, seed)

    def after(self, text: str) -> Rules:
        """The grammar of what may follow `text`. Raises GrammarError where nothing may."""
        state = self._run(text)
        if state is None or not state.frames:
            raise GrammarError(f"no sentence begins with {text!r}")
        if state is self._start:
            return self._rules
        return _rooted(choice(*(_rest(frame) for frame in state.frames)), self._rules)

    def _run(self, text: str) -> _State | None:
        state: _State | None = self._start
        for char in text:
            try:
                state = state.steps[char]
            except KeyError:
                state = state.steps.setdefault(char, self._step(state, char))
            if state is None:
                return None
        return state

    def _step(self, state: _State, char: str) -> _State | None:
        # A dict keeps the order and drops what is there twice.
        reached: dict[_Frame | None, None] = {}
        for frame in state.leaves:
            match frame.node.expr:
                case CharSet() as charset:
                    if char in charset:
                        reached[frame.then] = None
                case Literal(text) | Token(text):
                    if text[frame.at] == char:
                        last = frame.at + 1 == len(text)
                        reached[frame.then if last else self._frame(frame.node, frame.at + 1, frame.then)] = None
                case Text(without, seen):
                    target = automaton(without, seen)[frame.at].step(char)
                    if target is not None:
                        reached[self._frame(frame.node, target, frame.then)] = None
                case _:
                    raise AssertionError(frame.node.expr)
        return self._state(tuple(reached)) if reached else None

    def _state(self, frames: tuple[_Frame | None, ...]) -> _State:
        state = self._states.get(frames)
        if state is None:
            leaves, final = self._closure(frames)
            state = self._states.setdefault(frames, _State(frames, leaves, final))
        return state

    def _closure(self, frames: tuple[_Frame | None, ...]) -> tuple[tuple[_Frame, ...], bool]:
        """The frames that read a character next, and whether the sentence may end here."""
        leaves: list[_Frame] = []
        met = set(frames)
        waiting = list(reversed(frames))
        while waiting:
            frame = waiting.pop()
            if frame is None:
                continue
            if isinstance(frame.node.expr, CharSet | Text) or _has_text(frame.node.expr):
                leaves.append(frame)
            for reached in reversed(self._expand(frame)):
                if reached not in met:
                    met.add(reached)
                    waiting.append(reached)
        return tuple(leaves), None in met

    def _expand(self, frame: _Frame) -> list[_Frame | None]:
        """Where one can get from this frame without reading."""
        node, at, then = frame.node, frame.at, frame.then
        match node.expr:
            case Literal(text) | Token(text):
                return [] if text else [then]
            case Text():
                return [then]
            case Sequence():
                if not node.parts:
                    return [then]
                # The last part goes on with what follows the sequence, so that right recursion does not pile up.
                rest = then if at + 1 == len(node.parts) else self._frame(node, at + 1, then)
                return [self._frame(node.parts[at], 0, rest)]
            case Choice():
                return [self._frame(part, 0, then) for part in node.parts]
            case Ref(name):
                return [self._frame(self._heads[name], 0, then)]
            case Repeat(_, low, high):
                out: list[_Frame | None] = []
                if node.parts and (high is None or at < high):
                    count = min(at + 1, low) if high is None else at + 1
                    rest = then if count == high else self._frame(node, count, then)
                    out.append(self._frame(node.parts[0], 0, rest))
                return [*out, then] if at >= low else out
            case _:
                return []

    def _frame(self, node: _Node, at: int, then: _Frame | None) -> _Frame:
        key = (node, at, then)
        frame = self._frames.get(key)
        return self._frames.setdefault(key, _Frame(node, at, then)) if frame is None else frame

    def _node(self, expr: Expr) -> _Node:
        """The node of an expression, without the parts that no sentence can hold."""
        parts = tuple(self._node(part) for part in children(expr) if self._shape.cost(part) is not None)
        match expr:
            case Sequence() | Choice():
                key: tuple[object, ...] = (type(expr), parts)
            case Repeat(_, low, high):
                key = (Repeat, low, high, parts)
            case _:
                key = (expr,)
        return self._nodes.setdefault(key, _Node(expr, parts))


def _has_text(expr: Expr) -> bool:
    return isinstance(expr, Literal | Token) and bool(expr.text)


def _rest(frame: _Frame | None) -> Expr:
    """What remains to be read of a stack, as an expression."""
    items: list[Expr] = []
    while frame is not None:
        items.append(_remainder(frame.node.expr, frame.at))
        frame = frame.then
    return seq(*items)


def _remainder(expr: Expr, at: int) -> Expr:
    match expr:
        case Literal(text):
            return Literal(text[at:])
        case Token(text):
            return Literal(text[at:]) if at else expr
        case Text(without, seen):
            return Text(without, automaton(without, seen)[at].seen)
        case Sequence(items):
            return seq(*items[at:])
        case Repeat(item, low, high):
            return repeat(item, max(low - at, 0), None if high is None else high - at)
        case _:
            return expr


def _rooted(root: Expr, rules: Rules) -> Rules:
    """`root` with the rules that it uses; an old root that is still used gets another name."""
    old = fresh("root", rules)
    used = reachable({**rules, "": root}, "")
    names = {"root": old, "": "root"}
    return {names.get(name, name): renamed(expr, names) for name, expr in used.items()}
