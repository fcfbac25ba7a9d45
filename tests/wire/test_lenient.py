"""Reading what no grammar constrained: plain JSON calls of known tools are calls, everything else is as strict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from situations import ANSWER, CHATML, WEATHER, fed, joined, nasty_text, tool
from toolgram import Message, ToolCall
from toolgram.conversation.events import ContentDelta
from toolgram.planning.readable_names import some_id
from toolgram.wire import format as wire

CALL = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
READ = ToolCall("get_weather", '{"city": "Oslo"}')
OTHER = '{"name": "get", "parameters": {}}'


def planned(style: str = "hermes", **more: Any) -> toolgram.Plan:
    request = {
        "messages": [{"role": "user", "content": "?"}],
        "tools": [tool("get_weather", WEATHER), tool("get", None)],
    }
    return toolgram.plan(request | more, CHATML, style)


HERMES = planned()
READINGS: dict[str, tuple[str, Message]] = {
    "bare": (CALL, Message(None, None, (READ,))),
    "after text": (f"I will look.\n{CALL}", Message("I will look.\n", None, (READ,))),
    "fenced": (f"Look:\n```json\n{CALL}\n```", Message("Look:\n", None, (READ,))),
    "fenced, then text": (f"```\n{CALL}\n```\nWait.", Message("\nWait.", None, (READ,))),
    "fence without an end": (f"```json\n{CALL}\n", Message(None, None, (READ,))),
    "several in a fence": (f"```json\n{CALL}\n{CALL}\n```", Message(None, None, (READ, READ))),
    "several lines": (f"{CALL}\n{CALL}", Message("\n", None, (READ, READ))),
    "a list": (f"[{CALL}, {OTHER}]", Message(None, None, (READ, ToolCall("get", "{}")))),
    "indented": ('  {\n  "name": "get",\n  "arguments": {}\n}', Message("  ", None, (ToolCall("get", "{}"),))),
    "with a type": (
        '{"type": "function", "function": {"name": "get", "arguments": "{}"}}',
        Message(None, None, (ToolCall("get", "{}"),)),
    ),
    "with an id": ('{"name": "get", "arguments": {}, "id": "x1"}', Message(None, None, (ToolCall("get", "{}", "x1"),))),
    "arguments first": (
        '{"arguments": {"city": "Oslo"}, "name": "get_weather"}',
        Message(None, None, (READ,)),
    ),
    "numbers as they are": (
        '{"name": "get", "arguments": {"a": 1.0, "b": 1e2}}',
        Message(None, None, (ToolCall("get", '{"a": 1.0, "b": 1e2}'),)),
    ),
    "beside one in tags": (
        f"{CALL}\n<tool_call>\n{OTHER}\n</tool_call>",
        Message(None, None, (READ, ToolCall("get", "{}"))),
    ),
    "after one in tags": (
        f"<tool_call>\n{OTHER}\n</tool_call>\n{CALL}",
        Message("\n", None, (ToolCall("get", "{}"), READ)),
    ),
    "its opening tag is missing": (
        f"{CALL}\n</tool_call>",
        Message("\n</tool_call>", None, (READ,)),
    ),
}
TEXTS = [
    "It will rain.",
    '{"name": "unknown", "arguments": {}}',
    '{"name": "get_weather"}',
    '{"name": "get_weather", "arguments": "no"}',
    '{"name": "get_weather", "arguments": {}, "comment": 1}',
    f"Write {CALL}",
    f"`{CALL}`",
    '{"answer": [\n' + CALL + "\n]}",
    f"```json\n{{\n{CALL}\n}}\n```",
    '{"name": "get_weather", "arguments": {"city": ',
    "[]",
    "[1, 2]\n{}\n",
    "``\n```\n```python\nx = {}\n```",
    "\n\n  \n",
    f"<think>\n{CALL}\n</think>\n\nNo.",
]


@pytest.mark.parametrize("name", READINGS)
def test_a_plain_call_is_read(name: str) -> None:
    text, message = READINGS[name]
    assert HERMES.parse(text, lenient=True) == message


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_plain_call_is_read_strictly(text: str) -> None:
    assert HERMES.parse(text, lenient=True) == HERMES.parse(text)


@pytest.mark.parametrize("text", [*(text for text, _ in READINGS.values()), *TEXTS])
def test_constrained_output_is_read_strictly(text: str) -> None:
    strict = HERMES.parse(text)
    assert [call.name for call in strict.tool_calls] == ["get"] * text.count("<tool_call>")


@pytest.mark.parametrize("text", [*(text for text, _ in READINGS.values()), *TEXTS])
def test_chunks_do_not_matter(text: str) -> None:
    whole = joined(fed(HERMES.reader(lenient=True), text))
    for size in (1, 2, 3, 7):
        assert joined(fed(HERMES.reader(lenient=True), text, [size] * len(text))) == whole


PIECES = st.sampled_from(
    [CALL, OTHER, "\n", "```json\n", "```", "{", "}", "[", "]", '"', "<tool_call>\n", "\n</tool_call>", "x"]
)


@pytest.mark.parametrize("style", ["hermes", "qwen_xml", "mistral_nemo", "harmony", "thoughtful_steps"])
@given(data=st.data())
def test_reading_does_not_depend_on_the_chunks(style: str, data: st.DataObject) -> None:
    plan = planned(style)
    text = "".join(data.draw(st.lists(PIECES | nasty_text, max_size=9)))
    whole = joined(fed(plan.reader(lenient=True), text))
    cuts = data.draw(st.lists(st.integers(1, 8), max_size=len(text)))
    assert joined(fed(plan.reader(lenient=True), text, [1] * len(text))) == whole
    assert joined(fed(plan.reader(lenient=True), text, cuts)) == whole
    message = Message.from_events(whole)
    assert message == plan.parse(text, lenient=True)
    assert len(message.tool_calls) >= len(plan.parse(text).tool_calls)


@pytest.mark.parametrize("style", ["hermes", "granite_3_3", "mistral_nemo", "firefunction", "apriel", "minimax_m1"])
def test_calls_in_json_are_read_where_the_engine_hides_their_tags(style: str) -> None:
    """As with skip_special_tokens: the tags are not in the text."""
    plan = planned(style, parallel_tool_calls=True)
    ids = (some_id("get_weather", plan.style.wire), some_id("get", plan.style.wire))
    said = (ToolCall("get_weather", '{"city": "Oslo"}', ids[0]), ToolCall("get", "{}", ids[1]))
    text = plan.write(Message(None, None, said))
    assert text is not None
    for node in wire.walk(plan.style.wire.turn):
        if isinstance(node, wire.Mark):
            text = text.replace(node.text.removesuffix("["), "")  # that bracket is of the JSON
    message = plan.parse(text, lenient=True)
    assert message.tool_calls == said
    assert not (message.content or "").strip()


_K2 = "<|tool_call_begin|>{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
_INVOKE = '<｜DSML｜invoke name="get">\n</｜DSML｜invoke>\n'


@pytest.mark.parametrize(
    ("style", "text", "content"),
    [
        *(
            ("harmony", f"<|start|>assistant<|channel|>{channel} to=functions.get{kind}<|message|>{{}}", None)
            for channel in ("commentary", "analysis")
            for kind in (" code", " <|constrain|>JSON", "<|constrain|>code", " json")
        ),
        ("harmony", "<|start|>assistant to=functions.get<|channel|>commentary code<|message|>{}", None),
        ("kimi_k2", "<|tool_call_section_begin|>" + _K2.format("functions.get:0") + "<|tool_call_section_end|>", None),
        ("kimi_k2", "<|tool_calls_section_begin|>" + _K2.format("get:0") + "<|tool_calls_section_end|>", None),
        ("kimi_k2", "I look." + _K2.format("functions.get:0"), "I look."),
        ("deepseek_v3_2", f"I look.\n\n{_INVOKE}</｜DSML｜function_calls>", "I look."),
        ("deepseek_v4", _INVOKE, None),
    ],
)
def test_what_models_write_though_they_should_not_is_a_call_all_the_same(
    style: str, text: str, content: str | None
) -> None:
    plan = planned(style)
    for size in (1, 2, 5, len(text)):
        message = Message.from_events(fed(plan.reader(), text, [size] * len(text)))
        assert [(call.name, call.arguments, call.incomplete) for call in message.tool_calls] == [("get", "{}", False)]
        assert message.content == content


@pytest.mark.parametrize(
    ("style", "call", "closer"),
    [
        (
            "qwen_xml",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\n{}\n</parameter>\n</function>\n</tool_call>",
            "</parameter>",
        ),
        (
            "deepseek_v3_2",
            '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
            '<｜DSML｜parameter name="city" string="true">{}</｜DSML｜parameter>\n'
            "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
            "</｜DSML｜parameter>",
        ),
    ],
)
@pytest.mark.parametrize(
    "value", ['return "{}"', "It ends with {} here.", "{} or\n{}\nelse", "re = r'<parameter=k>(.*){}'"]
)
def test_what_closes_a_value_is_text_of_it_where_no_tag_follows(style: str, call: str, closer: str, value: str) -> None:
    """No grammar admits it, since there is no way to escape it; a coding agent's model writes it all the same."""
    said = value.format(*[closer] * value.count("{}"))
    text = call.format(said)
    plan = planned(style)
    for size in (1, 2, 5, len(text)):
        message = Message.from_events(fed(plan.reader(), text, [size] * len(text)))
        (read,) = message.tool_calls
        assert (json.loads(read.arguments), read.incomplete, message.content) == ({"city": said}, False, None)


@pytest.mark.parametrize("kind", [" <|constrain|>response", "<|constrain|>JSON", " code", " <|constrain|>markdown"])
def test_what_a_message_is_said_to_hold_is_none_of_it(kind: str) -> None:
    text = f"<|start|>assistant<|channel|>final{kind}<|message|>It rains."
    assert planned("harmony").parse(text) == Message("It rains.")


def test_text_streams_while_nothing_looks_like_a_call() -> None:
    reader = HERMES.reader(lenient=True)
    assert [reader.feed(piece) for piece in ("It ", "will", " rain")] == [
        [ContentDelta(piece)] for piece in ("It ", "will", " rain")
    ]


def test_an_answer_in_json_streams_too() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER}}
    reader = planned(response_format=schema).reader(lenient=True)
    assert reader.feed('{"ans')
    assert reader.feed('wer": "x') == [ContentDelta('wer": "x')]


def test_without_tools_that_may_be_called_nothing_is_a_call() -> None:
    assert planned(tool_choice="none").parse(CALL, lenient=True) == Message(CALL)


def test_only_tools_that_may_be_called_are() -> None:
    named = planned(tool_choice={"type": "function", "function": {"name": "get"}})
    assert named.parse(f"{OTHER}\n{CALL}", lenient=True).tool_calls == (ToolCall("get", "{}"),)


def test_a_long_value_costs_no_more_than_its_length() -> None:
    text = json.dumps({"name": "get_weather", "arguments": {"city": "x" * 100_000}})
    assert HERMES.parse(text, lenient=True).tool_calls
    assert len(HERMES.parse("{" * 50_000, lenient=True).content or "") == 50_000


def test_a_name_that_is_no_string_is_no_tool() -> None:
    text = '{"name": {"a": 1}, "arguments": {}}'
    assert HERMES.parse(text, lenient=True) == Message(text)
