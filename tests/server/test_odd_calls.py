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
    (call,) = json.loads(message(CALL.format('{"n": NaN}'), UNENFORCED))["content"]
    assert call["input"] == {}


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
