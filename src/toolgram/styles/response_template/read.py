"""Reads a style from the `response_template` of a `tokenizer_config.json` (transformers 5.13 and later, version 1).

That document (transformers, docs/source/en/chat_response_parsing.md) says how an answer is taken apart: its fields,
what opens and closes each, and how the text between is read. It says nothing about order and white space, which do not
matter to a parser; here they are taken from the chat template itself, and a turn is reasoning, an answer, then calls.
For example::

    {"version": 1, "start_anchor": "<|im_start|>assistant\\n", "fields": {
        "thinking": {"open": "<think>", "close": "</think>"},
        "tool_calls": {"open": "<tool_call>", "close": "</tool_call>", "content": "json", "repeats": true,
            "transform": {"type": "function", "function": "{content}"}},
        "content": {"close": "<|im_end|>"}}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from toolgram.conversation.message import Message, ToolCall
from toolgram.errors import GrammarError, TemplateError
from toolgram.styles.base import ToolStyle
from toolgram.styles.probes import CONTENT, ONE, REASONING
from toolgram.styles.response_template.patterns import GAP, Gap, Piece, Slot, joined, pieces_of
from toolgram.styles.turn_edges import rendered_turns
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import MARKER
from toolgram.wire import format as wire
from toolgram.wire.encodings import JSON, PYTHON, AnyEncoding, Encoding, Tagged
from toolgram.wire.program import compile_format

Json = Mapping[str, Any]
NAME = "response_template"
_REASONING, _CONTENT, _CALLS = ("thinking", "reasoning_content", "reasoning"), ("content",), ("tool_calls",)
_KEYS = frozenset(("version", "defaults", "fields", "start_anchor", "start_anchor_pattern"))
_PROBE = ToolCall(ONE.name, ONE.text)
(_KEY, _TEXT), (_OTHER, _NUMBER) = ONE.arguments.items()
_PROBES = (Message(CONTENT, REASONING, (_PROBE, _PROBE)), Message(CONTENT, REASONING, (_PROBE,)))
_PLACEHOLDER = re.compile(r"\{([\w.]+)\}")
_TOKENS = re.compile(f"({MARKER.pattern})")


@lru_cache(maxsize=128)
def described_style(template: ChatTemplate) -> ToolStyle | None:
    """The style that a template's `response_template` describes, spelled as the template writes; None without one.

    Raises TemplateError with a pointer into the document if no wire format can express it.
    """
    if not template.response_template:
        return None
    texts = tuple(text for probe in _PROBES for text in rendered_turns(template, probe)[-1:])
    return read_response_template(json.loads(template.response_template), texts, template.capabilities.stop)


def read_response_template(spec: Any, written: tuple[str, ...] = (), stops: tuple[str, ...] = ()) -> ToolStyle:
    """The style of a response template; `written` are turns as the chat template writes them, `stops` what ends one.

    Raises TemplateError with a pointer into the document if no wire format can express it.
    """
    fields = _checked(spec)
    reader = _Reader(written, stops)
    turn = wire.Seq(*reader.nodes(fields))
    try:
        compile_format(turn)
    except GrammarError as error:
        raise TemplateError(f"response_template/fields: {error}") from error
    return ToolStyle(
        NAME,
        reader.format(turn),
        "described by the response_template of the tokenizer",
        reasons=wire.holds(turn, wire.Reasoning),
    )


def _checked(spec: Any) -> Json:
    if not isinstance(spec, Mapping):
        raise TemplateError("response_template: must be an object")
    spec = cast("Json", spec)
    if spec.get("version", 1) != 1:
        raise TemplateError(f"response_template/version: {spec['version']!r} is not supported; only 1 is")
    if unknown := sorted(set(spec) - _KEYS):
        raise TemplateError(f"response_template/{unknown[0]}: an unknown key")
    fields = spec.get("fields")
    if not isinstance(fields, Mapping) or not all(isinstance(field, Mapping) for field in fields.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - JSON
        raise TemplateError("response_template/fields: must be an object of objects")
    fields = cast("Mapping[str, Json]", fields)
    for name in fields:
        if name not in (*_REASONING, *_CONTENT, *_CALLS):
            raise TemplateError(f"response_template/fields/{name}: a message has no such part here")
    return fields


@dataclass(frozen=True, slots=True)
class _Call:
    """Where the parts of a call are: paths into its JSON, () for all of it, None for what a pattern captures."""

    name: tuple[str, ...] | None
    arguments: tuple[str, ...]
    id: tuple[str, ...] | None
    has_id: bool


@dataclass(frozen=True, slots=True)
class _Reader:
    written: tuple[str, ...]
    stops: tuple[str, ...]

    def nodes(self, fields: Mapping[str, Json]) -> Iterator[wire.Node]:
        """The parts of a turn in order; text that no field claims is the answer."""
        for names, read in ((_REASONING, self.reasoning), (_CONTENT, self.content), (_CALLS, self.calls)):
            found = [name for name in names if name in fields]
            if not found and names == _CONTENT:
                yield wire.Opt(wire.Content())
            for name in found:
                yield read(fields[name], f"/fields/{name}")

    def format(self, turn: wire.Node) -> wire.WireFormat:
        """The turn with the separators of the template's JSON."""
        found = self.found(rf'"{_KEY}":(\s*)"{_TEXT}",(\s*)"{_OTHER}"')
        return wire.WireFormat(turn, f",{found[1]}", f":{found[0]}") if found else wire.WireFormat(turn)

    def reasoning(self, field: Json, at: str) -> wire.Node:
        region = self.region(field, at, wire.Reasoning())
        return wire.Many(region) if field.get("repeats") else wire.Opt(region)

    def content(self, field: Json, at: str) -> wire.Node:
        if not _anchor(field, "open", at):
            return wire.Opt(wire.Content())
        return wire.Opt(self.region(field, at, wire.Content()))

    def region(self, field: Json, at: str, inside: wire.Node) -> wire.Node:
        """Free text between what opens and what closes it; a part without a closer runs to the end."""
        if field.get("content", "text") != "text":
            raise TemplateError(f"response_template{at}/content: must be text here")
        opener, closer = _anchor(field, "open", at), self.closer(field, at)
        if not opener:
            raise TemplateError(f"response_template{at}: nothing opens it")
        if _slots(opener) or _slots(closer):
            raise TemplateError(f"response_template{at}: no part of a message takes this group")
        opening = self.spelled((*opener, GAP))
        closing = self.spelled((GAP, *closer, GAP)) if closer else ()
        return wire.Seq(*_as_nodes(opening), inside, *_as_nodes(closing))

    def closer(self, field: Json, at: str) -> tuple[Piece, ...]:
        """What closes a field; nothing if that is the end of the turn, which is no part of the format."""
        pieces = _anchor(field, "close", at)
        texts = "".join(piece for piece in pieces if isinstance(piece, str)).strip()
        return () if texts in self.stops else pieces

    def calls(self, field: Json, at: str) -> wire.Node:
        opener, closer = _anchor(field, "open", at), self.closer(field, at)
        if not opener:
            raise TemplateError(f"response_template{at}: nothing opens it")
        groups = _slots(opener) + _slots(closer)
        if len(set(groups)) < len(groups):
            raise TemplateError(f"response_template{at}: a group is captured twice")
        if closer and isinstance(closer[-1], Gap):
            closer = closer[:-1]  # what stands between two calls, or after the last
        call = _call(field, groups, at)
        opening = self.spelled((*opener, GAP))
        closing = self.spelled((GAP, *closer)) if closer else ()
        if field.get("content") == "python-call-list":
            return wire.Opt(wire.Seq(*_as_nodes(opening), *self.python_calls(field, call, at), *_as_nodes(closing)))
        inside = self.body(field, call, at)
        if field.get("content") == "xml-inline":
            closing = self.after_tags(self.tags(field.get("content_args", {}), at), closing)
        before, after = _as_nodes(opening, call), _as_nodes(closing, call)
        if field.get("transform_each"):
            return wire.Opt(wire.Seq(*before, wire.Array(wire.Call(inside)), *after))
        if not field.get("repeats"):
            return wire.Opt(wire.Call(wire.Seq(*before, inside, *after)))
        several = wire.Many(wire.Call(wire.Seq(*before, inside, *after)), separator=self.separator(opener, closer))
        begin, end = self.section(opener, closer)
        if not begin.strip():
            return several
        return wire.Opt(wire.Seq(*_as_nodes((begin,)), replace(several, min=1), *_as_nodes((end,))))

    def python_calls(self, field: Json, call: _Call, at: str) -> Iterator[wire.Node]:
        """A list of calls with keyword arguments, all between one opener and its closer (transformers 5.24)."""
        each = field.get("transform_each") or "transform" not in field
        if not each or call != _Call(("name",), ("arguments",), None, has_id=False):
            raise TemplateError(f"response_template{at}/transform: must put name and arguments of each call")
        between = self.found(rf"\)(,\s*){_PROBE.name}\(") or (", ",)
        calls = wire.Call(wire.Seq(wire.Name(), wire.Arguments(PYTHON)))
        yield from (wire.Lit("["), wire.Many(calls, wire.Lit(between[0]), min=1), wire.Lit("]"))

    def section(self, opener: tuple[Piece, ...], closer: tuple[Piece, ...]) -> tuple[str, str]:
        """What the template writes before the first call and after the last, which the fields need not mention."""
        first, last = ("".join(map(_searched, pieces)) for pieces in (opener, closer))
        begin = self.found(f"{CONTENT}(?P<begin>.*?){first}")
        end = self.found(f".*{last}(?P<end>.*)$") if closer else ()
        return begin[0] if begin else "", end[-1] if end else ""

    def body(self, field: Json, call: _Call, at: str) -> wire.Node:
        """What stands between the opener and closer of a call: its arguments, or an object that holds them."""
        encoding = self.encoding(field, at)
        if not call.arguments and call.name is None:
            return wire.Arguments(encoding)
        if encoding != JSON:
            raise TemplateError(f"response_template{at}/content: a name inside it requires JSON")
        parts: list[tuple[tuple[str, ...], wire.Node]] = [(call.arguments, wire.Arguments())]
        if call.name is not None:
            parts.append((call.name, wire.Name()))
        if call.has_id and call.id is not None:
            parts.append((call.id, wire.CallId()))
        return self.object(parts, at)

    def object(self, parts: list[tuple[tuple[str, ...], wire.Node]], at: str) -> wire.Node:
        """The object with these values at these paths, its keys in the order in which the template writes them."""
        groups: dict[str, list[tuple[tuple[str, ...], wire.Node]]] = {}
        for path, node in parts:
            if not path:
                raise TemplateError(f"response_template{at}/transform: two parts of a call are the same JSON")
            groups.setdefault(path[0], []).append((path[1:], node))
        text = "".join(self.written)
        order = sorted(groups, key=lambda key: (text.find(f'"{key}"') % (len(text) + 1), key != "name"))
        members = ((key, groups[key]) for key in order)
        return wire.Object(
            *((key, inner[0][1] if inner[0][0] == () else self.object(inner, at)) for key, inner in members)
        )

    def encoding(self, field: Json, at: str) -> AnyEncoding:
        arguments = field.get("content_args", {})
        match field.get("content", "text"):
            case "json":
                quotes: list[Any] = arguments.get("string_delims") or []
                if not quotes and not arguments.get("unquoted_keys"):
                    return JSON
                if len(quotes) != 1 or quotes[0][0] != quotes[0][1] or not arguments.get("unquoted_keys"):
                    raise TemplateError(f"response_template{at}/content_args: this notation of JSON is not supported")
                return self.notation(quotes[0][0])
            case "xml-inline":
                return self.tags(arguments, at)
            case other:
                raise TemplateError(f"response_template{at}/content: calls in {other!r} have no wire format")

    def notation(self, quote: str) -> Encoding:
        q = re.escape(quote)
        members = rf"{_KEY}:(\s*){q}{_TEXT}{q},(\s*){_OTHER}:", rf"{_OTHER}:(\s*){_NUMBER},(\s*){_KEY}:"
        key, item = self.found(members[0]) or self.found(members[1]) or ("", "")
        return Encoding(
            NAME, quote=quote, escapes=False, bare_keys=True, item_separator=f",{item}", key_separator=f":{key}"
        )

    def tags(self, arguments: Json, at: str) -> Tagged:
        """Parameters between tags, from the pattern of one."""
        pattern = arguments.get("tag_pattern")
        if not isinstance(pattern, str):
            raise TemplateError(f"response_template{at}/content_args/tag_pattern: must be a pattern")
        pieces = pieces_of(pattern, f"{at}/content_args/tag_pattern")
        if _slots(pieces) != ("key", "value"):
            raise TemplateError(f"response_template{at}/content_args/tag_pattern: must have a key, then a value")
        key, value = (pieces.index(Slot(name)) for name in ("key", "value"))
        known = [*pieces[:key], _KEY, *pieces[key + 1 : value], GAP, _TEXT, GAP, *pieces[value + 1 :], GAP]
        spelled = "".join(piece for piece in self.spelled(joined(known)) if isinstance(piece, str))
        opening, _, rest = spelled.partition(_KEY)
        after_key, _, closing = rest.partition(_TEXT)
        if not (opening and after_key and closing.strip()):
            raise TemplateError(f"response_template{at}/content_args/tag_pattern: a tag needs text around its parts")
        return Tagged(NAME, open=opening, after_key=(("", after_key),), close=closing)

    def after_tags(self, tags: Tagged, closing: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """The end of a call with what the template writes before it, which a parser skips."""
        end = "".join(piece for piece in closing if isinstance(piece, str)).strip()
        found = self.found(rf".*{re.escape(tags.close)}(.*?{re.escape(end)})") if end else ()
        return found or closing

    def separator(self, opener: tuple[Piece, ...], closer: tuple[Piece, ...]) -> wire.Lit:
        """What the template writes between two calls."""
        first = next((piece for piece in opener if isinstance(piece, str)), "")
        last = next((piece for piece in reversed(closer) if isinstance(piece, str)), "")
        if not closer:
            return wire.Lit("")
        return wire.Lit("".join(self.found(rf"{re.escape(last)}(\s*){re.escape(first)}")))

    def spelled(self, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """The pieces with their gaps as the template writes them; without gaps if it does not write such text."""
        pieces = joined(list(pieces))
        gaps = iter(self.found("".join(map(_searched, pieces))))
        return joined([next(gaps, "") if isinstance(piece, Gap) else piece for piece in pieces])

    def found(self, pattern: str) -> tuple[str, ...]:
        """The groups of a pattern's first match in what the template writes; empty if there is no match."""
        match = next(filter(None, (re.search(pattern, text, re.DOTALL) for text in self.written)), None)
        return tuple(group or "" for group in match.groups()) if match else ()


def _anchor(field: Json, key: str, at: str) -> tuple[Piece, ...]:
    """What opens or closes a field: a text, the first of several, or what a pattern spells."""
    value, pattern = field.get(key), field.get(f"{key}_pattern")
    if isinstance(pattern, str) and value is None:
        return pieces_of(pattern, f"{at}/{key}_pattern")
    texts = cast("list[Any]", [value] if isinstance(value, str) else value or [])
    if pattern is not None or not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):  # pyright: ignore[reportUnnecessaryIsInstance] - JSON
        raise TemplateError(f"response_template{at}/{key}: must be a text, a list of texts, or a pattern instead")
    return tuple(texts[:1])


def _searched(piece: Piece) -> str:
    match piece:
        case str():
            return re.escape(piece)
        case Gap(pattern):
            return f"({pattern})"
        case Slot("name"):
            return f"(?:{_PROBE.name}|.*?)"
        case Slot():
            return ".*?"


def _slots(pieces: tuple[Piece, ...]) -> tuple[str, ...]:
    return tuple(piece.name for piece in pieces if isinstance(piece, Slot))


def _call(field: Json, groups: tuple[str, ...], at: str) -> _Call:
    """Where the parts of a call are, according to `transform`."""
    transform: Any = field.get("transform", {"function": "{content}"})
    function = cast("Json", transform).get("function", transform) if isinstance(transform, Mapping) else None
    if function == "{content}":
        return _Call(("name",), ("arguments",), None, has_id=False)
    if not isinstance(function, Mapping):
        raise TemplateError(f'response_template{at}/transform: must have a "function" with name and arguments')
    each = bool(field.get("transform_each"))
    id_ = cast("Json", transform).get("id")
    parts: dict[str, tuple[str, ...] | None] = {}
    for key, value in (*cast("Json", function).items(), *((("id", id_),) if id_ is not None else ())):
        match = _PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
        if key not in ("name", "arguments", "id") or match is None:
            raise TemplateError(f"response_template{at}/transform: {key}: {value!r} is not understood")
        root, *inner = match[1].split(".")
        if root not in groups and root != "content" and not each:
            raise TemplateError(f"response_template{at}/transform: {key}: nothing is captured as {root!r}")
        parts[key] = None if root in groups else (root, *inner) if each else tuple(inner)
    arguments = parts.get("arguments")
    if "name" not in parts or arguments is None or (not arguments and parts["name"] is not None):
        raise TemplateError(f"response_template{at}/transform: a call needs a name, and arguments in its content")
    return _Call(parts["name"], arguments, parts.get("id"), "id" in parts)


def _as_nodes(pieces: tuple[Piece, ...], call: _Call | None = None) -> Iterator[wire.Node]:
    """The pieces as nodes: control tokens are marks, and so is whatever opens a part."""
    for i, piece in enumerate(pieces):
        match piece:
            case Slot("name") if call is not None and call.name is None:
                yield wire.Name()
            case Slot() if call is not None and call.has_id and call.id is None:
                yield wire.CallId()
            case str():
                for text in filter(None, _TOKENS.split(piece)):
                    marked = MARKER.fullmatch(text) or (i == 0 and piece.startswith(text) and text.strip())
                    yield from _spaced(text) if marked else (wire.Lit(text),)
            case _:
                pass


def _spaced(text: str) -> Iterator[wire.Node]:
    """A mark, with the white space around it as separate nodes."""
    mark = text.strip()
    before, _, after = text.partition(mark)
    yield from (part for part in (wire.Lit(before), wire.Mark(mark), wire.Lit(after)) if part.text)
