"""Styles before models that think: what a prompt opens is closed before a call, an answer or a text."""

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
        ("<reasoning>\n", "Hm.\n</reasoning>\n\n", "Hm."),
        ("[PONDER]", "Hm.[/PONDER]", "Hm."),
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


TAGS = [("<reasoning>\n", "\n</reasoning>\n\n"), ("<|thought|>", "<|/thought|>"), ("[PONDER]", "[/PONDER] ")]
CALLS = (
    "{% for c in m.tool_calls or [] %}\n<tool_call>\n"
    """{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}"""
)


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("calls", ["", CALLS])
@pytest.mark.parametrize("tags", TAGS)
def test_the_tags_are_those_that_the_template_shows(tags: tuple[str, str], calls: str, opened: bool) -> None:
    thought = tags[0] + "{{ m.reasoning_content }}" + tags[1]
    template = toolgram.ChatTemplate(
        ("{% if tools %}{{ tools | tojson }}<tool_call><|im_end|>\n{% endif %}" if calls else "")
        + "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        + "{% if m.reasoning_content %}"
        + thought
        + "{% endif %}{{ m.content or '' }}"
        + calls
        + "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
        + (tags[0] if opened else "")
        + "{% endif %}"
    )
    asked = {"messages": [{"role": "user", "content": "Hi."}], "tools": [tool("f", SCHEMA)]}
    plan = toolgram.plan(asked, template)
    assert plan.style.name == ("hermes" if calls else "compact")
    begins = ("" if opened else tags[0]) + "Hm." + tags[1]
    for said in ("Hello.", CALL):
        message = plan.parse(begins + said)
        assert (message.reasoning, message.content) == ("Hm.", None if said == CALL else said)
        assert plan.constraint is not None
        assert plan.constraint.grammar.accepts(begins + said)
    required = toolgram.plan({**asked, "tool_choice": "required"}, template).constraint
    assert required is not None
    assert required.grammar.accepts(begins + CALL)
    assert required.grammar.accepts(CALL) is not opened
    assert not required.grammar.accepts("<think>\nHm.\n</think>\n\n" + CALL)
    plain = toolgram.plan({"messages": asked["messages"]}, template).parse(begins + "Hello.")
    assert (plain.reasoning, plain.content) == ("Hm.", "Hello.")
