"""LangChain's ChatOpenAI against the embedded model."""

from __future__ import annotations

from typing import Any, Literal

import openai
import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, SecretStr

KEY = "sk-right"
ASK = "What is the weather in Paris?"


class Report(BaseModel):
    """The weather of a city."""

    city: str = Field(max_length=12)
    sky: Literal["clear", "cloudy"]


@tool
def get_weather(city: Literal["Paris", "Rome"], unit: Literal["C", "F"]) -> str:
    """Get the weather of a city."""
    return f"It is 21 {unit} in {city}."


@pytest.fixture(scope="module")
def model(address: str) -> ChatOpenAI:
    return chat(address)


def chat(address: str, name: str = "smollm2", key: str = KEY, **options: Any) -> ChatOpenAI:
    url, secret = f"{address}/v1", SecretStr(key)
    return ChatOpenAI(model=name, base_url=url, api_key=secret, temperature=0, max_retries=0, **options)


def test_text_and_what_it_cost(model: ChatOpenAI) -> None:
    said = model.invoke(ASK, max_tokens=8)
    assert said.content
    assert isinstance(said, AIMessage)
    assert said.usage_metadata
    assert said.usage_metadata["output_tokens"] == 8
    assert said.response_metadata["finish_reason"] == "length"


def test_a_stream_adds_up_to_the_whole(address: str) -> None:
    model = chat(address, stream_usage=True, max_tokens=8)
    chunks = list(model.stream(ASK))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    assert isinstance(whole, AIMessageChunk)
    assert whole.content == model.invoke(ASK).content
    assert whole.usage_metadata
    assert whole.usage_metadata["output_tokens"] == 8


def test_a_tool_loop_to_a_final_answer(model: ChatOpenAI) -> None:
    turns: list[BaseMessage] = [HumanMessage(ASK)]
    asking = model.bind_tools([get_weather], tool_choice="any", parallel_tool_calls=False)
    turns.append(said := asking.invoke(turns))
    (call,) = said.tool_calls
    turns.append(result := get_weather.invoke(call))
    assert isinstance(result, ToolMessage)
    assert "21" in str(result.content)
    final = model.bind_tools([get_weather], tool_choice="none").invoke(turns, max_tokens=8)
    assert final.content
    assert not final.tool_calls


def test_chunks_of_calls_add_up(model: ChatOpenAI) -> None:
    bound = model.bind_tools([get_weather], tool_choice="get_weather", parallel_tool_calls=False)
    chunks = list(bound.stream(ASK))
    assert sum(chunk.tool_call_chunks[0]["name"] is not None for chunk in chunks if chunk.tool_call_chunks) == 1
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    (call,) = whole.tool_calls
    assert get_weather.invoke(call).content
    assert not whole.invalid_tool_calls


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(model: ChatOpenAI, method: Literal["json_schema", "function_calling"]) -> None:
    assert isinstance(model.with_structured_output(Report, method=method).invoke(ASK), Report)


def test_structured_output_in_a_stream(model: ChatOpenAI) -> None:
    assert isinstance(list(model.with_structured_output(Report, method="json_schema").stream(ASK))[-1], Report)


def test_the_responses_api(address: str) -> None:
    model = chat(address, use_responses_api=True)
    bound = model.bind_tools([get_weather], tool_choice="any", parallel_tool_calls=False)
    said = bound.invoke(ASK)
    (call,) = said.tool_calls
    turns = [HumanMessage(ASK), said, get_weather.invoke(call)]
    final = model.bind_tools([get_weather], tool_choice="none", parallel_tool_calls=False)
    assert final.invoke(turns, max_tokens=16).text
    assert isinstance(model.with_structured_output(Report).invoke(ASK), Report)


def test_errors_are_told(model: ChatOpenAI, address: str) -> None:
    with pytest.raises(ContextOverflowError, match="length is 2048"):
        model.invoke("word " * 3000)
    with pytest.raises(openai.NotFoundError):
        chat(address, "other").invoke(ASK)
    with pytest.raises(openai.AuthenticationError):
        chat(address, key="wrong").invoke(ASK)
    with pytest.raises(openai.InternalServerError):
        chat(address, "away").invoke(ASK)
    said: list[str] = []
    with pytest.raises(openai.APIError, match="broken, as asked"):
        said.extend(chunk.text for chunk in chat(address, "cut").stream(ASK))
    assert "".join(said) == "word word word "
