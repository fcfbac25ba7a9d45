"""`toolgram chat` on recorded answers: what is typed, and what is seen."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from situations import CHATML
from toolgram import ChatTemplate
from toolgram.cli.app import app
from toolgram.engines.replay import Replay
from toolgram.models.catalog import default_model
from toolgram.planning.profile import Profile, template_hash

TOOLS = """
from toolgram.agent import writes

def get_weather(city: str) -> str:
    "Get the weather."
    return f"rain in {city}"

@writes
def erase(city: str) -> str:
    "Erase a city."
    return "erased"

def broken() -> str:
    "Fail."
    raise ValueError("no luck")
"""


def call(name: str, **arguments: Any) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Result, Replay]]:
    """Types lines to an engine with these answers."""
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "city.json").write_text(json.dumps({"enum": ["Oslo", "Rome"]}))
    monkeypatch.chdir(tmp_path)

    def talked(typed: str | bytes, *answers: Any, options: tuple[str, ...] = ()) -> tuple[Result, Replay]:
        engine = Replay(*answers)
        monkeypatch.setattr("toolgram.cli.ask.model_file", lambda *_: Path("recorded.gguf"))
        monkeypatch.setattr("toolgram.cli.inputs.load_engine", lambda *_, **__: engine)
        monkeypatch.setattr("toolgram.cli.ask.model_name", lambda *_: "recorded")
        monkeypatch.setattr(
            "toolgram.template.chat_template.ChatTemplate.from_gguf",
            lambda *_, source=CHATML.source: ChatTemplate(source, CHATML.bos_token, CHATML.eos_token),
        )
        result = CliRunner().invoke(app, ["chat", *options], input=typed)
        assert result.exit_code == 0, result.output
        return result, engine

    return talked


def test_what_was_said_before_is_known(talk: Any) -> None:
    result, engine = talk("Hi.\nWho am I?\n", "Hello, Ada.", "Ada.", options=("--system", "Be kind."))
    assert result.stdout == "Hello, Ada.\nAda.\n"
    assert engine.calls[1].text.count("<|im_start|>") == 5
    assert "Be kind." in engine.calls[1].text
    assert "Hello, Ada.<|im_end|>" in engine.calls[1].text
    assert engine.closed


def test_lines_that_go_on_are_one_text(talk: Any) -> None:
    _, engine = talk('One\\\ntwo\n"""\nthree\n\nfour\n"""\n', "a", "b")
    assert "<|im_start|>user\nOne\ntwo<|im_end|>" in engine.calls[0].text
    assert "<|im_start|>user\nthree\n\nfour<|im_end|>" in engine.calls[1].text


def test_tools_run_and_their_results_are_used(talk: Any) -> None:
    result, engine = talk("Rain in Oslo?\n", call("get_weather", city="Oslo"), "Yes.", options=("--tools", "tools.py"))
    assert result.stdout.startswith('get_weather {"city": "Oslo"}\n= rain in Oslo (0.0 s)\nYes.\n')
    assert "rain in Oslo" in engine.calls[1].text


def test_a_tool_that_fails_or_writes_says_so(talk: Any) -> None:
    calls = f"{call('broken')}\n{call('erase', city='Rome')}"
    result, engine = talk("Go.\n", calls, "Well.", options=("--tools", "tools.py"))
    assert "= error: " in result.stdout
    assert "no luck" in result.stdout
    assert "erase was not run" in result.stderr
    assert "The user did not allow this call." in engine.calls[1].text
    assert "erased" not in engine.calls[1].text


def test_who_calls_the_same_thrice_is_asked_for_an_answer(talk: Any) -> None:
    again = call("get_weather", city="Oslo")
    result, engine = talk("Rain?\n", again, again, "It rains.", options=("--tools", "tools.py"))
    assert result.stdout.endswith("It rains.\n")
    assert engine.calls[1].constraint is not None
    assert not engine.calls[2].constraint.grammar.accepts(again)


def test_commands(talk: Any) -> None:
    typed = ("/tools", "/tools tools.py", "/schema city.json", "Where?", "/explain", "/schema off", "/new", "/explain")
    result, engine = talk("\n".join((*typed, "/explain Rain?", "/help", "")), '"Oslo"')
    shown = result.stdout
    assert shown.startswith(
        "no tools: /tools FILE.py gives some\nget_weather: Get the weather.\nerase: Erase a city.\n"
    )
    assert 'answers match city.json\n"Oslo"\n' in shown
    assert "# Grammar (gbnf)" in shown
    assert "Where?<|im_end|>\n<|im_start|>assistant\n\n# Size" in shown
    assert "error: nothing was asked yet" in result.stderr
    assert "/schema [FILE|off]" in shown
    assert len(engine.calls) == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/tools nothing.py", "nothing.py"),
        ("/schema nothing.json", "nothing.json: no such file"),
        ("Hi.", "recorded answers"),
    ],
)
def test_what_goes_wrong_ends_no_conversation(talk: Any, typed: str, said: str) -> None:
    result, _ = talk(f"{typed}\n/new\n/tools\n")
    assert said in result.stderr
    assert result.stdout == "no tools: /tools FILE.py gives some\n"


def test_an_answer_that_is_cut_off_is_told_and_stays(talk: Any) -> None:
    result, engine = talk("Count.\nGo on.\n", tuple("one two"), "three", options=("--max-tokens", "3"))
    assert result.stdout == "one\nthree\n"
    assert "cut off: --max-tokens" in result.stderr
    assert "one<|im_end|>" in engine.calls[1].text


def test_reasoning_is_dimmed(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.echo", partial(typer.echo, color=True))
    opened = ChatTemplate(CHATML.source.replace("assistant\n' }}{% endif", "assistant\n<think>\n' }}{% endif"))
    file = Path("t.jinja")
    file.write_text(opened.source)
    result, _ = talk("Hi.\n", ("Hm.", "\n</think>\n\nYes."), options=("--template", "t.jinja", "--style", "hermes"))
    assert result.stdout == "\x1b[2mHm.\x1b[0m\nYes.\n"


def test_a_profile_says_how_calls_are_written(talk: Any) -> None:
    Path("best.toml").write_text(Profile("recorded", template_hash(CHATML), style="functionary_v2").write())
    result, _ = talk("/explain Rain?\n", options=("--tools", "tools.py", "--profile", "best.toml"))
    assert result.stdout.startswith("# Style\nfunctionary_v2: ")
    assert 'recorded: profile: style "functionary_v2"' in result.stderr


def test_what_is_no_text_of_the_terminals_encoding_ends_no_conversation(talk: Any) -> None:
    result, engine = talk(b"caf\xe9\nHi.\n", "Yes?", "Hello.")
    assert result.stdout == "Yes?\nHello.\n"
    assert "caf\ufffd" in engine.calls[0].text


def test_quit_leaves(talk: Any) -> None:
    assert talk("/quit\nHi.\n")[0].stdout == ""


def test_a_model_moves_no_cursor(talk: Any) -> None:
    assert talk("Hi.\n", "a\x1b[2Jb\x9bc")[0].stdout == "a[2Jbc\n"
    assert talk("Hi.\n", "10\u202f000\xa0km, \u0645\u06cc\u200c")[0].stdout == "10\u202f000\xa0km, \u0645\u06cc\u200c\n"


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, *command: str) -> None:
        self.screen = ""
        import pty

        master, slave = pty.openpty()
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background hand down SIG_IGN
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        signal.signal(signal.SIGINT, before)
        os.close(slave)
        self._fd = master

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def until(self, pattern: str) -> None:
        deadline = time.monotonic() + 120
        while not re.search(pattern, self.screen, re.DOTALL):
            assert time.monotonic() < deadline, self.screen
            if select.select([self._fd], [], [], 1)[0]:
                self.screen += os.read(self._fd, 4096).decode(errors="replace")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._fd)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
def test_ctrl_c_ends_an_answer_and_not_the_conversation() -> None:
    terminal = Terminal(sys.executable, "-m", "toolgram", "chat", "--model", str(default_model()))
    try:
        terminal.until("/help says what can be typed.*> ")
        terminal.type("Tell me a long story of the sea.\n")
        terminal.until(r"sea\.\r\n.*[a-z]{3} ")
        os.killpg(terminal.process.pid, signal.SIGINT)
        terminal.until("stopped: the question")
        terminal.type("/tools\n")
        terminal.until("no tools: .*> ")
        terminal.type("\x04")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.close()
