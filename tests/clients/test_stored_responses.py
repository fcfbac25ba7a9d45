"""LangChain and pydantic-ai go on from responses that the server keeps, on recorded answers."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.openai import OpenAIProvider

from live_server import serving
from situations import CHATML
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
SETTINGS = Settings(style="hermes_2_pro")
ANY = SecretStr("any")


def test_langchain_sends_what_is_new_alone() -> None:
    engine = Replay("Hello.", "Again.")
    with serving(engine, SETTINGS, CHATML) as address:
        model = ChatOpenAI(model="recorded", base_url=f"{address}/v1", api_key=ANY, use_previous_response_id=True)
        said = [SystemMessage("Be brief."), HumanMessage("Hi.")]
        first = model.invoke(said)
        second = model.invoke([*said, first, HumanMessage("Go on.")])
    assert (first.text, second.text) == ("Hello.", "Again.")
    assert [engine.calls[1].text.count(word) for word in ("Be brief.", "Hi.", "Hello.", "Go on.")] == [1, 1, 1, 1]


def test_langchain_keeps_its_thoughts_in_a_stream() -> None:
    """It sends them back as an id alone."""
    engine = Replay(f"<think>\nOne and two.\n</think>\n\n{CALL}", "It is 3.")
    add = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
    with serving(engine, Settings(style="hermes"), CHATML) as address:
        model = ChatOpenAI(model="recorded", base_url=f"{address}/v1", api_key=ANY, use_responses_api=True)
        said: list[Any] = [HumanMessage("1 + 2?")]
        first, *more = model.bind_tools([add]).stream(said)
        for chunk in more:
            first = first + chunk
        said += [first, ToolMessage("3", tool_call_id=first.tool_calls[0]["id"])]
        model.bind_tools([add]).invoke(said)
    assert "One and two." in engine.calls[1].text


def test_pydantic_ai_goes_through_a_tool_loop() -> None:
    engine = Replay(CALL, "It is 3.")
    with serving(engine, SETTINGS, CHATML) as address:
        provider = OpenAIProvider(base_url=f"{address}/v1", api_key="any")
        settings = OpenAIResponsesModelSettings(openai_previous_response_id="auto")
        agent = Agent(OpenAIResponsesModel("recorded", provider=provider), model_settings=settings)

        @agent.tool_plain
        def add(a: int, b: int) -> int:
            return a + b

        said = agent.run_sync("1 + 2?")
    assert said.output == "It is 3."
    assert [engine.calls[1].text.count(told) for told in ("1 + 2?", CALL, "<|im_start|>tool\n3")] == [1, 1, 1]
