"""pydantic-ai against the embedded model, over the APIs of OpenAI and of Anthropic."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelHTTPError, NativeOutput, RunContext, Tool, ToolDefinition
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

KEY = "sk-right"
ASK = "What is the weather in Paris?"
SETTINGS: Any = {"temperature": 0, "max_tokens": 120, "parallel_tool_calls": False}


class Report(BaseModel):
    """The weather of a city."""

    city: str = Field(max_length=12)
    sky: Literal["clear", "cloudy"]


@pytest.fixture(params=["chat", "responses", "anthropic"])
def model(request: pytest.FixtureRequest, address: str) -> Model:
    if request.param == "anthropic":
        return AnthropicModel("smollm2", provider=AnthropicProvider(base_url=address, api_key=KEY))
    kind = OpenAIChatModel if request.param == "chat" else OpenAIResponsesModel
    return kind("smollm2", provider=provider(address))


def provider(address: str, key: str = KEY) -> OpenAIProvider:
    return OpenAIProvider(base_url=f"{address}/v1", api_key=key)


def weather(asked: list[str]) -> Tool[None]:
    """A tool that is there until it was used: a model this small would ask for ever."""

    def get_weather(city: Literal["Paris", "Rome"]) -> str:
        """Get the weather of a city."""
        asked.append(city)
        return "The sky is clear."

    async def once(_context: RunContext[None], tool: ToolDefinition) -> ToolDefinition | None:
        return None if asked else tool

    return Tool(get_weather, prepare=once)


def test_text(model: Model) -> None:
    result = Agent(model).run_sync(ASK, model_settings={"temperature": 0, "max_tokens": 8})
    assert result.output
    assert result.usage.output_tokens == 8


def test_an_agent_with_a_tool_and_an_output(model: Model) -> None:
    asked: list[str] = []
    agent = Agent(model, output_type=Report, tools=[weather(asked)], model_settings=SETTINGS)
    result = agent.run_sync(ASK)
    assert isinstance(result.output, Report)
    assert len(asked) <= 1


def test_a_native_output(model: Model) -> None:
    if isinstance(model, AnthropicModel):
        pytest.skip("pydantic-ai asks for it only of models of Anthropic's that it knows")
    agent = Agent(model, output_type=NativeOutput(Report), model_settings=SETTINGS)
    assert isinstance(agent.run_sync(ASK).output, Report)


def test_streams(model: Model) -> None:
    async def run() -> tuple[list[Report], list[Any]]:
        agent = Agent(model, output_type=Report, model_settings=SETTINGS)
        async with agent.run_stream(ASK) as stream:
            grown = [output async for output in stream.stream_output(debounce_by=None)]
        async with agent.run_stream_events(ASK) as events:
            return grown, [event async for event in events]

    grown, events = asyncio.run(run())
    assert isinstance(grown[-1], Report)
    starts = [event for event in events if isinstance(event, PartStartEvent) and isinstance(event.part, ToolCallPart)]
    assert len(starts) == 1
    assert any(isinstance(event, PartDeltaEvent) for event in events)


def test_errors_are_told(address: str) -> None:
    for name, key, status in (("other", KEY, 404), ("broken", KEY, 502), ("smollm2", "wrong", 401)):
        with pytest.raises(ModelHTTPError) as caught:
            Agent(OpenAIChatModel(name, provider=provider(address, key))).run_sync(ASK)
        assert caught.value.status_code == status
