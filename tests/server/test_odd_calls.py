"""Calls that JSON allows and few readers of it expect: every API answers them, and as they were written."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from live_server import serving
from toolgram.engines.base import Capabilities
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

CALL = '<tool_call>\n{{"name": "f", "arguments": {}}}\n</tool_call>'
DEEP = f'{{"x": {"[" * 260}{"]" * 260}}}'
DEEPER = f'{{"x": {"[" * 1500}{"]" * 1500}}}'
LONE = r'{"input": "half \ud83d"}'
UNENFORCED = Capabilities(unenforced=True)


def answered(path: str, text: str, capabilities: Capabilities | None = None, **body: Any) -> str:
    """The text of the answer of `path` to a conversation, where the model writes `text`."""
    engine = Replay(text) if capabilities is None else Replay(text, capabilities=capabilities)
    turns: Any = [{"role": "user", "content": "Hi."}]
    said = {"input": turns} if path == "/v1/responses" else {"messages": turns}
    with serving(engine, Settings(log_contents=True)) as address:
        given = {"model": "recorded", "style": "hermes_2_pro", **said, **body}
        answer = httpx2.post(address + path, json=given)
    assert answer.status_code == 200, answer.text
    return answer.text


def message(text: str, capabilities: Capabilities | None = None) -> str:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    return answered("/v1/messages", text, capabilities, max_tokens=99, tools=tools)


@pytest.mark.parametrize("arguments", ['{"n": -9999999999999999999}', f'{{"n": {"9" * 5000}}}', DEEP, DEEPER, LONE])
def test_a_message_has_the_input_as_it_was_written(arguments: str) -> None:
    assert f'"input":{arguments}' in message(CALL.format(arguments))


def test_a_number_that_no_float_holds_stays_what_it_was() -> None:
    assert '"input":{"n": 1e999}' in message(CALL.format('{"n": 1e999}'), UNENFORCED)


@pytest.mark.parametrize("begun", ['{"x": ' + "[" * 1500, '{"x": 1'])
def test_a_call_that_was_cut_off_has_no_input(begun: str) -> None:
    (call,) = json.loads(message(CALL.partition("{}")[0].replace("{{", "{") + begun))["content"]
    assert (call["input"], call["incomplete"]) == ({}, True)


def test_what_is_no_json_is_no_input() -> None:
    (call,) = json.loads(message(CALL.format('{"n": 1,}'), UNENFORCED))["content"]
    assert call["input"] == {}


def test_numbers_that_json_does_not_have_are_null_and_all_else_is_as_it_was_written() -> None:
    written = r'{"n": NaN, "m": [-Infinity, 1.50], "said": "NaN \"Infinity\"", "NaN": Infinity}'
    read = r'{"n": null, "m": [null, 1.50], "said": "NaN \"Infinity\"", "NaN": null}'
    whole = message(CALL.format(written), UNENFORCED)
    assert f'"input":{read}' in whole
    assert json.loads(whole)["valid"] is False
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    stream = events_of(
        answered("/v1/messages", CALL.format(written), UNENFORCED, max_tokens=99, tools=tools, stream=True)
    )
    assert [event["delta"]["partial_json"] for event in stream if "partial_json" in event.get("delta", ())] == [read]


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a stream."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize(
    ("written", "content"),
    [
        (CALL.format("{city: Oslo}"), [("tool_use", {}, True)]),
        (
            '<tool_call>\n{"name": "f", junk "arguments": {"a": 1}}\n</tool_call> tail',
            [("tool_use", {}, True), ("text", 'junk "arguments": {"a": 1}} tail', False)],
        ),
        (f"{CALL.format('[1')} and\n{CALL.format('{}')}", [("tool_use", {}, True), ("text", None, False)]),
    ],
    ids=["no JSON", "text inside", "a broken one and text"],
)
def test_a_call_that_cannot_be_read_harms_no_reader_of_a_stream(written: str, content: list[Any]) -> None:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    whole = json.loads(message(written, UNENFORCED))
    stream = events_of(answered("/v1/messages", written, UNENFORCED, max_tokens=99, tools=tools, stream=True))
    kinds = dict[int, str]()
    pieces = dict[int, str]()
    for event in stream:
        if event["type"] == "content_block_start":
            kinds[event["index"]] = event["content_block"]["type"]
        elif event["type"] == "content_block_delta":
            fits = {"text": "text_delta", "tool_use": "input_json_delta"}[kinds[event["index"]]]
            assert event["delta"]["type"] == fits
            pieces[event["index"]] = (
                pieces.get(event["index"], "") + event["delta"]["text" if fits == "text_delta" else "partial_json"]
            )
    assert all(json.loads(text) is not None for at, text in pieces.items() if kinds[at] == "tool_use")
    assert [block["type"] for block in whole["content"]] == list(kinds.values())
    for block, (kind, said, cut) in zip(whole["content"], content, strict=False):
        assert (block["type"], block.get("incomplete", False)) == (kind, cut)
        assert said in (None, block.get("input", block.get("text", "").strip()))


def test_a_call_without_its_end_is_one_to_be_run_where_its_arguments_are_whole() -> None:
    begun = CALL.partition("{}")[0].replace("{{", "{")
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    named = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    for said, reason, status in (('{"x": 1}}', "tool_calls", "completed"), ('{"x": "Par', "stop", "incomplete")):
        chat = json.loads(answered("/v1/chat/completions", begun + said, UNENFORCED, tools=tools))
        assert chat["choices"][0]["finish_reason"] == reason
        assert json.loads(answered("/v1/responses", begun + said, UNENFORCED, tools=named))["status"] == status
        asked = json.loads(message(begun + said, UNENFORCED))
        assert asked["stop_reason"] == {"tool_calls": "tool_use", "stop": "end_turn"}[reason]


@pytest.mark.parametrize("stream", [False, True])
def test_legacy_functions_have_a_place_for_one_call(*, stream: bool) -> None:
    two = f"{CALL.format('{}')}\n{CALL.format('{}')}"
    given: dict[str, Any] = {"functions": [{"name": "f", "parameters": {"type": "object"}}], "stream": stream}
    said = answered("/v1/chat/completions", two, UNENFORCED, **given)
    if not stream:
        call = json.loads(said)["choices"][0]["message"]["function_call"]
    else:
        chunks = [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: {")]
        deltas = [each["choices"][0]["delta"].get("function_call", {}) for each in chunks if each["choices"]]
        call = {name: "".join(delta.get(name, "") for delta in deltas) for name in ("name", "arguments")}
    assert call == {"name": "f", "arguments": "{}"}


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_nothing_enforced_and_is_not_what_was_asked_for_says_so(*, stream: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    for said, valid in (('{"a": 1}', True), ('{"a": "no"}', False)):
        text = answered("/v1/chat/completions", said, UNENFORCED, response_format=form, stream=stream)
        assert ('"valid":false' in text) is not valid


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "tool"),
    [
        ("/v1/chat/completions", {"type": "custom", "custom": {"name": "f"}}),
        ("/v1/responses", {"type": "custom", "name": "f"}),
    ],
)
def test_half_a_surrogate_pair_in_a_custom_tools_input(path: str, tool: Any, *, stream: bool) -> None:
    assert r'"input":"half \ud83d"' in answered(path, CALL.format(LONE), tools=[tool], stream=stream)


def test_a_stop_string_inside_a_tag_leaves_nothing_of_it() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    said = answered("/v1/chat/completions", CALL.format("{}"), tools=tools, stop=["tool_call"])
    assert json.loads(said)["choices"][0]["message"]["content"] is None
