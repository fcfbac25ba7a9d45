"""The lazy form of a turn's grammar: nothing is constrained up to where a call begins, everything from there on."""

from __future__ import annotations

from dataclasses import replace

from toolgram.errors import GrammarError
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Token, seq
from toolgram.planning.turn import compile_turn
from toolgram.planning.turn_spec import TurnSpec
from toolgram.wire import format as wire
from toolgram.wire.after_words import without_calls_after_words
from toolgram.wire.allowed import allowed, without_reasoning
from toolgram.wire.instructions import Exit, MarkAt, TextAt
from toolgram.wire.program import Program, compile_format


def lazy_grammar(spec: TurnSpec) -> tuple[str, Grammar]:
    """The trigger, a mark that only calls begin with, and the grammar of the output from the trigger on.

    Raises GrammarError where the whole output must be constrained, since a call or an answer in a schema is asked for,
    and where no mark tells that a call begins.
    """
    if spec.calls != "any" or spec.form is not None:
        raise GrammarError("only calls that are neither required nor beside a response schema have a lazy grammar")
    format_ = without_calls_after_words(spec.format)
    turn = without_reasoning(format_.turn)
    format_ = replace(format_, turn=turn)
    grammar = compile_turn(replace(spec, format=format_, calls="only", opened="")).grammar
    named = [node for node in wire.walk(turn) if isinstance(node, wire.NamedMark)]
    if len(spec.tools) > 1 and any(node.anywhere for node in named):
        raise GrammarError("each tool has a mark of its own, so that no one text tells that a call begins")
    of_beginnings = {node.text(tool) for node in named if not node.anywhere for tool in node.tools}
    for mark in _marks_of_calls(turn):
        if mark.text in of_beginnings:  # further on it is text
            continue
        try:
            rest = grammar.after(mark.before + mark.text)
        except GrammarError:  # an alias of the mark, which is read but never written
            continue
        return mark.text, replace(rest, rules={**rest.rules, "root": seq(Token(mark.text), rest.rules["root"])})
    raise GrammarError("no mark of this style tells that a call begins, so that it has no lazy grammar")


def _marks_of_calls(turn: wire.Node) -> list[Exit]:
    """The marks at which a turn of calls begins, and nothing else does; where models forget them, they are free to."""
    calls = allowed(turn, "only")
    if calls is None:
        return []
    program = compile_format(calls)
    if compile_format(turn).first_characters and not _begins_with_mark(program, program.start):
        return []
    others = wire.WireFormat(allowed(turn, "none") or wire.NOTHING_WRITTEN).marks
    return [mark for mark in program.exits(program.start) if mark.text not in others]


def _begins_with_mark(program: Program, at: int) -> bool:
    """Whether a turn that is written begins with a mark, or with one after white space."""
    (first, _), *_ = program.closure(at)
    match program.code[first]:
        case TextAt(text, next_) if text.isspace():
            return _begins_with_mark(program, next_)
        case instruction:
            return isinstance(instruction, MarkAt)
