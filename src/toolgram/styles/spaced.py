"""Calls with the white space that a template writes around their parts, where it is not that of their family."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest

from toolgram.conversation.message import Message, ToolCall
from toolgram.styles.base import ToolStyle
from toolgram.styles.detect import fit
from toolgram.styles.probes import ONE, TWO
from toolgram.styles.turn_edges import rendered_turns
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.format import (
    Arguments,
    Array,
    Call,
    Content,
    Lit,
    Many,
    Mark,
    Node,
    Object,
    Reasoning,
    Seq,
    WireFormat,
    holds,
    rebuild,
)
from toolgram.wire.writer import write_freely

_FIRST = 0xE000  # of private characters, which no template writes: each stands for white space
_CALLS = tuple(ToolCall(probe.name, probe.text, probe.id) for probe in (ONE, TWO))
_TWO_CALLS, _ONE_CALL = Message(tool_calls=_CALLS), Message(tool_calls=_CALLS[:1])
_BESIDE = Mark, Many, Array, Object, Arguments  # between two of these a template may write white space


@lru_cache(maxsize=256)
def that_spaces(style: ToolStyle, template: ChatTemplate) -> ToolStyle:
    """The style whose calls may have the white space of the template too; itself where that is the style's own.

    Templates of one family differ in it (`<tool_call>{…}</tool_call>` in EXAONE 4, on three lines in Qwen), and each
    model writes what it was trained on: a grammar that knew but one of them would have it write the other.
    """
    if style.is_generic or not template.capabilities.supports_tool_calls or not fit(template, style):
        return style
    wire = _spaced(style.wire, template)
    in_auto = style.in_auto and _spaced(style.in_auto, template)
    return style if (wire, in_auto) == (style.wire, style.in_auto) else replace(style, wire=wire, in_auto=in_auto)


def _spaced(form: WireFormat, template: ChatTemplate) -> WireFormat:
    """The format with what the template writes at its places of white space."""
    places = dict[str, str]()
    marked = replace(form, turn=_marked(form.turn, places))
    found = _found(marked, places, _TWO_CALLS, template) or _found(marked, places, _ONE_CALL, template)
    others = {place: text for place, text in found.items() if text != places[place]}
    return replace(form, turn=_filled(marked.turn, places, others)) if others else form


def _marked(node: Node, places: dict[str, str]) -> Node:
    """The node, in whose calls and around them each place of white space has a character of its own.

    These are added to the `places`, each with what stands there.
    """

    def place(text: str) -> Lit:
        char = chr(_FIRST + len(places))
        places[char] = text
        return Lit(char)

    def of_calls(node: Node) -> Node:
        match node:
            case Lit(text) if text.isspace():
                return place(text)
            case Seq(items):
                return Seq(*row(items))
            case Object() | Array():  # JSON, whose white space is that of the format
                return node
            case _:
                return rebuild(node, of_calls)

    def row(items: tuple[Node, ...]) -> Iterator[Node]:
        for item, following in zip_longest(items, items[1:]):
            yield of_calls(item)
            if isinstance(item, _BESIDE) and isinstance(following, _BESIDE):
                yield place("")

    def around(node: Node) -> Node:
        if not holds(node, Call):
            return node
        if holds(node, Content) or holds(node, Reasoning):
            return rebuild(node, around)
        return of_calls(node)

    return around(node)


def _found(marked: WireFormat, places: Mapping[str, str], said: Message, template: ChatTemplate) -> Mapping[str, str]:
    """What the template writes at each place, where it writes all else as the format does."""
    written = write_freely(marked, said)
    if written is None:
        return {}
    seen, pattern = set[str](), ""
    for char in written.strip():
        if char in places:
            name = f"p{ord(char)}"
            pattern += f"(?P={name})" if char in seen else f"(?P<{name}>\\s*)"
            seen.add(char)
        else:
            pattern += re.escape(char)
    matches = (re.search(pattern, text) for text in rendered_turns(template, said))
    match = next((each for each in matches if each is not None), None)
    return {} if match is None else {place: match[f"p{ord(place)}"] for place in seen}


def _filled(node: Node, places: Mapping[str, str], others: Mapping[str, str]) -> Node:
    """The node with its white space, or that and the template's, at each place."""

    def filled(node: Node) -> Node:
        match node:
            case Lit(text) if text in places:
                return Lit(places[text], (others[text],) if text in others else ())
            case Seq(items):
                return Seq(*(made for made in map(filled, items) if made != Lit("")))
            case _:
                return rebuild(node, filled)

    return filled(node)
