"""Calls that a model writes in its own way where it may call or not: fenced and bare JSON naming an offered tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from made_up import SHARED
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, fed, joined, tool
from toolgram import Message, ToolCall
from toolgram.conversation.events import ContentDelta, Finish
from toolgram.styles.generic import COMPACT, THOUGHTFUL_STEPS
from toolgram.styles.own_calls import with_own_calls
from toolgram.styles.registry import all_styles
from toolgram.wire.format import Alt, Arguments, Call, Content, Lit, Mark, NamedMark, Opt, Seq
from toolgram.wire.program import compile_format
from toolgram.wire.reader import Reader

TOOLS = [tool("get_weather", WEATHER), tool("get", {"type": "object", "properties": {"key": {"type": "string"}}})]
FENCED = """\
```json
{
  "name": "get_weather",
  "arguments": {
    "city": "Oslo",
    "days": 3
  }
}
```"""
WIDE = FENCED.replace("  ", "    ")
EMPTY = '```json\n{\n  "name": "get",\n  "arguments": {}\n}\n```'
ON_A_LINE = '```json\n{"name": "get", "arguments": {"key": "a}\\n```"}}\n```'
BARE = '{"name": "get", "arguments": {"key": "a"}}'
NO_CALLS = [
    "",
    "{",
    "```",
    "```json\n{",
    "Noon.",
    '```json\n{\n  "name": "Ada",\n  "arguments": {"for": 1}\n}\n```',
    '```json\n{\n  "name": "get_weather_of",\n  "arguments": {}\n}\n```',
    '```json\n{\n  "name": "get_weather",\n  "about": "a tool"\n}\n```',
    '```python\nget_weather("Oslo")\n```',
    '{"name": "get", "value": 1}',
    '{"name": "get", "arguments"',
    'The call would be {"name": "get", "arguments": 5}',
    'Like this:\n```json\n{\n  "name": "get",\n  "value": 5\n}\n```',
]


@pytest.fixture(scope="module")
def template() -> toolgram.ChatTemplate:
    """The template of Qwen 2.5 Coder, which is that of Qwen 2.5."""
    path = SHARED / "Qwen-Qwen2.5-7B-Instruct.jinja"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    return toolgram.ChatTemplate.from_file(path)


def planned(template: toolgram.ChatTemplate, **more: Any) -> toolgram.Plan:
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS, **more}
    return toolgram.plan(body, template, "qwen_coder")


def accepted(plan: toolgram.Plan, text: str) -> bool:
    """Whether the grammar admits a text, on which the dialects agree."""
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    yes = grammar.accepts(text)
    assert lark_accepts(grammar.to("lark"), text) == yes
    assert ebnf_accepts(grammar.to("ebnf"), text) == yes
    assert (gbnf_accepted(grammar.to("gbnf"), {text}) == {text}) == yes
    return yes


def parse(plan: toolgram.Plan, text: str) -> Message:
    """The message, which is the same however the text is cut."""
    whole = fed(plan.reader(), text, None)
    assert joined(whole) == joined(fed(plan.reader(), text, [1] * len(text)))
    return Message.from_events(whole)


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        (FENCED, "get_weather", {"city": "Oslo", "days": 3}),
        (WIDE, "get_weather", {"city": "Oslo", "days": 3}),
        (EMPTY, "get", {}),
        (ON_A_LINE, "get", {"key": "a}\n```"}),
        (BARE, "get", {"key": "a"}),
        (FENCED.removeprefix("```json\n").removesuffix("\n```"), "get_weather", {"city": "Oslo", "days": 3}),
        (WIDE.removeprefix("```json\n").removesuffix("\n```"), "get_weather", {"city": "Oslo", "days": 3}),
    ],
)
def test_a_call_in_the_model_s_own_way_is_one(
    template: toolgram.ChatTemplate, text: str, name: str, arguments: Any
) -> None:
    plan = planned(template)
    message = parse(plan, text)
    assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == [(name, arguments)]
    assert not message.content
    for space in ("", "\n", "\n\n"):
        assert accepted(plan, text + space)
        assert parse(plan, text + space) == message


def test_its_arguments_keep_to_their_schema(template: toolgram.ChatTemplate) -> None:
    plan = planned(template)
    assert not accepted(plan, FENCED.replace('"Oslo"', "5"))
    assert not accepted(plan, FENCED.replace("days", "hours"))
    assert not accepted(plan, BARE.replace('"a"', "1"))


@pytest.mark.parametrize("text", NO_CALLS)
def test_other_text_is_text(template: toolgram.ChatTemplate, text: str) -> None:
    plan = planned(template)
    assert accepted(plan, text)
    assert parse(plan, text) == Message(text or None)
    assert plan.writable(Message(text or None))


@pytest.mark.parametrize("text", [FENCED, WIDE, ON_A_LINE, BARE])
def test_text_that_begins_as_a_call_cannot_be_written(template: toolgram.ChatTemplate, text: str) -> None:
    assert not planned(template).writable(Message(text))
    assert planned(template).writable(Message("So: " + text))


def test_only_the_beginning_of_a_mark_is_held_back(template: toolgram.ChatTemplate) -> None:
    text = '```json\n{\n  "name": "get_weather",\n  "about": 1\n}\n```'
    reader = planned(template).reader()
    told = ""
    for at, char in enumerate(text):
        told += "".join(event.text for event in reader.feed(char) if isinstance(event, ContentDelta))
        is_mark = FENCED.startswith(text[: at + 1])
        assert told == ("" if is_mark else text[: at + 1]) or text[at] in "`<\n"


def test_several_calls_stand_side_by_side(template: toolgram.ChatTemplate) -> None:
    twice = f"{FENCED}\n{EMPTY}"
    assert accepted(planned(template), twice)
    assert [call.name for call in parse(planned(template), twice).tool_calls] == ["get_weather", "get"]
    assert not accepted(planned(template, parallel_tool_calls=False), twice)


IN_ONE_FENCE = "\n".join([FENCED.removesuffix("\n```"), EMPTY.removeprefix("```json\n")])
LINES_IN_ONE_FENCE = ON_A_LINE.replace("\n```", f"\n{BARE}\n{BARE}\n```")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (IN_ONE_FENCE, ["get_weather", "get"]),
        (IN_ONE_FENCE.replace("  ", "    "), ["get_weather", "get"]),
        (LINES_IN_ONE_FENCE, ["get", "get", "get"]),
    ],
)
def test_several_calls_may_stand_in_one_fence(template: toolgram.ChatTemplate, text: str, names: list[str]) -> None:
    """Where a line break could only be followed by the end of the fence, the others would be lost."""
    for choice in ("auto", "required"):
        plan = planned(template, tool_choice=choice)
        assert accepted(plan, text)
        assert [call.name for call in parse(plan, text).tool_calls] == names
        one = planned(template, tool_choice=choice, parallel_tool_calls=False)
        assert not accepted(one, text)
        assert accepted(one, FENCED)


def test_the_message_is_written_as_the_template_does(template: toolgram.ChatTemplate) -> None:
    call = ToolCall("get", '{"key": "a"}')
    written = '<tool_call>\n{"name": "get", "arguments": {"key": "a"}}\n</tool_call>'
    plan = planned(template)
    assert plan.write(Message(tool_calls=(call,))) == written
    assert accepted(plan, written)
    again = {"role": "assistant", "content": None, "tool_calls": parse(plan, BARE).to_openai()["tool_calls"]}
    again["tool_calls"][0]["id"] = "1"
    history = [{"role": "user", "content": "Hi"}, again, {"role": "tool", "tool_call_id": "1", "content": "5"}]
    assert written in planned(template, messages=history).prompt


def test_where_nothing_may_be_called_its_own_way_is_text(template: toolgram.ChatTemplate) -> None:
    assert not parse(planned(template, tool_choice="none"), FENCED).tool_calls


@pytest.mark.parametrize("more", [{}, {"response_format": {"type": "json_object"}}])
def test_a_call_that_must_be_made_is_made_in_its_own_way_too(template: toolgram.ChatTemplate, more: Any) -> None:
    plan = planned(template, tool_choice="required", **more)
    tagged = '<tool_call>\n{"name": "get", "arguments": {"key": "a"}}\n</tool_call>'
    assert all(accepted(plan, text) and parse(plan, text).tool_calls for text in (FENCED, BARE, tagged))
    assert not any(accepted(plan, text) for text in ("Hello.", f"Hello.\n{FENCED}", '{"a": 1}', "```json\n{}\n```"))
    named = planned(template, tool_choice={"type": "function", "function": {"name": "get"}})
    assert accepted(named, EMPTY)
    assert not accepted(named, FENCED)


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["name"],
}
ADA = '{\n  "name": "Ada",\n  "arguments": {"for": 1}\n}'


@pytest.mark.parametrize("text", [FENCED, WIDE, EMPTY, ON_A_LINE, BARE])
def test_beside_a_schema_it_is_a_call_also_where_the_schema_admits_it(
    template: toolgram.ChatTemplate, text: str
) -> None:
    for schema in (PERSON, WEATHER, {"type": "object"}):
        answer = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        plan = planned(template, response_format=answer)
        for space in ("", "\n", "\n\n"):
            assert accepted(plan, text + space)
            assert parse(plan, text + space) == parse(planned(template), text)
        assert not plan.writable(Message(BARE))


@pytest.mark.parametrize(
    "text", ['{"name": "Ada"}', '{"name": "get_weather"}', ADA, '{"name": "get", "arguments": "all"}']
)
def test_beside_a_schema_an_answer_may_stand_as_such_a_call_does(template: toolgram.ChatTemplate, text: str) -> None:
    """What a model began like a call must not have to be one: a brace, a fence, a line break, the key of a name."""
    answer = {"type": "json_schema", "json_schema": {"name": "answer", "schema": PERSON | {"properties": {}}}}
    plan = planned(template, response_format={"type": "json_object"} if "Ada" in text else answer)
    is_call = '"get", "arguments"' in text
    for said in (text, f"```json\n{text}\n```", f"```json\n{text}\n```\n"):
        assert accepted(plan, said) is not is_call, said
        assert parse(plan, said) == Message(said if is_call else text)


def test_a_beginning_that_may_be_either_is_held_back_and_kept(template: toolgram.ChatTemplate) -> None:
    plan = planned(template, response_format={"type": "json_object"})
    for text in ('{"name": "ge', '```json\n{\n  "name": "ge', '```json\n{"name": "gets", "argum'):
        reader = plan.reader()
        events = [event for char in text for event in reader.feed(char)] + reader.finish()
        said = Message.from_events(events)
        assert said.content == text.removeprefix("```json\n")
        assert events[-1] == Finish("stop", complete=False)


@pytest.mark.parametrize("style", ["qwen_coder", "llama_3"])
def test_a_plain_answer_begins_as_no_call_does(style: str) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}
    answer = {"type": "choice", "choice": [BARE + "!", "noon", '"{"', *(["```json"] if style == "qwen_coder" else [])]}
    plan = toolgram.plan(body | {"response_format": answer}, CHATML, style)
    for text in answer["choice"]:
        called = text == BARE + "!"
        assert accepted(plan, text) is not called
        assert plan.writable(Message(text)) is not called
    assert parse(plan, "noon") == Message("noon")
    assert parse(plan, BARE.replace("arguments", "parameters") if style == "llama_3" else BARE).tool_calls


def test_tools_that_may_not_be_called_are_no_marks(template: toolgram.ChatTemplate) -> None:
    only = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get"}}]}
    plan = planned(template, tool_choice={"type": "allowed_tools", "allowed_tools": only})
    assert parse(plan, FENCED) == Message(FENCED)
    assert parse(plan, EMPTY).tool_calls


def test_a_turn_that_is_cut_in_a_mark_tells_no_half_of_it(template: toolgram.ChatTemplate) -> None:
    reader = planned(template).reader()
    events = [*reader.feed('```json\n{\n  "name": "get_w'), *reader.finish(cut=True)]
    assert not Message.from_events(events).content


def test_the_template_alone_does_not_choose_it(template: toolgram.ChatTemplate) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}
    assert toolgram.plan(body, template).style.name == "hermes"


def test_many_tools_are_told_apart_by_lexemes(template: toolgram.ChatTemplate) -> None:
    tools = [tool(f"{verb}_{thing}", WEATHER) for verb in ("get", "set", "find") for thing in ("weather", "alarm")]
    plan = planned(template, tools=tools)
    assert plan.constraint is not None
    assert "_in_characters" not in plan.constraint.grammar.to("lark")
    for each in tools:
        assert accepted(plan, FENCED.replace("get_weather", each["function"]["name"]))


OWN = [style for style in all_styles() if with_own_calls(style) is not style]


@pytest.mark.parametrize("style", OWN, ids=lambda style: style.name)
def test_any_style_of_free_text_and_calls_can_have_such_calls(style: toolgram.ToolStyle) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}
    plan = toolgram.plan(body, CHATML, with_own_calls(style))
    assert plan.constraint is not None
    for text in (FENCED, WIDE, EMPTY, ON_A_LINE, BARE):
        assert plan.constraint.grammar.accepts(text)
        said = parse(plan, text)
        assert said.content is None
        assert len(said.tool_calls) == 1
    for text in NO_CALLS:
        assert parse(plan, text).tool_calls == ()


def test_the_dialects_agree_on_them_in_the_default_style() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}
    plan = toolgram.plan(body, CHATML, with_own_calls(COMPACT))
    assert all(accepted(plan, text) for text in (FENCED, WIDE, EMPTY, ON_A_LINE, BARE, "```python\nx\n```"))
    assert not accepted(plan, FENCED.replace("3", "15"))


def test_where_no_turn_begins_with_text_a_style_stays_as_it_is() -> None:
    assert with_own_calls(THOUGHTFUL_STEPS) is THOUGHTFUL_STEPS
    assert with_own_calls(COMPACT) is with_own_calls(COMPACT)


def test_where_a_mark_is_the_beginning_of_another_both_are_followed() -> None:
    named = NamedMark('<a>\n{"name": "', '", "arguments": ', ("get",))
    said = Seq(Opt(Content()), Opt(Seq(Mark("<a>"), Lit("\n"), Content())))
    program = compile_format(Alt(said, Call(Seq(named, Arguments(), Lit("}")))))
    for text, message in {
        '<a>\n{"name": "get", "arguments": {}}': Message(None, None, (ToolCall("get", "{}"),)),
        '<a>\n{"name": "gets"}': Message('{"name": "gets"}'),
        '<a>\n{"name": "ge': Message('{"name": "ge'),
        "<a>\nNoon.": Message("Noon."),
    }.items():
        whole = fed(Reader(program), text, None)
        assert Message.from_events(whole) == message
        assert joined(whole) == joined(fed(Reader(program), text, [1] * len(text)))


def test_what_is_inside_of_arguments_on_lines_is_written_by_the_rules_of_one_line(
    template: toolgram.ChatTemplate,
) -> None:
    plan = planned(template)
    assert plan.constraint is not None
    assert plan.constraint.grammar.to("gbnf").count("\nstring") == 2  # and its escapes


@pytest.mark.parametrize(
    ("begun", "rest", "answer"),
    [
        ("```json\n{", '"city": "Oslo"}\n```', '{"city": "Oslo"}'),
        ("```", 'json\n{"city": "Oslo"}\n```', '{"city": "Oslo"}'),
        ('{"', 'city": "Oslo"}', '{"city": "Oslo"}'),
        ('{"name": "ge', 'ts"}', '{"name": "gets"}'),
        ('```json\n{"name": "ge', 'ts"}\n```', '{"name": "gets"}'),
        ('{"name": "get", "arguments": ', '{"key": "a"}}', None),
        ('```json\n{"name": "get", "arg', 'uments": {"key": "a"}}\n```', None),
    ],
)
def test_an_answer_that_the_prompt_began_is_told_once(begun: str, rest: str, answer: str | None) -> None:
    ask = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": begun}]
    body = {"messages": ask, "tools": TOOLS, "continue_final_message": True, "add_generation_prompt": False}
    plan = toolgram.plan(body | {"response_format": {"type": "json_object"}}, CHATML, "qwen_coder")
    assert accepted(plan, rest)
    message = parse(plan, rest)
    assert message.content == answer
    assert [(call.name, call.arguments) for call in message.tool_calls] == ([] if answer else [("get", '{"key": "a"}')])
    streamed = "".join(e.text for e in fed(plan.reader(), rest, None) if isinstance(e, ContentDelta))
    assert answer is None or streamed == rest.removeprefix("json\n").removesuffix("\n```")
