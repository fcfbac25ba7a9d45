"""`toolgram serve`: what it is told, by options and by the environment, and that it listens."""

from __future__ import annotations

import json
import logging
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from errno import EACCES
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from typer.testing import CliRunner

from live_server import listening, serving
from situations import CHATML
from toolgram.cli import serve
from toolgram.cli.app import app
from toolgram.cli.inputs import BadInput
from toolgram.cli.options import Kind
from toolgram.cli.serve import keys, log_to
from toolgram.cli.upstream import Upstream, connect
from toolgram.engines.remote.llama_server import LlamaServer
from toolgram.engines.remote.openai import OpenAICompletions
from toolgram.engines.remote.vllm import Vllm
from toolgram.engines.replay import Replay
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[uvicorn.Config]:
    """The servers that were started, but for the listening; a recorded engine is loaded for every model."""
    configs: list[uvicorn.Config] = []

    class Bound:
        def setsockopt(self, *option: int) -> None:
            assert option == (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def getsockname(self) -> tuple[str, int]:
            return "127.0.0.1", 4321

        def listen(self, backlog: int) -> None:
            pass

        def close(self) -> None:
            pass

    def load(*_: Any, deterministic: bool, mmproj: Path | None) -> Replay:
        assert mmproj is None
        return Replay("Hello." if not deterministic else "Hello again.")

    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: configs.append(server.config))
    monkeypatch.setattr("toolgram.cli.serve._bound", lambda *_: Bound())
    monkeypatch.setattr("toolgram.cli.serve.model_file", lambda name: Path(f"{name}.gguf"))
    monkeypatch.setattr("toolgram.cli.serve.sampling_of_gguf", lambda file: {"temperature": 0.3, "top_k": 20})
    monkeypatch.setattr("toolgram.models.profiles.gguf_metadata", lambda _: {})
    monkeypatch.setattr("toolgram.cli.inputs.load_engine", load)
    monkeypatch.setattr("toolgram.cli.inputs.template_of", lambda *_: CHATML)
    return configs


def test_a_model_is_made_deterministic(started: list[uvicorn.Config], monkeypatch: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(app, ["serve", "--deterministic", "--port", "0"]).exception is None
    monkeypatch.undo()
    with listening(started[0].app) as address:
        body = {"messages": [{"role": "user", "content": "Hi"}]}
        answer = httpx2.post(f"{address}/v1/chat/completions", json=body).json()
        assert answer["choices"][0]["message"]["content"] == "Hello again."


def test_where_a_request_does_not_say_the_models_own_configuration_holds(
    started: list[uvicorn.Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Replay(*["Hello."] * 5)
    monkeypatch.setattr("toolgram.cli.inputs.load_engine", lambda *_, **__: engine)
    result = CliRunner().invoke(app, ["serve", "--port", "0"])
    said = "smollm2, where a request does not say: temperature 0.3, top_k 20 (the metadata of smollm2.gguf)\n"
    assert said in result.stderr
    monkeypatch.undo()
    hi = [{"role": "user", "content": "Hi"}]
    with listening(started[0].app) as address:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("chat/completions", {"messages": hi}),
            ("chat/completions", {"messages": hi, "temperature": 1, "top_k": 0}),
            ("messages", {"messages": hi, "max_tokens": 9, "top_k": 3}),
            ("completions", {"prompt": "Hi"}),
            ("responses", {"input": "Hi"}),
        ]
        answers = [httpx2.post(f"{address}/v1/{path}", json=body) for path, body in asked]
        assert [answer.status_code for answer in answers] == [200] * 5
    used = [(call.sampling.temperature, call.sampling.top_k) for call in engine.calls]
    assert used == [(0.3, 20), (1, 0), (0.3, 3), (0.3, 20), (0.3, 20)]
    assert answers[-1].json()["temperature"] == 0.3


def test_an_ipv6_address_stands_in_brackets(started: list[uvicorn.Config]) -> None:
    result = CliRunner().invoke(app, ["serve", "--host", "::1", "--port", "0"])
    assert "serving smollm2 at http://[::1]:4321/v1, with a playground at http://[::1]:4321/ and" in result.output


def test_options_and_environment(
    started: list[uvicorn.Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.jsonl"
    options = ["serve", "--port", "0", "--alias", "gpt-x", "-np", "3", "--log-file", str(log), "--max-body", "100"]
    options += ["--shutdown-timeout", "3"]
    env = {"TOOLGRAM_API_KEY": "one two", "TOOLGRAM_HOST": "127.0.0.2", "TOOLGRAM_MAX_STORE": "0"}
    result = CliRunner().invoke(app, options, env=env)
    assert result.exception is None, result.output
    assert "serving smollm2 at http://127.0.0.2:4321/v1" in result.output
    assert "no --model given" in result.output
    (config,) = started
    assert config.timeout_graceful_shutdown == 3
    monkeypatch.undo()  # now it listens
    with listening(config.app) as address:
        headers = {"authorization": "Bearer two"}
        assert httpx2.get(f"{address}/v1/models").status_code == 401
        (model,) = httpx2.get(f"{address}/v1/models", headers=headers).json()["data"]
        assert (model["id"], model["aliases"]) == ("smollm2", ["gpt-x"])
        long = httpx2.post(f"{address}/v1/chat/completions", headers=headers, content=b"x" * 101)
        assert long.status_code == 413
        assert "--max-store 0" in httpx2.get(f"{address}/v1/responses/resp_1", headers=headers).text
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["status"] for line in lines] == [401, 200, 413, 404]


@pytest.mark.parametrize(
    ("options", "hosts"),
    [
        ([], ()),
        (["--host", "::1"], ()),
        (["--host", "0.0.0.0"], ("*",)),  # noqa: S104 - nothing listens
        (["--host", "0.0.0.0", "--allowed-hosts", "nas.local"], ("nas.local",)),  # noqa: S104 - as above
        (["--allowed-hosts", "a", "--allowed-hosts", "*.b"], ("a", "*.b")),
    ],
)
def test_a_server_for_this_machine_alone_goes_by_no_other_name(
    options: list[str], hosts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Settings] = []
    monkeypatch.setattr("toolgram.cli.serve.load", lambda loading: ())
    monkeypatch.setattr("toolgram.cli.serve.run", lambda served, settings, *rest: told.append(settings))
    result = CliRunner().invoke(app, ["serve", "--port", "0", *options])
    assert result.exception is None, result.output
    assert told[0].hosts == hosts


@pytest.mark.parametrize(("options", "parallel"), [([], 32), (["-np", "3"], 3), (["-np", "100"], 32)])
def test_the_engine_runs_as_many_at_once_as_the_server_up_to_32(
    options: list[str], parallel: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr("toolgram.cli.serve.model_file", Path)
    monkeypatch.setattr("toolgram.cli.serve.sampling_of_gguf", lambda file: {})
    monkeypatch.setattr("toolgram.models.profiles.gguf_metadata", lambda _: {})
    monkeypatch.setattr("toolgram.cli.inputs.template_of", lambda *_: CHATML)
    monkeypatch.setattr("toolgram.engines.llama_cpp.LlamaCpp", lambda _, **given: told.append(given["parallel"]))
    monkeypatch.setattr("toolgram.cli.serve.run", lambda *_: None)
    result = CliRunner().invoke(app, ["serve", "--port", "0", *options])
    assert result.exception is None, result.output
    assert told == [parallel]


def test_several_models_have_different_names(started: list[uvicorn.Config]) -> None:
    result = CliRunner().invoke(app, ["serve", "-m", "a", "-m", "b", "--port", "0"])
    assert "serving a, b at" in result.output
    for options, name in ((["-m", "x/a", "-m", "y/a"], "a"), (["-m", "a", "-m", "b", "--alias", "b"], "b")):
        again = CliRunner().invoke(app, ["serve", *options, "--port", "0"])
        assert again.exit_code == 2
        assert f"two models would be named {name!r}" in again.output
    assert len(started) == 1
    own = CliRunner().invoke(app, ["serve", "-m", "a", "--alias", "a", "--alias", "a", "--port", "0"])
    assert "serving a at" in own.output


def test_a_style_that_there_is_not_is_told_at_once(started: list[uvicorn.Config]) -> None:
    result = CliRunner().invoke(app, ["serve", "--style", "odd", "--port", "0"])
    assert result.exit_code == 2
    assert "there is no style 'odd'" in result.output
    assert not started


@pytest.mark.parametrize(
    ("kind", "model", "engine"),
    [("vllm", None, Vllm), ("llama-server", None, LlamaServer), ("openai", "m", OpenAICompletions)],
)
def test_a_server_before_another_server(kind: str, model: str | None, engine: type[Any], tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(CHATML.source)
    found = connect(Upstream(("http://127.0.0.1:9",), Kind(kind), model), template, wait=True)
    made = found.engine(5)
    assert isinstance(made, engine)
    assert found.name == (model or kind)
    with listening(create_app([Served(found.name, found.template, made)])) as address:
        body = {"messages": [{"role": "user", "content": "Hi."}]}
        answer = httpx2.post(f"{address}/v1/chat/completions", json=body, timeout=20)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")


@pytest.mark.parametrize(
    ("options", "dialect"), [([], "ebnf"), (["--upstream-backend", "guidance"], "lark"), (["--workers", "2"], "ebnf")]
)
def test_grammars_are_sent_as_the_backend_of_the_upstream_reads_them(
    options: list[str], dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(CHATML.source)
    served: list[Served] = []
    monkeypatch.setattr("toolgram.cli.serve.run", lambda models, *rest: served.extend(models))
    monkeypatch.setattr("toolgram.cli.serve.run_workers", lambda remote, *rest: served.extend(remote.served()))
    given = ["serve", "--port", "0", "--upstream", "http://127.0.0.1:9", "--upstream-kind", "vllm", "--alias", "x"]
    given += ["--chat-template", str(template), *options]
    result = CliRunner().invoke(app, given)
    assert result.exception is None, result.output
    assert served[0].engine.capabilities.dialects == (dialect,)
    assert served[0].aliases == ("x",)


def test_keys_come_from_a_file_too(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("one\n\n two \n")
    assert keys(("zero",), file, {}) == ("zero", "one", "two")
    file.write_text("\n")
    with pytest.raises(BadInput, match="no key"):
        keys((), file, {})
    with pytest.raises(BadInput, match="cannot be read"):
        keys((), tmp_path / "none", {})
    for line in ("# of the team", "#team", "good of the team"):
        file.write_text(f"good\n\n{line}\n")
        with pytest.raises(BadInput, match=r", line 3: is no key: there is one on a line"):
            keys((), file, {})


@pytest.mark.parametrize(
    ("options", "environment", "named"),
    [
        (["--api-key", ""], {}, "--api-key"),
        (["--api-key", "good", "--api-key", " "], {}, "--api-key"),
        ([], {"TOOLGRAM_API_KEY": ""}, "TOOLGRAM_API_KEY"),
        ([], {"TOOLGRAM_API_KEY": "  "}, "TOOLGRAM_API_KEY"),
        (["--host", "0.0.0.0"], {"TOOLGRAM_API_KEY": ""}, "TOOLGRAM_API_KEY"),  # noqa: S104 - nothing listens
        ([], {"TOOLGRAM_API_KEY_FILE": ""}, "TOOLGRAM_API_KEY_FILE"),
    ],
)
def test_a_key_that_is_empty_never_opens_the_server(
    options: list[str], environment: dict[str, str], named: str, started: list[uvicorn.Config]
) -> None:
    result = CliRunner().invoke(app, ["serve", "--port", "0", *options], env=environment)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {named} is ")
    assert "empty" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not started


def test_a_key_of_the_command_line_goes_before_a_variable_that_is_empty(started: list[uvicorn.Config]) -> None:
    result = CliRunner().invoke(app, ["serve", "--api-key", "good"], env={"TOOLGRAM_API_KEY": ""})
    assert result.exception is None, result.output
    assert len(started) == 1


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ([], False),
        (["--host", "::1"], False),
        (["--host", "0.0.0.0"], True),  # noqa: S104 - nothing listens
        (["--host", "nas.local"], True),
        (["--host", ""], True),
        (["--host", "0.0.0.0", "--api-key", "good"], False),  # noqa: S104 - as above
    ],
)
def test_a_server_that_lets_everybody_in_says_so(
    options: list[str], warned: bool, started: list[uvicorn.Config]
) -> None:
    result = CliRunner().invoke(app, ["serve", "--port", "0", *options])
    assert result.exception is None, result.output
    assert ("warning: whoever can reach" in result.stderr) == warned
    assert len(started) == 1


@pytest.mark.parametrize("port", ["80000", "-1"])
def test_a_port_that_there_is_not_is_told_in_a_line(port: str, started: list[uvicorn.Config]) -> None:
    result = CliRunner().invoke(app, ["serve", "--port", port])
    assert result.exit_code == 2
    assert result.stderr == f"error: a port is a number from 0 to 65535, not {port}\n"
    assert not started


def test_a_port_that_is_in_use_is_told_in_a_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            BadInput, match=f"127.0.0.1:{port}: .*in use: give another --port, or 0 for any that is free"
        ):
            serve.run([Served("recorded", CHATML, Replay())], Settings(), "127.0.0.1", port, None)
    assert capfd.readouterr().err == ""


def test_an_address_that_cannot_be_had_is_told_before_a_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgram.cli.serve.load", lambda _: pytest.fail("it was loaded"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "--port", str(port)])
        assert (result.exit_code, "in use: give another --port" in result.stderr) == (2, True)


def test_a_port_that_the_system_keeps_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kept(socket.socket):
        def bind(self, address: Any) -> None:
            raise PermissionError(EACCES, "Permission denied")

    monkeypatch.setattr(socket, "socket", Kept)
    result = CliRunner().invoke(app, ["serve", "--port", "80"])
    assert result.exit_code == 2
    assert result.stderr == "error: 127.0.0.1:80: Permission denied: give another --port, or 0 for any that is free\n"


@pytest.mark.parametrize("reserves", [False, True])
def test_no_other_server_may_have_the_port_meanwhile(reserves: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows SO_REUSEADDR would let two servers have it."""
    if reserves:
        monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)
    options: list[tuple[int, int, int]] = []

    class Noted(socket.socket):
        def setsockopt(self, *option: Any) -> None:
            options.append(option)

    monkeypatch.setattr(socket, "socket", Noted)
    serve.check(Settings(), "127.0.0.1", 0)
    assert options == [(socket.SOL_SOCKET, socket.SO_KEEPALIVE if reserves else socket.SO_REUSEADDR, 1)]


INTERRUPTED = """
import signal, sys, threading
from toolgram.cli.main import run
from toolgram.engines import llama_cpp

def load(*_, **__):
    threading.Thread(target=threading.Event().wait).start()  # as llama.cpp loads a model: no signal ends it
    signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it from the start
llama_cpp.load = load
sys.argv = ["toolgram", "ask", "Hi"]
run()
"""


def test_ctrl_c_does_not_wait_until_a_model_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr


def test_a_log_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        log_to(tmp_path / "none" / "log")


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """That of the server, as it was before at the end."""
    logger = logging.getLogger("toolgram.server")
    before = logger.handlers[:], logger.propagate, logger.level
    yield logger
    for handler in logger.handlers:
        with suppress(OSError):
            handler.close()
    logger.handlers[:], logger.propagate, logger.level = before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is always full")
def test_that_a_log_cannot_be_written_is_said_once(log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    log_to(Path("/dev/full"))
    for _ in range(3):
        log.info("a line")
    assert capsys.readouterr().err == "warning: /dev/full cannot be written: No space left on device\n"


def test_a_log_that_is_moved_away_goes_on_in_a_new_file(log: logging.Logger, tmp_path: Path) -> None:
    file = tmp_path / "log"
    log_to(file)
    log.info("one")
    file.rename(tmp_path / "log.1")
    log.info("two")
    assert (tmp_path / "log.1").read_text() == "one\n"
    assert file.read_text() == "two\n"


@pytest.mark.parametrize("contents", [False, True])
def test_on_a_terminal_the_log_is_for_people_and_elsewhere_json(
    contents: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    asked = {"messages": [{"role": "user", "content": "Say \x1b[2J."}], "max_tokens": 9}
    wrong = {**asked, "tool_choice": "required"}
    told: list[list[str]] = []
    for terminal in (True, False):
        stderr = StringIO()
        monkeypatch.setattr(stderr, "isatty", lambda is_one=terminal: is_one)
        monkeypatch.setattr("sys.stderr", stderr)
        log_to(None)
        with serving(Replay(call), Settings(log_contents=contents)) as address:
            assert httpx2.post(f"{address}/v1/chat/completions", json=asked).status_code == 200
            assert httpx2.post(f"{address}/v1/chat/completions", json=wrong).status_code == 400
        told.append(stderr.getvalue().splitlines())
    (answered, refused), objects = told[0], [json.loads(line) for line in told[1]]
    message = "a call is required, but the request has no tools"
    shape = r"\d\d:\d\d:\d\d 200 POST /v1/chat/completions \d+\.\d\d s; recorded, style \w+; \d+ \+ \d+ tokens; stop"
    assert re.match(shape, answered)
    assert re.search(rf"; invalid_\w+: .*{message}", refused)
    assert [each["status"] for each in objects] == [200, 400]
    assert objects[1]["message"].endswith(message)
    assert "message" not in objects[0]
    assert ("Say " in answered) == ("body" in objects[0]) == contents
    assert "\x1b" not in answered


def test_events_are_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[int] = []

    def run(_server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        (listener,) = sockets
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection, listener:
            connected.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr("uvicorn.Server.run", run)
    serve.run([Served("recorded", CHATML, Replay())], Settings(), "127.0.0.1", 0, None)
    assert connected == [1]
