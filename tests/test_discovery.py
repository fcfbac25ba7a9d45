"""Styles that are found from a template alone: those of made-up families, and none where there is none to be found."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from typing import Any

import pytest
from markupsafe import escape

import toolgram
from made_up import (
    CARELESS,
    IN_THE_MANNER_OF,
    IRREGULAR,
    JSON,
    MADE_UP,
    NAME,
    OBJECT,
    THOUGHT,
    Family,
    discovered,
    each,
)
from situations import CHATML, WEATHER, tool
from toolgram import Message, ToolCall
from toolgram.conversation.events import ToolCallEnd
from toolgram.planning.plan import same_message
from toolgram.styles import registry
from toolgram.styles.base import ToolStyle
from toolgram.styles.detect import reasons
from toolgram.styles.discovery import discover, proof
from toolgram.styles.discovery.as_python import python_source
from toolgram.styles.native import NATIVE
from toolgram.wire.format import Alt, Call, CallId, holds, walk

FAMILIES = MADE_UP | IN_THE_MANNER_OF
ARGUMENTS: dict[str, Any] = {"city": "Oslo <b>", "days": 3}
NESTED = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"type": ["string", "null"]}},
        "point": {"type": "object", "properties": {"x": {"type": "number"}}},
        "on": {"type": "boolean"},
    },
}
TOOLS = [tool("get_weather", WEATHER), tool("set_all", NESTED), tool("now", None)]


def planned(family: Family, **more: Any) -> toolgram.Plan:
    """The plan for a template in the style that is found from it, whichever of ours would fit too."""
    request = {"messages": [{"role": "user", "content": "Will it rain?"}], "tools": TOOLS, **more}
    return toolgram.plan(request, family.template, discover(family.template).style)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_style_of_an_unknown_family_is_found(name: str) -> None:
    found = discover(FAMILIES[name].template)
    assert found.style is not None, found.why
    assert len(found.readings) >= 7
    assert not [reading for reading in found.readings if reading.wrong]


@pytest.mark.parametrize("name", FAMILIES)
def test_what_the_template_writes_is_read_and_admitted(name: str) -> None:
    family = FAMILIES[name]
    plan = planned(family, tool_choice="required")
    given = plan.write(Message(tool_calls=(_call(plan.style, "get_weather", ARGUMENTS),)))
    assert given is not None
    function = {"name": "get_weather", "arguments": ARGUMENTS}
    turn = {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefgh1", "function": function}]}
    result = {"role": "tool", "tool_call_id": "abcdefgh1", "content": "Rain."}
    messages = [{"role": "user", "content": "?"}, turn, result]
    rendered = family.template.render(messages, TOOLS, add_generation_prompt=False)
    calls = given.rpartition("</think>")[2]
    assert "".join(calls.split()) in "".join(rendered.split())
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(given)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_turn_of_all_parts_is_written_and_read_back(name: str) -> None:
    plan = planned(FAMILIES[name])
    calls = (
        _call(plan.style, "get_weather", ARGUMENTS),
        _call(plan.style, "set_all", {"items": ["a", None], "point": {"x": 1.5}, "on": True}),
        _call(plan.style, "now", {}),
    )
    several = "Many(" in repr(plan.style.wire) or "Array(" in repr(plan.style.wire)
    thought = "Rain?" if reasons(FAMILIES[name].template, plan.style) else None
    bare = any(isinstance(node, Alt) and holds(node, Call) for node in walk(plan.style.wire.turn))
    turn = Message(None if bare else "Let me see.", thought, calls if several else calls[1:2])
    text = plan.write(turn)
    assert text is not None
    assert same_message(plan.parse(text), turn)
    reader = plan.reader()
    pieces = [event for char in text for event in reader.feed(char)] + reader.finish()
    assert Message.from_events(pieces) == plan.parse(text)


def _call(style: ToolStyle, name: str, arguments: dict[str, Any]) -> ToolCall:
    """A call, with an id if the style writes ids."""
    ids = [node for node in walk(style.wire.turn) if isinstance(node, CallId)]
    return ToolCall(name, json.dumps(arguments), "abcdefgh1"[-ids[0].length :] if ids else None)


@pytest.mark.parametrize("name", CARELESS)
def test_a_template_that_is_careless_shows_how_a_model_should_write(name: str) -> None:
    found = discover(CARELESS[name].template)
    assert found.style is not None, found.why
    assert len(found.readings) >= 7
    plan = planned(CARELESS[name], tool_choice="required")
    turn = Message(tool_calls=(ToolCall("get_weather", json.dumps(ARGUMENTS)),))
    text = plan.write(turn)
    assert text is not None
    assert same_message(plan.parse(text), turn)


@pytest.mark.parametrize(
    ("family", "text"),
    [
        (Family(each(f"<call>\n<do={NAME}>{JSON}</do>\n</call>")), "<do=now>{}</do>\n</call>"),
        (
            Family("<|calls|>" + each(f"<|call|>{NAME}{JSON}<|end|>") + "<|/calls|>", end="<|eot|>"),
            "<|call|>now{}<|end|><|/calls|>",
        ),
        (Family(each(f"<call>{OBJECT}</call>")), '<|assistant|><call>{"name": "now", "arguments": {}}</call>'),
        (Family(each(f"<call>{OBJECT}</call>")), '<think>Now?</think><call>{"name": "now", "arguments": {}}</call>'),
    ],
)
def test_slips_of_models_are_read(family: Family, text: str) -> None:
    plan = planned(family)
    message = plan.parse(text)
    assert message.content is None
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("now", "{}")]


NOW, OSLO = ("now", {}), ("get_weather", {"city": "Oslo"})


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ("I look <b>now</b>.\n<get_weather>\n<city>Oslo</city>\n</get_weather>", "I look <b>now</b>.\n", [OSLO]),
        ("<get_weather> <city>Oslo</city></get_weather> and <now></now>", " and ", [OSLO, NOW]),
        ("<get_weather>\n<city>Oslo</city>\n</weather>\n<now>\n</now>\n", None, [OSLO, NOW]),
        ("<get>\n<city>Oslo</city>\n</get>", "<get>\n<city>Oslo</city>\n</get>", []),
        ("<get_weather", "<get_weather", []),
        ("<now>\n</later>\nIt is noon.", "\nIt is noon.", [NOW]),
        ("<now>\n</now>\nIt is noon.", "\nIt is noon.", [NOW]),
        ("<get_weather><town>Oslo</town></get_weather>", None, [("get_weather", {"town": "Oslo"})]),
    ],
)
def test_a_tag_that_is_a_name_calls_a_tool_that_is_offered(text: str, content: str | None, calls: list[Any]) -> None:
    plan = planned(MADE_UP["names and keys as tags"])
    message = plan.parse(text)
    assert (message.content, [(call.name, json.loads(call.arguments)) for call in message.tool_calls]) == (
        content,
        calls,
    )
    reader = plan.reader()
    assert Message.from_events([event for char in text for event in reader.feed(char)] + reader.finish()) == message


def test_a_name_that_closes_its_call_ends_it_at_once() -> None:
    reader = planned(MADE_UP["names and keys as tags"]).reader()
    reader.feed("<now>\n</now")
    assert reader.feed(">") == [ToolCallEnd(0, None)]


def test_a_tool_that_is_named_as_a_mark_of_the_template_is_refused() -> None:
    family = replace(MADE_UP["names and keys as tags"], thought=THOUGHT)
    request = {"messages": [{"role": "user", "content": "?"}], "tools": [tool("think", WEATHER)]}
    with pytest.raises(toolgram.InvalidRequest, match="this style cannot write a tool named 'think'"):
        toolgram.plan(request, family.template)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("quoted values between tags", "<call>get_weather\n<key>city</key><value>Oslo</value>\n</call>"),
        ("quoted values, keys as tags", "<call get_weather><city> Oslo</city></call>"),
        ("quoted values in attributes", '<call tool="get_weather"><arg name="city" value=Oslo/></call>'),
    ],
)
def test_a_string_whose_quotes_were_forgotten_is_read(name: str, text: str) -> None:
    (call,) = planned(MADE_UP[name]).parse(text).tool_calls
    assert json.loads(call.arguments)["city"].strip() == "Oslo"


@pytest.mark.parametrize("text", ["<|muse|><|muse|>Rain?<|/muse|>It will.", "<|muse|>Rain?<|/muse|>It will.<|/muse|>"])
def test_control_tokens_of_thoughts_that_are_written_twice_are_no_text(text: str) -> None:
    thought = "{% if m.reasoning_content %}<|muse|>{{ m.reasoning_content }}<|/muse|>{% endif %}"
    plan = planned(Family(each(f"<call>{OBJECT}</call>"), thought=thought))
    assert plan.parse(text) == Message("It will.", "Rain?")


@pytest.mark.parametrize("name", IRREGULAR)
def test_a_template_that_writes_calls_irregularly_gets_a_style_of_ours(name: str) -> None:
    template = IRREGULAR[name].template
    found = discover(template)
    assert found.style is None
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], "tools": TOOLS}, template)
    assert plan.style.is_generic
    assert found.why in plan.why
    assert "get_weather" in plan.prompt


def test_a_template_without_calls_says_so() -> None:
    assert discover(CHATML).why == "the template writes no tool calls"


@pytest.mark.parametrize(
    ("family", "call", "bare", "ends"),
    [
        ("escaped strings, keys as tags", "<@say><text>{}</text></@say>", "a > 'b' \"c\"", "a < b"),
        ("escaped values in attributes", '<use tool="say"><arg name="text" value="{}"/></use>', "a < b > 'c'", 'a "b"'),
    ],
)
def test_what_ends_no_value_may_stand_as_it_is(family: str, call: str, bare: str, ends: str) -> None:
    """A model that was not taught the entities dropped the signs, and so wrote another text."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    tool = {"type": "function", "function": {"name": "say", "parameters": schema}}
    body = {"messages": [{"role": "user", "content": "?"}], "tools": [tool], "tool_choice": "required"}
    plan = toolgram.plan(body, MADE_UP[family].template)
    assert plan.constraint is not None
    for text in (bare, str(escape(bare)), str(escape(ends))):
        assert plan.constraint.grammar.accepts(call.format(text)), text
        (read,) = plan.parse(call.format(text)).tool_calls
        assert json.loads(read.arguments) == {"text": html.unescape(text)}
    assert not plan.constraint.grammar.accepts(call.format(ends))


def test_a_name_that_stands_behind_the_end_of_the_turn_is_none_of_the_call() -> None:
    """Where the ids of calls are shown, and names with their results alone, nobody could write a call."""
    template = toolgram.ChatTemplate(
        "{% for m in messages %}<|{{ m.name or m.role }}|>\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<|call|>{{ c.id }}<|with|>{{ c.function.arguments | tojson }}<|/call|>{% endfor %}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    )
    assert template.capabilities.supports_tool_calls
    assert discover(template).style is None


def test_other_json_between_the_tags_of_a_family_is_found() -> None:
    """A fine-tune whose template prints the whole call learned that, though a family's reader takes it too."""
    template = toolgram.ChatTemplate(
        "{{ tools | tojson if tools else '' }}{% for m in messages %}<|{{ m.role }}|>\n{{ m.content or '' }}"
        "{% for call in m.tool_calls or [] %}<tool_call>\n{{ call | tojson }}\n</tool_call>{% endfor %}<|end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    )
    body = {"messages": [{"role": "user", "content": "?"}], "tools": [tool("get_weather", WEATHER)]}
    plan = toolgram.plan(body, template)
    assert plan.style.name == "discovered"
    function = '"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}'
    text = f'<tool_call>\n{{"id": "abcdefghi", "type": "function", {function}}}\n</tool_call>'
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)
    assert [(call.name, call.arguments) for call in plan.parse(text).tool_calls] == [
        ("get_weather", '{"city": "Oslo"}')
    ]


def test_a_family_that_has_tags_of_its_own_around_answers_is_not_that_whose_calls_it_has() -> None:
    family = replace(
        IN_THE_MANNER_OF["Ernie"],
        thought="<think>\n{{ m.reasoning_content or '' }}\n</think>\n\n",
        prompt="<|im_start|>assistant\n<think>\n",
    )
    body = {"messages": [{"role": "user", "content": "Hi."}], "tools": TOOLS}
    plan = toolgram.plan(body, family.template)
    assert plan.style.name == "discovered"
    assert "hermes reads its calls, and fewer of its turns" in plan.why
    assert plan.parse("Hm.\n</think>\n\n<response>\nYes.\n</response>\n").content == "Yes.\n"


def test_a_template_that_strips_thoughts_from_answers_before_the_last_is_one_of_a_model_that_reasons() -> None:
    source = (
        "{% if tools %}<|im_start|>system\nList of tools: [{{ tools | tojson }}]<|im_end|>\n{% endif %}"
        "{% for m in messages %}{% set later = messages[loop.index:] | selectattr('role', 'eq', 'assistant') | list %}"
        "<|im_start|>{{ m.role }}\n{% if later and m.role == 'assistant' %}"
        "{{ m.content.split('</think>')[-1] | trim }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    body = {"messages": [{"role": "user", "content": "Hi."}], "tools": TOOLS}
    for template, thinks in ((toolgram.ChatTemplate(source), True), (CHATML, False)):
        plan = toolgram.plan(body, template, "lfm2_5")
        assert plan.constraint is not None
        assert plan.constraint.grammar.accepts("<think>Hm.</think>Hi.") is thinks


def test_what_ends_the_turn_before_closes_no_reasoning_that_is_to_come() -> None:
    def part(kind: str, text: str) -> str:
        return f"<|model|><|{kind}|>{text}<|close|>"

    family = Family(
        each(part("call", OBJECT)),
        content=f"{{% if m.content %}}{part('text', '{{ m.content }}')}{{% endif %}}",
        thought=f"{{% if m.reasoning_content %}}{part('thought', '{{ m.reasoning_content }}')}{{% endif %}}",
        header="",
        end="<|done|>",
    )
    source = family.template.source.replace("<|end|>", "<|close|>")
    plan = toolgram.plan(
        {"messages": [{"role": "user", "content": "Hi."}], "tools": TOOLS}, toolgram.ChatTemplate(source)
    )
    text = part("thought", "Hm.") + part("text", "Yes.")
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)
    assert plan.parse(text) == Message("Yes.", "Hm.")


def test_messages_of_a_turn_may_stand_in_any_order_before_its_calls_and_each_may_be_closed() -> None:
    """As the messages of Onyx: each names who it is for, and the mark between two of them may stand after the last."""

    def part(to: str, text: str) -> str:
        return f"{{{{ join.text }}}}<|start|>assistant to={to}<|message|>{text}{{% set join.text = '<|eom|>' %}}"

    source = (
        "{{ tools or '' }}{% for m in messages %}{% if m.role == 'assistant' %}{% set join = namespace(text='') %}"
        f"{{% if m.reasoning_content %}}{part('self', '{{ m.reasoning_content }}')}{{% endif %}}"
        f"{{% if m.content %}}{part('user', '{{ m.content }}')}{{% endif %}}"
        f"{{% for c in m.tool_calls or [] %}}{part(NAME, f'<do {NAME}>{JSON}</do>')}{{% endfor %}}<|eot|>"
        "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|eot|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
    )
    body = {"messages": [{"role": "user", "content": "Hi."}], "tools": TOOLS}
    plan = toolgram.plan(body, toolgram.ChatTemplate(source))
    assert plan.style.name == "discovered"
    assert plan.constraint is not None
    call = ToolCall("get_weather", '{"city": "Oslo"}')
    parts = [" to=user<|message|>So.", " to=self<|message|>Hm."]
    parts.append(f" to=get_weather<|message|><do get_weather>{call.arguments}</do>")
    for end in ("", "<|eom|>"):
        text = "<|eom|><|start|>assistant".join(parts) + end
        assert plan.constraint.grammar.accepts(text)
        assert plan.parse(text) == Message("So.", "Hm.", (call,))
    again = "<|eom|><|start|>assistant".join((parts[2], parts[1], parts[0]))
    assert plan.parse(again) == Message("So.", "Hm.", (call,))


def test_nothing_is_found_twice() -> None:
    template = MADE_UP["other keys in a list"].template
    assert discover(template) is discover(replace(template))


def test_every_native_style_is_proved_on_templates_of_its_own() -> None:
    """The proof is one of any style: a native one reads the probes of the template that it is native to."""
    hermes = next(style for style in NATIVE if style.name == "hermes")
    family = Family(
        "{% for c in m.tool_calls %}<tool_call>\n"
        "{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}\n</tool_call>"
        "{{ '\n' if not loop.last }}{% endfor %}"
    )
    assert len(proof(family.template, hermes)) >= 8
    assert not [reading for reading in proof(family.template, hermes) if reading.wrong]
    other = proof(MADE_UP["a fence"].template, hermes)
    assert [reading for reading in other if reading.wrong]
    assert proof(CHATML, hermes) == ()


@pytest.mark.parametrize("name", discovered())
def test_a_style_is_the_same_when_it_was_printed(name: str) -> None:
    style = discovered()[name]
    made: dict[str, Any] = {}
    exec(python_source(style), made)  # noqa: S102 - our own text
    again: ToolStyle = made["STYLE"]
    assert (again.name, again.wire, again.about, again.reasons) == (style.name, style.wire, style.about, style.reasons)


def test_a_kept_style_takes_the_place_of_the_one_that_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", dict[str, ToolStyle]())
    for name, family in MADE_UP.items():
        style = discover(family.template).style
        assert style is not None
        toolgram.register_style(replace(style, name=f"kept {name}"))
    for name, family in MADE_UP.items():
        plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], "tools": TOOLS}, family.template)
        assert plan.style.name == f"kept {name}"
