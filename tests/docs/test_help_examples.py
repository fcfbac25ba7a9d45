"""The example that each `--help` shows runs, on a recorded answer where it asks a model."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from situations import CHATML
from toolgram.cli.app import app
from toolgram.engines.replay import Replay
from toolgram.server.recording.replay import replayed
from toolgram.server.recording.values import End, Recording, Settings

EXAMPLES = {
    command.callback.__name__: (command.epilog or "").removeprefix("Example: ")
    for command in app.registered_commands
    if command.callback
} | {
    f"{group.name} {command.name or command.callback.__name__}": (command.epilog or "").removeprefix("Example: ")
    for group in app.registered_groups
    if group.typer_instance
    for command in group.typer_instance.registered_commands
    if command.callback and command.callback.__name__ != "serve"  # which answers until its input ends
}
TOOLS = """
from dataclasses import dataclass

def get_weather(city: str) -> str:
    "Get the weather."
    return "rain"

@dataclass
class Forecast:
    rain: bool
"""
REFUSED = replayed(Recording("/v1/chat/completions", {"messages": 7}, None, Settings(), End("refused", 400)))
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
PRINTS = {
    "agent": '"rain": true',
    "ask": '"name": "get_weather"',
    "bench": "simple      1   1  100",
    "chat": "",
    "doctor": "yes  calls",
    "explain": "# Grammar (lark)\nstart:",
    "lint": "fit for conversations; it writes no calls",
    "styles": "chosen: compact (generic), because",
    "report": "# chat / compact",
    "pull": "recorded.gguf",
    "tune": "smollm2.toml: profile: ",
    "tools list": "get_weather: Get the weather.",
    "replay": "now: the same",
    "serve": "http://127.0.0.1:8080/v1",
}


def to(value: Any) -> Callable[..., Any]:
    """A function that gives this, whatever it is asked."""

    def given(*_: Any, **__: Any) -> Any:
        return value

    return given


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The files that the examples name; no model, but an engine with an answer."""
    (tmp_path / "templates").mkdir()
    for name in ("chat_template.jinja", "templates/chat.jinja"):
        (tmp_path / name).write_text(CHATML.source)
    (tmp_path / "tools.py").write_text(TOOLS)
    function = {"name": "get_weather", "parameters": {"type": "object"}}
    request = {"messages": [{"role": "user", "content": "Hi."}], "tools": [{"type": "function", "function": function}]}
    (tmp_path / "request.json").write_text(json.dumps(request))
    (tmp_path / "failed.json").write_text(REFUSED.to_json())
    monkeypatch.chdir(tmp_path)
    recorded = Path("recorded.gguf")
    monkeypatch.setattr("toolgram.models.catalog.cached", to(recorded))
    monkeypatch.setattr("toolgram.models.profiles.gguf_metadata", to({}))
    monkeypatch.setattr("toolgram.cli.inputs.load_engine", lambda *_, **__: Replay(CALL, '{"rain": true}'))
    monkeypatch.setattr("toolgram.cli.serve.sampling_of_gguf", to({}))
    monkeypatch.setattr("toolgram.cli.explain._size", to("not counted"))
    monkeypatch.setattr("toolgram.cli.serve._bound", to(Mock(getsockname=to(("127.0.0.1", 8080)))))
    monkeypatch.setattr("uvicorn.Server.run", to(None))
    monkeypatch.setattr("toolgram.template.chat_template.ChatTemplate.from_gguf", to(CHATML))


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_example_of_help_runs(command: str) -> None:
    words = shlex.split(EXAMPLES[command].partition(" > ")[0])
    assert " ".join(words).startswith(f"toolgram {command} ")
    result = CliRunner().invoke(app, words[1:])
    assert result.exception is None, result.output
    assert PRINTS[command] in result.stdout
