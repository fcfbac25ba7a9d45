"""A wire format as a grammar: exactly the turns that a request allows, in one spelling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import zip_longest

from toolgram.grammar import ir
from toolgram.grammar.ir import (
    Expr,
    Ref,
    Rules,
    Text,
    Token,
    chars,
    choice,
    optional,
    repeat,
    seq,
)
from toolgram.grammar.rest import rest_after
from toolgram.schema import RuleNames
from toolgram.schema.writing.json_style import Spelling, quoted
from toolgram.wire import format as wire
from toolgram.wire.after_words import AfterWords, calls_after_words, without_calls_after_words
from toolgram.wire.allowed import Calls, allowed, closing_content
from toolgram.wire.call_form import CallForm, form_of, written
from toolgram.wire.encodings import AnyEncoding
from toolgram.wire.free_text import closed_or_called, first_marks, free_text, thought, unclosed_text
from toolgram.wire.marks import as_tokens
from toolgram.wire.program import Program, compile_format
from toolgram.wire.spacing import Spacing
from toolgram.wire.unclosed import unclosed
from toolgram.work import give_way


@dataclass(frozen=True)
class Callee:
    """A tool that may be called: its name, and its arguments as an expression in a given encoding."""

    name: str
    arguments: Callable[[AnyEncoding], Expr]


@dataclass(frozen=True)
class Turn:
    """What a request allows in a turn. `answer`: the values of the response schema in a given encoding; `stops` are
    never in free text.

    `plain` is the answer where it stands as text, outside of JSON, if that is not as in JSON; with `plain_ends` white
    space after it is none of it. `tail` is white space that the model's template writes between a call and the end of
    its turn. `opened` is what the prompt holds already of the turn.
    """

    callees: tuple[Callee, ...] = ()
    calls: Calls = "none"
    parallel: bool = True
    answer: Callable[[AnyEncoding], Expr] | None = None
    plain: Expr | None = None
    plain_ends: bool = False
    string: Expr | None = None
    stops: tuple[str, ...] = ()
    tail: str = ""
    opened: str = ""


def constrain(format_: wire.WireFormat, turn: Turn, names: RuleNames, rules: Mapping[str, Expr]) -> Rules:
    """The rules of all turns that `turn` allows in this format, `root` first; `rules` are those its values refer to.

    Where there are both tools and a response schema, the turn is either calls or an answer, with no text beside.
    """
    after_words = calls_after_words(format_) if turn.calls == "any" and turn.answer is None else None
    format_ = without_calls_after_words(format_)
    program = compile_format(format_.turn)
    first = _readable(format_, turn).first_of_text([callee.name for callee in turn.callees])
    lowering = _Lowering(
        format_=format_,
        turn=turn,
        names=names,
        rules=dict(rules),
        content=(*program.markers("content"), *turn.stops),
        thought=thought(format_, program, turn.stops),
        first_marks=(*first_marks(format_, program), *(text for text in first if len(text) > 1)),
        content_first="".join(text for text in first if len(text) == 1),
        content_last=program.last_characters("content"),
        after_words=after_words,
    )
    modes: tuple[Calls, ...] = ("none", "only") if turn.calls == "any" and turn.answer is not None else (turn.calls,)
    options: list[Expr] = []
    for mode in modes:
        whole = closing_content(format_.turn, turn.opened) if mode == "only" else format_.turn
        node = allowed(whole, mode, parallel=turn.parallel, must_answer=turn.answer is not None)
        if node is not None:
            closed = lowering.or_called_after_words(lowering.last(lowering.spacing.loosened(node)))
            options.append(closed if mode == "none" else lowering.or_called(closed, node))
    return {"root": choice(*options), **lowering.rules}


@dataclass
class _Lowering:
    """From nodes to expressions, which refer to `rules`.

    `content` are the marks that are never in an answer, `thought` is what reasoning may be.
    """

    format_: wire.WireFormat
    turn: Turn
    names: RuleNames
    rules: dict[str, Expr]
    content: tuple[str, ...]
    thought: Expr
    first_marks: tuple[str, ...]
    content_first: str
    content_last: str
    after_words: AfterWords | None = None
    callee: Callee | None = None
    calls: dict[tuple[CallForm, str], str] = field(default_factory=dict[tuple[CallForm, str], str])

    @property
    def spacing(self) -> Spacing:
        """What white space need not be written: none, where by it an answer is told from a call, or is that itself."""
        turn, told = self.turn, bool(self.first_marks or self.content_first)
        return Spacing(free_content=turn.answer is None and not told, less=turn.plain is None and not told)

    @cached_property
    def text(self) -> Expr:
        """What content may be as free text, which may be empty."""
        if self.after_words and not (self.content_first or self.content_last):
            return unclosed_text(self.content, self.after_words.ahead, self.first_marks)
        calls = self.after_words.ahead.texts if self.after_words else ()
        return free_text((*self.content, *calls), self.first_marks, self.content_first, self.content_last)

    def node(self, node: wire.Node, *, in_json: bool) -> Expr:
        """The expression of a node; inside JSON the fields are JSON values."""
        match node:
            case wire.Lit(text, others):
                return choice(*map(as_tokens, (text, *others)))
            case wire.Mark(text):
                parts = as_tokens(text)
                return Token(text) if isinstance(parts, ir.Literal) else parts
            case wire.NamedMark():
                return Token(node.text(self.current().name))
            case wire.Const(text):
                return seq(self.quoted(text))
            case wire.Content(encoding):
                if self.turn.plain is not None and not in_json:
                    return self.turn.plain
                if self.turn.answer is not None:
                    return self.turn.answer(encoding)
                if in_json:
                    return self.string()
                return self.text
            case wire.Reasoning():
                return self.string() if in_json else self.thought
            case wire.Break():
                return seq()  # free text has it among its own
            case wire.CallAhead():
                return ir.NOTHING  # what follows where it stands is `unclosed`
            case wire.Name():
                name = self.current().name
                return seq(self.quoted(name) if in_json else name)
            case wire.CallId(alphabet, length):
                body = repeat(_class(alphabet), length, node.longest)
                return seq('"', body, '"') if in_json else body
            case wire.Arguments(encoding):
                return self.current().arguments(encoding)
            case wire.Call(item):
                form = form_of(self.format_, item, in_json)
                return choice(*(self.call(form, callee) for callee in self.turn.callees))
            case wire.Object(members):
                between, colon, first, last = self.laid_out(node)
                pairs = [seq(self.quoted(key), colon, self.node(member, in_json=True)) for key, member in members]
                return seq("{", first, *_joined(pairs, between), last, "}")
            case wire.Array(item):
                between, _, first, last = self.laid_out(node)
                return seq("[", first, _several(self.node(item, in_json=True), between, 1, node.max), last, "]")
            case _:
                return self.composite(node, in_json=in_json)

    def last(self, node: wire.Node) -> Expr:
        """The expression of what a turn ends with, and the white space that may stand before its end.

        A model that breaks the line after a call, or after a value, must be as free to end there as to go on: if only
        another call could follow a line break, that line break would be a promise. Free text has it among its own.
        """
        match node:
            case wire.Seq(items):
                written = [item for item in items if wire.as_written(item) != wire.NOTHING_WRITTEN]
                if not written:
                    return seq()
                if isinstance(written[-1], wire.Opt) and not any(map(self.is_free, written[-2:])):
                    return seq(*self.row(written), self.tail())
                return seq(*self.row(written[:-1]), self.last(written[-1]))
            case wire.Alt(options):
                return choice(*map(self.last, options))
            case wire.Opt(item):
                inside = self.last(item)
                return inside if self.may_be_empty(inside) else optional(inside)
            case wire.Lenient(item):
                return self.last(item)
            case wire.Many():
                several = seq(self.several(node), self.tail(*_leading_spaces(node.separator)))
                return several if node.min else optional(several)
            case wire.Chain():
                return self.closed_chain(node)
            case _ if self.is_free(node):
                return self.node(node, in_json=False)
            case _:
                return seq(self.node(node, in_json=False), self.tail())

    def or_called(self, closed: Expr, node: wire.Node) -> Expr:
        """The turns of the node, or those in which a call closes the reasoning; nothing else can follow it then."""
        found = unclosed(node)
        calls = None if found is None else allowed(found[1], "only", parallel=self.turn.parallel)
        if found is None or calls is None:
            return closed
        thought, _, ahead = found
        begun = self.node(self.spacing.loosened(thought), in_json=False)
        after = rest_after(self.last(calls), ahead.before + ahead.opener, self.rules)
        return closed_or_called(closed, begun, ahead, after, self.rules)

    def or_called_after_words(self, closed: Expr) -> Expr:
        """The turns, or those in which a call follows words; nothing else can follow it then."""
        calls = self.after_words and allowed(self.after_words.calls, "only", parallel=self.turn.parallel)
        if self.after_words is None or calls is None:
            return closed
        ahead, self.calls = self.after_words.ahead, {}  # rules of their own, which are cut behind the opener
        after = rest_after(self.last(calls), ahead.opener, self.rules)
        return closed_or_called(closed, self.text, ahead, after, self.rules)

    def may_be_empty(self, text: Expr) -> bool:
        """Whether this is free text, which is optional already."""
        return isinstance(text, Text) or (self.after_words is not None and text == self.text)

    def is_free(self, node: wire.Node) -> bool:
        """Whether a turn that ends with this node ends with free text."""
        match node:
            case wire.Seq(items):
                return bool(items) and self.is_free(items[-1])
            case wire.Opt(item) | wire.Many(item) | wire.Lenient(item):
                return self.is_free(item)
            case wire.Content():
                turn = self.turn
                return turn.answer is None or (turn.plain is not None and not turn.plain_ends)
            case _:
                return isinstance(node, wire.Reasoning)

    def tail(self, *spaces: str) -> Expr:
        """White space before the end of the turn: up to two line breaks, what the template writes there, `spaces`."""
        return choice(*(text for text in ("\n", "\n\n", self.turn.tail, *spaces) if text), seq())

    def row(self, items: Sequence[wire.Node]) -> Iterator[Expr]:
        """Parts that stand side by side. White space between calls may stand after the last one as well."""
        for item, following in zip_longest(items, items[1:]):
            yield self.node(item, in_json=False)
            if isinstance(item, wire.Many) and item.max != 1 and wire.holds(item, wire.Call):
                spaces = _leading_spaces(item.separator)
                if not (isinstance(following, wire.Lit) and following.text.startswith(spaces)):
                    yield choice(*spaces, seq())

    def several(self, node: wire.Many) -> Expr:
        """The item as often as it may stand, once at least."""
        separator = self.node(node.separator, in_json=False)
        return _several(self.node(node.item, in_json=False), separator, max(node.min, 1), node.max)

    def composite(self, node: wire.Node, *, in_json: bool) -> Expr:
        match node:
            case wire.Seq(items):
                return seq(*((self.node(item, in_json=True) for item in items) if in_json else self.row(items)))
            case wire.Alt(options):
                return choice(*(self.node(option, in_json=in_json) for option in options))
            case wire.Opt(item):
                inside = self.node(item, in_json=in_json)
                return inside if self.may_be_empty(inside) else optional(inside)
            case wire.Lenient(item):
                return self.node(item, in_json=in_json)
            case wire.Many():
                several = self.several(node)
                return several if node.min else optional(several)
            case wire.Chain():
                return self.chain(node, seq())
            case _:
                raise TypeError(f"{type(node).__name__} is not a composite")

    def chain(self, node: wire.Chain, tail: Expr) -> Expr:
        """Segments with `join` between those that are there, at least one: what comes first decides the rest.

        After the last stands `tail`, unless it is free text.
        """
        join = self.node(node.join, in_json=False)
        rest: Expr = seq()
        begin: list[Expr] = []
        for item in reversed(node.items):
            end = tail if item is node.items[-1] and not self.is_free(item) else seq()
            match item:
                case wire.Opt(inner):
                    segment, least, most = self.node(inner, in_json=False), 0, 1
                case wire.Many(inner):
                    segment, least, most = self.node(inner, in_json=False), item.min, item.max
                case _:
                    segment, least, most = self.node(item, in_json=False), 1, 1
            joined = seq(join, segment)
            more = None if most is None else most - 1
            here = seq(segment, repeat(joined, max(least - 1, 0), more), end, rest)
            begin = [here] if least else [here, *begin]
            ended = seq(repeat(joined, max(least, 1), most), end)
            rest = seq(ended if least else optional(ended), rest)
        return choice(*begin)

    def closed_chain(self, node: wire.Chain) -> Expr:
        """A turn that is a chain, with what may stand behind its last segment."""
        join = self.node(node.join, in_json=False)
        match node.items:
            case (wire.Many(wire.Alt() as either), *rest):  # a rule for itself: what follows `join` is told by one look
                name = self.names.fresh("message")
                again = optional(Ref(name)) if node.closes else Ref(name)
                others = self.closed_chain(wire.Chain(*rest, join=node.join, closes=node.closes))
                self.rules[name] = choice(seq(self.node(either, in_json=False), optional(seq(join, again))), others)
                return Ref(name)
            case _:
                return seq(self.chain(node, self.tail()), optional(join) if node.closes else seq())

    def call(self, form: CallForm, callee: Callee) -> Expr:
        """The rule of one tool's call."""
        key = (form, callee.name)
        if key not in self.calls:
            give_way()
            name = self.calls[key] = self.names.fresh(f"{callee.name}-call")
            outer, self.callee = self.callee, callee
            write = partial(self.node, form.item, in_json=form.in_json)
            self.rules[name] = written(form, callee.name, callee.arguments, write)
            self.callee = outer
        return Ref(self.calls[key])

    def current(self) -> Callee:
        if self.callee is None:
            raise TypeError("a tool's name stands outside of a Call")
        return self.callee

    def string(self) -> Expr:
        if self.turn.string is None:
            raise TypeError("a field stands inside JSON, but no string expression was given")
        return self.turn.string

    def laid_out(self, node: wire.Object | wire.Array) -> tuple[Expr, Expr, Expr, Expr]:
        """What stands between members, after a key, and inside the brackets of an object or array."""
        layout = self.format_.layout(node)
        between, colon, first, last = (
            self.node(each, in_json=True) for each in (layout.item, layout.key, layout.first, layout.last)
        )
        return between, colon, first, last

    def quoted(self, text: str) -> str:
        return quoted(text, Spelling())


def _readable(format_: wire.WireFormat, turn: Turn) -> Program:
    """What reads the turn: where no call is allowed none is looked for."""
    left = format_.turn if turn.calls != "none" else allowed(format_.turn, "none")
    return compile_format(left or wire.NOTHING_WRITTEN)


def _leading_spaces(separator: wire.Node) -> tuple[str, ...]:
    """The white space with which a separator may begin."""
    match separator:
        case wire.Seq((first, *_)):
            return _leading_spaces(first)
        case wire.Lit(text, others):
            return tuple(dict.fromkeys(each[: len(each) - len(each.lstrip())] for each in (text, *others)))
        case _:
            return ("",)


def _joined(items: Iterable[Expr], separator: Expr) -> Iterable[Expr]:
    for i, item in enumerate(items):
        if i:
            yield separator
        yield item


def _several(item: Expr, separator: Expr, least: int, most: int | None) -> Expr:
    """The item `least` (at least one) to `most` times, with separators between."""
    return seq(item, repeat(seq(separator, item), least - 1, None if most is None else most - 1))


def _class(alphabet: str) -> Expr:
    """The characters of a class as in "a-zA-Z0-9_"."""
    pieces: list[str | tuple[int, int]] = []
    i = 0
    while i < len(alphabet):
        if alphabet[i + 1 : i + 2] == "-" and i + 2 < len(alphabet):
            pieces.append((ord(alphabet[i]), ord(alphabet[i + 2])))
            i += 3
        else:
            pieces.append(alphabet[i])
            i += 1
    return chars(*pieces)
