"""Random schemas over all keywords: a grammar admits what jsonschema-rs finds valid, or the schema is refused."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jsonschema_rs
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from random_schemas import SCHEMAS, near
from toolgram.errors import GrammarError, UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.schema import Compiled, RuleNames, Spelling, compile_schema
from toolgram.schema.writing.values import spell_as

SPELLING = Spelling()
SHORT = Spelling(integer_digits=7, fraction_digits=4)  # a double holds such numbers
_MOST_ORDERS = 24

thorough = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def compiled(schema: Any, spelling: Spelling = SPELLING) -> tuple[Compiled, Grammar, str]:
    """In exact mode, or where that is refused in relaxed mode."""
    for mode in ("exact", "relaxed"):
        try:
            made = compile_schema(
                schema,
                pointer="",
                mode=mode,
                closed=False,
                spelling=spelling,
                names=RuleNames("root"),
                root_name="value",
            )
        except UnsupportedSchema as error:
            assert mode == "exact"
            event(f"refused: {error.keyword}")
            continue
        event(mode)
        return made, Grammar({"root": made.expr, **made.rules}), mode
    raise AssertionError


def texts_of(value: Any) -> list[str]:
    """The value in our spelling, the keys of the outermost object in every order."""
    if not isinstance(value, dict):
        return [json.dumps(value, ensure_ascii=False)]
    orders = itertools.islice(itertools.permutations(value.items()), _MOST_ORDERS)
    return [json.dumps(dict(order), ensure_ascii=False) for order in orders]


@thorough
@given(st.data())
def test_a_value_is_a_sentence_if_and_only_if_it_is_valid(data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    made, grammar, mode = compiled(schema)
    judge = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    for _ in range(4):
        value = data.draw(near(schema))
        valid = judge.is_valid(value)
        text = spell_as(made.type, value, SPELLING)
        if valid:
            assert text is not None, value
            assert json.loads(text) == value
            assert grammar.accepts(text), text
        elif mode == "exact":
            assert text is None, text
            for other in texts_of(value):
                assert not grammar.accepts(other), other


@thorough
@given(SCHEMAS, st.integers(0, 1000))
def test_sentences_are_json_and_valid(schema: Any, seed: int) -> None:
    made, grammar, mode = compiled(schema, SHORT)
    try:
        texts = [grammar.sample(seed + step) for step in range(4)]
    except GrammarError:
        event("no sentence")
        return
    judge = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    for text in texts:
        value = json.loads(text)
        assert mode == "relaxed" or judge.is_valid(value), text
        assert spell_as(made.type, value, SHORT) is not None, text
