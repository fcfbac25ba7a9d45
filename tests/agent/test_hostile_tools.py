"""Tools that mean harm: nothing crashes, what spells a control token stays text, and what it asks for needs a yes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.hostile_mcp import FORGED, SCHEMAS
from situations import CHATML
from toolgram.agent import Agent, Limits, Run, writes
from toolgram.agent.mcp import mcp_tools
from toolgram.cli.app import app
from toolgram.engines import Replay

SERVER = {"mcpServers": {"x": {"command": sys.executable, "args": [str(Path(__file__).with_name("hostile_mcp.py"))]}}}


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def run(*turns: str, names: Any = None, tools: Any = (), seconds: float = 60) -> tuple[Run[Any], Replay]:
    engine = Replay(*turns)

    async def ended() -> Run[Any]:
        async with mcp_tools(SERVER, allow=names) as offered:
            always = [*offered, *tools]
            limits = Limits(steps=20, call_seconds=seconds, result_characters=2000)
            return await Agent(engine, CHATML, always, style="hermes_2_pro", ask="writes", limits=limits,
                               approve=lambda each: each.name.startswith("x_")).run("Go.")  # fmt: skip

    return asyncio.run(ended()), engine


def test_every_tool_of_a_hostile_server_can_be_offered_and_called() -> None:
    async def listed() -> list[str]:
        async with mcp_tools(SERVER) as tools:
            return [tool.name for tool in tools]

    names = asyncio.run(listed())
    assert len(names) == len(SCHEMAS)
    assert all(len(name) <= 64 and name.replace("_", "").isalnum() for name in names)
    calls = [call(name) for name in names if not name.endswith(("huge", "vast", "impossible"))]
    ended, engine = run(*calls, "Done.")
    assert ended.answer == "Done."
    results = [message["content"] for message in ended.messages if message["role"] == "tool"]
    assert len(results) == len(calls)
    for asked in engine.calls:
        trusted = "".join(text for text, sure in asked.prompt if sure)
        assert "Ignore what you were told" not in trusted
        assert trusted.count("<|im_start|>system") == 1


def test_a_result_of_many_megabytes_is_shown_in_part() -> None:
    ended, engine = run(call("x_huge"), "Done.", names=["x_huge"])
    [result] = [message["content"] for message in ended.messages if message["role"] == "tool"]
    assert "characters left out" in result
    assert len(result) < 2100
    assert "".join(text for text, sure in engine.calls[1].prompt if sure).count("<|im_start|>system") == 1


def test_a_result_of_a_hundred_megabytes_takes_no_more_than_its_time() -> None:
    ended, _ = run(call("x_vast"), "Done.", names=["x_vast"], seconds=4)
    [result] = [message["content"] for message in ended.messages if message["role"] == "tool"]
    assert "characters left out" in result or result == "x_vast gave no result within 4 s"
    assert ended.answer == "Done."


def test_what_a_result_asks_for_needs_a_yes() -> None:
    sold: list[int] = []

    @writes
    def sell(count: int) -> str:
        sold.append(count)
        return "sold"

    ended, _ = run(call("x_forged"), call("sell", count=9), "Done.", names=["x_forged"], tools=[sell])
    assert sold == []
    assert ended.messages[-2]["content"] == "The user did not allow this call."


def test_what_cannot_be_read_of_a_server_is_listed(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps(SERVER))
    listed = CliRunner().invoke(app, ["tools", "list", str(tmp_path / "mcp.json")])
    assert listed.exit_code == 0, listed.output
    assert "any object is taken: $ref: '#/nowhere' points nowhere" in listed.stdout.replace("(root): ", "")
    assert 'any object is taken: /properties/a: type: "' in listed.stdout
    assert max(map(len, listed.stdout.splitlines())) < 12_000
    assert "<|im_start|>system\n" not in listed.stdout


@pytest.mark.parametrize("text", [FORGED, "\x1b[2J\x1b]0;title\x07", "\u202eevil", "\ud800"])
def test_names_and_arguments_of_any_kind_are_told_to_the_model(text: str) -> None:
    from toolgram.agent.calls import results
    from toolgram.conversation.message import ToolCall

    async def said() -> list[str]:
        made = results([ToolCall(text * 40, text, "c0")], {}, Limits())
        return [result.text async for result in made]

    [told] = asyncio.run(said())
    assert told.startswith("There is no tool ")
    assert len(told) < 500
