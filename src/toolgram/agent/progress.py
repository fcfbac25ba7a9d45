"""What a run has come to: its conversation, what it cost, and why the next step may be the last."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, cast

from toolgram.agent.illustrated import MOST_IMAGES
from toolgram.agent.results import shortened
from toolgram.agent.runs import JsonMessage, Limits, Result, Run
from toolgram.agent.search import Shown
from toolgram.chat import Reply
from toolgram.conversation.message import Message, ToolCall
from toolgram.engines.base import Usage
from toolgram.engines.remote.http import Refused
from toolgram.errors import PromptTooLong, TooManyPixels

Conversation = Sequence[JsonMessage]

_ID = 9  # characters of an id, which is what the strictest templates take
_LEAST_RESULT = 400  # characters that are left of each result, however full the context is
_HIDDEN = "(The image is not shown.)"
_QUOTED = 200  # characters of what the model said, where it is told what was wrong with it


@dataclass
class Progress:
    """What a run has come to so far."""

    messages: list[JsonMessage]
    approved: Mapping[str, bool]
    begun: float = field(default_factory=time.monotonic)
    number: int = 0
    failed: int = 0  # last steps without an answer
    tightness: int = 0  # how narrow the bounds of the last answer are
    is_full: bool = False  # whether the context was, once
    usage: Usage = field(default_factory=Usage)
    texts: list[str] = field(default_factory=list[str])
    waiting: list[ToolCall] = field(default_factory=list[ToolCall])
    shown: Shown | None = None  # where only some of the tools are
    sees: bool | None = None  # whether the model is shown images; it is asked where there is one
    given: set[Any] = field(default_factory=set[Any])  # ids of the calls whose results may be told otherwise
    answer: Any = None
    cut: bool = False
    repeats: int = 0  # turns with the same calls, up to the last
    _last_calls: Sequence[tuple[str, str]] = ()

    def is_over(self, limits: Limits) -> bool:
        """Whether the next step may only answer: steps, time, tokens or context are used up, or calls repeat."""
        too_late = limits.seconds is not None and time.monotonic() - self.begun >= limits.seconds
        written = limits.tokens is not None and self.usage.completion_tokens >= limits.tokens
        repeats = self.repeats >= limits.repeats
        return self.number >= limits.steps or too_late or written or repeats or self.is_full or self.failed > 0

    @property
    def is_first(self) -> bool:
        """Whether this step is the first one after a goal."""
        return self.number <= 1 and self.messages[-1]["role"] == "user"

    def called(self, calls: Sequence[ToolCall]) -> None:
        """What a step calls."""
        said = tuple((call.name, call.arguments) for call in calls)
        self.repeats = self.repeats + 1 if said == self._last_calls else 1
        self._last_calls = said

    def count(self, reply: Reply) -> None:
        """What a step wrote and cost."""
        self.cut = reply.finish_reason == "length"
        self.texts.append(reply.text)
        self.usage = self.usage + reply.usage

    def tell(self, said: str | None, problem: str) -> None:
        """A word to the model, after what it said: in a turn of the user's, of which no two follow one another."""
        if said:
            self.messages.append({"role": "assistant", "content": shortened(said, _QUOTED)})
        if self.messages and self.messages[-1].get("role") == "user" and isinstance(self.messages[-1]["content"], str):
            before = self.messages.pop()
            self.messages.append({**before, "content": f"{before['content']}\n\n{problem}"})
        else:
            self.messages.append({"role": "user", "content": problem})

    def add_results(self, results: Iterable[Result]) -> None:
        """What came of calls, in the order of the calls."""
        contents = {each.call.id: each.content for each in results}
        said = ({"role": "tool", "tool_call_id": id_, "content": content} for id_, content in contents.items())
        self.messages[:] = in_order([*self.messages, *said])
        self.given |= contents.keys()
        self.limit_images()

    def limit_images(self) -> None:
        """Show no more images of `given` results than there may be: the last ones.

        Half as many are left, so that the beginning of the prompt then stays as it is for some turns.
        """
        results = self._illustrated()
        counts = [len(images_in(self.messages[at])) for at in results]
        if sum(counts) > MOST_IMAGES:
            for number, at in enumerate(results[:-1]):
                if sum(counts[number:]) > MOST_IMAGES // 2:
                    self._hide(at)

    def hide_images(self) -> bool:
        """Tell of the images of `given` results in words; False where there are none."""
        return self._hide_first(len(self._illustrated()))

    def make_room(self) -> bool:
        """Hide the first half of the images of `given` results, but for the last, or else cut the longest results to
        half of their length, and only then hide that one; False where nothing is left to be done."""
        return self._hide_first(len(self._illustrated()) // 2) or self._cut_results() or self.hide_images()

    def make_room_for_images(self) -> bool:
        """The same where there are too many pixels, of which words have none."""
        return self._hide_first((len(self._illustrated()) + 1) // 2)

    def _illustrated(self) -> list[int]:
        """Which `given` results have images."""
        results = ((at, each) for at, each in enumerate(self.messages) if each.get("role") == "tool")
        return [at for at, each in results if each.get("tool_call_id") in self.given and images_in(each)]

    def _hide_first(self, count: int) -> bool:
        for at in self._illustrated()[:count]:
            self._hide(at)
        return count > 0

    def _hide(self, at: int) -> None:
        said = [part["text"] for part in _parts(self.messages[at]) if isinstance(part.get("text"), str)]
        self.messages[at] = {**self.messages[at], "content": "\n".join([*said, _HIDDEN])}

    def _cut_results(self) -> bool:
        lengths = [len(each["content"]) for each in self.messages if _is_result(each)]
        most = max(lengths, default=0) // 2
        if most < _LEAST_RESULT:
            return False
        for at, message in enumerate(self.messages):
            if _is_result(message) and len(message["content"]) > most:
                self.messages[at] = {**message, "content": shortened(message["content"], most)}
        return True

    def ended(self, answer: Any) -> Run[Any]:
        """The run, at its end."""
        messages, waiting, texts = tuple(self.messages), tuple(self.waiting), tuple(self.texts)
        return Run(answer, messages, waiting, self.number, self.usage, texts, self.cut)


def helped(so_far: Progress, error: PromptTooLong | TooManyPixels | Refused) -> bool:
    """Whether something was done, so that a prompt is tried again that was too much, or has images that are damaged."""
    match error:
        case PromptTooLong():
            return so_far.make_room()
        case TooManyPixels():
            return so_far.make_room_for_images()
        case _:
            return so_far.hide_images()


def images_in(message: JsonMessage) -> list[JsonMessage]:
    """The parts of a message that are images."""
    return [part for part in _parts(message) if part.get("type") == "image_url"]


def _parts(message: JsonMessage) -> list[JsonMessage]:
    content = message.get("content")
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict)]


def _is_result(message: JsonMessage) -> bool:
    return message.get("role") == "tool" and isinstance(message.get("content"), str)


def whole_calls(message: Message) -> tuple[ToolCall, ...]:
    return tuple(call for call in message.tool_calls if not call.incomplete)


def with_own_ids(calls: tuple[ToolCall, ...], messages: Conversation) -> tuple[ToolCall, ...]:
    """The calls, each with an id that no other call of the conversation has: some formats let the model choose it."""
    taken = {call["id"] for message in messages for call in message.get("tool_calls") or () if call.get("id")}
    made: list[ToolCall] = []
    for call in calls:
        id_, number = call.id, 0
        while id_ is None or id_ in taken:
            number += 1
            id_ = sha256(f"{call.id} {number}".encode(errors="surrogatepass")).hexdigest()[:_ID]
        taken.add(id_)
        made.append(replace(call, id=id_))
    return tuple(made)


def in_order(messages: list[JsonMessage]) -> list[JsonMessage]:
    """The conversation with the results at its end in the order of their calls, as templates want them."""
    at = max((i for i, message in enumerate(messages) if message.get("role") != "tool"), default=-1)
    calls = cast("Sequence[Any]", messages[at].get("tool_calls") or ()) if at >= 0 else ()
    place = {call.get("id"): number for number, call in enumerate(calls)}
    last = len(place)
    return [
        *messages[: at + 1],
        *sorted(messages[at + 1 :], key=lambda each: place.get(each.get("tool_call_id"), last)),
    ]


def unanswered(messages: Conversation) -> tuple[ToolCall, ...]:
    """The calls at the end of a conversation that have no results yet."""
    answered: set[Any] = set()
    for message in reversed(messages):
        if message.get("role") == "tool":
            answered.add(message.get("tool_call_id"))
            continue
        calls = cast("Sequence[Any]", message.get("tool_calls") or ()) if message.get("role") == "assistant" else ()
        return tuple(
            ToolCall(call["function"]["name"], call["function"]["arguments"], call["id"])
            for call in calls
            if call.get("id") and call["id"] not in answered and "function" in call
        )
    return ()
