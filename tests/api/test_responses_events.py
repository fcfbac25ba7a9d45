"""The events of `/v1/responses` for turns that do not go well: each item is told, then it grows, then it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from situations import CHATML
from toolgram.api.errors import ApiError
from toolgram.api.responses.request import read_responses_request
from toolgram.api.responses.response import ResponseWriter
from toolgram.chat import stream
from toolgram.engines.base import (
    Capabilities,
    Chunk,
    Logprob,
    Prompt,
    Sampling,
    SupportsGrammar,
    TokenLogprobs,
)
from toolgram.engines.replay import Replay
from toolgram.errors import EngineError

OF_THE_SDK: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
FREE = Capabilities(unenforced=True)
CALL = '<tool_call>\n{"name": "f", "arguments": {"city": "Paris"}}\n</tool_call>'
_SAID = ("arguments", "input", "content", "summary")
TOOLS: Any = [{"type": "function", "name": "f"}, {"type": "custom", "name": "note"}]


class Likely(Replay):
    """Tells of each piece how likely it was: a token less than the one before."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The pieces."""
        at = 0.0
        async for chunk in super().generate(prompt, constraint, sampling):
            at -= 1
            chosen = Logprob(1, chunk.text.encode(), at)
            yield replace(chunk, logprobs=(TokenLogprobs(chosen, (chosen,)),) if chunk.tokens else ())


def events(text: str | list[str], style: str = "hermes_2_pro", body: Any = None, **sampling: Any) -> list[Any]:
    """The events for a text of a model that nothing constrains, told as a server does; its engine fails at a "!"."""
    pieces = [text] if isinstance(text, str) else text
    read = read_responses_request({"input": "Go.", "tools": TOOLS, **(body or {})})
    plan = read.generation.plan(CHATML, style)
    writer = ResponseWriter("resp_1", 1, "m", {}, summarizes=read.summarizes)
    replays = Replay if read.generation.sampling.logprobs is None else Likely
    engine = replays(pieces, capabilities=FREE, fail_after=pieces.index("!") if "!" in pieces else None)
    told: list[Any] = []

    async def tell() -> None:
        try:
            async for item in stream(plan, engine, Sampling(**sampling)):
                told.extend(writer.feed(item))
        except EngineError as error:
            told.extend(writer.failed(ApiError(502, "engine_error", str(error))))

    asyncio.run(tell())
    return told


def grown(told: list[Any]) -> list[Any]:
    """The items as their events make them: added once, grown by deltas, done once, in the order of the output."""
    items: list[Any] = []
    for event in told:
        match event["type"]:
            case "response.output_item.added":
                assert event["output_index"] == len(items)
                items.append({**event["item"], "grown": ""})
            case "response.output_item.done":
                grown = items[event["output_index"]].pop("grown")
                said = next(event["item"][key] for key in _SAID if key in event["item"])
                assert grown == (said if isinstance(said, str) else said[0]["text"])
                items[event["output_index"]] = event["item"]
            case kind if kind.endswith(".delta"):
                items[event["output_index"]]["grown"] += event["delta"]
            case _:
                pass
    assert items == told[-1]["response"]["output"]
    return items


def short(item: Any) -> tuple[Any, ...]:
    said = next(item[key] for key in _SAID if key in item)
    return item["type"], said if isinstance(said, str) else said[0]["text"], item["status"]


@pytest.mark.parametrize(
    ("style", "text", "output"),
    [
        (
            "hermes_2_pro",
            '<tool_call>\n{"name": "f"[, "arguments": {"a": 1}}\n</tool_call>',
            [("function_call", "", "incomplete"), ("message", '[, "arguments": {"a": 1}}', "incomplete")],
        ),
        (
            "hermes_2_pro",
            '<tool_call>\n{"name": "note"", "arguments": {"input": "x"}}\n</tool_call>',
            [("custom_tool_call", "", "incomplete"), ("message", '", "arguments": {"input": "x"}}', "incomplete")],
        ),
        (
            "hermes_2_pro",
            f'<tool_call>\n{{"name": "f"[\n</tool_call> and {CALL}',
            [
                ("function_call", "{}", "completed"),
                ("message", "[ and ", "completed"),
                ("function_call", '{"city": "Paris"}', "completed"),
            ],
        ),
        (
            "kimi_k2",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{} and so"
            "<|tool_call_end|><|tool_calls_section_end|>",
            [("function_call", "{}", "completed"), ("message", " and so", "completed")],
        ),
    ],
)
def test_text_inside_a_call_is_told_behind_it(style: str, text: str, output: list[Any]) -> None:
    items = grown(events(text, style))
    assert [short(item) for item in items] == output
    assert all(item["call_id"] for item in items if item["type"] != "message")


def test_a_call_that_a_stop_string_cut_is_incomplete() -> None:
    told = events(CALL, stop=("ris",))
    assert [short(item) for item in grown(told)] == [("function_call", '{"city": "Pa', "incomplete")]
    assert (told[-1]["type"], told[-1]["response"]["status"]) == ("response.incomplete", "incomplete")
    assert told[-1]["response"]["incomplete_details"] is None


def test_a_stop_string_in_a_text_ends_it() -> None:
    told = events("In Paris.", stop=("ris",))
    assert [short(item) for item in grown(told)] == [("message", "In Pa", "completed")]
    assert told[-1]["type"] == "response.completed"


def test_what_failed_holds_what_was_told() -> None:
    told = events(["It ", "rains. ", CALL[:45], "!"])
    assert [event["type"] for event in told[-2:]] == ["error", "response.failed"]
    error = {name: told[-2][name] for name in ("code", "message", "param")}  # as OpenAI documents it
    assert told[-2]["error"] == {**error, "type": "server_error"}  # as it sends it
    assert error["code"] == "engine_error"
    assert [short(item) for item in grown(told)] == [
        ("message", "It rains. ", "completed"),
        ("function_call", '{"city', "incomplete"),
    ]


def test_the_reasoning_of_the_usage_is_counted() -> None:
    pieces = list("<think>\nWe <a> see.\n</think>\n\nHello")
    usage = events(pieces, "hermes")[-1]["response"]["usage"]
    assert usage["output_tokens"] == len(pieces)
    assert usage["output_tokens_details"]["reasoning_tokens"] == len("<think>\nWe <a> see.\n")


THOUGHT = ["<think>\n", "We ", "see.", "\n</think>", "\n\n", "It ", "rains."]


@pytest.mark.parametrize("asked", [{"summary": "auto"}, {"generate_summary": "concise"}])
def test_reasoning_is_its_own_summary_where_one_is_asked_for(asked: Any) -> None:
    told = events(THOUGHT, "hermes", {"reasoning": asked})
    reasoning, message = grown(told)
    assert reasoning["summary"] == [{"type": "summary_text", "text": "We see."}]
    assert "content" not in reasoning
    assert short(message) == ("message", "It rains.", "completed")
    of_summary = [event for event in told if "summary_index" in event]
    kinds = [event["type"].removeprefix("response.reasoning_summary_") for event in of_summary]
    assert kinds == ["part.added", *["text.delta"] * (len(kinds) - 3), "text.done", "part.done"]
    for event in of_summary:
        OF_THE_SDK.validate_python(event)
    back = read_responses_request({"input": [{"role": "user", "content": "Hi."}, reasoning, message]})
    assert back.generation.request.messages[1]["reasoning_content"] == "We see."


@pytest.mark.parametrize("style", ["hermes", "hermes_2_pro"])
@pytest.mark.parametrize("asked", [{"top_logprobs": 1}, {"include": ["message.output_text.logprobs"]}])
def test_the_tokens_of_a_text_tell_how_likely_they_were(asked: Any, style: str) -> None:
    thought = THOUGHT[:-2] if style == "hermes" else []
    told = events([*thought, "It ", "rains.", *((CALL[:9], CALL[9:], " So.") if not thought else ())], style, asked)
    messages = [item for item in grown(told) if item["type"] == "message"]
    texts = [[one["token"] for one in item["content"][0]["logprobs"]] for item in messages]
    assert texts == ([["It ", "rains."]] if thought else [["It ", "rains."], [" So."]])
    logprobs = [one for event in told if event["type"] == "response.output_text.delta" for one in event["logprobs"]]
    assert logprobs == [one for item in messages for one in item["content"][0]["logprobs"]]
    for event in told:
        if "logprobs" in event:
            OF_THE_SDK.validate_python(event)
