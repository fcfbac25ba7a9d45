"""Tools that a system message brings in the course of a chat, as in Kimi's API."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import CHATML
from toolgram.api.generation import Generation
from toolgram.api.ollama.request import read_chat_request
from toolgram.conversation.request import parse_request

HI = {"role": "user", "content": "Hi."}
NAMED = {"type": "function", "function": {"name": "g"}}


def tool(name: str, about: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": about, "parameters": {"type": "object"}}}


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messages": [HI, *messages], **fields}


def test_they_can_be_called_and_are_shown() -> None:
    body = chat({"role": "system", "tools": [tool("g", "Gets it.")]}, tools=[tool("f")], tool_choice=NAMED)
    plan = toolgram.plan(body, CHATML)
    assert "Gets it." in plan.prompt
    assert [tool.name for tool in plan.request.callable_tools] == ["g"]
    assert [message["role"] for message in plan.request.messages] == ["user"]  # it says nothing else
    assert plan.constraint is not None
    assert '"name": "g"' in plan.constraint.grammar.sample(1)


def test_where_no_others_are_offered() -> None:
    plan = toolgram.plan(chat({"role": "developer", "content": "Go on.", "tools": [tool("g")]}), CHATML)
    assert [(tool.name, tool.pointer) for tool in plan.request.tools] == [("g", "/messages/1/tools/0/function")]
    assert "Go on." in plan.prompt
    assert plan.request.messages[1] == {"role": "developer", "content": "Go on."}


def test_of_one_name_the_last_one_holds() -> None:
    again = ({"role": "system", "tools": [tool("f", str(number))]} for number in (2, 3))
    request = parse_request(chat(*again, tools=[tool("f", "1"), tool("g")]))
    assert [(tool.name, tool.description) for tool in request.tools] == [("f", "3"), ("g", "")]


DECLARES = (
    "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}{% for message in messages %}<{{ message.role }}>"
    "{% if message.role == 'system' and message.tools %}{{ message.tools | tojson }}{% else %}{{ message.content }}"
    "{% endif %}{% for call in message.tool_calls or [] %}<call>{{ call.function | tojson }}</call>{% endfor %}"
    "</{{ message.role }}>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""A template that declares them where they stand, as Kimi K3's does."""


@pytest.mark.parametrize("others", [[], [tool("f")]])
def test_a_template_may_declare_them_where_they_stand(others: list[dict[str, Any]]) -> None:
    template = toolgram.ChatTemplate(DECLARES, "", "</assistant>")
    answer = {"role": "assistant", "content": "Yo."}
    before = toolgram.plan(chat(answer, tools=others), template).prompt.removesuffix("<assistant>")
    brings = {"role": "developer", "content": "Go on.", "tools": [tool("g")]}
    plan = toolgram.plan(chat(answer, brings, tools=others, tool_choice=NAMED), template)
    after = plan.prompt.removeprefix(before)
    assert after.startswith(
        '<system>[{"type": "function", "function": {"name": "g"'
    )  # the prompt before stays as it was
    assert after.endswith("</system><system>Go on.</system><assistant>")
    assert "g" not in before
    assert plan.constraint is not None
    assert '"name": "g"' in plan.constraint.grammar.sample(1)
    first = toolgram.plan({"messages": [brings, HI], "tools": others}, template)
    assert first.prompt.index('"name": "g"') < first.prompt.index(
        "</tools>"
    )  # before the conversation, with the others


def test_what_is_wrong_has_its_place() -> None:
    last = {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}
    with pytest.raises(toolgram.InvalidRequest) as raised:
        toolgram.plan(chat({"role": "system", "tools": [tool("g")]}, last), CHATML)
    assert raised.value.pointer == "/messages/2/content/0"
    for wrong, pointer in (
        ([{}], "/messages/1/tools/0"),
        ([tool("g"), tool("g")], "/messages/1/tools/1/function/name"),
    ):
        with pytest.raises(toolgram.InvalidRequest) as raised:
            parse_request(chat({"role": "system", "tools": wrong}))
        assert raised.value.pointer.startswith(pointer)
    with pytest.raises(toolgram.InvalidRequest, match="must hold more than tools"):
        toolgram.plan({"messages": [{"role": "system", "tools": [tool("g")]}]}, CHATML)


def test_of_others_the_field_is_the_templates() -> None:
    messages = chat({"role": "assistant", "content": "Yo.", "tools": ["g"]})
    request = parse_request(messages)
    assert request.tools == ()
    assert list(request.messages) == messages["messages"]


def test_by_ollamas_api_too() -> None:
    image = {"role": "user", "content": "What is this?", "images": ["aGk="]}
    body = {"messages": [HI, {"role": "system", "tools": [tool("g", "Gets it.")]}], "tools": [tool("f")]}
    read = read_chat_request(body)
    assert isinstance(read, Generation)
    plan = read.plan(CHATML)
    assert [tool.name for tool in plan.request.tools] == ["f", "g"]
    assert "Gets it." in plan.prompt
    read = read_chat_request({**body, "messages": [*body["messages"], image]})
    assert isinstance(read, Generation)
    with pytest.raises(toolgram.InvalidRequest) as raised:
        read.plan(CHATML)
    assert raised.value.pointer == "/messages/2/images/0"
