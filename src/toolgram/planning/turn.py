"""The turn that a request allows in a style: its grammar, and how values are spelled in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from toolgram.caching import MEGABYTE, made_of, weighed
from toolgram.conversation.message import Message, ToolCall
from toolgram.conversation.request import Request
from toolgram.errors import GrammarError, InvalidRequest, InvalidSchema, Relaxation, UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import NOTHING, Expr
from toolgram.grammar.regular.automata import Automaton
from toolgram.grammar.regular.limits import MAX_WORK, limited
from toolgram.schema import Compiled, compile_schema, compile_type, types
from toolgram.schema.types.complement import subtract
from toolgram.schema.writing.json_style import RuleNames, writable
from toolgram.schema.writing.plain_text import plain_language, plain_rules
from toolgram.schema.writing.values import spell_as
from toolgram.wire import format as wire
from toolgram.wire.allowed import Calls, allowed, ways_to_think, without_reasoning
from toolgram.wire.element_values import ElementArguments
from toolgram.wire.encodings import JSON, AnyEncoding, Elements, Encoding, Tagged
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.freely import FRACTION_DIGITS, INTEGER_DIGITS, spelling_of, write_freely
from toolgram.wire.grammar import Callee, Turn, constrain
from toolgram.wire.json_shapes import ARGUMENTS
from toolgram.wire.program import Program, compile_format
from toolgram.wire.reader import Reader
from toolgram.wire.tagged_values import TaggedArguments
from toolgram.wire.writer import write

Spell = Callable[[Any], str | None]
"""A value as the turn's grammar spells it; None where it is not valid."""

_CALLS: dict[str, Calls] = {"none": "none", "auto": "any", "required": "only"}
_FENCES = ("```json", "```")
_GAPS, _MOST_MARKS = ("", "\n", "\n\n"), 5


@dataclass(frozen=True)
class TurnSpec:
    """What decides a turn's grammar: the tools that may be called, how, and the schema of the answer.

    Tools and answer stand as JSON text, so that equal requests share one grammar. `opened` is the part of the turn that
    the prompt holds already; where the reasoning is not `reasoning_apart` it stays in the content, tags and all.
    `tail` is white space that the template writes between a call and the end of its turn.
    """

    format: wire.WireFormat
    tools: str
    calls: Calls
    parallel: bool
    answer: str
    stops: tuple[str, ...]
    opened: str = ""
    reasoning_apart: bool = True
    tail: str = ""


@dataclass(frozen=True)
class CompiledTurn:
    """A turn that a request allows: its grammar, its reader's program, and how its values are spelled.

    `opened` is the part that the prompt holds already, spaced as the style does.
    """

    spec: TurnSpec
    grammar: Grammar
    opened: str
    program: Program
    arguments: Mapping[tuple[str, AnyEncoding], Spell]
    expected: Mapping[str, Expected]
    answer: Spell | None
    plain: Automaton | None = None

    @property
    def relaxations(self) -> tuple[Relaxation, ...]:
        """What the grammar does not enforce exactly."""
        return self.grammar.relaxations

    def write(self, message: Message) -> str | None:
        """The message as the model would write it after the opened part, its values valid for their schemas.

        None where the format, a schema or the request forbids it, or where it does not begin with the opened part.
        """
        if not self._permits(message):
            return None
        if self.plain is not None and not (message.tool_calls or self.plain.accepts(message.content or "")):
            return None
        answer = self._write_answer if self.answer else None
        for format_ in (self.spec.format, *ways_to_think(self.spec.format)):
            text = write(format_, message, self._write_arguments, answer, self.spec.stops)
            if text is not None and text.startswith(self.opened):
                return text[len(self.opened) :]
        return None

    def _permits(self, message: Message) -> bool:
        """Whether the request allows so many calls, and text beside them, and the format their ids."""
        calls, spec = len(message.tool_calls), self.spec
        if not calls:
            return spec.calls != "only"
        forms = [node for node in wire.walk(spec.format.turn) if isinstance(node, wire.CallId)]
        for call in message.tool_calls:
            if call.id is not None and not any(form.admits(call.name, call.id) for form in forms):
                return False
        silent = spec.calls == "only" or self.answer is not None
        return spec.calls != "none" and (spec.parallel or calls == 1) and not (silent and message.content)

    def _write_arguments(self, call: ToolCall, encoding: AnyEncoding) -> str | None:
        spell_arguments = self.arguments.get((call.name, encoding))
        return _spelled(call.arguments, spell_arguments) if spell_arguments else None

    def _write_answer(self, text: str) -> str | None:
        return _spelled(text, self.answer) if self.answer else None


def _spelled(text: str, spell_value: Spell) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return spell_value(value)


def turn_spec(
    request: Request, format_: wire.WireFormat, stops: tuple[str, ...], *, parallel: bool, opened: str, tail: str
) -> TurnSpec:
    """What of a request decides its turn's grammar."""
    tools = [
        {
            "name": tool.name,
            "parameters": tool.parameters,
            "strict": tool.strict,
            "pointer": tool.pointer,
            "schema_pointer": tool.schema_pointer,
            "custom": tool.custom,
        }
        for tool in request.callable_tools
    ]
    answer = request.response_format
    calls = _CALLS[request.tool_choice.mode] if tools else "none"
    return TurnSpec(
        format=format_,
        tools=json.dumps(tools),
        calls=calls,
        parallel=parallel,
        answer=json.dumps([answer.schema, answer.strict, answer.pointer, answer.plain] if answer else None),
        stops=stops,
        opened=opened,
        reasoning_apart=request.reasoning_format != "none",
        tail=tail,
    )


def weight(spec: TurnSpec) -> int:
    """How many bytes is kept for a turn, roughly."""
    return made_of(spec.tools, spec.answer)


@weighed(128 * MEGABYTE, weight)
def compile_turn(spec: TurnSpec) -> CompiledTurn:
    """The grammar of a turn. Raises InvalidSchema, and for what is `strict` UnsupportedSchema."""
    return _Compilation(spec).run()


def reading_program(spec: TurnSpec) -> Program:
    """What reads the turn: where no call is allowed, the marks of calls are plain text; what stops it is none of it."""
    turn = spec.format.turn
    if spec.calls == "none":
        turn = allowed(turn, "none") or wire.NOTHING_WRITTEN
    if not spec.reasoning_apart:
        turn = without_reasoning(turn)
    if spec.answer != "null" and _apart(turn, (*_FENCES, *spec.stops)) == (*_FENCES, *spec.stops):
        turn = _fenced(turn)
    stops = map(wire.Mark, _apart(turn, spec.stops))
    return compile_format(wire.Seq(turn, wire.Lenient(wire.NOTHING_WRITTEN, *stops)))


def _apart(turn: wire.Node, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the texts that can be marks beside the marks of a turn, since none stands inside another."""
    marks = {text for node in wire.walk(turn) if isinstance(node, wire.Mark) for text in node.spellings} | set(texts)
    return tuple(text for text in texts if not any(text in mark[1:] or mark in text[1:] for mark in marks))


def _fenced(node: wire.Node) -> wire.Node:
    """The turn, whose answer in a schema may stand in a fence, as models write it that nothing constrains."""
    match node:
        case wire.Content():
            opener, closer = map(wire.Mark, _FENCES)
            return wire.Lenient(node, wire.Seq(opener, wire.Lit("\n"), node, wire.Lit("\n"), closer))
        case wire.Seq(items):
            return wire.Seq(*map(_fenced, items))
        case wire.Opt(item):
            return wire.Opt(_fenced(item))
        case wire.Alt(options):
            return wire.Alt(*map(_fenced, options))
        case _:
            return node


def _after(grammar: Grammar, opened: str) -> tuple[str, Grammar]:
    """The opened part as the style spaces it, and what may follow; templates space their marks as they like."""
    marks = ["", *(part for part in re.split(r"(?<=[>\]])\s*|\s*(?=[<\[])", opened.strip()) if part)]
    spaced = ("".join(map("".join, zip(marks, gaps, strict=True))) for gaps in product(_GAPS, repeat=len(marks)))
    for text in (opened, *(spaced if len(marks) <= _MOST_MARKS else ())):
        try:
            return text, grammar.after(text)
        except GrammarError:
            continue
    raise InvalidRequest("/messages", f"the prompt ends with {opened!r}, after which this style allows nothing")


def _is_readable(name: str, format_: wire.WireFormat) -> bool:
    """Whether a call of a tool of this name reads back to it: a format may not be able to tell it from its marks."""
    if not writable(name):
        return False
    text = write_freely(format_, Message(tool_calls=(ToolCall(name, "{}", some_id(name, format_)),)))
    if text is None:
        return False
    reader = Reader(compile_format(format_.turn))
    calls = Message.from_events([*reader.feed(text), *reader.finish()]).tool_calls
    return [call.name for call in calls] == [name]


def some_id(name: str, format_: wire.WireFormat) -> str | None:
    """An id as a call of this tool may have; None where the wire carries none."""
    ids = (node for node in wire.walk(format_.turn) if isinstance(node, wire.CallId))
    return next((node.form.format(name=name, id="0" * node.length) for node in ids), None)


def _bare_calls(format_: wire.WireFormat, tools: Iterable[str]) -> Iterator[types.Type]:
    """What reads as a call of one of these tools where a format writes calls as JSON objects."""
    names = types.union(types.Text(name) for name in tools)
    in_list = "[" in compile_format(format_.turn).first_characters
    for node in wire.walk(format_.turn, written=True):
        if isinstance(node, wire.Object):
            own = [key for key, member in node.members if isinstance(member, wire.Arguments)]
            for name in (key for key, member in node.members if isinstance(member, wire.Name)):
                for key in dict.fromkeys((*own, *ARGUMENTS)):
                    members = ((name, names), (key, types.Object((), types.ANY)))
                    properties = [types.Property(each, kind, required=True) for each, kind in members]
                    call = types.object_type(properties, types.ANY)
                    yield types.array((call,), types.ANY, 1, None) if in_list else call


@dataclass
class _Compilation:
    spec: TurnSpec
    names: RuleNames = field(default_factory=lambda: RuleNames("root"))
    rules: dict[str, Expr] = field(default_factory=dict[str, Expr])
    relaxations: list[Relaxation] = field(default_factory=list[Relaxation])
    arguments: dict[tuple[str, AnyEncoding], Spell] = field(default_factory=dict[tuple[str, AnyEncoding], Spell])
    expected: dict[str, Expected] = field(default_factory=dict[str, Expected])

    def run(self) -> CompiledTurn:
        spec = self.spec
        encodings = {
            node.encoding for node in wire.walk(spec.format.turn, written=True) if isinstance(node, wire.Arguments)
        }
        tools = json.loads(spec.tools)
        callees = tuple(callee for tool in tools if (callee := self.callee_of(tool, encodings)) is not None)
        if tools and not callees and spec.calls == "only":
            raise InvalidRequest("/tools", "no tool can be called: no arguments match their schemas")
        answer, language, plain = None, None, None
        if (given := json.loads(spec.answer)) is not None:
            schema, strict, pointer, is_plain = given
            if is_plain:
                language, plain = self.plain_answer(schema, pointer)
            answer = self.schema(schema, JSON, pointer, "answer", strict=strict, parameters=False)
            if callees and not is_plain and compile_format(spec.format.turn).first_characters:
                answer = self.but_calls(answer, pointer, strict=strict)
        string = self.schema({"type": "string"}, JSON, "", "string", strict=False, parameters=False)
        turn = Turn(
            callees=callees,
            calls=spec.calls,
            parallel=spec.parallel,
            answer=answer.expr if answer else None,
            plain=plain,
            string=string.expr,
            stops=spec.stops,
            tail=spec.tail,
        )
        rules = constrain(spec.format, turn, self.names, self.rules)
        grammar = Grammar(rules, tuple(dict.fromkeys(self.relaxations)))
        opened = ""
        if spec.opened:
            opened, grammar = _after(grammar, spec.opened)
        spell_answer = (
            None
            if answer is None or language
            else partial(spell_as, answer.type, spelling=spelling_of(spec.format, JSON))
        )
        return CompiledTurn(
            spec, grammar, opened, reading_program(spec), self.arguments, self.expected, spell_answer, language
        )

    def but_calls(self, answer: Compiled, pointer: str, *, strict: bool) -> Compiled:
        """The answer without the values that read as calls, in a format whose calls are bare JSON objects."""
        canonical, why = answer.type, "an answer that reads as a call is taken for one"
        try:
            calls = types.union(_bare_calls(self.spec.format, self.expected))
            with limited(MAX_WORK):
                kind = subtract(canonical.root, calls, canonical.definitions.__getitem__)
            if kind == canonical.root:
                return answer
            spelling = spelling_of(self.spec.format, JSON)
            made = compile_type(replace(canonical, root=kind), spelling=spelling, names=self.names, root_name="answer")
        except types.TooLarge as error:
            if strict:
                raise UnsupportedSchema(pointer, "type", why) from error
            self.relaxations.append(Relaxation(pointer, "type", why))
            return answer
        self.rules.update(made.rules)
        return replace(made, type=replace(canonical, root=kind))

    def plain_answer(self, schema: dict[str, Any], pointer: str) -> tuple[Automaton, Expr]:
        """An answer that is a text itself; where it stands in the turn it holds none of the format's marks."""
        marks = compile_format(self.spec.format.turn).markers("content")
        try:
            language = plain_language(schema, (*marks, *self.spec.stops))
        except ValueError as error:
            raise InvalidRequest(pointer, str(error)) from error
        if language.is_empty:
            raise InvalidRequest(pointer, "no text matches, or only such as holds a mark of the model's format")
        expr, rules = plain_rules(language, self.names)
        self.rules.update(rules)
        return language, expr

    def callee_of(self, tool: dict[str, Any], encodings: set[AnyEncoding]) -> Callee | None:
        """As `callee`; what is wrong with the schema of a custom tool is wrong with the format that it has."""
        try:
            return self.callee(tool, encodings)
        except (InvalidSchema, UnsupportedSchema) as error:
            if not tool["custom"]:
                raise
            raise InvalidRequest(tool["schema_pointer"], error.reason) from error

    def callee(self, tool: dict[str, Any], encodings: set[AnyEncoding]) -> Callee | None:
        """A tool with its arguments compiled in every encoding of the format; None for one that nothing can call."""
        name, pointer = tool["name"], tool["schema_pointer"]
        if not _is_readable(name, self.spec.format):
            raise InvalidRequest(f"{tool['pointer']}/name", f"this style cannot write a tool named {name!r}")
        schema: Any = tool["parameters"]
        if schema is None:
            schema = {"type": "object"}
        exprs: dict[AnyEncoding, Expr] = {}
        for encoding in encodings:
            plain = encoding if isinstance(encoding, Encoding) else JSON
            hint = f"{name}-arguments"
            compiled = self.schema(schema, plain, pointer, hint, strict=tool["strict"], parameters=True)
            if compiled.expr == NOTHING:
                if tool["strict"]:
                    raise InvalidRequest(pointer, "no arguments can match this schema")
                self.relaxations.append(Relaxation(pointer, "type", "the tool is never called: nothing matches"))
                return None
            exprs[encoding] = compiled.expr
            self.expected[name] = Expected(compiled.type, compiled.type.root)
            spelling = spelling_of(self.spec.format, plain)
            self.arguments[name, encoding] = partial(spell_as, compiled.type, spelling=spelling)
            if not isinstance(encoding, Encoding):
                exprs[encoding] = self.tagged(name, encoding, compiled, pointer, strict=tool["strict"])
        return Callee(name, exprs.__getitem__)

    def tagged(self, name: str, tags: Tagged | Elements, compiled: Compiled, pointer: str, *, strict: bool) -> Expr:
        """Arguments between tags, from the type that their schema was compiled to."""
        make = TaggedArguments if isinstance(tags, Tagged) else ElementArguments
        try:
            spelling, hint = spelling_of(self.spec.format, JSON), f"{name}-arguments"
            made = make(tags, compiled.type, spelling, self.names, hint, exact=strict)  # type: ignore[arg-type]  # made for these tags
        except types.TooLarge as error:  # by parts it may have more rules than as a whole
            raise UnsupportedSchema(pointer, "size", "the grammar would have too many rules") from error
        if strict and made.relaxations:
            first = made.relaxations[0]
            raise UnsupportedSchema(first.pointer, first.keyword, f"this style has {first.enforced}")
        self.rules.update(made.rules)
        self.relaxations.extend(made.relaxations)
        if made.expr == NOTHING:
            raise InvalidRequest(pointer, "no arguments can match this schema between tags")
        self.arguments[name, tags] = made.spell
        return made.expr

    def schema(
        self, schema: Any, encoding: Encoding, pointer: str, hint: str, *, strict: bool, parameters: bool
    ) -> Compiled:
        spelling = spelling_of(self.spec.format, encoding)
        compiled = compile_schema(
            schema,
            pointer=pointer,
            mode="exact" if strict else "relaxed",
            closed=True,
            spelling=spelling,
            names=self.names,
            root_name=hint,
            parameters=parameters,
        )
        self.rules.update(compiled.rules)
        self.relaxations.extend(compiled.relaxations)
        if compiled.capped:
            digits = f"numbers of at most {INTEGER_DIGITS} digits before the point and {FRACTION_DIGITS} after it"
            self.relaxations.append(Relaxation(pointer, "type", digits))
        return compiled
