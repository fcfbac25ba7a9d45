"""The turn that a request allows in a style: its grammar, and how values are spelled in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from toolgram.caching import Document, weighed
from toolgram.conversation.answers import GivenGrammar
from toolgram.conversation.custom_tools import INPUT
from toolgram.conversation.message import Message, ToolCall
from toolgram.conversation.patterns import as_given
from toolgram.errors import GrammarError, InvalidRequest, InvalidSchema, Relaxation, TooMuchWork, UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import NOTHING, Expr
from toolgram.grammar.regular.automata import Automaton
from toolgram.grammar.regular.regex_syntax import Malformed, Unsupported, parse
from toolgram.planning.own_grammar import mark_in, rules_of
from toolgram.planning.read_as_calls import beginnings_of_calls, values_read_as_calls
from toolgram.planning.readable_names import is_readable
from toolgram.planning.tool_arguments import Wanted, arguments_of
from toolgram.planning.turn_spec import Answer, CallableTool, TurnSpec, reading_program, weight
from toolgram.schema import Compiled, compile_schema, compile_type, types
from toolgram.schema.reading.normalize import unmatched
from toolgram.schema.types import NEVER
from toolgram.schema.types.complement import subtract
from toolgram.schema.types.intersect import intersect
from toolgram.schema.writing.json_style import RuleNames
from toolgram.schema.writing.plain_text import ends_in_space, plain_language, plain_rules
from toolgram.schema.writing.values import spell_as
from toolgram.wire.allowed import closing_content, ways_to_reason
from toolgram.wire.encodings import JSON, AnyEncoding
from toolgram.wire.encodings.base import Spell, ToolArguments
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.grammar import Callee, Turn, constrain
from toolgram.wire.program import Program, compile_format
from toolgram.wire.writer import FRACTION_DIGITS, INTEGER_DIGITS, spelling_of, write
from toolgram.work import MAX_IN_ALL, MAX_WORK, give_way, in_all, limited

_STRING = Document.of({"type": "string"})
_OBJECTS = types.Object((), types.ANY)
_GAPS, _MOST_MARKS = ("", "\n", "\n\n"), 5
_WORK_OF_BLAME = MAX_WORK // 50  # steps


@dataclass(frozen=True, eq=False)
class CompiledTurn:
    """A turn that a request allows: its grammar, its reader's program, and how its values are spelled.

    `opened` is the part that the prompt holds already, spaced as the style does; `answers` spell the value of an answer
    in each encoding. With `plain_ends` the answer is plain text, and white space after it is none of it.
    """

    spec: TurnSpec
    grammar: Grammar
    opened: str
    program: Program
    arguments: Mapping[tuple[str, AnyEncoding], Spell]
    expected: Mapping[str, Expected]
    answers: Mapping[AnyEncoding, Spell]
    plain: Automaton | None = None
    plain_ends: bool = False

    @property
    def answer(self) -> Spell | None:
        """How the value of an answer is spelled as JSON on one line; None where no schema asks for one."""
        return self.answers.get(JSON)

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
        whole = self.spec.format
        closing = replace(whole, turn=closing_content(whole.turn, self.opened))
        for format_ in (whole, *ways_to_reason(whole), closing):
            text = write(format_, message, self._write_arguments, answer, self.spec.stops, self.expected)
            if text is not None and (rest := _without(text, self.opened)) is not None:
                return rest
        return None

    def _permits(self, message: Message) -> bool:
        """Whether the request allows so many calls, and text beside them, and the format their ids."""
        calls, spec = len(message.tool_calls), self.spec
        if not calls:
            return spec.calls != "only"
        form = spec.format.call_id
        for call in message.tool_calls:
            if call.id is not None and not (form and form.admits(call.name, call.id)):
                return False
        silent = spec.calls == "only" or self.answer is not None
        return spec.calls != "none" and (spec.parallel or calls == 1) and not (silent and message.content)

    def _write_arguments(self, call: ToolCall, encoding: AnyEncoding) -> str | None:
        spell_arguments = self.arguments.get((call.name, encoding))
        return _spelled(call.arguments, spell_arguments) if spell_arguments else None

    def _write_answer(self, text: str, encoding: AnyEncoding) -> str | None:
        spell_answer = self.answers.get(encoding)
        return _spelled(text, spell_answer) if spell_answer else None


def _spelled(text: str, spell_value: Spell) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return spell_value(value)


@weighed(weight)
def compile_turn(spec: TurnSpec) -> CompiledTurn:
    """The grammar of a turn. Raises InvalidSchema, and for what is `strict` UnsupportedSchema."""
    with in_all(MAX_IN_ALL):
        return _Compilation(spec).run()


def _marks_of(opened: str) -> list[str]:
    """An opened part cut at its marks, without the white space around them."""
    return [part for part in re.split(r"(?<=[>\]])\s*|\s*(?=[<\[])", opened.strip()) if part]


def _without(text: str, opened: str) -> str | None:
    """What a text says after an opened part, which may be spaced in another way; None where it begins otherwise."""
    if text.startswith(opened):
        return text[len(opened) :]
    found = re.match(r"\s*".join(map(re.escape, _marks_of(opened))), text)
    return None if found is None else text[found.end() :]


def _after(grammar: Grammar, opened: str) -> tuple[str, Grammar]:
    """The opened part as the style spaces it, and what may follow; templates space their marks as they like."""
    marks = ["", *_marks_of(opened)]
    spaced = ("".join(map("".join, zip(marks, gaps, strict=True))) for gaps in product(_GAPS, repeat=len(marks)))
    for text in (opened, *(spaced if len(marks) <= _MOST_MARKS else ())):
        try:
            return text, grammar.after(text)
        except GrammarError:
            continue
    raise InvalidRequest("/messages", f"the prompt ends with {opened!r}, after which this style allows nothing")


@dataclass
class _Compilation:
    spec: TurnSpec
    names: RuleNames = field(default_factory=lambda: RuleNames("root"))
    rules: dict[str, Expr] = field(default_factory=dict[str, Expr])
    relaxations: list[Relaxation] = field(default_factory=list[Relaxation])
    arguments: dict[tuple[str, AnyEncoding], Spell] = field(default_factory=dict[tuple[str, AnyEncoding], Spell])
    expected: dict[str, Expected] = field(default_factory=dict[str, Expected])
    answers: dict[AnyEncoding, Compiled] = field(default_factory=dict[AnyEncoding, Compiled])
    uncallable: dict[str, str] = field(default_factory=dict[str, str])

    def run(self) -> CompiledTurn:
        spec = self.spec
        callees = tuple(callee for tool in spec.tools if (callee := self.callee_of(tool)) is not None)
        if spec.tools and not callees and spec.calls == "only":
            name, reason = next(iter(self.uncallable.items()))
            raise InvalidRequest("/tools", f"no tool can be called; as to {name!r}: {reason}")
        language, plain = None, None
        if spec.grammar is not None:
            plain = self.given_grammar(spec.grammar)
        if (given := spec.answer) is not None:
            if given.plain:
                language, plain = self.plain_answer(given, beside_calls=bool(callees))
            answer = self.schema(given.schema, given.pointer, "answer", strict=given.strict)
            if answer.type.root == NEVER:
                raise InvalidRequest(given.pointer, f"no answer can match this schema{_blamed(given.schema)}")
            if callees and not given.plain:
                answer = self.but_calls(answer, given)
            self.answers[JSON] = answer
            for encoding in () if given.plain else spec.format.answers:
                if encoding != JSON:
                    self.answers[encoding] = self.objects_in(encoding, answer, given)
        plain_ends = language is not None and not ends_in_space(language)
        string = self.schema(_STRING, "", "string", strict=False)
        turn = Turn(
            callees=callees,
            calls=spec.calls,
            parallel=spec.parallel,
            answer=None if spec.form is None else self.answer_in,
            plain=plain,
            plain_ends=plain_ends,
            string=string.expr,
            stops=spec.stops,
            tail=spec.tail,
            opened=spec.opened,
        )
        rules = constrain(spec.format, turn, self.names, self.rules)
        grammar = Grammar(rules, tuple(dict.fromkeys(self.relaxations)))
        opened = ""
        if spec.opened:
            opened, grammar = _after(grammar, spec.opened)
        answers = {} if language else {encoding: self.spelling_answer(encoding) for encoding in self.answers}
        return CompiledTurn(
            spec,
            grammar,
            opened,
            reading_program(spec),
            self.arguments,
            self.expected,
            answers,
            language,
            plain_ends,
        )

    def answer_in(self, encoding: AnyEncoding) -> Expr:
        """The answer in an encoding of the format."""
        if self.spec.grammar is not None:
            raise InvalidRequest(
                self.spec.grammar.pointer, "this style has its answers in JSON, and no other text in it"
            )
        return self.answers[encoding].expr

    def given_grammar(self, given: GivenGrammar) -> Expr:
        """An answer that keeps to the request's own grammar."""
        root, rules = rules_of(given, self.names, "answer")
        marks = (*reading_program(self.spec).markers("content"), *self.spec.stops)
        if (mark := mark_in(rules, marks)) is not None:
            raise InvalidRequest(given.pointer, f"writes {mark!r}, which is a mark of the model's format")
        self.keep(rules)
        return root

    def but_calls(self, answer: Compiled, given: Answer) -> Compiled:
        """The answer without the values that read as calls, in a format whose calls may be bare JSON objects."""
        canonical, why = answer.type, "an answer that reads as a call is taken for one"
        calls = values_read_as_calls(self.spec.format, self.expected)
        if calls == NEVER:
            return answer
        try:
            with limited(MAX_WORK):
                kind = subtract(canonical.root, calls, canonical.definitions.__getitem__)
            if kind == canonical.root:
                return answer
            spelling = spelling_of(self.spec.format, JSON)
            made = compile_type(replace(canonical, root=kind), spelling=spelling, names=self.names, root_name="answer")
        except types.TooLarge as error:
            if given.strict:
                raise UnsupportedSchema(given.pointer, "type", why) from error
            self.relaxations.append(Relaxation(given.pointer, "type", why))
            return answer
        self.keep(made.rules)
        return replace(made, type=replace(canonical, root=kind))

    def objects_in(self, encoding: AnyEncoding, answer: Compiled, given: Answer) -> Compiled:
        """The answers that are objects, in another encoding than JSON on one line, which has all of them."""
        canonical, spelling = answer.type, spelling_of(self.spec.format, encoding)
        compiled = partial(compile_type, spelling=spelling, names=self.names, root_name="answer", exact=given.strict)
        try:
            with limited(MAX_WORK):
                kind = intersect(canonical.root, _OBJECTS, canonical.definitions.__getitem__)
            made = compiled(replace(canonical, root=kind))
        except types.TooLarge:  # they are written on one line
            made = compiled(replace(canonical, root=NEVER))
        self.keep(made.rules)
        return made

    def spelling_answer(self, encoding: AnyEncoding) -> Spell:
        """How a value of the answer is spelled in an encoding."""
        return partial(spell_as, self.answers[encoding].type, spelling=spelling_of(self.spec.format, encoding))

    def plain_answer(self, given: Answer, *, beside_calls: bool) -> tuple[Automaton, Expr]:
        """An answer that is a text itself: it holds none of the format's marks, and begins as no call does."""
        marks = compile_format(self.spec.format.turn).markers("content")
        begun = beginnings_of_calls(self.spec.format) if beside_calls else ()
        try:
            language = plain_language(given.schema.value, (*marks, *self.spec.stops), begun)
        except ValueError as error:
            raise InvalidRequest(given.pointer, _fault(given.schema.value, str(error))) from error
        if language.is_empty:
            raise InvalidRequest(given.pointer, "no text matches, or only such as holds a mark of the model's format")
        expr, rules = plain_rules(language, self.names)
        self.keep(rules)
        return language, expr

    def callee_of(self, tool: CallableTool) -> Callee | None:
        """As `callee`; what is wrong with the schema of a custom tool is wrong with the format that it has."""
        try:
            give_way()
            return self.callee(tool)
        except TooMuchWork as error:
            raise InvalidRequest(tool.pointer, f"with what comes before it, {error}") from error
        except (InvalidSchema, UnsupportedSchema) as error:
            if not tool.custom:
                raise
            schema = tool.parameters.value["properties"][INPUT]
            raise InvalidRequest(tool.schema_pointer, _fault(schema, error.reason)) from error

    def callee(self, tool: CallableTool) -> Callee | None:
        """A tool with its arguments compiled in every encoding of the format; None for one that nothing can call."""
        name, pointer = tool.name, tool.schema_pointer
        if not is_readable(name, self.spec.format):
            raise InvalidRequest(f"{tool.pointer}/name", f"this style cannot write a tool named {name!r}")
        exprs: dict[AnyEncoding, Expr] = {}
        for encoding in self.spec.format.encodings:
            spelling = spelling_of(self.spec.format, encoding)
            wanted = Wanted(tool.parameters, tool.strict, encoding, spelling, f"{name}-arguments")
            made = arguments_of(wanted, pointer, self.names, self.rules)
            self.relaxations.extend(made.relaxations)
            if made.encoded is None:
                return self.never_called(tool, f"no arguments can match this schema{_blamed(tool.parameters)}")
            self.encoded(made.encoded, pointer, strict=tool.strict)
            if made.encoded.expr == NOTHING:
                told = made.encoded.relaxations
                blamed = f", because of {told[0].pointer}" if told else ""
                reason = f"no arguments that match this schema can be written in this style{blamed}"
                return self.never_called(tool, reason)
            exprs[encoding] = made.encoded.expr
            self.arguments[name, encoding] = made.encoded.spell
            self.expected[name] = Expected(made.type, made.type.root)
        return Callee(name, exprs.__getitem__)

    def never_called(self, tool: CallableTool, reason: str) -> None:
        """Notes that nothing can call a tool; one that is strict is refused."""
        pointer = tool.schema_pointer
        if tool.strict:
            raise InvalidRequest(pointer, f"{reason}: leave the tool out, or change its required parameters")
        self.uncallable[tool.name] = reason
        self.relaxations.append(Relaxation(pointer, "type", f"the tool is never called: {reason}", "stricter"))

    def encoded(self, made: ToolArguments, pointer: str, *, strict: bool) -> None:
        """Adds arguments as an encoding has them."""
        if strict and made.relaxations:
            first = made.relaxations[0]
            raise UnsupportedSchema(first.pointer, first.keyword, f"this style has {first.enforced}")
        self.keep(made.rules)
        self.note_cap(pointer, capped=made.capped)
        self.relaxations.extend(made.relaxations)

    def schema(self, schema: Document, pointer: str, hint: str, *, strict: bool) -> Compiled:
        """A schema of JSON values that are no arguments."""
        compiled = compile_schema(
            schema.value,
            pointer=pointer,
            mode="exact" if strict else "relaxed",
            closed=True,
            spelling=spelling_of(self.spec.format, JSON),
            names=self.names,
            root_name=hint,
        )
        return self.added(compiled, pointer)

    def keep(self, rules: Mapping[str, Expr]) -> None:
        """Adds rules; of one that is there already, since it is the same in several parts, the first body stays."""
        for name, body in rules.items():
            self.rules.setdefault(name, body)

    def added(self, compiled: Compiled, pointer: str) -> Compiled:
        """Adds the rules of a schema, and what they do not enforce."""
        self.keep(compiled.rules)
        self.relaxations.extend(compiled.relaxations)
        self.note_cap(pointer, capped=compiled.capped)
        return compiled

    def note_cap(self, pointer: str, *, capped: bool) -> None:
        """Notes that numbers without a bound were given one."""
        if capped:
            digits = f"numbers of at most {INTEGER_DIGITS} digits before the point and {FRACTION_DIGITS} after it"
            self.relaxations.append(Relaxation(pointer, "type", digits, "stricter"))


def _blamed(schema: Document) -> str:
    """Which part of a schema that nothing matches is to blame, for a message, as far as it is soon found; "" where it
    is the whole."""
    try:
        with limited(_WORK_OF_BLAME):
            part = unmatched(schema.value, closed=True)
    except (InvalidSchema, types.TooLarge):
        return ""
    return f": nothing matches {part}" if part else ""


def _fault(schema: Mapping[str, Any], found: str) -> str:
    """What is wrong with a text that has to match a pattern as a whole: `found`, or at its place in what was given."""
    try:
        parse(as_given(schema.get("pattern", "")))
    except Malformed as error:
        return str(error)
    except Unsupported:
        pass
    return found
