"""Values that repeat themselves without end are brought to it: they are closed, and the turn goes on.

Strings, lists and objects are such values, and those that contain one another without end. The engine's tokens tell of
the repetition, the reader of the value in which it is. What closes the value is written as if the model had written it:
where the grammar takes it, and where it leaves no item of a list, or member of an object, unfinished.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from toolgram.chat.endless import Kind, may_be_ended
from toolgram.chat.json_places import Container, JsonPlaces
from toolgram.chat.written import Written
from toolgram.conversation.events import (
    ArgumentsDelta,
    ContentDelta,
    CustomCallStart,
    Event,
    Prefill,
    ToolCallEnd,
    ToolCallStart,
)
from toolgram.engines.base import Chunk
from toolgram.engines.repetition import PERIODS, TOKENS, Repetition
from toolgram.errors import GrammarError
from toolgram.planning.plan import Plan

_MOST_TRIES = 512  # ways to close values
_LEAST = ("{}", "[]", "null", '""', "0", "false", "None", "False")  # values, for what would contain one more
_ITEMS = 128  # earlier items to which the last one is compared


@dataclass(frozen=True, slots=True)
class EndedRepetition:
    """A value that only repeated itself, and was ended.

    `pointer` leads to it in the arguments of the call of this number, or in the answer where `call` is None. Where it
    is "" and there is a call, that was the last of several that are all the same, or its arguments as a whole.
    """

    call: int | None
    pointer: str


@dataclass(slots=True)
class _Value:
    """The JSON of a call's arguments, or of the answer, as it is read."""

    call: int | None
    name: str = ""
    places: JsonPlaces = field(default_factory=JsonPlaces)
    json: list[str] = field(default_factory=list[str])

    def feed(self, text: str) -> None:
        self.places.feed(text)
        self.json.append(text)


@dataclass(frozen=True, slots=True)
class _Repeated:
    """A value that only repeats itself; it contains the like of itself if it has no `kind`.

    It begins at `start` of the JSON, in so many containers, and each of the `ways` may close it.
    """

    kind: Kind | None
    pointer: str
    start: int
    depth: int
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """A chunk: its tokens, and how many containers were open at least and scalars begun at its end."""

    tokens: int
    lowest: int
    scalars: int


@dataclass(slots=True)
class Runaways:
    """Watches a turn for values that only repeat themselves; `ended` are those that were brought to their end."""

    plan: Plan
    ended: list[EndedRepetition] = field(default_factory=list[EndedRepetition])
    _repetition: Repetition = field(default_factory=Repetition)
    _value: _Value | None = None
    _trail: list[_Step] = field(default_factory=list[_Step])
    _left_alone: set[tuple[int | None, str]] = field(default_factory=set[tuple[int | None, str]])
    _tries: int = 0
    _waiting: list[tuple[int, Sequence[Event]]] = field(default_factory=list[tuple[int, Sequence[Event]]])
    """How many tokens each chunk had and what was read of it, of those that were not followed yet."""

    def take(self, chunk: Chunk, events: Sequence[Event]) -> None:
        """A chunk, and what was read of it."""
        self._repetition.feed(chunk.tokens)
        self._waiting.append((len(chunk.tokens), events))

    def _follow(self) -> None:
        """Where the turn is now: hardly any repeats itself, and only then somebody asks."""
        for tokens, events in self._waiting:
            if self._value is not None:
                self._value.places.lowest = len(self._value.places.open)
            read = self._value
            self._value = _followed(self.plan, read, events)
            if self._value is not read:
                self._trail.clear()
            if self._value is not None:
                places = self._value.places
                self._trail.append(_Step(tokens, places.lowest, len(places.scalars)))
        self._waiting.clear()

    def closer(self, written: Written) -> str | None:
        """What ends the value that only repeats itself; None where there is none, or it cannot be ended here."""
        period = self._repetition.period
        if period is None or self._tries >= _MOST_TRIES:
            return None
        self._follow()
        value = self._value
        if value is None:
            return None
        span = self._span(max(PERIODS * period, TOKENS))
        if span is None:
            return None
        json = "".join(value.json)
        for found in _repeated(value.places, json, *span):
            if (value.call, found.pointer) in self._left_alone:
                continue
            if found.kind is not None and not may_be_ended(
                self.plan, value.call, value.name, found.pointer, found.kind, json[found.start :]
            ):
                self._left_alone.add((value.call, found.pointer))
                continue
            self._tries += len(found.ways)
            closer = next((way for way in found.ways if self._ends(written.text + way, found)), None)
            if closer is not None:
                self.ended.append(EndedRepetition(value.call, found.pointer))
                self._repetition, self._tries = Repetition(), 0
                return closer
        return None

    def _span(self, tokens: int) -> tuple[int, int] | None:
        """Of the last so many tokens, if the value has them: how many containers were open at least, and the scalars
        that had begun before."""
        lowest = len(self._value.places.open) if self._value else 0
        for step in reversed(self._trail):
            if tokens <= 0:
                return lowest, step.scalars
            tokens -= step.tokens
            lowest = min(lowest, step.lowest)
        return None

    def _ends(self, text: str, found: _Repeated) -> bool:
        """Whether this text closes the value, in the way of the grammar, and leaves nothing in it unfinished."""
        value = _followed(self.plan, None, self.plan.reader().feed(text))
        if value is None or value.places.in_string or len(value.places.open) != found.depth:
            return False
        if found.kind in ("array", "object") and not _whole(value):
            return False
        try:
            self.plan.constraint_after(text)
        except GrammarError:
            return False
        return True


def _followed(plan: Plan, value: _Value | None, events: Sequence[Event]) -> _Value | None:
    """The value that is being read after these events; None outside of values, and for text of custom tools."""
    answer = plan.request.response_format
    for event in events:
        match event:
            case CustomCallStart():
                value = None
            case ToolCallStart(index, name):
                value = _Value(index, name)
            case ArgumentsDelta(index, text) if value is not None and value.call == index:
                value.feed(text)
            case ContentDelta(text) | Prefill(text) if answer is not None and not answer.plain:
                value = value if value is not None and value.call is None else _Value(None)
                value.feed(text)
            case ToolCallEnd():
                value = None
            case _:
                pass
    return value


def _repeated(places: JsonPlaces, json: str, lowest: int, scalars: int) -> Iterator[_Repeated]:
    """What repeats itself, if so many containers were open at least while it did, and scalars had begun before it."""
    if places.in_string and scalars == len(places.scalars) and lowest == len(places.open):
        string = places.scalars[-1]
        yield _Repeated("string", string.pointer, string.start, lowest, ('"', "'"))
        return
    is_nest = len(places.open) >= lowest + PERIODS
    if is_nest:
        depths: Sequence[int] = range(outermost := _nest(places.open), outermost + 2)
    else:
        depths = [lowest - 1] if lowest else []
    before = ('"', "'") if places.in_string else ("", *_least_behind(json)) if is_nest else ("",)
    for depth in depths:
        outer = places.open[depth]
        brackets = "".join(each.closer for each in reversed(places.open[depth:]))
        kind = None if is_nest else "object" if outer.is_object else "array"
        yield _Repeated(kind, outer.pointer, outer.start, depth, tuple(each + brackets for each in before))


def _least_behind(json: str) -> Iterator[str]:
    """Values that may come next, where one may, with the white space before them that a token ends short of."""
    if json.rstrip().endswith((":", "[", ",")):
        for space in ("",) if json[-1:].isspace() else (" ", ""):
            yield from (space + value for value in _LEAST)


def _nest(containers: Sequence[Container]) -> int:
    """The first of the open containers that contain one another as the innermost ones do."""
    steps = [(each.is_object, each.key) for each in containers[:-1]]  # in the last one nothing may have come yet
    for length in range(1, len(steps) // PERIODS + 1):
        alike = (steps[at] == steps[at - length] for at in range(len(steps) - 1, length - 1, -1))
        first = len(steps) - length - sum(takewhile(bool, alike))
        if len(steps) - first >= PERIODS * length:
            return first
    return len(containers) - 2


def _whole(value: _Value) -> bool:
    """Whether the last item or member of the container that ended last is one that was there before."""
    closed: Container | None = value.places.closed
    if closed is None or not closed.spans:
        return False
    json = "".join(value.json)
    *before, last = (json[start:end] for start, end in closed.spans[-_ITEMS:])
    return last in before
