"""litellm against the embedded model, as a server of OpenAI's, of Anthropic's and of Ollama's API."""

from __future__ import annotations

import os
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field
from pydantic_core import from_json

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else its import asks a server for prices

import litellm

KEY = "sk-right"
ASK: Any = [{"role": "user", "content": "What is the weather in Paris?"}]


class Report(BaseModel):
    city: str = Field(max_length=12)
    sky: Literal["clear", "cloudy"]


TOOL: Any = {
    "type": "function",
    "function": {"name": "report", "description": "Report the weather.", "parameters": Report.model_json_schema()},
}


@pytest.fixture(params=["openai", "anthropic"])
def options(request: pytest.FixtureRequest, address: str) -> dict[str, Any]:
    return of(address, "smollm2", request.param)


def of(address: str, name: str, kind: str = "openai", key: str = KEY) -> dict[str, Any]:
    base = f"{address}/v1" if kind == "openai" else address
    known = {"model": f"{kind}/{name}", "api_base": base, "api_key": key, "num_retries": 0, "max_retries": 0}
    return {**known, "messages": ASK, "temperature": 0, "max_tokens": 100}


def test_text_and_its_stream(options: dict[str, Any]) -> None:
    options["max_tokens"] = 8
    whole: Any = litellm.completion(**options)
    chunks: Any = list(litellm.completion(**options, stream=True, stream_options={"include_usage": True}))
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "length"
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens == 8


def test_a_tool_loop_to_a_final_answer(options: dict[str, Any]) -> None:
    options |= {"tools": [TOOL], "parallel_tool_calls": False}
    first: Any = litellm.completion(**options, tool_choice="required")
    (call,) = first.choices[0].message.tool_calls
    Report.model_validate_json(call.function.arguments)
    assert first.choices[0].finish_reason == "tool_calls"
    result = {"role": "tool", "tool_call_id": call.id, "content": "Reported."}
    options |= {"messages": [*ASK, first.choices[0].message.model_dump(exclude_none=True), result], "max_tokens": 8}
    second: Any = litellm.completion(**options, tool_choice="none")
    assert second.choices[0].message.content
    assert not second.choices[0].message.tool_calls


def test_a_stream_of_calls(options: dict[str, Any]) -> None:
    options |= {"tools": [TOOL], "parallel_tool_calls": False, "tool_choice": "required"}
    chunks: Any = list(litellm.completion(**options, stream=True))
    whole: Any = litellm.stream_chunk_builder(chunks, messages=ASK)
    (call,) = whole.choices[0].message.tool_calls
    Report.model_validate_json(call.function.arguments)


def test_response_format(options: dict[str, Any]) -> None:
    if options["model"].startswith("anthropic"):
        pytest.skip("litellm gives a response format only to models of Anthropic's that it knows")
    said: Any = litellm.completion(**options, response_format=Report)
    Report.model_validate_json(said.choices[0].message.content)
    loose: Any = litellm.completion(**options, response_format={"type": "json_object"})
    # Any object will do, of any length: it may be cut at 100 tokens, and is JSON up to there.
    cut = "trailing-strings" if loose.choices[0].finish_reason == "length" else False
    assert isinstance(from_json(loose.choices[0].message.content, allow_partial=cut), dict)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_errors_are_its_exceptions(address: str, kind: str) -> None:
    long = [{"role": "user", "content": "word " * 3000}]
    with pytest.raises(litellm.ContextWindowExceededError):
        litellm.completion(**{**of(address, "smollm2", kind), "messages": long})
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(**of(address, "other", kind))
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(**of(address, "smollm2", kind, "wrong"))
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(**{**of(address, "smollm2", kind), "temperature": 101})
    away = litellm.ServiceUnavailableError if kind == "openai" else litellm.InternalServerError
    with pytest.raises(away):  # Anthropic's word for it is that the server is overloaded
        litellm.completion(**of(address, "away", kind))


def test_limits(narrow: str) -> None:
    stream: Any = litellm.completion(**of(narrow, "slow"), stream=True)
    next(stream)
    with pytest.raises(litellm.RateLimitError):
        litellm.completion(**of(narrow, "slow"))


def test_as_a_server_of_ollamas_api(address: str) -> None:
    options = of(address, "smollm2", "ollama_chat")
    form = {"type": "json_schema", "json_schema": {"name": "report", "schema": Report.model_json_schema()}}
    for more in ({"max_tokens": 8}, {"response_format": form}):
        whole: Any = litellm.completion(**{**options, **more})
        chunks: Any = list(litellm.completion(**{**options, **more}, stream=True))
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert said == whole.choices[0].message.content
    Report.model_validate_json(said)
    assert whole.usage.prompt_tokens > 9
    result = {"role": "tool", "tool_call_id": "a", "content": "Clear."}
    call = {"id": "a", "type": "function", "function": {"name": "report", "arguments": '{"city": "Paris"}'}}
    turns = [*ASK, {"role": "assistant", "content": "", "tool_calls": [call]}, result]
    answer: Any = litellm.completion(**{**options, "messages": turns, "tools": [TOOL], "max_tokens": 8})
    assert answer.choices[0].finish_reason in ("length", "stop", "tool_calls")
    with pytest.raises(litellm.NotFoundError, match="there is no model"):
        litellm.completion(**of(address, "other", "ollama_chat"))
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(**of(address, "smollm2", "ollama_chat", key="wrong"))
