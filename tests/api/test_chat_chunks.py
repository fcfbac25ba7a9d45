"""The chunks of a chat completion: what the SDKs demand of them, and that they add up to the whole answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from situations import CHATML
from toolgram.api.chat.response import ChunkWriter, Head, completion
from toolgram.chat import Reply, stream
from toolgram.conversation.events import ArgumentsDelta, ToolCallEnd, ToolCallStart
from toolgram.conversation.message import Message, ToolCall
from toolgram.engines.base import Chunk, Sampling, Usage
from toolgram.engines.replay import Replay
from toolgram.planning.plan import plan

HEAD = Head("chatcmpl-1", 1, "m")
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
    for name, properties in (("f", {"a": {"type": "string"}}), ("now", {}))
]
CALLS = (
    'Let me see. <tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
)


def answer(
    text: str, head: Head = HEAD, max_tokens: int | None = None, tools: list[Any] = TOOLS
) -> tuple[list[Any], Any]:
    """The chunks and the completion of an answer that comes letter by letter."""
    made = plan({"messages": [{"role": "user", "content": "Hi."}], "tools": tools}, CHATML, "hermes_2_pro")

    async def run() -> tuple[list[Any], Any]:
        writer = ChunkWriter(head)
        chunks: list[Any] = []
        async for item in stream(made, Replay(list(text)), Sampling(seed=1, max_tokens=max_tokens)):
            chunks += writer.feed(item)
            if isinstance(item, Reply):
                return chunks, completion(head, [item], [[]])
        raise AssertionError

    return asyncio.run(run())


def added_up(chunks: list[Any]) -> dict[str, Any]:
    """The message of the chunks, as OpenAI's SDK adds them: texts are joined, whatever the key."""
    message: dict[str, Any] = {"content": None, "tool_calls": []}
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"]
        if delta.get("content") is not None:
            message["content"] = (message["content"] or "") + delta["content"]
        for call in delta.get("tool_calls", ()):
            if call["index"] == len(message["tool_calls"]):
                message["tool_calls"].append({"id": call["id"], "type": call["type"], "function": call["function"]})
                continue
            assert set(call) - {"incomplete"} == {"index", "function"}
            if "incomplete" in call:
                message["tool_calls"][call["index"]]["incomplete"] = call["incomplete"]
            function = message["tool_calls"][call["index"]]["function"]
            message["tool_calls"][call["index"]]["function"] = {
                "name": function["name"],
                "arguments": function["arguments"] + call["function"]["arguments"],
            }
    return message


@pytest.mark.parametrize("text", [CALLS, "Just text.", CALLS[20:]])
def test_the_chunks_add_up_to_the_completion(text: str) -> None:
    chunks, whole = answer(text)
    message = whole["choices"][0]["message"]
    added = added_up(chunks)
    assert added["content"] == message["content"]
    assert added["tool_calls"] == message.get("tool_calls", [])
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": None}
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + [whole["choices"][0]["finish_reason"]]


def test_a_call_without_arguments_streams_an_empty_object() -> None:
    chunks, whole = answer(CALLS)
    assert added_up(chunks)["tool_calls"][1]["function"]["arguments"] == "{}"
    assert whole["choices"][0]["finish_reason"] == "tool_calls"


def test_arguments_come_in_pieces() -> None:
    chunks, _ = answer(CALLS)
    pieces = [chunk for chunk in chunks if "function" in (chunk["choices"][0]["delta"].get("tool_calls") or [{}])[0]]
    assert len(pieces) > 5


def test_an_answer_that_is_cut_off_has_what_came() -> None:
    chunks, whole = answer(CALLS, max_tokens=65)
    assert whole["choices"][0]["finish_reason"] == "length"
    calls = whole["choices"][0]["message"]["tool_calls"]
    assert added_up(chunks)["tool_calls"] == calls
    assert [call.get("incomplete") for call in calls] == [True]


def test_a_call_that_is_cut_off_before_its_name_is_counted_and_not_shown() -> None:
    chunks, whole = answer(CALLS, max_tokens=95)
    for choice in (whole["choices"][0], chunks[-1]["choices"][0]):
        assert choice["dropped_tool_calls"] == 1
        assert choice["finish_reason"] == "length"
    message = whole["choices"][0]["message"]
    assert message["content"] == added_up(chunks)["content"]
    assert "<" not in (message["content"] or "")
    assert not any(call.get("incomplete") for call in message["tool_calls"])


def test_a_call_waits_for_its_id() -> None:
    writer = ChunkWriter(HEAD)
    assert len(list(writer.feed(Chunk("")))) == 1
    for event in (ToolCallStart(0, "f"), ArgumentsDelta(0, '{"a"'), ArgumentsDelta(0, ": 1}")):
        assert not list(writer.feed(event))
    (chunk,) = writer.feed(ToolCallEnd(0, "abc"))
    function = {"name": "f", "arguments": '{"a": 1}'}
    expected = [{"index": 0, "id": "abc", "type": "function", "function": function}]
    assert chunk["choices"][0]["delta"] == {"tool_calls": expected}
    list(writer.feed(ToolCallStart(1, "f")))
    reply = Reply(Message(None, None, (ToolCall("f", "", "abc"), ToolCall("f", "", "def"))), "", "length", Usage())
    told, _ = writer.feed(reply)
    assert told["choices"][0]["delta"]["tool_calls"][0]["id"] == "def"


def test_a_custom_call_tells_its_text() -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {"input": "1\\n2"}}\n</tool_call>'
    chunks, whole = answer(text, tools=[{"type": "custom", "custom": {"name": "f"}}])
    call = whole["choices"][0]["message"]["tool_calls"][0]
    assert call["custom"] == {"name": "f", "input": "1\n2"}
    deltas = [chunk["choices"][0]["delta"].get("tool_calls") for chunk in chunks]
    assert [delta for delta in deltas if delta] == [[{"index": 0, **call}]]


def test_a_legacy_answer_has_a_function_call() -> None:
    head = Head("chatcmpl-1", 1, "m", legacy=True)
    chunks, whole = answer(CALLS[12:75], head)
    assert whole["choices"][0]["finish_reason"] == "function_call"
    assert whole["choices"][0]["message"]["function_call"] == {"name": "f", "arguments": '{"a": "x"}'}
    deltas = [chunk["choices"][0]["delta"].get("function_call") for chunk in chunks]
    assert "".join(delta["arguments"] for delta in deltas if delta) == '{"a": "x"}'
