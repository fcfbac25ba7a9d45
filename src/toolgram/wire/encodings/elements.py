"""Arguments as nested elements: keys are tags, objects and lists are elements inside elements, strings raw.

The arguments of a call of MiniMax M3 (its chat template), {"city": "Paris", "tags": ["a", "b"]}; each tag begins with
the same mark::

    ]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[<tags>]<]minimax[>[<item>a]<]minimax[>[</item>
    ]<]minimax[>[<item>b]<]minimax[>[</item>]<]minimax[>[</tags>

(on one line). What is a string, a list or an object with nothing in it is a matter of the tool's schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from toolgram.grammar.ir import NOTHING, Expr, Ref, Text, choice, optional, repeat, seq
from toolgram.schema import types
from toolgram.schema.types import Canonical, Type, arrays
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.notation import Encoding as Notation
from toolgram.schema.writing.values import spell, spell_as
from toolgram.wire.encodings.base import AnyEncoding, ArgumentsReader, ToolArguments
from toolgram.wire.encodings.expected import Expected, kinds_of, options_of
from toolgram.wire.encodings.in_order import in_order
from toolgram.wire.encodings.json import Sink, Status, escape, skip_space
from toolgram.wire.encodings.notation import JSON
from toolgram.wire.encodings.raw import BetweenTags, ValueReader, as_json, holds_json, value_reader
from toolgram.wire.marks import as_tokens

MAX_KEY = 512
_CONTAINERS = frozenset(("object", "array"))
_STRING = frozenset(("string",))


@dataclass(frozen=True)
class Elements(AnyEncoding):
    """The tags: `lead`<key>value`lead`</key>, and `item` as the key of each item of a list.

    `lead` is never empty and stands in no string: a value is an element inside this one, or text.
    """

    name: str
    lead: str
    item: str = "item"

    @property
    def notation(self) -> Notation:
        """JSON, for what is neither a string nor made of elements."""
        return JSON

    @property
    def may_be_empty(self) -> bool:
        """Whether no arguments are no text at all."""
        return True

    @property
    def opener(self) -> str:
        """What each tag begins with."""
        return self.lead

    @property
    def tags(self) -> tuple[str, ...]:
        """What each tag begins with."""
        return (self.lead,)

    def reader(self, expected: Expected, sink: Sink) -> ArgumentsReader:
        """Reads element by element."""
        return ElementsReader(self, expected, sink)

    def arguments(
        self, canonical: Canonical, spelling: Spelling, names: RuleNames, hint: str, *, exact: bool
    ) -> ToolArguments:
        """Elements for all that a schema names; an object whose keys none names is JSON.

        No grammar ties a tag to the one that closes it.
        """
        values = BetweenTags(canonical, spelling, names, self.lead, exact)
        return values.arguments(_Grammar(self, values).arguments(hint), _Writer(self, canonical, spelling).arguments)

    def write(self, value: Any, spelling: Spelling) -> str:
        """A value as elements, keys and items as they come."""
        match value:
            case Mapping():
                members = cast("Mapping[str, Any]", value).items()
                return "".join(self.around(key, self.write(each, spelling)) for key, each in members)
            case list():
                items = cast("list[Any]", value)
                return "".join(self.around(self.item, self.write(each, spelling)) for each in items)
            case str():
                return value
            case _:
                return spell(value, spelling)

    def around(self, key: str, text: str) -> str:
        """The element of this key with this text inside."""
        return self.open(key) + text + self.close(key)

    def open(self, key: str) -> str:
        """The tag before a value."""
        return f"{self.lead}<{key}>"

    def close(self, key: str) -> str:
        """The tag after a value."""
        return f"{self.lead}</{key}>"


@dataclass(slots=True)
class _Container:
    """An object or a list that has been opened, the outermost object first; `key` is that of what is inside now."""

    expected: Expected
    is_list: bool = False
    key: str = ""
    count: int = 0


class ElementsReader:
    """Reads the arguments of one call and hands their JSON text on in pieces; ends where no argument begins."""

    __slots__ = ("_at_value", "_sink", "_stack", "_tags", "_value")

    def __init__(self, tags: Elements, expected: Expected, sink: Sink) -> None:
        self._tags = tags
        self._sink = sink
        self._stack = [_Container(expected)]
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
        kind = self._kind_of_tag(buffer, at)
        if kind == "":
            return i, Status.MORE
        if kind != "open" and len(self._stack) == 1:
            self._sink("}" if top.count else "{}")
            return i, Status.DONE
        if kind == "none":
            return i, Status.FAILED
        name, end = self._name_of_tag(buffer, at, kind)
        if end < 0:
            return i, Status.FAILED if len(buffer) - at > 2 * MAX_KEY else Status.MORE
        known = self._stack[-2].key if kind == "close" else self._tags.item if top.is_list else name
        if name != known:
            return i, Status.FAILED
        if kind == "close":
            self._stack.pop()
            self._sink("]" if top.is_list else "}")
        else:
            self._open(top, name)
        return end, None

    def _open(self, top: _Container, key: str) -> None:
        before = self._before(top)
        self._sink(before if top.is_list else f'{before}"{escape(key)}": ')
        top.key = key
        top.count += 1
        self._at_value = True

    def _before(self, top: _Container) -> str:
        """What stands in JSON before the next element."""
        return ", " if top.count else "{" if len(self._stack) == 1 else ""

    def _begin_value(self, buffer: str, i: int) -> tuple[int, Status | None]:
        """Tell by its first characters, and by what is expected, whether a value is made of elements or text."""
        top = self._stack[-1]
        expected = top.expected.item(top.count - 1) if top.is_list else top.expected.member(top.key)
        kinds = expected.kinds
        at = skip_space(buffer, i)
        kind = "none" if kinds == _STRING else self._kind_of_tag(buffer, at)
        if kind == "":
            return i, Status.MORE
        if kind == "open" or (kind == "close" and "string" not in kinds):
            name, end = self._name_of_tag(buffer, at, kind)
            if end < 0:
                return i, Status.MORE
            if kind == "close" and name == top.key:
                self._at_value = False
                self._sink(expected.empty)
                return end, None
            if kind == "open":
                self._at_value = False
                is_list = "array" in kinds and name == self._tags.item and not expected.declares(name)
                self._sink("[" if is_list else "{")
                self._stack.append(_Container(expected, is_list))
                return at, None
        if kinds <= _CONTAINERS and buffer[at] not in "{[":
            kinds |= _STRING
        self._value = value_reader(self._tags.close(top.key), kinds, self._sink)
        self._at_value = False
        return i, None

    def _kind_of_tag(self, buffer: str, at: int) -> str:
        """Whether an "open" or "close" tag stands here, or "none"; "" where more text must tell."""
        lead = self._tags.lead + "<"
        if not buffer.startswith(lead, at):
            return "" if lead.startswith(buffer[at:]) else "none"
        return {"": "", "/": "close"}.get(buffer[at + len(lead) : at + len(lead) + 1], "open")

    def _name_of_tag(self, buffer: str, at: int, kind: str) -> tuple[str, int]:
        """The name in the tag that stands here, and where the tag ends: -1 where that is not there yet."""
        start = at + len(self._tags.lead) + (2 if kind == "close" else 1)
        end = buffer.find(">", start)
        return buffer[start:end], end + 1 if end >= 0 else -1


# The grammar of a tool's arguments


@dataclass(frozen=True)
class _Grammar:
    """The arguments of one tool as elements; `values` makes what is in them, and keeps the rules."""

    tags: Elements
    values: BetweenTags
    _named: dict[str, str] = field(default_factory=dict[str, str])

    def arguments(self, hint: str) -> Expr:
        """All of them; no element is around them."""
        return choice(*(self._members(kind, hint, may_be_empty=True) for kind in _objects(self.values.canonical)))

    def _value(self, kind: Type, hint: str, pointer: str) -> Expr:
        """A value between its tags."""
        if isinstance(kind, types.Reference):
            if kind.key not in self._named:
                name = self._named[kind.key] = self.values.names.fresh(hint)
                self.values.rules[name] = self._value(self.values.canonical.resolve(kind), hint, pointer)
            return Ref(self._named[kind.key])
        if kind == types.ANY:
            return Text((self.tags.lead,))
        canonical = self.values.canonical
        parts = list(options_of(canonical, kind))
        kinds = kinds_of(canonical, kind)
        written: list[Expr] = []
        plain: list[Type] = []
        for part in parts:
            match part:
                case types.String() | types.Text():
                    written.append(self.values.string(part, pointer))
                case types.Array() | types.Items():
                    if not _is_item(parts, self.tags):
                        written.append(self._items(part, hint, pointer, may_be_empty="string" not in kinds))
                case types.Object() if part.properties:
                    may_be_empty = not kinds & {"string", "array"}
                    written.append(self._members(part, hint, may_be_empty=may_be_empty))
                case _:
                    plain.append(part)
        if any(map(holds_json, parts)):  # JSON is some text as well, and read as what it may be
            plain = []
        return choice(*written, *([self.values.json(types.union(plain), hint)] if plain else []))

    def _members(self, kind: types.Object, hint: str, *, may_be_empty: bool) -> Expr:
        if kind.some:  # a key that is not declared has no tags
            return NOTHING
        pointer = kind.properties[0].pointer.rsplit("/properties/", 1)[0] if kind.properties else ""
        if (kind.rest != types.NEVER or kind.keys) and kind.properties:
            self.values.relax(pointer, "additionalProperties", "no keys but the declared ones")
        members = [
            (self._element(item.name, item.value, hint, item.pointer), item.required)
            for item in kind.properties
            if item.value != types.NEVER
        ]
        return in_order(
            members, max(kind.min, 0 if may_be_empty else 1), kind.max, lambda expr: self.values.rule(expr, hint)
        )

    def _element(self, name: str, kind: Type, hint: str, pointer: str) -> Expr:
        if not _is_name(name):
            return NOTHING
        value = self._value(kind, f"{hint}-{name}", pointer)
        return seq(as_tokens(self.tags.open(name)), value, as_tokens(self.tags.close(name)))

    def _items(self, kind: types.Array | types.Items, hint: str, pointer: str, *, may_be_empty: bool) -> Expr:
        """The first items each of its own type, then the others; none of them may be left out before the last."""
        if isinstance(kind, types.Items):
            self.values.relax(pointer, "items", "any number of each of the items between tags")
            kind = arrays.loosened(kind)
        least = kind.min if may_be_empty else max(kind.min, 1)
        count = len(kind.prefix)
        if kind.max is not None and kind.max < least:
            return NOTHING
        rest: Expr = NOTHING
        if kind.rest != types.NEVER:
            rest = self._element(self.tags.item, kind.rest, hint, pointer)
        most = None if kind.max is None else max(kind.max - count, 0)
        expr = repeat(rest, max(least - count, 0), most) if rest != NOTHING or least > count else seq()
        for index in reversed(range(count if kind.max is None else min(count, kind.max))):
            expr = seq(self._element(self.tags.item, kind.prefix[index], f"{hint}-{index + 1}", pointer), expr)
            if index >= least:
                expr = optional(expr)
        return expr


# How values are written


@dataclass(frozen=True)
class _Writer:
    """Writes the arguments of one tool as sentences of its grammar."""

    tags: Elements
    canonical: Canonical
    spelling: Spelling

    def arguments(self, value: object) -> str | None:
        """The arguments as the model would write them; None where they are not valid, or have no place in elements."""
        if not isinstance(value, Mapping):
            return None
        given = cast("Mapping[str, Any]", value)
        objects = _objects(self.canonical)
        written = (self._members(kind, given) for kind in objects if self._as_json(kind, given) is not None)
        return next((text for text in written if text is not None), None)

    def _as_json(self, kind: Type, value: Any) -> str | None:
        return spell_as(replace(self.canonical, root=kind), value, self.spelling)

    def _value(self, kind: Type, value: Any) -> str | None:
        if kind == types.ANY:
            return self._plain(value, self._as_json(kind, value), kind)
        for part in options_of(self.canonical, kind):
            text = self._as_json(part, value)
            if text is None:
                continue
            if isinstance(part, types.Object) and part.properties:
                return self._members(part, value) if value or "string" not in self._kinds(kind) else None
            if isinstance(part, types.Array | types.Items):
                return self._items(part, value) if value or "string" not in self._kinds(kind) else None
            return self._plain(value, text, kind)
        return None

    def _kinds(self, kind: Type) -> frozenset[str]:
        return kinds_of(self.canonical, kind)

    def _plain(self, value: Any, text: str | None, kind: Type) -> str | None:
        """A string as it is, anything else as its JSON; None where it would read otherwise."""
        kinds = self._kinds(kind)
        if text is None or ("string" in kinds and self.tags.lead in text):
            return None
        if not isinstance(value, str):
            return text
        return value if kinds == _STRING or as_json(value, kinds) == text else None

    def _members(self, kind: types.Object, given: Mapping[str, Any]) -> str | None:
        if kind.some or not given.keys() <= {item.name for item in kind.properties if _is_name(item.name)}:
            return None
        present = [item for item in kind.properties if item.name in given]
        return self._joined((item.name, self._value(item.value, given[item.name])) for item in present)

    def _items(self, kind: types.Array | types.Items, given: Sequence[Any]) -> str | None:
        loose = arrays.loosened(kind)
        items = (self._value(types.item_at(loose, index), item) for index, item in enumerate(given))
        return self._joined((self.tags.item, text) for text in items)

    def _joined(self, elements: Iterable[tuple[str, str | None]]) -> str | None:
        pieces: list[str] = []
        for name, text in elements:
            if text is None:
                return None
            pieces.append(self.tags.around(name, text))
        return "".join(pieces)


def _objects(canonical: Canonical) -> list[types.Object]:
    return [kind for kind in options_of(canonical, canonical.root) if isinstance(kind, types.Object)]


def _is_name(key: str) -> bool:
    """Whether a tag can say this key."""
    return ">" not in key and not key.startswith("/")


def _is_item(parts: Iterable[Type], tags: Elements) -> bool:
    """Whether an object among these types has a key that would make a list look like it."""
    return any(
        isinstance(part, types.Object) and any(item.name == tags.item for item in part.properties) for part in parts
    )
