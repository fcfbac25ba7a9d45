"""Calls with the white space that a template writes in and around their parts, where it is not that of their family."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import zip_longest

from toolgram.conversation.message import Message, ToolCall
from toolgram.styles.base import ToolStyle
from toolgram.styles.detect import announcement, fit
from toolgram.styles.probes import ONE, TWO
from toolgram.styles.turn_edges import after_prompts, rendered_turns
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.encodings import JSON, AnyEncoding, Encoding
from toolgram.wire.format import (
    Arguments,
    Array,
    Break,
    Call,
    Content,
    Layout,
    Lenient,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    Object,
    Opt,
    Reasoning,
    Seq,
    WireFormat,
    as_written,
    holds,
    rebuild,
)
from toolgram.wire.writer import write_freely

_FIRST = 0xE000  # of private characters, which no template writes: each stands for white space
# Of one tool: a turn is found in its conversation by what the same tools precede.
_CALLS = tuple(ToolCall(ONE.name, ONE.text, id_) for id_ in (ONE.id, TWO.id))
_TWO_CALLS, _ONE_CALL = Message(tool_calls=_CALLS), Message(tool_calls=_CALLS[:1])
_BESIDE = Mark, Name, Many, Array, Object, Arguments  # between two of these a template may write white space
_SPACE = re.compile(r"\s+|(?<=>)(?=<)|(?<=>)\Z|\A(?=<)")  # between tags there may be some
_SEPARATORS = ((",", ":"), (", ", ":"), (",", ": "), (", ", ": "))


@lru_cache(maxsize=256)
def that_spaces(style: ToolStyle, template: ChatTemplate) -> ToolStyle:
    """The style whose calls may have the white space of the template too; itself where that is the style's own.

    Templates of one family differ in it (`<tool_call>{…}</tool_call>` in EXAONE 4, on three lines in Qwen), and each
    model writes what it was trained on: a grammar that knew but one of them would have it write the other. Arguments
    in JSON are in the template's separators alone, as they are where a style is found from its template.
    """
    if style.is_generic or not template.capabilities.supports_tool_calls or not fit(template, style):
        return style
    wire = _spaced(style.wire, template)
    own_ways = style.own_ways and _spaced(style.own_ways, template)
    return style if (wire, own_ways) == (style.wire, style.own_ways) else replace(style, wire=wire, own_ways=own_ways)


def _spaced(form: WireFormat, template: ChatTemplate) -> WireFormat:
    """The format with what the template writes at its places of white space."""
    for each in (form, *_otherwise_separated(form)):
        marked = _Marked(each)
        for said in (_TWO_CALLS, _ONE_CALL):
            found = marked.found(said, template)
            if found is not None:
                return marked.filled(found, announcement(template))
    return form


def _otherwise_separated(form: WireFormat) -> Iterator[WireFormat]:
    """The format with the other separators that its arguments may have in JSON."""

    def separated(node: Node, encoding: Encoding) -> Node:
        return Arguments(encoding) if node == Arguments() else rebuild(node, partial(separated, encoding=encoding))

    if JSON in form.encodings:
        own = form.item_separator, form.key_separator
        for item, key in (pair for pair in _SEPARATORS if pair != own):
            encoding = Encoding(JSON.name, item_separator=item, key_separator=key)
            yield replace(form, turn=separated(form.turn, encoding))


class _Marked:
    """A format whose calls have a character of its own at each place of white space in and around them.

    `places` says what stands at each in the format; `leads` are those before the first call, where nothing does.
    """

    def __init__(self, form: WireFormat) -> None:
        self.form = form
        self.places = dict[str, str]()
        self.leads = set[str]()
        self.marked = replace(form, turn=self._around(form.turn))

    def found(self, said: Message, template: ChatTemplate) -> Mapping[str, str] | None:
        """What the template writes at each place, where it writes all else as the format does; else None."""
        written = write_freely(self.marked, said)
        if written is None:
            return None
        pattern, seen = self._pattern(written.strip())
        match = _first(re.match(pattern, text) for text in after_prompts(template, said))
        if match is None:
            # What stands before the first call may be the prompt's.
            seen -= self.leads
            match = _first(re.search(pattern, text) for text in rendered_turns(template, said))
        return None if match is None else {place: match[f"p{ord(place)}"] for place in seen}

    def filled(self, found: Mapping[str, str], shown: str) -> WireFormat:
        """The format with its white space, or that and the template's, at each place.

        White space between the tags of a value may be some of the value: calls with such tags have the template's, and
        the format's too only if that is what is `shown` to the model.
        """
        if all(text == self.places[place] for place, text in found.items()):
            return self.form
        own, template = (str.maketrans(texts) for texts in (self.places, {**self.places, **found}))

        def both(encoding: AnyEncoding) -> tuple[AnyEncoding, AnyEncoding]:
            here, there = (encoding.respelled(partial(_translated, table=table)) for table in (own, template))
            return here, there

        encodings = map(both, self.marked.encodings)
        alone = any(here != there and not here.is_shown_in(shown) for here, there in encodings)

        def lit(node: Lit) -> Lit:
            here, there = (node.text.translate(table) for table in (template if alone else own, template))
            return Lit(here, (*node.others, there) if here != there else node.others)

        def filled(node: Node) -> Node:
            match rebuild(node, filled):
                case Lit() as made:
                    return lit(made)
                case Break(text):
                    return Break(text.translate(template))
                case Seq(items):
                    return Seq(*(item for item in items if item not in (Lit(""), Break(""))))
                case Object() | Array() as made if made.layout is not None:
                    layout = made.layout
                    spaced = Layout(lit(layout.item), lit(layout.key), lit(layout.first), lit(layout.last))
                    return _laid_out(made, None if spaced == self.form.layout(made) else spaced)
                case Arguments(encoding):
                    here, there = both(encoding)
                    return Arguments(there if alone or here == there else here.or_spaced(there))
                case made:
                    return made

        return replace(self.form, turn=filled(self.marked.turn))

    def _pattern(self, written: str) -> tuple[str, set[str]]:
        """The pattern of a text in which there may be any white space at each place, and the places in it."""
        seen, pattern = set[str](), ""
        for char in written:
            if char in self.places:
                pattern += f"(?P=p{ord(char)})" if char in seen else f"(?P<p{ord(char)}>\\s*)"
                seen.add(char)
            else:
                pattern += re.escape(char)
        return pattern, seen

    def _place(self, text: str) -> str:
        """A new place, at which the format has this text."""
        char = chr(_FIRST + len(self.places))
        self.places[char] = text
        return char

    def _placed(self, text: str) -> str:
        """A text with a place for each white space in it, and where there may be some."""
        return _SPACE.sub(lambda space: self._place(space[0]), text)

    def _after(self, separator: str) -> Lit:
        """A separator, after which there may be white space."""
        sign = separator.rstrip()
        return Lit(sign + self._place(separator[len(sign) :]))

    def _around(self, node: Node) -> Node:
        if not holds(node, Call):
            return node
        if holds(node, Content) or holds(node, Reasoning):
            return rebuild(node, self._around)
        return self._led(self._of_calls(node)) if _begins_with_mark(node) else self._of_calls(node)

    def _led(self, calls: Node) -> Node:
        """The calls, which may be missing, after a place whose white space is none of an answer before it."""
        lead = self._place("")
        self.leads.add(lead)
        match calls:
            case Opt(Seq((Break(), *_)) as item):
                return Opt(Seq(Lit(lead), item))
            case Opt(item):
                return Opt(Seq(Break(lead), Lit(lead), item))
            case Many(min=0):
                return Opt(Seq(Break(lead), Lit(lead), replace(calls, min=1)))
            case _:
                return Seq(Lit(lead), calls)

    def _of_calls(self, node: Node) -> Node:
        match node:
            case Lit(text, others):
                return Lit(self._placed(text), others)
            case Seq(items):
                return Seq(*self._row(items))
            case Object() | Array():
                first, last = Lit(self._place("")), Lit(self._place(""))
                item, key = map(self._after, (self.form.item_separator, self.form.key_separator))
                return _laid_out(rebuild(node, self._of_calls), Layout(item, key, first, last))
            case Many(separator=Lit("")):
                return replace(node, item=self._of_calls(node.item), separator=Lit(self._place("")))
            case Arguments(encoding):
                return Arguments(encoding.respelled(self._placed))
            case _:
                return rebuild(node, self._of_calls)

    def _row(self, items: tuple[Node, ...]) -> Iterator[Node]:
        shown = [item for item in items if item != Lit("")]
        for item, following in zip_longest(shown, shown[1:]):
            yield self._of_calls(item)
            if following and isinstance(_edge(item, -1), _BESIDE) and isinstance(_edge(following, 0), _BESIDE):
                yield Lit(self._place(""))


def _first(matches: Iterable[re.Match[str] | None]) -> re.Match[str] | None:
    return next((match for match in matches if match is not None), None)


def _edge(node: Node, at: int) -> Node:
    """The first or the last of what is written of a node."""
    written = as_written(node)
    return _edge(written.items[at], at) if isinstance(written, Seq) and written.items else written


def _laid_out(node: Node, layout: Layout | None) -> Node:
    match node:
        case Object(members):
            return Object(*members, layout=layout)
        case Array():
            return replace(node, layout=layout)
        case _:
            return node


def _translated(text: str, table: Mapping[int, str]) -> str:
    return text.translate(table)


def _begins_with_mark(node: Node) -> bool:
    match node:
        case Opt(item) | Many(item) | Call(item) | Lenient(item):
            return _begins_with_mark(item)
        case Seq(items):
            first = next((item for item in items if not isinstance(item, Break)), None)
            return first is not None and _begins_with_mark(first)
        case _:
            return isinstance(node, Mark)
