"""The pages of docs/clients: their commands are those that `make test-agents` runs, their programs run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest

from clients.agents import AGENTS, Agent
from live_server import serving
from situations import CHATML
from toolgram.conversation.message import Message, ToolCall
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings
from toolgram.styles.registry import find_style

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs/clients"
PROGRAMS = {"claude": "claude-code", "qwen": "qwen-code", "mini": "mini-swe-agent"} | {
    name: name for name in ("codex", "opencode", "pi", "aider")
}
LIBRARIES = {"openai": "openai-agents", "smolagents": "smolagents", "litellm": "litellm"}
QUIET = "bypass", "no-check", "no-show", "analytics", "no-pretty"  # what only a test needs
MARK = "<!-- run by: tests/docs/test_client_pages.py -->"


def text_of(page: str) -> str:
    return (PAGES / f"{page}.md").read_text(encoding="utf-8")


def commands(page: str) -> list[list[str]]:
    """The commands that a page tells to type."""
    blocks = re.findall(r"```sh\n(.*?)```", text_of(page), re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def options(words: Sequence[str]) -> set[str]:
    return {word for word in words if word.startswith("-") and not any(part in word for part in QUIET)}


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent.name in PROGRAMS], ids=lambda agent: agent.name)
def test_a_client_is_started_as_it_is_tested(agent: Agent, tmp_path: Path) -> None:
    page = PROGRAMS[agent.name]
    (shown,) = (words for words in commands(page) if words[0] == Path(agent.command[0]).name)
    assert options(shown) == options(agent.command)
    variables = set(agent.environment("http://127.0.0.1:8000", tmp_path)) - {
        "CODEX_HOME",
        "KEY_OF_HERE",
        "OPENCODE_CONFIG",
    }
    assert {name for name in variables if not name.startswith("OPENCODE_DISABLE")} <= set(
        re.findall(r"[A-Z_]{6,}", text_of(page))
    )


@pytest.mark.parametrize("page", [*PROGRAMS.values(), *LIBRARIES.values()])
def test_a_client_is_installed_in_the_version_that_is_tested(page: str) -> None:
    (package,) = (words[-1] for words in commands(page) if "install" in words)
    assert package in (ROOT / "Makefile").read_text()


def test_the_configurations_are_those_that_are_tested(tmp_path: Path) -> None:
    agents = {agent.name: agent for agent in AGENTS}
    agents["opencode"].environment("http://127.0.0.1:8000", tmp_path)
    tested = json.loads((tmp_path / "opencode.json").read_text())
    (shown,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", text_of("opencode"), re.DOTALL))
    assert shown.keys() == tested.keys()
    assert shown["permission"] == tested["permission"]
    agents["pi"].environment("http://127.0.0.1:8000", tmp_path)
    providers = json.loads((tmp_path / ".pi" / "agent" / "models.json").read_text())["providers"]
    (shown,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", text_of("pi"), re.DOTALL))
    assert shown["providers"]["toolgram"].keys() == providers["here"].keys()
    agents["codex"].environment("http://127.0.0.1:8000", tmp_path)
    (block,) = re.findall(r"```toml\n(.*?)```", text_of("codex"), re.DOTALL)
    keys = set(re.findall(r"^\w+(?= =)", block, re.MULTILINE))
    assert keys <= set(re.findall(r"^\w+(?= =)", (tmp_path / "config.toml").read_text(), re.MULTILINE))


def test_every_client_has_a_page_in_the_table() -> None:
    named = set(re.findall(r"^\| \[[^\]]+\]\(([\w-]+)\.md\)", text_of("index"), re.MULTILINE))
    assert named == {path.stem for path in PAGES.glob("*.md")} - {"index"}
    assert named >= {*PROGRAMS.values(), *LIBRARIES.values()}
    assert {agent.name for agent in AGENTS} == {*PROGRAMS, *LIBRARIES}


def test_a_client_of_ollamas_is_answered() -> None:
    start, (_, url, _, body) = commands("ollama-clients")
    assert start == ["toolgram", "serve", "--any-model-name", "--port", url.partition(":11434")[1][1:]]
    with serving(Replay("Hello, too."), Settings(any_model_name=True)) as address:
        answer = httpx2.post(address + url.partition("11434")[2], content=body.encode())
    assert answer.json()["message"]["content"] == "Hello, too."


TURNS = {
    "index": [Message("Hello."), Message("Ada.")],
    "langgraph": [Message(tool_calls=(ToolCall("price", '{"item": "tea"}', None),)), Message("It costs 2.5 euros.")],
    "frameworks": [Message('{"name": "Ada", "age": 36}')],
    "front-ends": [Message("Hello, too.")],
    "pydantic-ai": [Message(tool_calls=(ToolCall("final_result", '{"city": "Paris", "sky": "clear"}', None),))],
}
PRINTED = {
    "index": "Ada.\n['message', 'message', 'message']",
    "langgraph": "It costs 2.5 euros.",
    "frameworks": "name='Ada' age=36",
    "front-ends": "models: 1\nHello, too.True",
    "pydantic-ai": "city='Paris' sky='clear'",
}


@pytest.mark.parametrize("page", TURNS)
def test_a_program_runs(page: str) -> None:
    style = find_style("hermes")
    assert style is not None
    (program,) = re.findall(rf"{re.escape(MARK)}\n```python\n(.*?)```", text_of(page), re.DOTALL)
    served = re.findall(rf"{re.escape(MARK)}\n```sh\n(.*?)\n```", text_of(page), re.DOTALL)
    assert served == ([] if page == "index" else ["toolgram serve --any-model-name"])
    answers = [style_text(page, turn) for turn in TURNS[page]]
    with serving(Replay(*answers), Settings(style="hermes", any_model_name=True), CHATML) as address:
        command = [sys.executable, "-c", program.replace("http://127.0.0.1:8000", address)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert PRINTED[page] in done.stdout, done.stderr


def style_text(page: str, turn: Message) -> str:
    """A turn in the style hermes."""
    calls = [
        f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>'
        for call in turn.tool_calls
    ]  # type: ignore[union-attr]
    return "\n".join([turn.content or "", *calls]).strip()
