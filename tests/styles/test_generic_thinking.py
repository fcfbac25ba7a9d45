"""Generic styles before models that think: what a prompt opens is closed before a call, an answer or a text."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, tool

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "an answer": ({"response_format": FORM}, '{"a": 1}'),
    "a call": ({"tools": [tool("f", SCHEMA)], "tool_choice": "required"}, CALL),
    "either": ({"tools": [tool("f", SCHEMA)]}, CALL),
    "a text": ({"tools": [tool("f", SCHEMA)]}, "Hello."),
}


def ending(prompt: str) -> toolgram.ChatTemplate:
    """A template whose prompts end so."""
    return toolgram.ChatTemplate(CHATML.source.removesuffix("{% endif %}") + prompt + "{% endif %}")


@pytest.mark.parametrize("style", ["compact", "short", "long", None])
@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize(
    ("prompt", "begins", "reasoning"),
    [
        ("<think>\n", "Hm.\n</think>\n\n", "Hm."),
        ("<think>", "Hm.</think>\n\n", "Hm."),
        ("<think>\n\n</think>\n", "", None),
        ("<think>\n\n</think>\n\n", "", None),
    ],
)
def test_what_the_prompt_opens_is_closed(
    style: str, what: str, prompt: str, begins: str, reasoning: str | None
) -> None:
    asked, said = ASKED[what]
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], **asked}, ending(prompt), style)
    assert plan.prompt.endswith(prompt)
    text = begins + said
    message = plan.parse(text)
    assert (message.reasoning, len(message.tool_calls)) == (reasoning, int(said == CALL))
    assert message.content == (None if said == CALL else said)
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    assert grammar.accepts(text)
    assert lark_accepts(grammar.to("lark"), text)
    assert ebnf_accepts(grammar.to("ebnf"), text)
    assert gbnf_accepted(grammar.to("gbnf"), {text}) == {text}
    if reasoning is not None and said != "Hello.":
        assert not grammar.accepts(said)


def test_there_is_no_place_for_reasoning_where_the_template_speaks_of_none() -> None:
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], "response_format": FORM}, CHATML, "compact")
    assert plan.constraint is not None
    assert not plan.constraint.grammar.accepts('<think>\nHm.\n</think>\n\n{"a": 1}')
