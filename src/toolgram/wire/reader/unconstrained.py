"""Reading output that no grammar constrained: a call that the model wrote as plain JSON is read as a call too.

Such a call begins a line of the answer, bare or in a fence of Markdown, and is a JSON object (or a list of them) with
the name of a known tool and its arguments, and nothing besides::

    I will look that up.
    ```json
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    ```

All else is what the strict reader says it is. What may become a call is held back until it shows that it is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, cast

from toolgram.conversation.events import (
    ArgumentsDelta,
    ContentDelta,
    Event,
    Finish,
    Prefill,
    ToolCallEnd,
    ToolCallStart,
    Unreadable,
)
from toolgram.conversation.message import Message
from toolgram.wire import format as wire
from toolgram.wire.encodings.json import RawValue, Status
from toolgram.wire.json_shapes import shape_of
from toolgram.wire.reader import Reader
from toolgram.wire.reader.emitter import Emitter
from toolgram.wire.reader.json_object import ShapeReader

_CALL = wire.Call(wire.Object(("name", wire.Name()), ("id", wire.CallId()), ("arguments", wire.Arguments())))
_ONE, _SEVERAL = shape_of(_CALL), shape_of(wire.Array(_CALL))
_KEYS = frozenset(("type", "id", "name", "arguments", "parameters", "function"))
_LEAD = re.compile(r"[ \t]*(?P<fence>```\w*[ \t]*\n)?\s*")
_PARTIAL_FENCE = re.compile(r"[ \t]*(`{1,2}|```\w*[ \t]*)")
_FIRST_KEY = 200  # so many characters show the first key
_FIRST_KEYS = tuple(f'"{key}"' for key in _KEYS)


class LenientReader:
    """Reads one turn as `reader` does, and takes for calls also those of these tools that are written as plain JSON."""

    def __init__(self, reader: Reader, tools: Collection[str], custom: frozenset[str] = frozenset()) -> None:
        self._reader = reader
        self._tools = frozenset(tools)
        self._custom = custom
        self._buffer = ""
        self._reasons: list[tuple[int, str]] = []
        self._out: list[Event] = []
        self._calls = 0
        self._told = 0
        self._mode: Callable[[], bool] = self._in_text
        self._fresh = True
        self._fenced = False
        self._over = False
        self._start = self._scanned = 0
        self._value = RawValue(_nowhere)

    def feed(self, text: str) -> list[Event]:
        """Read more text; give what became known by it."""
        return self._read(self._reader.feed(text))

    def finish(self, *, cut: bool = False) -> list[Event]:
        """The text is over: give what was held back, and how the turn ended; as the strict reader does."""
        return self._read(self._reader.finish(cut=cut))

    @property
    def held(self) -> Message:
        """What the strict reader holds back."""
        return self._reader.held

    @property
    def reasoning_closers(self) -> tuple[str, ...]:
        """What may end the reasoning that the reader is in; nothing outside of reasoning."""
        return self._reader.reasoning_closers

    def _read(self, events: list[Event]) -> list[Event]:
        for event in events:
            match event:
                case ContentDelta(text):
                    self._take(text, "")
                case Unreadable(text, reason):
                    self._take(text, reason)
                case Prefill(content):
                    self._out.append(event)
                    self._fresh = not content or content.endswith("\n")
                case _:
                    self._flush()
                    self._out.append(self._renumbered(event))
        out, self._out = self._out, []
        return out

    def _renumbered(self, event: Event) -> Event:
        """An event of the strict reader, its call counted among all."""
        match event:
            case ToolCallStart():
                self._told, self._calls = self._calls, self._calls + 1
                return replace(event, index=self._told)
            case ArgumentsDelta() | ToolCallEnd():
                return replace(event, index=self._told)
            case Finish() if self._calls:
                return replace(event, reason="tool_calls")
            case _:
                return event

    def _take(self, text: str, reason: str) -> None:
        self._buffer += text
        self._reasons.append((len(text), reason))
        while self._buffer and self._mode():
            pass

    def _flush(self) -> None:
        """No more text comes before something else: what is held back is what it is."""
        self._over = True
        while self._buffer and self._mode():
            pass
        self._over = False
        self._release(len(self._buffer))
        self._mode, self._fresh, self._value = self._in_text, True, RawValue(_nowhere)

    def _release(self, size: int) -> None:
        """The beginning of the buffer is text after all."""
        for text, reason in self._cut(size):
            self._out.append(Unreadable(text, reason) if reason else ContentDelta(text))

    def _cut(self, size: int) -> Iterator[tuple[str, str]]:
        text, self._buffer = self._buffer[:size], self._buffer[size:]
        while text:
            length, reason = self._reasons.pop(0)
            if length > len(text):
                self._reasons.insert(0, (length - len(text), reason))
            yield text[:length], reason
            text = text[length:]

    def _drop(self, size: int) -> None:
        for _ in self._cut(size):
            pass

    # Each mode takes what it can of the buffer, and tells whether to go on; with `_over` no more text comes.

    def _in_text(self) -> bool:
        """Up to a line that begins as a call may."""
        line = 0
        while True:
            if self._fresh:
                lead = _LEAD.match(self._buffer, line)
                end = lead.end() if lead else line
                if self._buffer[end : end + 1] in ("{", "["):
                    self._fenced = bool(lead and lead["fence"])
                    self._release(line if self._fenced else end)
                    self._begin(end - line if self._fenced else 0)
                    return True
                if not self._over and (end == len(self._buffer) or _PARTIAL_FENCE.fullmatch(self._buffer, line)):
                    self._release(line)
                    return False
            next_line = self._buffer.find("\n", line) + 1
            self._fresh = bool(next_line)
            if not next_line:
                self._release(len(self._buffer))
                return False
            line = next_line
            if line == len(self._buffer):
                self._release(line)
                return False

    def _begin(self, start: int) -> None:
        """A value begins at this place of the buffer, after its fence."""
        self._mode, self._start, self._scanned = self._in_value, start, start
        self._value = RawValue(_nowhere)

    def _in_value(self) -> bool:
        """Up to the end of what may be a call."""
        self._scanned, status = self._value.consume(self._buffer, self._scanned)
        if status is Status.DONE and self._tell_calls(self._buffer[self._start : self._scanned]):
            self._drop(self._scanned)
            self._fresh, self._mode = False, self._in_fence if self._fenced else self._in_text
            return True
        if status is Status.DONE or not _may_be_call(self._buffer[self._start : self._start + _FIRST_KEY]):
            self._release(self._scanned)
            self._scanned = 0
            self._fresh, self._mode = False, self._in_text if status is Status.DONE else self._in_other_value
            return True
        return False

    def _in_other_value(self) -> bool:
        """Up to the end of a value that is no call, whatever its lines look like."""
        end, status = self._value.consume(self._buffer, 0)
        self._release(end)
        if status is Status.DONE:
            self._mode = self._in_text
        return status is Status.DONE

    def _in_fence(self) -> bool:
        """After a call in a fence: another one, or the end of the fence."""
        end = len(self._buffer) - len(self._buffer.lstrip())
        rest = self._buffer[end:]
        if rest[:1] in ("{", "[") and rest:
            self._begin(end)
            return True
        if not self._over and "```".startswith(rest) and rest != "```":
            return False
        if rest.startswith("```"):
            self._drop(end + 3)
        elif not rest:
            self._drop(end)
        else:
            self._release(end)
            self._fresh = True
        self._mode = self._in_text
        return True

    def _tell_calls(self, text: str) -> bool:
        """Tell the calls that a JSON value is; False where it is none."""
        try:
            value = json.loads(text, strict=False)  # line breaks in strings are mended
        except (ValueError, RecursionError):
            return False
        items = cast("list[Any]", value if isinstance(value, list) else [value])
        if not items or not all(_is_call(item, self._tools) for item in items):
            return False
        emit = Emitter(self._custom)
        emit.calls = self._calls
        ShapeReader(_SEVERAL if isinstance(value, list) else _ONE, emit, raw_content=False).consume(text, 0)
        self._calls = emit.calls
        self._out.extend(emit.take())
        return True


def _is_call(item: Any, tools: frozenset[str]) -> bool:
    """Whether a value is the name of a tool and its arguments, in one of the shapes of the APIs."""
    if not isinstance(item, dict) or not item.keys() <= _KEYS:  # pyright: ignore[reportUnknownMemberType] - JSON
        return False
    call = cast("dict[str, Any]", item)
    function = call.get("function", call)
    if not isinstance(function, dict):
        return False
    parts = cast("dict[str, Any]", function)
    name = parts.get("name")
    return isinstance(name, str) and name in tools and _is_object(parts.get("arguments", parts.get("parameters")))


def _is_object(value: Any) -> bool:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return False
    return isinstance(value, dict)


def _may_be_call(text: str) -> bool:
    """Whether the beginning of a value may be that of a call, by its first key."""
    rest = text.removeprefix("[").lstrip()
    if not rest.startswith("{"):
        return not rest
    key = rest[1:].lstrip()
    return any(key.startswith(first) or first.startswith(key) for first in _FIRST_KEYS)


def _nowhere(_: str) -> None:
    """Where the text of a scanned value goes, which is in the buffer still."""
