"""Frameworks ask the server for tools of MCP servers that it is configured with, and it runs them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from pydantic_ai import Agent, MCPServerTool, NativeToolCallPart, NativeToolReturnPart
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from live_server import serving
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

DEMO = str(Path(__file__).parents[1] / "agent" / "mcp_demo.py")
CONFIG: Any = {"mcpServers": {"demo": {"command": sys.executable, "args": [DEMO]}}}
ASK = "What is 1 + 2?"
RESULT = "<|im_start|>tool\n3<|im_end|>"


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


TURNS = (list(call("demo_add", a=1, b=2)), list("It is 3."))


@contextmanager
def running(*turns: list[str]) -> Iterator[tuple[str, Replay]]:
    engine = Replay(*turns)
    with serving(engine, Settings(mcp=CONFIG, style="hermes_2_pro")) as address:
        yield f"{address}/v1", engine


@pytest.mark.parametrize("streamed", [False, True])
def test_pydantic_ai(streamed: bool) -> None:
    with running(*TURNS, list("Indeed.")) as (url, engine):
        model = OpenAIResponsesModel("recorded", provider=OpenAIProvider(base_url=url, api_key="any"))
        tool = MCPServerTool(id="demo", url="http://127.0.0.1:9/never-dialled", allowed_tools=["add"])
        agent = Agent(model, capabilities=[NativeTool(tool)])

        async def ask() -> Any:
            if not streamed:
                return await agent.run(ASK)
            async with agent.run_stream(ASK) as run:
                await run.get_output()
            return run

        first = asyncio.run(ask())
        parts = [part for message in first.all_messages() for part in message.parts]
        calls = [part for part in parts if isinstance(part, NativeToolCallPart)]
        returns = [part for part in parts if isinstance(part, NativeToolReturnPart)]
        assert [part.tool_name for part in calls] == ["mcp_server:demo"] * 2  # it listed, and it called
        assert calls[1].args_as_dict()["tool_args"] == {"a": 1, "b": 2}
        assert "3" in str(returns[1].content)
        whole: Any = {
            "openai_send_reasoning_ids": True
        }  # else it leaves out what the server ran, with it the results alone
        second = agent.run_sync("Really?", message_history=first.all_messages(), model_settings=whole)
    assert second.output == "Indeed."
    assert RESULT in engine.calls[1].text
    assert "What came of this call was not kept." in engine.calls[2].text


@pytest.mark.parametrize("streamed", [False, True])
def test_langchain(streamed: bool) -> None:
    with running(*TURNS) as (url, engine):
        model = ChatOpenAI(
            model="recorded", base_url=url, api_key=SecretStr("any"), use_responses_api=True, max_retries=0
        ).bind_tools([{"type": "mcp", "server_label": "demo", "allowed_tools": ["add"], "require_approval": "never"}])
        if streamed:
            answer: Any = None
            for piece in model.stream(ASK):
                answer = piece if answer is None else answer + piece
        else:
            answer = model.invoke(ASK)
    assert answer.text == "It is 3."
    assert {block["type"] for block in answer.content} == {"mcp_list_tools", "mcp_call", "text"}
    (called,) = (block for block in answer.content if block["type"] == "mcp_call")
    assert called["output"] == "3"
    assert RESULT in engine.calls[1].text
