"""Anthropic's own SDK against the embedded model."""

from __future__ import annotations

from typing import Any, Literal

import anthropic
import pytest
from anthropic import Anthropic
from pydantic import BaseModel, Field

KEY = "sk-right"
ASK: Any = {"role": "user", "content": "What is the weather in Paris?"}
OPTIONS: Any = {"model": "smollm2", "max_tokens": 100, "extra_body": {"temperature": 0}}


class Weather(BaseModel):
    city: str = Field(max_length=12)
    unit: Literal["C", "F"]


TOOL: Any = {
    "name": "get_weather",
    "description": "Get the weather of a city.",
    "input_schema": Weather.model_json_schema(),
}
ONE_CALL: Any = {"type": "any", "disable_parallel_tool_use": True}


@pytest.fixture(scope="module")
def client(address: str) -> Anthropic:
    return Anthropic(base_url=address, api_key=KEY, max_retries=0)


def test_the_helper_of_streams_gives_what_was_said(client: Anthropic) -> None:
    options = {**OPTIONS, "messages": [ASK], "system": "Be brief.", "max_tokens": 12}
    with client.messages.stream(**options) as stream:
        said = "".join(stream.text_stream)
        final = stream.get_final_message()
    whole = client.messages.create(**options)
    assert [block.model_dump()["text"] for block in whole.content] == [said]
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)
    assert final.stop_reason == "max_tokens"
    assert whole.usage.input_tokens + (whole.usage.cache_read_input_tokens or 0) > 10


def test_a_tool_loop_to_a_final_answer(client: Anthropic) -> None:
    messages: list[Any] = [ASK]
    with client.messages.stream(messages=messages, tools=[TOOL], tool_choice=ONE_CALL, **OPTIONS) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        first = stream.get_final_message()
    assert first.stop_reason == "tool_use"
    (call,) = [block for block in first.content if block.type == "tool_use"]
    assert Weather.model_validate(call.input) == Weather.model_validate_json("".join(pieces))
    result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "21 C"}
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = client.messages.create(
        messages=messages, tools=[TOOL], tool_choice={"type": "none"}, **{**OPTIONS, "max_tokens": 12}
    )
    assert [block.type for block in second.content] == ["text"]


def test_a_named_tool(client: Anthropic) -> None:
    other: Any = {**TOOL, "name": "other"}
    choice: Any = {"type": "tool", "name": "other", "disable_parallel_tool_use": True}
    said = client.messages.create(messages=[ASK], tools=[TOOL, other], tool_choice=choice, **OPTIONS)
    assert [block.name for block in said.content if block.type == "tool_use"] == ["other"]


def test_parse(client: Anthropic) -> None:
    said = client.messages.parse(messages=[ASK], output_format=Weather, **OPTIONS)
    assert isinstance(said.parsed_output, Weather)


def test_the_runner_of_tools_runs_to_a_final_answer(client: Anthropic) -> None:
    asked: list[str] = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """Get the weather of a city."""
        asked.append(city)
        return "21 C"

    must: Any = {**OPTIONS, "tool_choice": {"type": "any"}}
    runner = client.beta.messages.tool_runner(messages=[ASK], tools=[get_weather], max_iterations=2, **must)
    final = runner.until_done()
    assert asked  # though the SDK would have the server keep the conversation, and is told that it does not
    assert final.stop_reason in ("end_turn", "tool_use", "max_tokens")


def test_a_conversation_that_the_server_would_have_to_keep_is_refused_as_the_sdk_expects(client: Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(messages=[ASK], **{**OPTIONS, "extra_body": {"thread": {"type": "continue"}}})
    assert isinstance(refused.value.body, dict)
    error = refused.value.body["error"]
    assert error["details"]["error_code"] == "thread_unsupported_request"


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_sequence_is_told(client: Anthropic, stream: bool) -> None:
    options: Any = {**OPTIONS, "messages": [ASK], "stop_sequences": ["zzz", "e", "a"]}
    if stream:
        with client.messages.stream(**options) as events:
            said = events.get_final_message()
    else:
        said = client.messages.create(**options)
    assert said.stop_reason == "stop_sequence"
    assert said.stop_sequence in ("e", "a")


def test_tokens_are_counted_as_they_are_used(client: Anthropic) -> None:
    counted = client.messages.count_tokens(model="smollm2", messages=[ASK], tools=[TOOL]).input_tokens
    usage = client.messages.create(messages=[ASK], tools=[TOOL], **{**OPTIONS, "max_tokens": 1}).usage
    assert counted == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_models(client: Anthropic) -> None:
    assert [model.id for model in client.models.list()] == ["smollm2", "broken", "away", "cut"]
    model = client.models.retrieve("smollm2")
    assert model.display_name == "smollm2"
    assert (model.max_input_tokens or 0) > 0


def test_what_there_is_not_is_told_as_anthropic_does(client: Anthropic) -> None:
    for asked in (client.messages.batches.list, client.beta.files.list, lambda: client.models.retrieve("other")):
        with pytest.raises(anthropic.NotFoundError) as raised:
            asked()
        assert raised.value.type == "not_found_error"
        assert raised.value.request_id


LONG: Any = {"role": "user", "content": "word " * 3000}
ORPHAN: Any = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "3"}]}


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        ({"model": "other"}, anthropic.NotFoundError, "no model"),
        ({"messages": [LONG]}, anthropic.BadRequestError, r"prompt is too long: 3\d+ tokens > \d+ maximum"),
        ({"messages": [ORPHAN]}, anthropic.BadRequestError, "/messages/0/content/0/tool_use_id"),
        ({"tools": [{**TOOL, "input_schema": {"type": 1}}]}, anthropic.BadRequestError, "/tools/0/input_schema"),
        ({"model": "broken"}, anthropic.InternalServerError, "broken, as asked"),
        ({"model": "away"}, anthropic.ServiceUnavailableError, "not within reach"),
    ],
)
def test_errors_are_the_sdks_exceptions(
    client: Anthropic, options: Any, kind: type[anthropic.APIStatusError], told: str
) -> None:
    with pytest.raises(kind, match=told):
        client.messages.create(**{**OPTIONS, "messages": [ASK], **options})
    with pytest.raises(kind, match=told), client.messages.stream(**{**OPTIONS, "messages": [ASK], **options}):
        pass


def test_a_fault_in_a_stream_is_an_exception_behind_what_was_said(client: Anthropic) -> None:
    said: list[str] = []
    with (
        client.messages.stream(model="cut", max_tokens=9, messages=[ASK]) as stream,
        pytest.raises(anthropic.APIError, match="broken, as asked"),
    ):
        said.extend(stream.text_stream)
    assert "".join(said) == "word word word "


def test_a_wrong_key(address: str) -> None:
    with pytest.raises(anthropic.AuthenticationError):
        Anthropic(base_url=address, api_key="wrong").messages.create(messages=[ASK], **OPTIONS)


def test_limits(narrow: str) -> None:
    client = Anthropic(base_url=narrow, api_key=KEY, max_retries=0)
    options: Any = {"model": "slow", "max_tokens": 9, "messages": [ASK]}
    with pytest.raises(anthropic.RequestTooLargeError):
        client.messages.create(**{**options, "system": "long " * 1000})
    stream = iter(client.messages.create(**options, stream=True))
    next(stream)
    with pytest.raises(anthropic.RateLimitError):
        client.messages.create(**options)
    with pytest.raises(anthropic.APIError, match="longer than 1 seconds"):
        list(stream)
