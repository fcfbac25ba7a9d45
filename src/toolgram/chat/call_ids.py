"""The ids of the calls of one turn, as clients tell calls by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from toolgram.conversation.events import Event, ToolCallEnd, ToolCallStart
from toolgram.conversation.message import Message
from toolgram.planning.call_ids import IdMaker
from toolgram.planning.plan import Plan


class Ids:
    """Gives every call of one turn an id of its own: to one that has none, and to one whose id is `taken` already.

    `carried`: the format has a place for ids, which a model may copy from an earlier call.
    """

    def __init__(self, make: IdMaker, *, carried: bool, taken: Iterable[str]) -> None:
        self._make = make
        self._carried = carried
        self._names: dict[int, str] = {}
        self._known: dict[int, str] = {}
        self._taken = set(taken)

    @staticmethod
    def of(plan: Plan, make: IdMaker) -> Ids:
        """Those of the turn of a plan. What earlier calls have is taken: a model that numbers calls may count anew."""
        calls = (call for message in plan.request.messages for call in message.get("tool_calls") or ())
        before = (id_ for call in calls if isinstance(id_ := call.get("id"), str))
        return Ids(make, carried=plan.format.call_id is not None, taken=before)

    def filled(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events, with ids: a format that carries them may show one as late as the call's end."""
        for event in events:
            match event:
                case ToolCallStart(index, name, id_):
                    self._names[index] = name
                    yield replace(event, id=None if id_ is None and self._carried else self._id(index, id_))
                case ToolCallEnd(index, id_) if id_ is not None or index not in self._known:
                    yield replace(event, id=self._id(index, id_))
                case _:
                    yield event

    def _id(self, index: int, shown: str | None) -> str:
        """The id of a call, of which the text may show one."""
        if index not in self._known:
            id_ = shown if shown is not None and shown not in self._taken else self._new(index)
            self._known[index] = id_
            self._taken.add(id_)
        return self._known[index]

    def _new(self, index: int) -> str:
        """An id that no other call has: one that counts may have to count on."""
        name, last = self._names[index], index + len(self._taken)
        first = made = self._make(name, index)
        while made in self._taken and index < last:
            index += 1
            made = self._make(name, index)
        return first if made in self._taken else made

    def complete(self, message: Message) -> Message:
        """The message with an id for a call that was cut off before it had one."""
        calls = (
            call if call.id is not None else replace(call, id=self._id(index, None))
            for index, call in enumerate(message.tool_calls)
        )
        return replace(message, tool_calls=tuple(calls))
