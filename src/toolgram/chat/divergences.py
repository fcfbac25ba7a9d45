"""Where the grammar cut short what the model was about to say: in a number, at a bound of a string, in place of null.

The engine records what the model alone would have written, and how much of its probability was ruled out; it knows no
values. Which of its points lie in one is found by reading the text again, cut at those points. Nothing is rewritten.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from toolgram.chat.json_places import JsonPlaces, Scalar
from toolgram.conversation.events import ArgumentsDelta, ContentDelta, Event, Prefill, ToolCallEnd, ToolCallStart
from toolgram.conversation.message import Message
from toolgram.engines.base import TracePoint
from toolgram.planning.plan import Plan

MOST = 0.5
"""A divergence is where more of the probability than this was ruled out."""
_NUMBER = frozenset("0123456789+-.eE")
_NUMBER_ENDS = re.compile(r"[-+.0-9eE]*\Z")
_FEW = 4  # characters by which a value is known again in the raw text
_LONGEST = 64  # characters of a number that are compared
_NULL = re.compile(r"\s*(?:null|None)\b")
_BEFORE_A_VALUE = frozenset(":=[,(>")  # in the notations of arguments, white space aside
_AFTER_A_NUMBER = frozenset(" \t\r\n}])<\"'")  # a model that writes one of these is done with the number


@dataclass(frozen=True, slots=True)
class Divergence:
    """A value that is other than the model was about to write it.

    `pointer` leads to it in the arguments of the call of this number, or in the answer where `call` is None. There the
    model alone would have written `preferred`; the grammar ruled out `removed` of all probability, from 0 to 1.
    `offset` counts the characters of the raw text before it.
    """

    call: int | None
    pointer: str
    preferred: str
    removed: float
    offset: int


def divergences(plan: Plan, message: Message, text: str, trace: Sequence[TracePoint]) -> tuple[Divergence, ...]:
    """The divergences of a reply, in their order, from its raw text: the first one of each value.

    What a model writes after that one is no longer what it was about to write.
    """
    points = [point for point in trace if point.removed > MOST and point.preferred != point.token]
    if not points:
        return ()
    found: dict[tuple[int | None, str], Divergence] = {}
    values = _Values(message)
    for point, call, known in _placed(plan, text, points):
        preferred = point.piece.decode(errors="replace")
        scalar = values.beginning(call, known, text, point.offset) if _NULL.match(preferred) else None
        at = None
        if scalar is None:
            scalar, at = values.around(call, known, text, point.offset)
        if scalar is not None and (at is None or _diverges(plan, text, point.offset, preferred, scalar, at)):
            one = Divergence(call, scalar.pointer, preferred, point.removed, point.offset)
            found.setdefault((call, scalar.pointer), one)
    return tuple(found.values())


def _placed(plan: Plan, text: str, points: Sequence[TracePoint]) -> Iterator[tuple[TracePoint, int | None, int]]:
    """Each point in a call or an answer, with the number of that call, and how much of its JSON was known there."""
    reader = plan.reader()
    known = _Known()
    done = 0
    answer = plan.request.response_format
    json = answer is not None and not answer.plain
    for point in points:
        known.take(reader.feed(text[done : point.offset]))
        done = point.offset
        if known.call is not None or json:
            yield point, known.call, known.sizes.get(known.call, 0)


@dataclass(slots=True)
class _Known:
    """How much is known of the answer (None) and of each call, and which call is open."""

    sizes: dict[int | None, int] = field(default_factory=dict[int | None, int])
    call: int | None = None

    def take(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case ToolCallStart(index):
                    self.call = index
                case ToolCallEnd():
                    self.call = None
                case ArgumentsDelta(index, text):
                    self.sizes[index] = self.sizes.get(index, 0) + len(text)
                case ContentDelta(text) | Prefill(text):
                    self.sizes[None] = self.sizes.get(None, 0) + len(text)
                case _:
                    pass


_Found = tuple[str, list[Scalar]]


@dataclass(slots=True)
class _Values:
    """The scalars of the answer (None) and of the calls, found once for each."""

    message: Message
    _found: dict[int | None, _Found] = field(default_factory=dict[int | None, _Found])

    def around(self, call: int | None, known: int, text: str, offset: int) -> tuple[Scalar | None, int]:
        """The scalar in which the raw text stands at `offset`, or the last before it, and where that is in the JSON.

        So much of it was `known` there: readers may hold back a number until it is whole, a key until its value begins.
        """
        json, scalars = self._scalars(call)
        after = bisect_right(scalars, known, key=lambda scalar: scalar.start)
        number = _NUMBER_ENDS.search(text, max(offset - _LONGEST, 0), offset)
        if number and number[0] and not json.endswith(number[0], 0, known):
            near = (one for one in scalars[max(after - 1, 0) : after + 1] if one.start >= known)
            return next((one for one in near if json.startswith(number[0], one.start)), None), known
        if after < len(scalars) and (following := scalars[after]).kind == "string":
            held = not text.startswith(json[known : following.start], offset)
            if held and text.startswith(json[following.start : following.start + 1], offset):
                return following, following.start
        return scalars[after - 1] if after else None, known

    def beginning(self, call: int | None, known: int, text: str, offset: int) -> Scalar | None:
        """The scalar that begins where the raw text stands at `offset`, white space aside, unless it is null."""
        if text[max(offset - _LONGEST, 0) : offset].rstrip()[-1:] not in _BEFORE_A_VALUE:
            return None
        json, scalars = self._scalars(call)
        written = text[offset : offset + _LONGEST].lstrip()
        after = bisect_right(scalars, known, key=lambda scalar: scalar.start)
        for one in scalars[max(after - 1, 0) : after + 1]:
            value = json[one.start : one.end][:_FEW].lower()
            as_written = written[1:] if one.kind == "string" else written
            if one.start >= known and value != "null" and as_written.lower().startswith(value):
                return one
        return None

    def _scalars(self, call: int | None) -> _Found:
        if call not in self._found:
            places = JsonPlaces()
            json = self.message.content or "" if call is None else self.message.tool_calls[call].arguments
            places.feed(json)
            self._found[call] = json, places.scalars
        return self._found[call]


def _diverges(plan: Plan, text: str, offset: int, preferred: str, scalar: Scalar, at: int) -> bool:
    """Whether the value would have been another one, had the model written `preferred` at this place of the text."""
    if not preferred or plan.control_strings.fullmatch(preferred):
        return False  # it would have ended the turn
    before, written = text[offset - 1 : offset], text[offset : offset + 1]
    match scalar.kind:
        case "number" if at <= scalar.end and before in _NUMBER:
            return written in _NUMBER or _goes_on(preferred, written)
        case "number" if before == "," and scalar.member:
            return preferred[0].isdigit()  # no key begins so: it was to be a thousand
        case "string" if at == scalar.end:
            return preferred[0] != written  # which ends the string
        case "string" if at < scalar.end:
            # A backslash, doubled or not, may be the same text in another spelling.
            return preferred[0] >= " " and preferred[0] != "\\" and not (written == "\\" and _escapes(text, offset))
        case _:
            return False


def _escapes(text: str, offset: int) -> bool:
    """Whether the text before this place ends with a backslash that is itself not escaped."""
    before = text[max(offset - _LONGEST, 0) : offset]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _goes_on(preferred: str, written: str) -> bool:
    """Whether a number that ends with `written` would have gone on with `preferred`."""
    if preferred[0] == ",":
        return preferred[1:2].isdigit() or (preferred == "," and written != ",")
    return preferred[0] not in _AFTER_A_NUMBER
