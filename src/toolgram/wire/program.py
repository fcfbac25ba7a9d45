"""A wire format as a small program: what may stand where, shared by the reader and the grammar.

The nodes of a format become instructions that point at one another, as in a Thompson automaton. `closure` gives the
instructions that may come next at a place, and `exits` the marks at which free text there may end: the grammar excludes
from free text exactly those marks at which the reader would end it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from toolgram.errors import GrammarError
from toolgram.wire import beginnings
from toolgram.wire import format as wire
from toolgram.wire.instructions import (
    Action,
    ActionAt,
    AheadAt,
    ArgumentsAt,
    Exit,
    ForkAt,
    FreeAt,
    FreeField,
    Instruction,
    JsonAt,
    MarkAt,
    NameAction,
    NameAt,
    StopAt,
    TextAt,
)
from toolgram.wire.json_shapes import shape_of


@dataclass(frozen=True, eq=False)
class Program:
    """The instructions of a format; `start` is where a turn begins.

    One is itself alone: `compile_format` gives equal formats the same one, so that caches need not hash all of it.
    """

    code: tuple[Instruction, ...]
    start: int
    _closures: dict[int, tuple[tuple[int, tuple[Action, ...]], ...]] = field(
        default_factory=dict[int, tuple[tuple[int, tuple[Action, ...]], ...]], repr=False
    )
    _word_ends: dict[int, bool] = field(default_factory=dict[int, bool], repr=False)

    def closure(self, at: int) -> tuple[tuple[int, tuple[Action, ...]], ...]:
        """The instructions that may come next at a place, best first, each with the actions on the way to it."""
        if (known := self._closures.get(at)) is not None:
            return known
        found: dict[int, tuple[Action, ...]] = {}
        seen: set[int] = set()

        def visit(place: int, actions: tuple[Action, ...]) -> None:
            if place in seen:
                return
            seen.add(place)
            match self.code[place]:
                case ForkAt(targets):
                    for target in targets:
                        visit(target, actions)
                case ActionAt(action, next_, text):
                    visit(next_, (*actions, (action, text)))
                case _:
                    found[place] = actions

        visit(at, ())
        return self._closures.setdefault(at, tuple(found.items()))

    def exits(self, at: int) -> tuple[Exit, ...]:
        """The marks that may come first at a place, with the prescribed text before each."""
        found: list[Exit] = []
        self._collect(at, "", (), found, set())
        return tuple(found)

    def _collect(self, at: int, before: str, actions: tuple[Action, ...], found: list[Exit], seen: set[int]) -> None:
        for place, more in self.closure(at):
            if place in seen:
                continue
            seen.add(place)
            match self.code[place]:
                case MarkAt(text, _, first):
                    found.append(Exit(text, before, place, (*actions, *more), first))
                case AheadAt(text):
                    found.append(Exit(text, before, place, (*actions, *more), ahead=True))
                case TextAt(text, next_):
                    self._collect(next_, before + text, (*actions, *more), found, seen)
                case _:
                    pass

    def ends_words(self, at: int) -> bool:
        """Whether what may come next at a place begins with no letter, digit, "_" or "-": a word goes on before it."""
        if at not in self._word_ends:
            self._word_ends[at] = False  # where it comes back to itself
            self._word_ends[at] = not any(map(self.may_begin_word, (place for place, _ in self.closure(at))))
        return self._word_ends[at]

    def may_begin_word(self, place: int) -> bool:
        """Whether what stands at a place may begin with a letter, a digit, "_" or "-"."""
        match self.code[place]:
            case MarkAt(text) | AheadAt(text):
                return _is_in_word(text[0])
            case TextAt(text, next_):
                begun = text.lstrip()
                return _is_in_word(begun[0]) if begun else not self.ends_words(next_)
            case JsonAt() | ArgumentsAt() as body:
                return any(map(_is_in_word, body.first))
            case StopAt():
                return False
            case _:
                return True

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """The texts of all marks, aliases too."""
        return tuple(dict.fromkeys(each.text for each in self.code if isinstance(each, MarkAt)))

    @cached_property
    def home_exits(self) -> tuple[Exit, ...]:
        """The marks at which a turn may begin: free text ends at them wherever it stands."""
        return tuple(exit_ for exit_ in self.exits(self.start) if not exit_.first)

    @cached_property
    def first_marks(self) -> tuple[str, ...]:
        """The marks that free text must not begin with."""
        return tuple(dict.fromkeys(each.text for each in self.code if isinstance(each, MarkAt) and each.first))

    def free_exits(self, at: int) -> tuple[Exit, ...]:
        """The marks at which the free text at a place ends, wherever they stand in it."""
        free = self.code[at]
        if not isinstance(free, FreeAt):
            raise TypeError(f"no free text at {at}")
        exits = (exit_ for exit_ in self.exits(free.next) if not exit_.first)
        found = {(exit_.text, exit_.before, exit_.at): exit_ for exit_ in exits}
        if free.field == "content":
            own = {text for text, _, _ in found}
            for exit_ in self.home_exits:
                if exit_.text not in own:
                    found[exit_.text, exit_.before, exit_.at] = exit_
        return tuple(found.values())

    def last_characters(self, field_: FreeField) -> str:
        """What free text of a field must not end with: after it a mark would be found too soon (">" before ">>>")."""
        return "".join(
            sorted(
                {
                    mark[shift - 1]
                    for mark in self.markers(field_)
                    for shift in range(1, len(mark))
                    if mark.startswith(mark[shift:])
                }
            )
        )

    @cached_property
    def first_characters(self) -> str:
        """With what a call may begin that no mark opens, where free text may stand as well."""
        return "".join(sorted({first for place in self._beside_text if (first := self.first_of_call(place))}))

    def first_of_text(self, names: Collection[str] = ()) -> tuple[str, ...]:
        """What free text must not begin with: those characters, but of JSON, and of what stands before names, only what
        may turn out to be a call, of one of these tools."""
        found: dict[str, None] = {}
        for place in self._beside_text:
            if first := self.first_of_call(place):
                found.update(dict.fromkeys(self._beginnings(place, names) or (first,)))
        return tuple(text for text in found if text[0] == text or text[0] not in found)

    def _beginnings(self, place: Instruction, names: Collection[str]) -> tuple[str, ...]:
        match place:
            case JsonAt(shape):
                return beginnings.of_json(shape, names)
            case TextAt(text) if all(isinstance(each, NameAt) for each in self._after(place)):
                return beginnings.of_names(text, names)
            case _:
                return ()

    @cached_property
    def _beside_text(self) -> tuple[Instruction, ...]:
        """The instructions that may come next where free text may come as well."""
        found: list[Instruction] = []
        for at, instruction in enumerate(self.code):
            if isinstance(instruction, ForkAt):
                places = [self.code[place] for place, _ in self.closure(at)]
                if any(isinstance(place, FreeAt) for place in places):
                    found += places
        return tuple(found)

    def first_of_call(self, place: Instruction) -> str:
        """The characters with which a call begins that no mark opens; "" where it is none."""
        match place:
            case JsonAt() | ArgumentsAt():
                return place.first
            case TextAt(text) if text.strip():
                opens = any(isinstance(each, NameAt | JsonAt | ArgumentsAt) for each in self._after(place))
                return text.lstrip()[0] if opens else ""
            case _:
                return ""

    def _after(self, text: TextAt) -> list[Instruction]:
        return [self.code[at] for at, _ in self.closure(text.next)]

    def markers(self, field_: FreeField) -> tuple[str, ...]:
        """The marks that free text of a field never contains."""
        marks: dict[str, None] = {}
        for at, instruction in enumerate(self.code):
            if isinstance(instruction, FreeAt) and instruction.field == field_:
                marks.update((exit_.text, None) for exit_ in self.free_exits(at))
        return tuple(marks)


def _is_in_word(char: str) -> bool:
    return char.isalnum() or char in "_-"


class _Compiler:
    def __init__(self) -> None:
        self.code: list[Instruction] = []

    def add(self, instruction: Instruction) -> int:
        self.code.append(instruction)
        return len(self.code) - 1

    def fork(self, *targets: int) -> int:
        return self.add(ForkAt(targets))

    def node(self, node: wire.Node, after: int) -> int:
        """Add the instructions of a node that go on at `after`; give the place of the first."""
        match node:
            case wire.Lit(text) | wire.Break(text):
                return self.add(TextAt(text, after)) if text else after
            case wire.Mark():
                places = [self.add(MarkAt(text, after)) for text in node.spellings]
                return places[0] if len(places) == 1 else self.fork(*places)
            case wire.NamedMark():
                known = [(node.text(name), self.add(ActionAt("name", after, name))) for name in node.tools]
                first = not node.anywhere
                return self.fork(*(self.add(MarkAt(text, at, first)) for text, at in known))
            case wire.CallAhead():
                return self.fork(*(self.add(AheadAt(text, after)) for text in node.texts))
            case wire.Content():
                return self.add(FreeAt("content", after))
            case wire.Reasoning():
                return self.add(FreeAt("reasoning", after))
            case wire.Name():
                return self.add(NameAt("name", after))
            case wire.CallId():
                return self.add(NameAt("id", after, node.form))
            case wire.Arguments(encoding):
                return self.add(ArgumentsAt(encoding, after))
            case wire.Call(item):
                end = self.add(ActionAt("end", after))
                begin = self.node(item, end)
                self.tell_names(begin, end)
                return self.add(ActionAt("begin", begin))
            case wire.Object() | wire.Array():
                return self.add(JsonAt(shape_of(node), after))
            case wire.Seq(items):
                for item in reversed(items):
                    after = self.node(item, after)
                return after
            case wire.Alt(options):
                return self.fork(*(self.node(option, after) for option in options))
            case wire.Opt(item):
                return self.fork(self.node(item, after), after)
            case wire.Lenient(item, others):
                return self.fork(*(self.node(each, after) for each in (item, *others)))
            case wire.Many():
                return self.many(node, after)
            case wire.Chain():
                return self.chain(node, after)
            case wire.Const():
                raise GrammarError("a Const stands only inside an Object")

    def tell_names(self, begin: int, end: int) -> None:
        """In a call, the names at which its tool is known already are those that are said again; behind the arguments
        they close it."""
        seen: dict[int, set[NameAction]] = {}  # what a name would be, by all ways that lead to a place
        waiting: list[tuple[int, NameAction]] = [(begin, "name")]
        while waiting:
            at, would_be = waiting.pop()
            if at == end or would_be in seen.setdefault(at, set()):
                continue
            seen[at].add(would_be)
            match self.code[at]:
                case ForkAt(targets):
                    waiting.extend((target, would_be) for target in targets)
                case NameAt("name", next_) | ActionAt("name", next_) if would_be == "name":
                    waiting.append((next_, "again"))
                case ArgumentsAt(_, next_) if would_be == "again":
                    waiting.append((next_, "closing"))
                case StopAt():
                    pass
                case instruction:
                    waiting.append((instruction.next, would_be))
        for at, ways in seen.items():
            match self.code[at]:
                case NameAt("name", next_) if "name" not in ways:
                    self.code[at] = NameAt("again" if "again" in ways else "closing", next_)
                case _:
                    pass

    def many(self, node: wire.Many, after: int) -> int:
        again = self.fork()
        self.code[again] = ForkAt((self.node(node.separator, self.node(node.item, again)), after))
        first = self.node(node.item, again)
        return first if node.min else self.fork(first, after)

    def chain(self, node: wire.Chain, after: int) -> int:
        """Segments with `join` between: each knows where to go on once something has been written."""
        begin, rest = after, self.fork(after, self.node(node.join, after)) if node.closes else after
        for item in reversed(node.items):
            many = isinstance(item, wire.Many)
            segment = item.item if isinstance(item, wire.Opt | wire.Many) else item
            here = self.fork()
            then = here if many else rest
            self.code[here] = ForkAt((self.node(node.join, self.node(segment, then)), rest))
            begin = self.fork(self.node(segment, then), begin)
            rest = here
        return begin


@lru_cache(maxsize=512)
def compile_format(turn: wire.Node) -> Program:
    """The program of a turn. Raises GrammarError where its marks cannot be told apart, or free text has no end."""
    compiler = _Compiler()
    start = compiler.node(turn, compiler.add(StopAt()))
    program = Program(tuple(compiler.code), start)
    _check(program)
    return program


def _check(program: Program) -> None:
    marks = {each.text for each in program.code if isinstance(each, MarkAt) and not each.first}
    if "" in marks or "" in program.first_marks:
        raise GrammarError("a mark needs text")
    for mark in marks:
        for other in marks:
            if other in mark[1:]:
                raise GrammarError(f"the mark {other!r} stands inside the mark {mark!r}: text cannot tell them apart")
