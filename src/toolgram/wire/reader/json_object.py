"""Reading JSON whose shape is known: members in any order, other keys skipped, any spacing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from toolgram.wire.encodings.json import ClosedByItself, RawValue, Status, StringValue, skip_space
from toolgram.wire.json_shapes import CALL_TYPE, TYPE, ArrayShape, Leaf, ObjectShape, Role, Shape
from toolgram.wire.reader.emitter import Emitter


@dataclass(slots=True)
class _Object:
    shape: ObjectShape
    expect: Literal["open", "first key", "key", "colon", "value", "comma"] = "open"
    key: str = ""
    space: str = ""


@dataclass(slots=True)
class _Array:
    shape: ArrayShape
    expect: Literal["open", "first item", "item", "comma"] = "open"


@dataclass(slots=True)
class _Value:
    """A value passed on, to a role or to nobody; `key` collects a key."""

    role: Role | Literal["key"]
    scanner: RawValue | StringValue
    pieces: list[str]
    is_string: bool


class ShapeReader(ClosedByItself):
    """Reads one JSON value of a shape, as it arrives, into an emitter. `raw_content`: content is JSON, not a string.

    Where the value may be an answer as well, `tools` are given: then it is a call only if it names one of them before
    what is no part of a call, or, with `raw_content`, before its arguments, which are an object; a key with an escape
    is none, nor, else, white space about a colon but one space behind it. It FAILED as soon as it is none.

    An item of a list of calls that names no tool is unreadable, and the others are read, unless it is the first.
    """

    __slots__ = ("_at", "_emit", "_has_called", "_name", "_nameless", "_raw_content", "_stack", "_tools", "_untold")

    def __init__(self, shape: Shape, emit: Emitter, *, raw_content: bool, tools: Collection[str] | None = None) -> None:
        self._emit = emit
        self._raw_content = raw_content
        self._tools = tools
        self._name = ""
        self._untold: list[str] = []  # what was taken before this buffer of a list's item of which nothing is told
        self._at: int | None = None  # where in this buffer it goes on; None outside of lists
        self._has_called = False  # whether a call is over
        self._nameless = False  # whether an object that was to be one more is over now, and names no tool
        self._stack: list[_Object | _Array | _Value] = []
        self._push(shape)

    def _push(self, shape: Shape) -> None:
        match shape:
            case ObjectShape():
                if shape.call:
                    self._emit.begin()
                self._stack.append(_Object(shape))
            case ArrayShape():
                self._stack.append(_Array(shape))
            case Leaf():
                raise TypeError("a leaf is entered by its first character")

    @property
    def in_reasoning(self) -> bool:
        """Whether a string of reasoning is open."""
        return self._in_string("reasoning")

    @property
    def in_name(self) -> bool:
        """Whether a string that is the tool's name is open."""
        return self._in_string("name")

    def _in_string(self, role: Role) -> bool:
        top = self._stack[-1] if self._stack else None
        return isinstance(top, _Value) and top.role == role and top.is_string

    def cut(self, rest: str) -> None:
        """All was handed on as it came."""

    @property
    def untold(self) -> str:
        """What was taken of an item of a list behind a call, of which nothing is told so far."""
        return "" if self._emit.in_named_call else "".join(self._untold)

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take as much as can be read; FAILED where the text is not JSON of this shape."""
        i = start
        if self._at is not None:
            self._at = start
        while self._stack:
            top = self._stack[-1]
            if isinstance(top, _Value):
                i, status = self._value(top, buffer, i)
                if status is not Status.DONE:
                    break
                continue
            begin, i = i, skip_space(buffer, i)
            if isinstance(top, _Array):
                self._untold.clear()
                self._at = i
            if self._tools is not None and i > begin and not self._may_be_spaced(top, buffer[begin:i]):
                status = Status.FAILED
                break
            if i == len(buffer):
                status = Status.MORE
                break
            step = self._object if isinstance(top, _Object) else self._array
            end = step(top, buffer[i])  # type: ignore[arg-type]  # the step is chosen by the frame's type
            if end < 0:
                status = Status.FAILED
                break
            i += end
            if self._nameless:
                self._nameless = False
                self._emit.unreadable(self.untold + buffer[self._at : i], "expected a tool's name")
        else:
            return i, Status.DONE if self._tools is None else Status.FAILED
        if self._at is not None and self._has_called and not self._emit.in_named_call:
            self._untold.append(buffer[self._at : i])
        return i, status

    def _may_be_spaced(self, top: _Object | _Array, space: str) -> bool:
        """Whether white space may stand here in what may be a call: one space behind a colon, and none before it."""
        if self._raw_content or isinstance(top, _Array) or top.expect not in ("colon", "value"):
            return True
        top.space += space
        return (top.expect, top.space) == ("value", " ")

    def _object(self, top: _Object, char: str) -> int:
        """One step inside an object: how many characters it takes, or -1 where it cannot go on."""
        match top.expect, char:
            case "open", "{":
                top.expect = "first key"
            case (("first key" | "key" | "comma"), "}"):  # a comma too many is read past
                return self._close(top)
            case (("first key" | "key"), '"'):
                pieces: list[str] = []
                self._stack.append(_Value("key", StringValue(pieces.append), pieces, is_string=True))
                top.expect = "colon"
                return 0
            case "colon", ":":
                top.expect = "value"
            case "value", _:
                top.expect = "comma"
                member = self._member(top, char)
                return self._enter(member, char) if member else -1
            case "comma", ",":
                top.expect, top.space = "key", ""
            case _:
                return -1
        return 1

    def _array(self, top: _Array, char: str) -> int:
        match top.expect, char:
            case "open", "[":
                top.expect = "first item"
            case (("first item" | "item" | "comma"), "]"):
                self._at = None
                self._stack.pop()
            case (("first item" | "item"), _):
                top.expect = "comma"
                return self._enter(top.shape.item, char)
            case "comma", ",":
                top.expect = "item"
            case _:
                return -1
        return 1

    def _member(self, top: _Object, char: str) -> Shape | None:
        """What the value of a member is that begins so; None where by it the object is no call.

        If it is one for sure, that is told.
        """
        member = top.shape.member(top.key)
        if self._tools is None or not (top.shape.call or len(self._stack) == 1 or not self._raw_content):
            return member
        if top.key == TYPE:
            return Leaf("type")
        match member:
            case Leaf("arguments") if char == "{" or not self._raw_content:
                may_be_call = self._names_a_tool()
            case Leaf("name"):
                may_be_call = True
            case ObjectShape() if not self._raw_content and not self._name:
                may_be_call = char == "{"
            case _ if self._raw_content:
                may_be_call = top.key == "id" and self._name in self._tools
            case _:
                may_be_call = self._names_a_tool()
        return member if may_be_call else None

    def _names_a_tool(self) -> bool:
        """Whether a tool that is offered was named: then the object is a call for sure."""
        if self._tools is not None and self._name in self._tools:
            self._tools = None
            self._emit.name(self._name)
        return self._tools is None

    def _close(self, top: _Object) -> int:
        self._stack.pop()
        if not self._raw_content:
            self._names_a_tool()  # and takes no arguments
        if top.shape.call and not self._emit.end():
            if not self._has_called:
                return -1
            self._nameless = True
        self._has_called = self._has_called or top.shape.call
        return 1

    def _enter(self, shape: Shape, char: str) -> int:
        """Begin the value that starts with this character."""
        match shape:
            case ObjectShape() | ArrayShape():
                if char != ("{" if isinstance(shape, ObjectShape) else "["):
                    return -1
                self._push(shape)
                return 0
            case Leaf(role):
                scanner = self._scanner(role, char, pieces := list[str]())
                if scanner is None:
                    return -1
                self._stack.append(_Value(role, scanner, pieces, is_string=char == '"'))
                return 0

    def _scanner(self, role: Role, char: str, pieces: list[str]) -> RawValue | StringValue | None:
        """What reads the value of a role that starts with this character; None where no value starts so."""
        match role:
            case "name" | "type" | "id":
                return StringValue(pieces.append) if char == '"' else None
            case "content":
                sink, is_string = self._emit.content, char == '"' and not self._raw_content
            case "reasoning":
                sink, is_string = self._emit.reasoning, char == '"'
            case "arguments":
                # Some models write the arguments as a string that holds JSON, as the OpenAI API does.
                # Of two the first counts, as it is told already; null says that there are none.
                if char == "n" or self._emit.has_arguments:
                    sink, is_string = _nowhere, False
                else:
                    sink, is_string = self._emit.arguments, char == '"'
            case "skip":
                sink, is_string = _nowhere, False
        if char in ",}]:":
            return None
        return StringValue(sink) if is_string else RawValue(sink, mends=role == "arguments")

    def _value(self, top: _Value, buffer: str, i: int) -> tuple[int, Status]:
        end, status = top.scanner.consume(buffer, i)
        if self._tools is not None and top.role in ("key", "type") and "\\" in buffer[i:end]:
            return end, Status.FAILED
        if status is Status.DONE:
            self._stack.pop()
            if not self._finish(top):
                return end, Status.FAILED
        return end, status

    def _finish(self, top: _Value) -> bool:
        """Use what was collected; False where it says that the object is no call."""
        text = "".join(top.pieces)
        match top.role:
            case "key":
                parent = self._stack[-1]
                if isinstance(parent, _Object):
                    parent.key = text
            case "name" if text:
                if self._tools is None:
                    self._emit.name(text)
                self._name = text
            case "id":
                self._emit.id(text)
            case "type":
                return text == CALL_TYPE
            case _:
                pass
        return True


def _nowhere(_: str) -> None:
    """The sink of what is read past."""
