"""OpenAI's own SDK against the embedded model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, Field

KEY = "sk-right"
ASK: Any = {"role": "user", "content": "What is the weather in Paris and in Rome?"}
# Of SmolLM2: a model of this size ends after one call, unless its ends (and two line breaks, after which only an end
# comes) are ruled out, and the beginning of a tag is made likely.
ANOTHER_CALL = {"0": -100, "2": -100, "4": -100, "1116": -100, "44": 8}
OPTIONS: Any = {"model": "smollm2", "temperature": 0}


class Weather(BaseModel):
    """The weather of a city."""

    city: str = Field(max_length=12)
    unit: Literal["C", "F"]


class Report(BaseModel):
    city: str = Field(max_length=12)
    degrees: int = Field(ge=-40, le=50)
    sky: Literal["clear", "cloudy"]


TOOL: Any = openai.pydantic_function_tool(Weather, name="get_weather")
FLAT: Any = {"type": "function", **TOOL["function"]}


@pytest.fixture(scope="module")
def client(address: str) -> OpenAI:
    return OpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0)


def test_the_helper_of_streams_gives_what_was_said(client: OpenAI) -> None:
    options: Any = {**OPTIONS, "messages": [ASK], "extra_body": {"regex": "[A-Z][a-z ]{5,30}"}}
    with client.chat.completions.stream(**options) as stream:
        said = "".join(event.delta for event in stream if event.type == "content.delta")
        final = stream.get_final_completion().choices[0]
    whole = client.chat.completions.create(**options)
    assert said == final.message.content == whole.choices[0].message.content
    assert final.finish_reason == whole.choices[0].finish_reason == "stop"


def test_the_helper_of_streams_parses_calls(client: OpenAI) -> None:
    options = {**OPTIONS, "messages": [ASK], "tools": [TOOL], "tool_choice": "required"}
    with client.chat.completions.stream(**options, parallel_tool_calls=False) as stream:
        events = list(stream)
        final = stream.get_final_completion().choices[0]
    (call,) = final.message.tool_calls or ()
    assert isinstance(call.function.parsed_arguments, Weather)
    pieces = [event for event in events if event.type == "tool_calls.function.arguments.delta"]
    assert "".join(piece.arguments_delta for piece in pieces) == call.function.arguments
    assert sum(event.type == "tool_calls.function.arguments.done" for event in events) == 1
    assert final.finish_reason == "tool_calls"


def test_calls_in_parallel_are_told_apart(client: OpenAI) -> None:
    options: Any = {"model": "smollm2", "messages": [ASK], "tools": [TOOL], "tool_choice": "required", "n": 2}
    options |= {"temperature": 1, "seed": 1, "max_tokens": 90, "parallel_tool_calls": True}
    options["logit_bias"] = ANOTHER_CALL
    said: list[dict[int, list[str]]] = [{}, {}]
    for chunk in client.chat.completions.create(**options, stream=True):
        calls = said[chunk.choices[0].index]
        for call in chunk.choices[0].delta.tool_calls or ():
            if call.id is not None:
                assert call.index == len(calls)
                calls[call.index] = [call.id, ""]
            calls[call.index][1] += call.function.arguments or ""
    assert max(map(len, said)) > 1
    assert len({id_ for calls in said for id_, _ in calls.values()}) == sum(map(len, said))
    for calls in said:
        for index, (_, arguments) in calls.items():
            if index < len(calls) - 1:  # the last one may be cut off
                Weather.model_validate_json(arguments)


def test_a_tool_loop_to_a_final_answer(client: OpenAI) -> None:
    create = client.chat.completions.create
    messages: list[Any] = [ASK]
    options: Any = {**OPTIONS, "tools": [TOOL], "parallel_tool_calls": False}
    first = create(messages=messages, tool_choice="required", **options).choices[0]
    messages.append(first.message)
    for call in first.message.tool_calls or ():
        asked = Weather.model_validate_json(call.function.arguments)  # type: ignore[union-attr] - a function
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"21 {asked.unit}"})
    assert len(messages) > 2
    second = create(messages=messages, tool_choice="none", max_tokens=12, **options).choices[0]
    assert second.message.content
    assert not second.message.tool_calls


def test_parse(client: OpenAI) -> None:
    answer = client.chat.completions.parse(messages=[ASK], response_format=Report, **OPTIONS)
    assert isinstance(answer.choices[0].message.parsed, Report)
    options: Any = {**OPTIONS, "tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    (call,) = client.chat.completions.parse(messages=[ASK], **options).choices[0].message.tool_calls or ()
    assert isinstance(call.function.parsed_arguments, Weather)


def test_parse_of_an_answer_that_was_cut_off(client: OpenAI) -> None:
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(messages=[ASK], response_format=Report, max_tokens=3, **OPTIONS)


def test_responses_parse(client: OpenAI) -> None:
    answer = client.responses.parse(input="What is the weather in Paris?", text_format=Report, **OPTIONS)
    assert isinstance(answer.output_parsed, Report)
    assert answer.usage
    assert answer.usage.input_tokens > 10


def test_responses_stream(client: OpenAI) -> None:
    options = {**OPTIONS, "input": [ASK], "tools": [FLAT], "tool_choice": "required"}
    options["parallel_tool_calls"] = False
    with client.responses.stream(**options) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events if event.sequence_number] == list(range(1, len(events)))
    calls = [item for item in final.output if item.type == "function_call"]
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert [call.arguments for call in calls] == [event.arguments for event in done]
    for call in calls:
        Weather.model_validate_json(call.arguments)
    with client.responses.stream(input=[ASK], text_format=Report, **OPTIONS) as stream:
        said = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        assert Report.model_validate_json(said) == stream.get_final_response().output_parsed


def test_a_loop_of_responses_to_a_final_answer(client: OpenAI) -> None:
    given: list[Any] = [ASK]
    tools: Any = {**OPTIONS, "tools": [FLAT], "parallel_tool_calls": False}
    first = client.responses.create(input=given, tool_choice="required", **tools)
    given += first.output
    calls = [item for item in first.output if item.type == "function_call"]
    given += [{"type": "function_call_output", "call_id": call.call_id, "output": "21"} for call in calls]
    assert calls
    assert client.responses.create(input=given, tool_choice="none", max_output_tokens=16, **tools).output_text


def test_a_custom_tool(client: OpenAI) -> None:
    format_ = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-z]{3,9}"}}
    tool: Any = {"type": "custom", "custom": {"name": "say", "format": format_}}
    options: Any = {**OPTIONS, "tools": [tool], "tool_choice": "required", "parallel_tool_calls": False}
    (call,) = client.chat.completions.create(messages=[ASK], **options).choices[0].message.tool_calls or ()
    assert call.type == "custom"
    assert call.custom.input.islower()


def test_tokens_of_an_input_are_counted_as_they_are_used(client: OpenAI) -> None:
    tool: Any = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
    said: Any = {"model": "smollm2", "input": "Hi.", "instructions": "Be brief.", "tools": [tool]}
    counted = client.responses.input_tokens.count(**said)
    usage = client.responses.create(**said, max_output_tokens=16).usage
    assert counted.object == "response.input_tokens"
    assert usage is not None
    assert counted.input_tokens == usage.input_tokens


def test_asynchronous_use(address: str) -> None:
    asyncio.run(_asynchronous_use(address))


async def _asynchronous_use(address: str) -> None:
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0) as client:
        stream = await client.chat.completions.create(messages=[ASK], max_tokens=4, stream=True, **OPTIONS)
        assert [chunk async for chunk in stream][-1].choices[0].finish_reason == "length"


def test_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["smollm2", "broken", "away", "cut"]
    assert client.models.retrieve("gpt-4o-mini").id == "smollm2"


LONG: Any = {"role": "user", "content": "word " * 3000}
STRICT: Any = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {"uniqueItems": True}}}


@pytest.mark.parametrize(
    ("options", "kind", "status", "code"),
    [
        ({"model": "other"}, openai.NotFoundError, 404, "model_not_found"),
        ({"messages": [LONG]}, openai.BadRequestError, 400, "context_length_exceeded"),
        ({"response_format": STRICT}, openai.BadRequestError, 400, "unsupported_schema"),
        ({"n": 0}, openai.BadRequestError, 400, "invalid_value"),
        ({"model": "broken"}, openai.InternalServerError, 502, "engine_error"),
        ({"model": "away"}, openai.InternalServerError, 503, "unavailable"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_the_sdks_exceptions(
    client: OpenAI, options: Any, kind: type[openai.APIStatusError], status: int, code: str, stream: bool
) -> None:
    with pytest.raises(kind) as caught:
        client.chat.completions.create(**{**OPTIONS, "messages": [ASK], "stream": stream, **options})
    assert (caught.value.status_code, caught.value.code) == (status, code)


def test_a_fault_in_a_stream_is_an_exception_behind_what_was_said(client: OpenAI) -> None:
    said: list[str] = []
    chunks = client.chat.completions.create(model="cut", messages=[ASK], stream=True)
    with pytest.raises(openai.APIError, match="broken, as asked"):
        said.extend(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert "".join(said) == "word word word "
    kinds: list[str] = []
    stream = client.responses.stream(model="cut", input="Hi.")
    with stream as events, pytest.raises(openai.APIError, match="broken, as asked"):
        kinds.extend(event.type for event in events)
    assert kinds[-1] == "response.output_item.done"


def test_a_wrong_key(address: str) -> None:
    with pytest.raises(openai.AuthenticationError):
        OpenAI(base_url=f"{address}/v1", api_key="wrong").models.list()


def test_limits(narrow: str) -> None:
    client = OpenAI(base_url=f"{narrow}/v1", api_key=KEY, max_retries=0)

    def raised(kind: type[openai.APIStatusError], ask: Callable[[], object]) -> openai.APIStatusError:
        with pytest.raises(kind) as caught:
            ask()
        return caught.value

    create = client.chat.completions.create
    assert raised(openai.APIStatusError, lambda: create(model="slow", messages=[LONG])).status_code == 413
    stream = create(model="slow", messages=[ASK], stream=True)
    next(iter(stream))
    busy = raised(openai.RateLimitError, lambda: create(model="slow", messages=[ASK]))
    assert int(busy.response.headers["retry-after"]) >= 1
    with pytest.raises(openai.APIError, match="longer than 1 seconds"):
        list(stream)
    assert raised(openai.InternalServerError, lambda: create(model="slow", messages=[ASK])).status_code == 504
