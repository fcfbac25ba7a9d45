"""What an answer says beside its message: values that the grammar changed, and those that only repeated themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from live_server import serving
from toolgram.engines.base import Chunk, Prompt, Sampling, SupportsGrammar, TracePoint
from toolgram.engines.replay import Replay

CHAT = "/v1/chat/completions"
BEGIN, END = '{"name": "pay", "parameters": {"amount": ', "}}"
PARAMETERS = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "to": {"type": "array", "items": {"type": "integer"}}},
}
BODY: dict[str, Any] = {
    "model": "recorded",
    "messages": [{"role": "user", "content": "Pay."}],
    "tools": [{"type": "function", "function": {"name": "pay", "parameters": PARAMETERS}}],
    "style": "llama_3",
    "tool_choice": "required",
    "parallel_tool_calls": False,
}
TOLD = {"call": 0, "pointer": "/amount", "preferred": ",", "removed": 0.9, "offset": len(BEGIN) + 2}


class Traced(Replay):
    """Ends a recorded answer with a trace, in which the model wanted another character after `20`."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        assert sampling.trace
        point = TracePoint(2, 1, 2, b",", 0.9, len(BEGIN) + 2)
        async for chunk in super().generate(prompt, constraint, sampling):
            yield chunk if chunk.finish is None else replace(chunk, trace=(point,))


def test_a_divergence_is_reported_in_a_header_and_in_the_choice() -> None:
    with serving(Traced(BEGIN + "20" + END)) as address:
        answer = httpx2.post(address + CHAT, json=BODY)
    assert json.loads(answer.headers["x-toolgram-divergences"]) == [{"choice": 0, **TOLD}]
    assert answer.json()["choices"][0]["divergences"] == [TOLD]


def test_a_stream_reports_it_in_its_last_chunk() -> None:
    with serving(Traced(BEGIN + "20" + END)) as address:
        lines = httpx2.post(address + CHAT, json=BODY | {"stream": True}).text.split("\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert [chunk["choices"][0].get("divergences") for chunk in chunks][-1] == [TOLD]
    assert not any("divergences" in chunk["choices"][0] for chunk in chunks[:-1])


def test_nothing_is_reported_where_there_is_nothing() -> None:
    with serving(Replay(BEGIN + "20" + END)) as address:
        answer = httpx2.post(address + CHAT, json=BODY)
    assert "x-toolgram-divergences" not in answer.headers
    assert not {"divergences", "ended_repetitions"} & set(answer.json()["choices"][0])


def test_a_value_that_was_ended_is_reported_in_the_choice() -> None:
    begin = '{"name": "pay", "parameters": {"to": ['
    with serving(Replay([begin, *["1", ", "] * 200], END)) as address:
        (choice,) = httpx2.post(address + CHAT, json=BODY).json()["choices"]
    assert choice["ended_repetitions"] == [{"call": 0, "pointer": "/to"}]
    assert set(json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["to"]) == {1}
    engine = Replay([begin, *["1", ", "] * 200])
    with serving(engine) as address:
        body = BODY | {"end_repetitions": False, "max_tokens": 390}
        (choice,) = httpx2.post(address + CHAT, json=body).json()["choices"]
    assert choice["finish_reason"] == "length"


ENDED = [{"call": 0, "pointer": "/to"}]
RESPONSES: dict[str, Any] = {
    "input": "Pay.",
    "tools": [{"type": "function", "name": "pay", "parameters": PARAMETERS}],
    "tool_choice": "required",
    "parallel_tool_calls": False,
}
MESSAGES: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Pay."}],
    "max_tokens": 1000,
    "tools": [{"name": "pay", "input_schema": PARAMETERS}],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
}


@pytest.mark.parametrize(
    ("path", "body", "last"),
    [("/v1/responses", RESPONSES, "response.completed"), ("/v1/messages", MESSAGES, "message_delta")],
)
def test_the_other_apis_report_what_was_ended_too(path: str, body: dict[str, Any], last: str) -> None:
    begin = '<tool_call>\n{"name": "pay", "arguments": {"to": ['
    engine = Replay([begin, *["1", ", "] * 200], "}\n</tool_call>", [begin, *["1", ", "] * 200], "}\n</tool_call>")
    with serving(engine) as address:
        answer = httpx2.post(address + path, json={"model": "recorded", **body}).json()
        lines = httpx2.post(address + path, json={"model": "recorded", **body, "stream": True}).text.split("\n")
    assert answer["ended_repetitions"] == ENDED
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    (told,) = [event for event in events if event["type"] == last]
    assert told.get("response", told)["ended_repetitions"] == ENDED


@pytest.mark.parametrize(("path", "body"), [("/v1/responses", RESPONSES), ("/v1/messages", MESSAGES)])
def test_they_report_nothing_where_there_is_nothing(path: str, body: dict[str, Any]) -> None:
    call = '<tool_call>\n{"name": "pay", "arguments": {"to": [1]}}\n</tool_call>'
    with serving(Replay(call)) as address:
        answer = httpx2.post(address + path, json={"model": "recorded", **body}).json()
    assert not {"divergences", "ended_repetitions", "dropped_tool_calls"} & set(answer)
