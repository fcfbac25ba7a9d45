"""LangGraph drives the server: a graph of a model and its tools, which run until the model has an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import SecretStr

from clients.scripted import Scripted
from live_server import serving
from situations import CHATML
from toolgram.conversation.message import Message, ToolCall
from toolgram.server.settings import Settings
from toolgram.styles.registry import find_style

TASK = "What do two teas and a cake cost?"
TURNS = (
    Message(None, None, (ToolCall("price", '{"item": "tea"}', None), ToolCall("price", '{"item": "cake"}', None))),
    Message(None, None, (ToolCall("total", '{"prices": [2.5, 2.5, 4.0]}', None),)),
    Message("They cost 9 euros.", None, ()),
)
STYLES = ("hermes", "hermes_2_pro", "mistral_nemo", "qwen_xml")  # which call two tools in one turn


@tool
def price(item: str) -> float:
    """The price of an item."""
    return {"tea": 2.5, "cake": 4.0}[item]


@tool
def total(prices: list[float]) -> float:
    """The sum of some prices."""
    return sum(prices)


def graph(address: str, api: str) -> Any:
    """A model that calls, and what runs its calls."""
    model = ChatOpenAI(
        model="any", base_url=f"{address}/v1", api_key=SecretStr("none"), use_responses_api=api == "responses",
        temperature=0, max_retries=0,
    )  # fmt: skip
    asked = model.bind_tools([price, total])

    def ask(state: MessagesState) -> dict[str, Sequence[AnyMessage]]:
        return {"messages": [asked.invoke(state["messages"])]}

    built: Any = StateGraph(MessagesState)
    built.add_node("model", ask)
    built.add_node("tools", ToolNode([price, total]))
    built.add_edge(START, "model")
    built.add_conditional_edges("model", tools_condition)
    built.add_edge("tools", "model")
    return built.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_graph_calls_tools_until_it_has_an_answer(style: str, api: str) -> None:
    known = find_style(style)
    assert known is not None
    engine = Scripted(known, TASK, TURNS)
    with serving(engine, Settings(style=style, any_model_name=True), CHATML) as address:
        made, thread = graph(address, api), {"configurable": {"thread_id": "1"}}
        steps = list(made.stream({"messages": [("user", TASK)]}, thread, stream_mode="updates"))
        messages = made.get_state(thread).values["messages"]
    assert engine.refused is None
    assert [next(iter(step)) for step in steps] == ["model", "tools", "model", "tools", "model"]
    assert [json.loads(each.text) for each in messages if isinstance(each, ToolMessage)] == [2.5, 4.0, 9.0]
    assert isinstance(messages[-1], AIMessage)
    assert messages[-1].text == "They cost 9 euros."
