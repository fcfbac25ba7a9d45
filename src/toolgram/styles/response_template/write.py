"""Writes a style as the `response_template` of a `tokenizer_config.json`, for transformers 5.13 and later.

The format is that of `read.py`; lists of calls in Python, and names after the arguments, need transformers 5.24. White
space is lenient, and around texts it is dropped. The limits of that parser remain: a closing tag inside a JSON string
ends the call, and tagged values are strings unless `parse_response` is given the tools. What a reader accepts of
models' mistakes is not expressed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolgram.errors import TemplateError
from toolgram.styles.base import ToolStyle
from toolgram.styles.turn_edges import opened_by
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire import format as wire
from toolgram.wire.encodings import JSON, PYTHON, AnyEncoding

_NAME = r"[\w.-]+"
_OF_JSON = r"(?:\\?[\]}]|,|\\s\*)+"  # patterns of texts that stand in JSON, too
_PLAIN = r"[^()\\]|\\."
_OPTIONAL = re.compile(rf"^\(\?:((?:{_PLAIN}|\(\?:(?:{_PLAIN})*\))*)\)\?$")  # one text, or one of several, or nothing
_FIELDS = (wire.Reasoning, wire.Content, wire.Call)


@dataclass(frozen=True, slots=True)
class _Region:
    """A part of a turn: what opens and closes it, as patterns, and the other entries of its field.

    `after` is what may follow the last of several parts and belongs to none.
    """

    name: str
    open: str
    close: str
    rest: tuple[tuple[str, Any], ...] = ()
    after: str = ""


def response_template(style: ToolStyle, template: ChatTemplate) -> dict[str, Any]:
    """The response template of a style for a model with this chat template, which shows where a turn begins and ends.

    Raises TemplateError for a style whose turns transformers' parser cannot read: calls without tags, turns of JSON.
    """
    try:
        regions = list(_regions(style.wire.turn, "", ""))
    except _Inexpressible as error:
        raise TemplateError(f"the style {style.name} has no response template: {error}") from None
    stops = template.capabilities.stop
    fields = {name: _field(regions, name, stops) for name in dict.fromkeys(region.name for region in regions)}
    return {
        "version": 1,
        "defaults": {"role": "assistant"},
        "start_anchor_pattern": _start(style, template.capabilities.generation_prompt),
        "fields": fields,
    }


class _Inexpressible(Exception):
    """What a response template cannot express."""


def _start(style: ToolStyle, prompt: str) -> str:
    """Where the model's turn begins: after the generation prompt, less what that holds of the turn already."""
    opened = opened_by(style.wire.turn, prompt)
    before = prompt.removesuffix(opened)
    return (_escaped(before) + (f"(?={_escaped(opened)})" if opened else "")) or r"\Z"


def _field(regions: Sequence[_Region], name: str, stops: tuple[str, ...]) -> dict[str, Any]:
    mine = [region for region in regions if region.name == name]
    if any(region.rest != mine[0].rest for region in mine):
        raise TemplateError(f"a response template has only one way to read {name}")
    opens = list(dict.fromkeys(region.open for region in mine))
    field: dict[str, Any] = {}
    if opens != [""]:
        _anchor(field, "open", opens)
    closers = [closer for region in mine for closer in _closers(region, regions, stops)]
    if closers:
        _anchor(field, "close", list(dict.fromkeys(closers)))
    return field | dict(mine[0].rest)


def _closers(region: _Region, regions: Sequence[_Region], stops: tuple[str, ...]) -> list[str]:
    """What ends a region: its closing tag, else the end of the turn and the beginning of whatever may follow."""
    if region.close:
        return [region.close]
    ends = [*(_OPTIONAL.sub(r"\1", other.after) for other in regions if other.after), *map(_escaped, stops)]
    if not region.open:
        return ends
    nexts = (re.sub(r"\(\?P<\w+>", "(?:", other.open) for other in regions if other.open)
    return [*(f"(?={opener})" for opener in nexts), *ends]


def _anchor(field: dict[str, Any], key: str, patterns: list[str]) -> None:
    """Texts if all the patterns are plain texts, else one pattern."""
    texts = [re.sub(r"\\(.)", r"\1", pattern) for pattern in patterns]
    if all(_escaped(text) == pattern for text, pattern in zip(texts, patterns, strict=True)):
        field[key] = texts[0] if len(texts) == 1 else texts
    else:
        field[f"{key}_pattern"] = "|".join(patterns)


def _regions(node: wire.Node, before: str, after: str) -> Iterator[_Region]:
    """The regions of a node, given the patterns of the text before its first and after its last."""
    match node:
        case wire.Reasoning():
            yield _Region("thinking", _trimmed(before), _trimmed(after), (*_TEXT, *_JOINED))
        case wire.Content():
            yield _Region("content", _trimmed(before), _trimmed(after), (*_TEXT, *_JOINED))
        case wire.Call(item):
            yield _call(item, before, after)
        case wire.Array(wire.Call(item)):
            yield _call(item, before, after, each=True)
        case wire.Seq(items):
            yield from _in_a_row(items, before, after)
        case wire.Alt(options):
            for option in options:
                yield from _regions(option, before, after)
        case wire.Opt(item) | wire.Lenient(item):
            yield from _regions(item, before, after)
        case wire.Many(wire.Call(wire.Object() as item), wire.Lit(text)) if text.strip() == ",":
            yield _call(item, *_around_list(before, after), each=True)
        case wire.Many(wire.Call(wire.Seq((wire.Name(), wire.Arguments(encoding)))), wire.Lit(text)) if (
            encoding == PYTHON and text.strip() == ","
        ):
            yield _Region("tool_calls", *_around_list(before, after), _PYTHON_CALLS)
        case wire.Many(item):
            # Only a text that must be there ends a part reliably while it streams in.
            for region in _regions(item, _maybe(before) + _maybe(_fixed(node.separator)), ""):
                yield replace(region, after=_trimmed(after) or region.after)
        case wire.Chain(items):
            for item in items:
                yield from _regions(item, before + _maybe(_fixed(node.join)), after)
        case _:
            raise _Inexpressible("its turns are JSON, whose parts have no opening tags")


_TEXT = (("content", "text"),)
_PYTHON_CALLS = (
    ("content", "python-call-list"),
    ("transform_each", True),
    ("transform", {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}),
)
_JOINED = (("repeats", True), ("join", ""))  # text may come in pieces between calls, and none may be lost


def _around_list(before: str, after: str) -> tuple[str, str]:
    """What opens and closes a list of calls, without its brackets, which a parser reads with it."""
    opener, closer = _trimmed(before), _trimmed(after)
    if not (opener.endswith(r"\[") and closer.startswith(r"\]")):
        raise _Inexpressible("there are no tags between its calls")
    opener = _trimmed(opener.removesuffix(r"\["))
    if not opener:
        raise _Inexpressible("no tag opens its list of calls")
    return opener, _trimmed(closer.removeprefix(r"\]"))


def _bears(node: wire.Node) -> bool:
    """Whether a node holds a field."""
    return any(isinstance(part, _FIELDS) for part in wire.walk(node, written=True))


def _in_a_row(items: tuple[wire.Node, ...], before: str, after: str) -> Iterator[_Region]:
    bearing = [i for i, item in enumerate(items) if _bears(item)]
    lead, start = before, 0
    for i, following in zip(bearing, [*bearing[1:], len(items)], strict=True):
        lead += _fixed(wire.Seq(*items[start:i]))
        last = following == len(items)
        # What follows free text ends it; what follows another part precedes the next one.
        start = following if last or isinstance(items[i], wire.Reasoning | wire.Content) else i + 1
        trail = _fixed(wire.Seq(*items[i + 1 : start]))
        yield from _regions(items[i], lead, trail + after if last else trail)
        lead = ""


def _call(item: wire.Node, before: str, after: str, *, each: bool = False) -> _Region:
    """A call, or with `each` a list: what precedes its arguments opens it, what follows them closes it."""
    items = tuple(_flat(item))
    at = [i for i, part in enumerate(items) if isinstance(part, wire.Arguments | wire.Object)]
    if len(at) != 1:
        raise _Inexpressible("a call has its arguments in one place")
    header = before + _with_id(_fixed(wire.Seq(*items[: at[0]])), item)
    trailer = _fixed(wire.Seq(*items[at[0] + 1 :])) + after
    groups = {group: f"{{{group}}}" for group in ("name", "id") if f"(?P<{group}>" in header + trailer}
    body = items[at[0]]
    if isinstance(body, wire.Arguments):
        content, paths = _content(body.encoding), {"arguments": "{content}"}
    else:
        content, paths = _content(JSON), {key: f"{{{'' if each else 'content.'}{path}}}" for key, path in _paths(body)}
    known = paths | groups
    function = {key: known[key] for key in ("name", "arguments")}
    transform = {"type": "function", "function": function} | {key: known[key] for key in ("id",) if key in known}
    opener = _trimmed(header)
    if re.fullmatch(r"(\(\?:[^()]*\)\?)*", opener):
        raise _Inexpressible("no tag opens a call")
    closer = _trimmed(trailer)
    if ("content", "json") in content and re.fullmatch(_OF_JSON, closer):
        raise _Inexpressible("what ends its arguments may stand in them")
    several = ("transform_each" if each else "repeats", True)
    return _Region("tool_calls", opener, closer, (*content, several, ("transform", transform)))


def _flat(node: wire.Node) -> Iterator[wire.Node]:
    """The items of a sequence and of the sequences in it."""
    if isinstance(node, wire.Lenient):
        node = node.item
    if not isinstance(node, wire.Seq):
        yield node
        return
    for item in node.items:
        yield from _flat(item)


def _with_id(header: str, item: wire.Node) -> str:
    """The header with a group around the id, of which the format may write only a piece."""
    id_ = next((node for node in wire.walk(item) if isinstance(node, wire.CallId)), None)
    if id_ is None or "(?P<id>" not in header:
        return header
    group, name = f"(?P<id>{id_.pattern})", f"(?P<name>{_NAME})"
    whole = _escaped(id_.form).replace(r"\{name\}", name).replace(r"\{id\}", group)
    return header.replace(whole, f"(?P<id>{whole.replace(group, _any_id(id_))})") if id_.form != "{id}" else header


def _any_id(id_: wire.CallId) -> str:
    return f"[{id_.alphabet}]+"


def _paths(node: wire.Node, path: str = "") -> Iterator[tuple[str, str]]:
    """Where the parts of a call are in an object."""
    match node:
        case wire.Object(members):
            for key, member in members:
                yield from _paths(member, f"{path}.{key}" if path else key)
        case wire.Name():
            yield "name", path
        case wire.CallId():
            yield "id", path
        case wire.Arguments(encoding) if encoding == JSON:
            yield "arguments", path
        case wire.Const():
            return
        case _:
            raise _Inexpressible("a call holds more than name, id and arguments in JSON")


def _content(encoding: AnyEncoding) -> tuple[tuple[str, Any], ...]:
    content = encoding.response_template(_text)
    if content is None:
        raise _Inexpressible(f"arguments in {encoding.name} have no parser there")
    return tuple(content.items())


def _fixed(node: wire.Node) -> str:
    """The pattern of a part without free text."""
    match node:
        case wire.Lit(text) | wire.Break(text):
            return _text(text)
        case wire.Mark():
            spellings = [_text(text) for text in node.spellings]
            return spellings[0] if len(spellings) == 1 else f"(?:{'|'.join(spellings)})"
        case wire.Name():
            return f"(?P<name>{_NAME})"
        case wire.CallId():
            return f"(?P<id>{node.pattern})"
        case wire.Seq(items):
            return "".join(map(_fixed, items))
        case wire.Alt(options):
            return f"(?:{'|'.join(map(_fixed, options))})"
        case wire.Opt(item):
            return _maybe(_fixed(item))
        case wire.Lenient(item):
            return _fixed(item)
        case _:
            raise _Inexpressible(f"there is a {type(node).__name__} where text is expected")


def _escaped(text: str) -> str:
    """The text as a pattern."""
    return re.sub(r"\\(\s)", r"\1", re.escape(text))


def _text(text: str) -> str:
    """The text as a pattern, lenient about its white space."""
    return r"\s*".join(_escaped(piece) for piece in re.split(r"\s+", text))


def _maybe(pattern: str) -> str:
    if not pattern.replace(r"\s*", "") or re.fullmatch(r"\(\?:[^()]*\)\?", pattern):
        return pattern if "(" in pattern else ""
    return f"(?:{pattern})?"


def _trimmed(pattern: str) -> str:
    r"""The pattern without `\s*` at its ends: the text there is stripped anyway."""
    return re.sub(r"^(\\s\*)+|(\\s\*)+$", "", pattern)
