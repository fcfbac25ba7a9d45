"""Requests that fail are written, end in the same way when they are replayed, and shrink."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from typer.testing import CliRunner

from engines import fake_vllm
from live_server import listening, serving
from situations import HERMES
from toolgram.cli.app import app
from toolgram.engines.base import Capabilities, Engine, Prompt, SupportsGrammar
from toolgram.engines.remote.openai import OpenAICompletions
from toolgram.engines.replay import Replay
from toolgram.errors import GrammarRefused
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.recording.capture import Capture
from toolgram.server.recording.redact import redacted
from toolgram.server.recording.replay import alike, replayed
from toolgram.server.recording.shrink import least, shrunk
from toolgram.server.recording.values import BadRecording, Recording
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate

CHAT = "/v1/chat/completions"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
RAIN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Reykjavik"}}\n</tool_call>'
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You are Bertha."},
    {"role": "user", "content": "My password is hunter2."},
    {"role": "assistant", "content": "I shall forget it, Wilhelmina."},
    {"role": "user", "content": "Will it rain in Reykjavik?"},
]


def tool(name: str, parameters: Any = CITY) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "About it.", "parameters": parameters}}


ASKED: dict[str, Any] = {
    "model": "recorded",
    "messages": TALK,
    "tools": [tool("get_weather"), tool("get_time")],
    "temperature": 0.5,
    "seed": 7,
}


class Refusing(Replay):
    """Refuses every grammar, as an engine does that cannot read it; or every prompt, as too long."""

    context = 8

    def __init__(self, *, long: bool = False) -> None:
        super().__init__()
        self.long = long

    def count_tokens(self, prompt: Prompt) -> int:
        return 9 if self.long else 1

    def compile(self, constraint: SupportsGrammar) -> None:
        raise GrammarRefused("the engine cannot read it: too many rules")


@contextmanager
def babbling() -> Iterator[str]:
    """An upstream whose events cannot be understood."""

    async def completions(request: Request) -> Response:
        return PlainTextResponse('data: {"choices": [{"text": 7}]}\n\n', media_type="text/event-stream")

    async def models(request: Request) -> Response:
        return JSONResponse({"data": []})

    routes = [Route("/v1/completions", completions, methods=["POST"]), Route("/v1/models", models)]
    with fake_vllm.serving(Starlette(routes=routes)) as url:
        yield url


@contextmanager
def failing(name: str) -> Iterator[tuple[Engine, dict[str, Any]]]:
    """An engine, and a request that fails with it."""
    pieces = tuple(RAIN[at : at + 7] for at in range(0, len(RAIN), 7))
    free = Capabilities(unenforced=True)
    wrong = {"type": "object", "properties": {"n": {"minimum": "1"}, "city": {"type": "string"}}}
    match name:
        case "refused":
            yield Replay(), {**ASKED, "tools": [tool("get_time"), tool("get_weather", wrong)]}
        case "refused-role":
            yield Replay(), {**ASKED, "messages": [*TALK, {"role": "wizard", "content": "Abracadabra"}]}
        case "refused-grammar":
            yield Refusing(), ASKED
        case "refused-long":
            yield Refusing(long=True), ASKED
        case "error":
            yield Replay(pieces, fail_after=5), ASKED
        case "error-stream":
            yield Replay(pieces, fail_after=5), {**ASKED, "stream": True}
        case "error-malformed":
            with babbling() as url:
                yield OpenAICompletions(url, "m"), ASKED
        case "cut":
            yield Replay(pieces), {**ASKED, "max_tokens": 8}
        case "cut-twice":
            yield Replay(pieces, pieces), {**ASKED, "max_tokens": 8, "n": 2}
        case _:
            schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": CITY}}
            asked = {"model": "recorded", "messages": TALK, "response_format": schema, "stream": True}
            yield Replay('{"town": "Reykjavik"}', capabilities=free), asked


FAILURES = {
    "refused": ("refused", 'minimum: "1" is not a number'),
    "refused-role": ("refused", "wizard"),
    "refused-grammar": ("refused", "cannot read it"),
    "refused-long": ("refused", "prompt is too long"),
    "error": ("error", "failed after 5 pieces"),
    "error-stream": ("error", "failed after 5 pieces"),
    "error-malformed": ("error", "cannot be understood"),
    "cut": ("cut", ""),
    "cut-twice": ("cut", ""),
    "invalid": ("invalid", ""),
}


def recorded(name: str, folder: Path, **settings: Any) -> Path:
    """The file that is written of a failure."""
    with failing(name) as (engine, body), serving(engine, Settings(record=folder, **settings)) as url:
        httpx2.post(url + CHAT, json=body, timeout=30)
    (file,) = folder.iterdir()
    return file


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_replays_to_the_same_end_and_shrinks(name: str, tmp_path: Path) -> None:
    file = recorded(name, tmp_path)
    kind, words = FAILURES[name]
    assert file.name.startswith(f"{kind}-")
    recording = Recording.from_file(file)
    assert recording.end.kind == kind
    assert words in recording.end.message
    again = replayed(recording)
    assert again.end == recording.end
    assert again.calls == recording.calls or kind != "cut"
    smallest, _ = shrunk(recording)
    assert alike(smallest.end, recording.end)
    assert alike(replayed(smallest).end, recording.end)
    assert len(json.dumps(smallest.body)) < len(json.dumps(recording.body)) / 2


def test_what_is_left_is_what_fails(tmp_path: Path) -> None:
    smallest, _ = shrunk(Recording.from_file(recorded("refused", tmp_path)))
    (only,) = smallest.body["tools"]
    assert only["function"]["parameters"] == {"properties": {"n": {"minimum": ""}}} or "n" not in str(only)
    assert smallest.end.message.endswith('minimum: "" is not a number')


def test_an_answer_that_was_not_what_was_asked_for_keeps_what_makes_it_so(tmp_path: Path) -> None:
    smallest, _ = shrunk(Recording.from_file(recorded("invalid", tmp_path)))
    ((call,),) = smallest.calls
    assert len("".join(call.pieces)) <= 2
    assert smallest.body["response_format"]


@pytest.mark.parametrize("name", ["error", "cut", "invalid", "refused"])
def test_redacted_nothing_that_was_said_is_left(name: str, tmp_path: Path) -> None:
    text = recorded(name, tmp_path, redact=True).read_text()
    for word in ("hunter2", "Bertha", "Wilhelmina", "Reykjavik", "rain"):
        assert word not in text
    assert "city" in text
    (file,) = tmp_path.iterdir()
    recording = Recording.from_file(file)
    assert alike(replayed(recording).end, recording.end)


def test_escapes_stay_escapes() -> None:
    body = {"messages": [{"role": "user", "content": 'a\\nfoo "bar"'}], "user": "me@here", "tools": []}
    masked = redacted(replace(plain(body), calls=()))
    assert masked.body == {"messages": [{"role": "user", "content": 'x\\nxxx "xxx"'}], "user": "xx@xxxx", "tools": []}


def plain(body: Any) -> Recording:
    from toolgram.server.recording.values import End
    from toolgram.server.recording.values import Settings as Kept

    return Recording(CHAT, body, None, Kept(), End("error", 500))


def test_the_style_that_goes_by_the_models_name_is_that_of_the_replay(tmp_path: Path) -> None:
    fenced = '```json\n{"name": "get_weather", "arguments": {"city": "Reykjavik"}}\n```'
    served = Served("recorded", ChatTemplate(HERMES, model="Qwen2.5-Coder-7B"), Replay((fenced[:60], fenced[60:])))
    with listening(create_app([served], Settings(record=tmp_path))) as url:
        httpx2.post(url + CHAT, json={**ASKED, "tool_choice": "auto", "max_tokens": 1})
    (file,) = tmp_path.iterdir()
    recording = Recording.from_file(file)
    again = replayed(recording)
    assert (again.style, again.end) == (recording.style, recording.end)
    assert (recording.style, bool(recording.end.answers[0]["tool_calls"])) == ("qwen_coder", True)


def test_what_goes_well_is_not_written(tmp_path: Path) -> None:
    with serving(Replay(RAIN), Settings(record=tmp_path)) as url:
        assert httpx2.post(url + CHAT, json=ASKED).status_code == 200
        assert httpx2.post(url + CHAT, json={**ASKED, "model": "another"}).status_code == 404
        assert httpx2.get(url + "/health").status_code == 200
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"model": "recorded", "max_tokens": 3, "messages": [{"role": "user", "content": "Hi."}]}),
        ("/v1/responses", {"model": "recorded", "max_output_tokens": 3, "input": "Hi.", "stream": True}),
        ("/api/chat", {"options": {"num_predict": 3}, "messages": [{"role": "user", "content": "Hi."}]}),
    ],
)
def test_conversations_of_all_apis_are_recorded(path: str, body: dict[str, Any], tmp_path: Path) -> None:
    with serving(Replay(tuple("Hello there")), Settings(record=tmp_path)) as url:
        httpx2.post(url + path, json=body)
    (file,) = tmp_path.iterdir()
    recording = Recording.from_file(file)
    assert recording.end.kind == "cut"
    assert replayed(recording).end == recording.end


def test_what_an_mcp_server_would_be_told_is_not_kept() -> None:
    tool = {"type": "mcp", "server_label": "files", "allowed_tools": ["read"]}
    capture = Capture()
    capture.read({"input": "Hi.", "tools": [{**tool, "authorization": "secret", "headers": {"key": "secret"}}]})
    assert capture.body == {"input": "Hi.", "tools": [tool]}


def test_a_folder_that_is_gone_fails_no_request(tmp_path: Path) -> None:
    with serving(Replay(tuple(RAIN)), Settings(record=tmp_path / "gone")) as url:
        assert httpx2.post(url + CHAT, json={**ASKED, "max_tokens": 3}).status_code == 200


def test_the_command(tmp_path: Path) -> None:
    file = recorded("cut", tmp_path / "made") if (tmp_path / "made").mkdir() is None else tmp_path
    result = CliRunner().invoke(app, ["replay", str(file), "--shrink", str(tmp_path / "smallest.json")])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "recorded: cut, status 200, finish length"
    assert lines[1] == "now: the same"
    assert lines[2].startswith("shrunk: a body of ")
    assert CliRunner().invoke(app, ["replay", str(tmp_path / "smallest.json")]).exit_code == 0
    recording = json.loads(file.read_text())
    file.write_text(json.dumps({**recording, "end": {**recording["end"], "kind": "error"}}))
    other = CliRunner().invoke(app, ["replay", str(file)])
    assert (other.exit_code, other.stdout.splitlines()[1]) == (1, "now: cut, status 200, finish length")
    nothing = CliRunner().invoke(app, ["replay", str(file), "--shrink", str(tmp_path / "smallest.json")])
    assert "there is nothing to shrink" in nothing.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no recording"),
        ("[]", "is no recording"),
        ('{"version": 1}', "is no recording"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_recording(text: str | None, why: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadRecording, match=why):
        Recording.from_file(file)


def test_the_least_of_a_value() -> None:
    value = {"a": [1, 2, {"b": "needle in hay"}], "c": "x"}
    assert least(value, lambda new: "needle" in json.dumps(new)) == {"a": [{"b": "needle"}]}
    assert least("abcdef", lambda new: new.count("b") == 1) == "b"
