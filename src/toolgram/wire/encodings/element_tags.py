"""The tags of nested elements, and the reader of arguments that are made of them; `elements` shows a sample."""

from __future__ import annotations

from dataclasses import dataclass

from toolgram.wire.encodings.expected import CONTAINERS, STRING, Expected
from toolgram.wire.encodings.json import ClosedByItself, Sink, Status, escape, skip_space
from toolgram.wire.encodings.raw import ValueReader, value_reader

_MAX_KEY = 512


@dataclass(frozen=True)
class ElementTags:
    """How an element is written: `lead`<key>value`lead`</key>, and `item` as the key of each item of a list.

    With `omits_null` there is none for a key that is null.
    """

    lead: str
    item: str
    omits_null: bool = False

    def around(self, key: str, text: str) -> str:
        """The element of this key with this text inside."""
        return self.open(key) + text + self.close(key)

    def open(self, key: str) -> str:
        """The tag before a value."""
        return f"{self.lead}<{key}>"

    def close(self, key: str) -> str:
        """The tag after a value."""
        return f"{self.lead}</{key}>"

    def omitted(self, expected: Expected) -> tuple[str, ...]:
        """The keys of an object that have no element where they are null."""
        return expected.nullable if self.omits_null else ()

    def kind_at(self, buffer: str, at: int) -> str:
        """Whether an "open" or "close" tag stands here, or "none"; "" where more text must tell."""
        lead = self.lead + "<"
        if not buffer.startswith(lead, at):
            return "" if lead.startswith(buffer[at:]) else "none"
        return {"": "", "/": "close"}.get(buffer[at + len(lead) : at + len(lead) + 1], "open")

    def name_at(self, buffer: str, at: int, kind: str) -> tuple[str, int]:
        """The name in the tag that stands here, and where the tag ends: -1 where that is not there yet."""
        start = at + len(self.lead) + (2 if kind == "close" else 1)
        end = buffer.find(">", start)
        return buffer[start:end], end + 1 if end >= 0 else -1


@dataclass(slots=True)
class _Container:
    """An object or a list that has been opened, the outermost object first; `key` is that of what is inside now.

    `due` are the keys that are null unless they come.
    """

    expected: Expected
    due: list[str]
    is_list: bool = False
    key: str = ""
    count: int = 0


class ElementsReader(ClosedByItself):
    """Reads the arguments of one call and hands their JSON text on in pieces; ends where no argument begins."""

    __slots__ = ("_at_value", "_sink", "_stack", "_tags", "_value")

    def __init__(self, tags: ElementTags, expected: Expected, sink: Sink) -> None:
        self._tags = tags
        self._sink = sink
        self._stack = [_Container(expected, [*tags.omitted(expected)])]
        self._value: ValueReader | None = None
        self._at_value = False

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take as much as can be read; FAILED where neither a tag nor a value stands."""
        i = start
        while True:
            if self._value is not None:
                i, status = self._value.consume(buffer, i)
                if status is not Status.DONE:
                    return i, status
                self._value = None
            i, stands = self._begin_value(buffer, i) if self._at_value else self._tag(buffer, i)
            if stands is not None:
                return i, stands

    def cut(self, rest: str) -> None:
        """The text is over: hand on the part that is there of a key or value."""
        top, lead = self._stack[-1], self._tags.lead + "<"
        held = rest.lstrip()
        if self._value is not None:
            self._value.cut()
        elif not self._at_value and not top.is_list and held.startswith(lead) and held != lead:
            self._sink(f'{self._before(top)}"{escape(held[len(lead) :])}')

    def _tag(self, buffer: str, i: int) -> tuple[int, Status | None]:
        """Take the tag that opens the next element or closes this one; after the outermost object there is none.

        Where reading goes on, no status is given.
        """
        top = self._stack[-1]
        at = skip_space(buffer, i)
        kind = self._tags.kind_at(buffer, at)
        if kind == "":
            return i, Status.MORE
        if kind != "open" and len(self._stack) == 1:
            self._add_nulls(top)
            self._sink("}" if top.count else "{}")
            return i, Status.DONE
        if kind == "none":
            return i, Status.FAILED
        name, end = self._tags.name_at(buffer, at, kind)
        if end < 0:
            return i, Status.FAILED if len(buffer) - at > 2 * _MAX_KEY else Status.MORE
        known = self._stack[-2].key if kind == "close" else self._tags.item if top.is_list else name
        if name != known:
            return i, Status.FAILED
        if kind == "close":
            self._add_nulls(top)
            self._stack.pop()
            self._sink("]" if top.is_list else "}")
        else:
            self._open(top, name)
        return end, None

    def _open(self, top: _Container, key: str) -> None:
        before = self._before(top)
        self._sink(before if top.is_list else f'{before}"{escape(key)}": ')
        if key in top.due:
            top.due.remove(key)
        top.key = key
        top.count += 1
        self._at_value = True

    def _add_nulls(self, top: _Container) -> None:
        """The keys that were left out as they are null."""
        for key in top.due:
            self._sink(f'{self._before(top)}"{escape(key)}": null')
            top.count += 1

    def _before(self, top: _Container) -> str:
        """What stands in JSON before the next element."""
        return ", " if top.count else "{" if len(self._stack) == 1 else ""

    def _begin_value(self, buffer: str, i: int) -> tuple[int, Status | None]:
        """Tell by its first characters, and by what is expected, whether a value is made of elements or text."""
        top = self._stack[-1]
        expected = top.expected.item(top.count - 1) if top.is_list else top.expected.member(top.key)
        kinds = expected.kinds
        at = skip_space(buffer, i)
        kind = "none" if kinds == STRING else self._tags.kind_at(buffer, at)
        if kind == "":
            return i, Status.MORE
        if kind == "open" or (kind == "close" and "string" not in kinds):
            name, end = self._tags.name_at(buffer, at, kind)
            if end < 0:
                return i, Status.MORE
            if kind == "close" and name == top.key:
                self._at_value = False
                self._sink(self._empty(expected))
                return end, None
            if kind == "open":
                self._at_value = False
                is_list = "array" in kinds and name == self._tags.item and not expected.declares(name)
                self._sink("[" if is_list else "{")
                self._stack.append(_Container(expected, [] if is_list else [*self._tags.omitted(expected)], is_list))
                return at, None
        if kinds <= CONTAINERS and buffer[at] not in "{[":
            kinds |= STRING
        self._value = value_reader(self._tags.close(top.key), expected, kinds, self._sink)
        self._at_value = False
        return i, None

    def _empty(self, expected: Expected) -> str:
        """The JSON of an element with nothing in it."""
        if (empty := expected.empty) != "{}":
            return empty
        return "{" + ", ".join(f'"{escape(key)}": null' for key in self._tags.omitted(expected)) + "}"
