"""The items of an input put together as messages: what the assistant did in a row is one turn, and results follow it.

In a `/v1/responses` body a call, a text and reasoning are items of their own, and a result names its call by an id,
wherever it stands. Chat templates know turns, with the results of their calls right behind them::

    call c1 · "One moment." · user: "Hurry." · result of c1
    assistant: "One moment." with call c1 ─► result of c1 ─► user: "Hurry."
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

from toolgram.api.responses.mcp import Answers, ApprovedCall
from toolgram.conversation.thinking import Effort
from toolgram.errors import InvalidRequest

Message = dict[str, Any]
_BLANK_LINE = "\n\n"


@dataclass(slots=True, eq=False)
class _Turn:
    """A message, the results of its calls, and where in the body stands what the message has at a pointer."""

    message: Message
    places: dict[str, str]
    results: list[_Turn] = field(default_factory=list["_Turn"])


class Conversation:
    """Items become messages one by one; `left_out` names what of them is shown to no model, and `effort` is that of the
    last one that changes it."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.left_out: list[str] = []
        self.effort: Effort | None = None
        self._turns: list[_Turn] = []
        self._callers: dict[str, _Turn] = {}
        self._approved: list[tuple[_Turn, ApprovedCall]] = []
        self._reasoning: list[tuple[str, str]] = []

    def add(self, role: str, content: Any, pointer: str) -> None:
        """A message; one of the assistant is part of the turn that it stands in."""
        if role != "assistant":
            self._open({"role": role, "content": content}, pointer)
            return
        turn = self._assistant(pointer)
        turn.places.setdefault("/content", f"{pointer}/content")
        turn.message["content"] = _joined(turn.message["content"], content)

    def reason(self, text: str, pointer: str) -> None:
        """Reasoning of the assistant: it belongs to the turn of what follows, and is nothing before anybody else's."""
        if text:
            self._reasoning.append((text, pointer))

    def call(self, call: Message, pointer: str) -> None:
        """A call of the assistant."""
        turn = self._assistant(pointer)
        calls: list[Message] = turn.message.setdefault("tool_calls", [])
        turn.places[f"/tool_calls/{len(calls)}"] = turn.places[f"/tool_calls/{len(calls)}/function"] = pointer
        calls.append(call)
        self._callers[call["id"]] = turn

    def result(self, id_: str, content: Any, pointer: str, approved: ApprovedCall | None = None) -> None:
        """What came of the last call of this id, or will come of an `approved` one. Raises InvalidRequest for no call.

        It stands behind the turn of its call, whatever was said meanwhile.
        """
        if not self._callers:
            reason = "answers no call: the item of its call must stand before it, or in a previous response"
            raise InvalidRequest(pointer, reason)
        if (caller := self._callers.get(id_)) is None:
            known = ", ".join(map(repr, self._callers))
            raise InvalidRequest(f"{pointer}/call_id", f"no call before it has the id {id_!r}: there are {known}")
        self._reasoning.clear()
        said = {"role": "tool", "tool_call_id": id_, "content": content}
        result = _Turn(said, {"": pointer, "/content": f"{pointer}/output", "/tool_call_id": f"{pointer}/call_id"})
        caller.results.append(result)
        if approved is not None:
            self._approved.append((result, approved))

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages in their order."""
        return tuple(turn.message for turn in self._in_order())

    @property
    def places(self) -> dict[str, str]:
        """Where in the body stands what the messages have at a pointer."""
        turns = enumerate(self._in_order())
        return {f"/messages/{i}{at}": pointer for i, turn in turns for at, pointer in turn.places.items()}

    @property
    def approved(self) -> tuple[ApprovedCall, ...]:
        """The calls that may run now, with the messages in which their results are to stand."""
        found = {turn: at for at, turn in enumerate(self._in_order())}
        return tuple(replace(call, at=found[turn], index=i) for i, (turn, call) in enumerate(self._approved))

    def _in_order(self) -> Iterator[_Turn]:
        for turn in self._turns:
            yield turn
            yield from turn.results

    def _assistant(self, pointer: str) -> _Turn:
        """The assistant's turn that an item at `pointer` is part of: results end a turn."""
        reasoning = self._reasoning.copy()
        last = self._turns[-1] if self._turns else None
        if last is None or last.message["role"] != "assistant" or last.results:
            last = self._open({"role": "assistant", "content": None}, pointer)
        if reasoning:
            before = last.message.get("reasoning_content")
            texts = [text for text, _ in reasoning]
            last.message["reasoning_content"] = "\n".join([before, *texts] if before else texts)
            last.places.setdefault("/reasoning_content", reasoning[0][1])
        self._reasoning.clear()
        return last

    def _open(self, message: Message, pointer: str) -> _Turn:
        self._reasoning.clear()
        self._turns.append(_Turn(message, {"": pointer}))
        return self._turns[-1]


def _joined(before: Any, after: Any) -> Any:
    """The contents of two items of one turn: text, or parts where one of them has more than text."""
    if not before or not after:
        return before or after
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}{_BLANK_LINE}{after}"
    return [*_parts(before), *_parts(after)]


def _parts(content: Any) -> list[Message]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[Message]", content)
