"""Coding agents and frameworks for agents: how each is started, and what a model says to carry out the task with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolgram.conversation.message import Message, ToolCall

TASK = "In greeting.txt a word is misspelled. Mend it, then write the word done into done.txt. (Task 31337.)"
MISSPELLED, MENDED = "hello wrld\n", "hello world\n"
LAST_WORD = "All is done."

_Turns = Callable[[Path], list[Message]]
_HERE = Path(__file__).parent / "tasks"


@dataclass(frozen=True)
class Agent:
    """A client: how it is started, and the turns of a model that carry out the task, given the folder to work in.

    The program is a path in the folder where agents are installed. `environment` is given the server's address and the
    client's home, into which it may write, and returns what it has beside the usual variables. `asks`: a host that it
    asks for whatever it is told, and is refused like any other.
    """

    name: str
    command: Sequence[str]
    turns: _Turns
    environment: Callable[[str, Path], Mapping[str, str]]
    asks: str | None = None


def _codex_home(address: str, home: Path) -> Mapping[str, str]:
    (home / "config.toml").write_text(
        'model = "recorded"\nmodel_provider = "here"\ncheck_for_update_on_startup = false\n'
        '[analytics]\nenabled = false\n[otel]\nmetrics_exporter = "none"\n'
        "[features]\nplugins = false\napps = false\n"
        '[model_providers.here]\nname = "here"\nwire_api = "responses"\nenv_key = "KEY_OF_HERE"\n'
        f'base_url = "{address}/v1"\n',
        encoding="utf-8",
    )
    return {"CODEX_HOME": str(home), "KEY_OF_HERE": "any"}


def _claude_home(address: str, _: Path) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_AUTH_TOKEN": "any",
        "ANTHROPIC_MODEL": "recorded",
        "ANTHROPIC_SMALL_FAST_MODEL": "recorded",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _opencode_home(address: str, home: Path) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "here",
        "options": {"baseURL": f"{address}/v1", "apiKey": "any"},
        "models": {"recorded": {"name": "recorded"}},
    }
    allowed = {"edit": "allow", "bash": "allow"}
    config = {
        "permission": allowed,
        "provider": {"here": provider},
        "model": "here/recorded",
        "autoupdate": False,
        "share": "disabled",
    }
    (home / "opencode.json").write_text(json.dumps(config), encoding="utf-8")
    off = ("MODELS_FETCH", "AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")
    return {"OPENCODE_CONFIG": str(home / "opencode.json"), **{f"OPENCODE_DISABLE_{what}": "1" for what in off}}


def _qwen_home(address: str, home: Path) -> Mapping[str, str]:
    settings = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}
    settings["general"] = {"enableAutoUpdate": False, "disableAutoUpdate": True}
    (home / ".qwen").mkdir()
    (home / ".qwen" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "any", "OPENAI_MODEL": "recorded"}


def _pi_home(address: str, home: Path) -> Mapping[str, str]:
    provider = {"api": "openai-completions", "baseUrl": f"{address}/v1", "apiKey": "any"}
    providers = {"here": {**provider, "models": [{"id": "recorded"}]}}
    settings = home / ".pi" / "agent"
    settings.mkdir(parents=True)
    (settings / "models.json").write_text(json.dumps({"providers": providers}), encoding="utf-8")
    return {"PI_OFFLINE": "1"}


def _python_home(address: str, _: Path) -> Mapping[str, str]:
    return {"ADDRESS": address}


def _aider_home(address: str, _: Path) -> Mapping[str, str]:
    return {"OPENAI_API_BASE": f"{address}/v1", "OPENAI_API_KEY": "any"}


def _mini_home(address: str, _: Path) -> Mapping[str, str]:
    quiet = {"MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    served = {"OPENAI_API_BASE": f"{address}/v1", "OPENAI_API_KEY": "any"}
    return {**served, **quiet, "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"}


def _called(*calls: tuple[str, dict[str, Any]]) -> list[Message]:
    """A turn for each call."""
    return [
        Message(None, None, (ToolCall(name, json.dumps(arguments), f"call{at:05}"),))
        for at, (name, arguments) in enumerate(calls)
    ]


_COMMANDS = ("cat greeting.txt", "sed -i s/wrld/world/ greeting.txt", "printf done > done.txt")


_SUBMITTED = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # what ends a task of mini-swe-agent


def _shell(name: str, argument: str, *commands: str) -> list[Message]:
    return _called(*((name, {argument: command}) for command in commands))


def _tools(read: str, edit: str, run: str, file: str, old: str, new: str, **more: Any) -> _Turns:
    def turns(folder: Path) -> list[Message]:
        path = str(folder / "greeting.txt")
        calls = _called(
            (read, {file: path}),
            (edit, {file: path, old: "wrld", new: "world"}),
            (run, {"command": "printf done > done.txt", **more}),
        )
        return [*calls, Message(LAST_WORD)]

    return turns


def _edits(_: Path) -> list[Message]:
    """pi makes several edits of a file at once."""
    calls = _called(
        ("read", {"path": "greeting.txt"}),
        ("edit", {"path": "greeting.txt", "edits": [{"oldText": "wrld", "newText": "world"}]}),
        ("write", {"path": "done.txt", "content": "done"}),
    )
    return [*calls, Message(LAST_WORD)]


def _with_a_search(folder: Path) -> list[Message]:
    """Claude Code loads a tool that it had put off, and calls it first."""
    turns = _tools("Read", "Edit", "Bash", "file_path", "old_string", "new_string", description="Writes the word")
    search = _called(("ToolSearch", {"query": "select:CronList", "max_results": 1}), ("CronList", {}))
    return [*search, *turns(folder)]


def _files(*last: Message) -> _Turns:
    """The tools of `tasks/files.py`."""
    greeting = {"file": "greeting.txt"}
    calls = _called(
        ("read", greeting),
        ("edit", {**greeting, "old": "wrld", "new": "world"}),
        ("write", {"file": "done.txt", "text": "done"}),
    )
    return lambda _: [*calls, *last]


NODE = "node_modules/.bin"
AGENTS = (
    Agent(
        "codex",
        (f"{NODE}/codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK),
        lambda _: [*_shell("exec_command", "cmd", *_COMMANDS), Message(LAST_WORD)],
        _codex_home,
    ),
    Agent(
        "claude",
        (f"{NODE}/claude", "-p", TASK, "--permission-mode", "acceptEdits", "--allowedTools", "Read,Edit,Write,Bash"),
        _with_a_search,
        _claude_home,
    ),
    Agent(
        "opencode",
        (f"{NODE}/opencode", "run", TASK),
        _tools("read", "edit", "bash", "filePath", "oldString", "newString"),
        _opencode_home,
        asks="registry.npmjs.org:443",  # for the types of plugins, of which there are none
    ),
    Agent(
        "qwen",
        (f"{NODE}/qwen", "-p", TASK, "--yolo", "--auth-type", "openai"),
        _tools("read_file", "edit", "run_shell_command", "file_path", "old_string", "new_string", is_background=False),
        _qwen_home,
    ),
    Agent("pi", (f"{NODE}/pi", "-p", TASK, "--provider", "here", "--model", "recorded"), _edits, _pi_home),
    Agent(
        "mini",
        ("python/bin/mini", "--model", "openai/recorded", "--task", TASK, "--yolo", "--exit-immediately"),
        lambda _: _shell("bash", "command", *_COMMANDS, f"echo {_SUBMITTED}; echo {LAST_WORD}"),
        _mini_home,
    ),
    Agent(
        "aider",
        (
            *("aider/bin/aider", "--model", "openai/recorded", "--edit-format", "whole", "--no-git", "--yes-always"),
            *("--no-check-update", "--no-show-model-warnings", "--no-show-release-notes", "--analytics-disable"),
            *("--no-pretty", "--message", TASK, "greeting.txt"),
        ),
        lambda _: [Message(f"greeting.txt\n```\n{MENDED}```\n\ndone.txt\n```\ndone\n```\n\n{LAST_WORD}")],
        _aider_home,
        asks="raw.githubusercontent.com:443",  # for the prices of models
    ),
    Agent(
        "openai",
        ("python/bin/python", str(_HERE / "with_openai_agents.py"), TASK),
        _files(Message(LAST_WORD)),
        _python_home,
    ),
    Agent(
        "litellm",
        ("python/bin/python", str(_HERE / "through_litellm.py"), str(_HERE / "with_openai_agents.py"), TASK),
        _files(Message(LAST_WORD)),
        _python_home,
    ),
    Agent(
        "smolagents",
        ("python/bin/python", str(_HERE / "with_smolagents.py"), TASK),
        _files(*_called(("final_answer", {"answer": LAST_WORD}))),
        _python_home,
    ),
)
