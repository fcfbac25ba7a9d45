"""Templates in the manner of GLM-4's: a call is a turn with metadata, its result an observation."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from situations import CHATML, WEATHER, tool
from toolgram import ChatTemplate, Message, TemplateError, ToolCall

TURNS = (
    "{% for m in messages if m.role != 'system' %}<|{{ m.role }}|>{{ m.metadata + ' ' if m.metadata }}"
    "{{ '\n' + m.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
LATER = ChatTemplate(
    "{% if tools %}<|system|>\nTools:{% for t in tools %}\n{{ t.function.name }} {{ t.function | tojson }}{% endfor %}"
    "{% endif %}{% for m in messages if m.role == 'system' %}<|system|>\n{{ m.content }}{% endfor %}" + TURNS
)
FIRST = ChatTemplate(
    "{% for m in messages if m.role == 'system' %}<|system|>\n{% for t in m.tools or [] %}## {{ t.function.name }} "
    "{{ t.function | tojson }}{% endfor %}{{ m.content }}{% endfor %}" + TURNS
)
THINKING = ChatTemplate(LATER.source.replace("%}<|assistant|>{%", "%}<|assistant|>\n<think>{%"))
USER = {"role": "user", "content": "Will it rain?"}
TOOLS = [tool("get_weather", WEATHER), tool("add", {"type": "object", "properties": {}})]


def call(name: str, arguments: Any, id_: str) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def result(id_: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def planned(template: ChatTemplate, *messages: dict[str, Any], **fields: Any) -> toolgram.Plan:
    return toolgram.plan({"messages": [USER, *messages], "tools": TOOLS, **fields}, template)


@pytest.mark.parametrize("template", [LATER, FIRST])
def test_calls_results_and_tools_are_in_the_prompt(template: ChatTemplate) -> None:
    calls = [call("get_weather", {"city": "Oslo"}, "1"), call("add", {}, "2")]
    turn = {"role": "assistant", "content": "I look.", "tool_calls": calls}
    prompt = planned(template, turn, result("2", "done"), result("1", "rain")).prompt
    system, _, turns = prompt.partition("<|user|>")
    assert system.startswith("<|system|>\n")
    assert all(each["function"]["name"] in system for each in TOOLS)
    assert turns == (
        "\nWill it rain?<|assistant|>\nI look."
        '<|assistant|>get_weather \n{"city": "Oslo"}<|observation|>\nrain'
        "<|assistant|>add \n{}<|observation|>\ndone<|assistant|>"
    )


@pytest.mark.parametrize("template", [LATER, FIRST])
def test_a_turn_is_a_call_or_an_answer(template: ChatTemplate) -> None:
    plan = planned(template)
    assert plan.style.name == "glm_4"
    grammar = plan.constraint.grammar
    weather = Message(tool_calls=(ToolCall("get_weather", '{"city": "Oslo"}'),))
    for text in ('get_weather\n{"city": "Oslo"}', 'get_weather \n{"city": "Oslo"}', '\nget_weather\n{"city": "Oslo"}'):
        assert grammar.accepts(text)
        assert plan.parse(text) == weather
    for text in ("\nIt rains.", "\nget_weather tells it."):
        assert grammar.accepts(text)
        assert plan.parse(text) == Message(text.strip())
    assert not any(grammar.accepts(before + 'get_weather\n{"town": "Oslo"}') for before in ("", "\n"))
    assert not planned(template, tool_choice="required").constraint.grammar.accepts("\nIt rains.")
    assert plan.write(weather) == 'get_weather\n{"city": "Oslo"}'


def test_an_answer_in_a_schema_stands_where_answers_do() -> None:
    answer = {"type": "json_schema", "json_schema": {"name": "rain", "schema": {"type": "object"}}}
    plan = planned(LATER, response_format=answer)
    assert plan.constraint.grammar.accepts('\n{"rain": true}')
    assert plan.constraint.grammar.accepts('get_weather\n{"city": "Oslo"}')
    assert plan.parse('\n{"rain": true}').content == '{"rain": true}'


def test_a_call_comes_behind_thoughts() -> None:
    plan = planned(THINKING)
    message = plan.parse('Hm.</think>\nget_weather\n{"city": "Oslo"}')
    assert plan.constraint.grammar.accepts('Hm.</think>\nget_weather\n{"city": "Oslo"}')
    assert (message.reasoning, [each.name for each in message.tool_calls]) == ("Hm.", ["get_weather"])


def test_what_it_cannot_express_is_refused() -> None:
    calls = [call("get_weather", {"city": "Oslo"}, "1"), call("add", {}, "2")]
    for turn in ({"content": "", "tool_calls": calls}, {"content": "I look.", "tool_calls": calls[:1]}):
        with pytest.raises(TemplateError, match="one call in a turn, and nothing beside it"):
            LATER.render([USER, {"role": "assistant", **turn}])
    assert not LATER.capabilities.supports_parallel_tool_calls
    assert not LATER.capabilities.supports_content_with_calls


def test_other_templates_are_given_what_they_know() -> None:
    shows = "{% for m in messages %}{{ m | tojson }}{% endfor %}"
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [call("add", {}, "1")]}, result("1", "x")]
    assert ChatTemplate(shows).render(messages, TOOLS) == "".join(json.dumps(message) for message in messages)
    assert "observation" not in CHATML.render([USER, result("1", "x")])
