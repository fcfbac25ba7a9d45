"""What a text must keep to that follows a raw prompt: the form that a body states, in no model's format."""

from __future__ import annotations

from dataclasses import replace

from toolgram.caching import Document
from toolgram.conversation.answers import Form, GivenGrammar, ResponseFormat
from toolgram.grammar.constraint import Constraint
from toolgram.grammar.grammar import Grammar
from toolgram.planning.turn import compile_turn
from toolgram.planning.turn_spec import Answer, TurnSpec
from toolgram.schema.writing.json_style import RuleNames
from toolgram.schema.writing.plain_text import plain_rules
from toolgram.styles.own_calls import ANSWERS
from toolgram.wire.format import WireFormat


def constraint_of(form: Form) -> Constraint:
    """The constraint of a form: all of the text matches it, but that two line breaks may stand behind JSON.

    Raises InvalidRequest, InvalidSchema and, where the form is strict, UnsupportedSchema.
    """
    compiled = compile_turn(_spec(form))
    if compiled.plain is None:
        return Constraint(compiled.grammar)
    root, rules = plain_rules(compiled.plain, RuleNames("root"))
    return Constraint(Grammar({"root": root, **rules}, compiled.relaxations))


def _spec(form: Form) -> TurnSpec:
    spec = TurnSpec(WireFormat(ANSWERS), (), "none", parallel=True, answer=None, stops=())
    match form:
        case GivenGrammar():
            return replace(spec, grammar=form)
        case ResponseFormat(schema, strict, pointer, plain):
            return replace(spec, answer=Answer(Document.of(schema), strict, pointer, plain))
