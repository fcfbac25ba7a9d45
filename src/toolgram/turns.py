"""The turn that a request allows in a style: its grammar, and how values are spelled in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

from toolgram.errors import GrammarError, InvalidRequest, Relaxation, UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import NOTHING, Expr
from toolgram.messages import Message, ToolCall
from toolgram.request import Request
from toolgram.schema import Compiled, compile_schema
from toolgram.schema.automata import Automaton
from toolgram.schema.plain_text import plain_language, plain_rules
from toolgram.schema.spelling import RuleNames, Spelling, spell, spell_as, writable
from toolgram.wire import format as wire
from toolgram.wire.arguments import JSON, AnyEncoding, Encoding, Tagged
from toolgram.wire.constrain import Callee, Calls, Turn, allowed, constrain, thinking, without_reasoning
from toolgram.wire.program import Program, compile_format
from toolgram.wire.reader import Reader
from toolgram.wire.tagged import Kinds
from toolgram.wire.tagged_values import TaggedArguments, parameter_kinds, written
from toolgram.wire.writer import write

Spell = Callable[[Any], str | None]
"""A value as the turn's grammar spells it; None where it is not valid."""

INTEGER_DIGITS, FRACTION_DIGITS = 19, 17
_CALLS: dict[str, Calls] = {"none": "none", "auto": "any", "required": "only"}
_GAPS, _MOST_MARKS = ("", "\n", "\n\n"), 4


@dataclass(frozen=True)
class TurnSpec:
    """What decides a turn's grammar: the tools that may be called, how, and the schema of the answer.

    Tools and answer stand as JSON text, so that equal requests share one grammar. `opened` is the part of the turn that
    the prompt holds already; where the reasoning is not `reasoning_apart` it stays in the content, tags and all.
    """

    format: wire.WireFormat
    tools: str
    calls: Calls
    parallel: bool
    answer: str
    stops: tuple[str, ...]
    opened: str = ""
    reasoning_apart: bool = True


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
    kinds: Mapping[str, Kinds]
    answer: Spell | None
    plain: Automaton | None = None

    @property
    def relaxations(self) -> tuple[Relaxation, ...]:
        """What the grammar does not enforce exactly."""
        return self.grammar.relaxations

    def write(self, message: Message) -> str | None:
        """The message as the model would write it after the opened part, its values valid for their schemas.

        None where the format or a schema forbids it, or where it does not begin with the opened part.
        """
        if self.plain is not None and not (message.tool_calls or self.plain.accepts(message.content or "")):
            return None
        answer = self._write_answer if self.answer else None
        for thinks in (False, True):
            format_ = thinking(self.spec.format) if thinks else self.spec.format
            text = write(format_, message, self._write_arguments, answer, self.spec.stops)
            if text is not None and text.startswith(self.opened):
                return text[len(self.opened) :]
        return None

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


def write_freely(format_: wire.WireFormat, message: Message) -> str | None:
    """A turn of the history in a format, whether or not its tools are still there: values are spelled as they are."""

    def arguments(call: ToolCall, encoding: AnyEncoding) -> str:
        try:
            value = json.loads(call.arguments)
            if isinstance(encoding, Tagged):
                spelling = _spelling(format_, JSON)
                return "".join(written(encoding, key, each, spell(each, spelling)) or "" for key, each in value.items())
            return spell(value, _spelling(format_, encoding))
        except (ValueError, RecursionError):
            return call.arguments

    ids = any(isinstance(node, wire.CallId) for node in wire.walk(format_.turn))
    if not ids:
        message = replace(message, tool_calls=tuple(replace(call, id=None) for call in message.tool_calls))
    return write(format_, message, arguments)


def turn_spec(
    request: Request, format_: wire.WireFormat, stops: tuple[str, ...], *, parallel: bool, opened: str
) -> TurnSpec:
    """What of a request decides its turn's grammar."""
    tools = [
        {"name": tool.name, "parameters": tool.parameters, "strict": tool.strict, "pointer": tool.pointer}
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
    )


@lru_cache(maxsize=256)
def compile_turn(spec: TurnSpec) -> CompiledTurn:
    """The grammar of a turn. Raises InvalidSchema, and for what is `strict` UnsupportedSchema."""
    return _Compilation(spec).run()


def reading_program(spec: TurnSpec) -> Program:
    """What reads the turn: where no call is allowed, the marks of calls are plain text."""
    turn = spec.format.turn
    if spec.calls == "none":
        turn = allowed(turn, "none") or wire.NOTHING_WRITTEN
    if not spec.reasoning_apart:
        turn = without_reasoning(turn)
    return compile_format(turn)


def _spelling(format_: wire.WireFormat, encoding: Encoding) -> Spelling:
    return Spelling(
        item_separator=format_.item_separator if encoding.item_separator is None else encoding.item_separator,
        key_separator=format_.key_separator if encoding.key_separator is None else encoding.key_separator,
        integer_digits=INTEGER_DIGITS,
        fraction_digits=FRACTION_DIGITS,
        encoding=encoding,
    )


def _after(grammar: Grammar, opened: str) -> tuple[str, Grammar]:
    """The opened part as the style spaces it, and what may follow; templates space their marks as they like."""
    marks = ["", *(part for part in re.split(r"(?<=[>\]])\s*", opened.strip()) if part)]
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


@dataclass
class _Compilation:
    spec: TurnSpec
    names: RuleNames = field(default_factory=lambda: RuleNames("root"))
    rules: dict[str, Expr] = field(default_factory=dict[str, Expr])
    relaxations: list[Relaxation] = field(default_factory=list[Relaxation])
    arguments: dict[tuple[str, AnyEncoding], Spell] = field(default_factory=dict[tuple[str, AnyEncoding], Spell])
    kinds: dict[str, Kinds] = field(default_factory=dict[str, Kinds])

    def run(self) -> CompiledTurn:
        spec = self.spec
        encodings = {node.encoding for node in wire.walk(spec.format.turn) if isinstance(node, wire.Arguments)}
        tools = json.loads(spec.tools)
        callees = tuple(callee for tool in tools if (callee := self.callee(tool, encodings)) is not None)
        if tools and not callees and spec.calls == "only":
            raise InvalidRequest("/tools", "no tool can be called: no arguments match their schemas")
        answer, language, plain = None, None, None
        if (given := json.loads(spec.answer)) is not None:
            schema, strict, pointer, is_plain = given
            if is_plain:
                language, plain = self.plain_answer(schema, pointer)
            answer = self.schema(schema, JSON, pointer, "answer", strict=strict, parameters=False)
        string = self.schema({"type": "string"}, JSON, "", "string", strict=False, parameters=False)
        turn = Turn(
            callees=callees,
            calls=spec.calls,
            parallel=spec.parallel,
            answer=answer.expr if answer else None,
            plain=plain,
            string=string.expr,
            stops=spec.stops,
        )
        rules = constrain(spec.format, turn, self.names, self.rules)
        grammar = Grammar(rules, tuple(dict.fromkeys(self.relaxations)))
        opened = ""
        if spec.opened:
            opened, grammar = _after(grammar, spec.opened)
        spell_answer = (
            None
            if answer is None or language
            else partial(spell_as, answer.type, spelling=_spelling(spec.format, JSON))
        )
        return CompiledTurn(
            spec, grammar, opened, reading_program(spec), self.arguments, self.kinds, spell_answer, language
        )

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

    def callee(self, tool: dict[str, Any], encodings: set[AnyEncoding]) -> Callee | None:
        """A tool with its arguments compiled in every encoding of the format; None for one that nothing can call."""
        name, pointer = tool["name"], f"{tool['pointer']}/function/parameters"
        if not _is_readable(name, self.spec.format):
            raise InvalidRequest(f"{tool['pointer']}/function/name", f"this style cannot write a tool named {name!r}")
        schema: Any = tool["parameters"]
        if schema is None:
            schema = {"type": "object"}
        exprs: dict[AnyEncoding, Expr] = {}
        for encoding in encodings:
            plain = JSON if isinstance(encoding, Tagged) else encoding
            hint = f"{name}-arguments"
            compiled = self.schema(schema, plain, pointer, hint, strict=tool["strict"], parameters=True)
            if compiled.expr == NOTHING:
                if tool["strict"]:
                    raise InvalidRequest(pointer, "no arguments can match this schema")
                self.relaxations.append(Relaxation(pointer, "type", "the tool is never called: nothing matches"))
                return None
            exprs[encoding] = compiled.expr
            spelling = _spelling(self.spec.format, plain)
            self.arguments[name, encoding] = partial(spell_as, compiled.type, spelling=spelling)
            if isinstance(encoding, Tagged):
                exprs[encoding] = self.tagged(name, encoding, compiled, pointer, strict=tool["strict"])
        return Callee(name, exprs.__getitem__)

    def tagged(self, name: str, tags: Tagged, compiled: Compiled, pointer: str, *, strict: bool) -> Expr:
        """Arguments between tags, from the type that their schema was compiled to."""
        made = TaggedArguments(tags, compiled.type, _spelling(self.spec.format, JSON), self.names, f"{name}-arguments")
        if strict and made.relaxations:
            first = made.relaxations[0]
            raise UnsupportedSchema(first.pointer, first.keyword, f"this style has {first.enforced}")
        self.rules.update(made.rules)
        self.relaxations.extend(made.relaxations)
        if made.expr == NOTHING:
            raise InvalidRequest(pointer, "no arguments can match this schema between tags")
        self.arguments[name, tags] = made.spell
        self.kinds[name] = parameter_kinds(compiled)
        return made.expr

    def schema(
        self, schema: Any, encoding: Encoding, pointer: str, hint: str, *, strict: bool, parameters: bool
    ) -> Compiled:
        spelling = _spelling(self.spec.format, encoding)
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
