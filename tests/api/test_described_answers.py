"""What a format says of its schema is shown to the model with the schema: LangChain and the AI SDK say it there."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import CHATML
from toolgram.api.responses.request import read_responses_request

SCHEMA: Any = {"type": "object", "properties": {"a": {"type": "integer"}}}
HI: Any = [{"role": "user", "content": "Hi."}]


def of_chat(schema: Any, said: Any) -> toolgram.Plan:
    format_ = {"type": "json_schema", "json_schema": {"name": "x", "description": said, "schema": schema}}
    return toolgram.plan({"messages": HI, "response_format": format_}, CHATML)


def of_responses(schema: Any, said: Any) -> toolgram.Plan:
    format_ = {"type": "json_schema", "name": "x", "description": said, "schema": schema}
    return read_responses_request({"input": HI, "text": {"format": format_}}).generation.plan(CHATML)


def grammar(plan: toolgram.Plan) -> str:
    assert plan.constraint is not None
    return str(plan.constraint.grammar.rules)


@pytest.mark.parametrize("read", [of_chat, of_responses])
@pytest.mark.parametrize(
    ("own", "said", "shown"),
    [
        ({}, "Counts.", '"description": "Counts."'),
        ({"description": "Of a."}, "Counts.", '"description": "Counts.\\nOf a."'),
        ({"description": "Counts."}, "Counts.", '"description": "Counts."'),
        ({"description": "Of a."}, None, '"description": "Of a."'),
    ],
)
def test_the_model_is_shown_what_an_answer_is_for(read: Any, own: Any, said: Any, shown: str) -> None:
    plan = read({**SCHEMA, **own}, said)
    assert shown in plan.prompt
    assert plan.prompt.count("description") == 1
    assert grammar(plan) == grammar(of_chat(SCHEMA, None))


@pytest.mark.parametrize("read", [of_chat, of_responses])
def test_a_schema_that_is_no_object_or_has_no_text_there_is_as_it_was(read: Any) -> None:
    anything: Any = True
    assert grammar(read(anything, "Anything.")) == grammar(of_chat(anything, None))
    assert '"description": 1' in read({**SCHEMA, "description": 1}, "Counts.").prompt
