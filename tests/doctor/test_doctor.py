"""`toolgram doctor` tells the embedded model, a llama-server and a server that enforces nothing apart, by evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from doctor.completion_server import completing
from engines.peers import llama_server
from situations import CHATML
from toolgram.cli.app import app
from toolgram.models.catalog import default_model
from toolgram.planning.profile import Profile, template_hash

TELLING = ("answers", "grammar", "schema", "required", "user_text", "calls", "forces", "weighs")
SCRIPT = {"capital": "The capital of France is Paris.", "Count": "One, two, three", "Zork": "I am Zork."}
SHRUG = "I do not know."


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, ["doctor", *words], terminal_width=120)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def examined(*words: str) -> dict[str, Any]:
    probes = [word for name in TELLING for word in ("--probe", name)]
    document = json.loads(run(*words, *probes, "--json").stdout)
    return {**document, "outcomes": {each["name"]: each["outcome"] for each in document["probes"]}}


@pytest.fixture
def template(tmp_path: Path) -> Path:
    file = tmp_path / "t.jinja"
    file.write_text(CHATML.source)
    return file


@pytest.fixture
def nothing_enforced() -> Iterator[str]:
    with completing(SCRIPT, SHRUG) as url:
        yield url


def test_the_embedded_model() -> None:
    found = examined(str(default_model()))
    assert found["outcomes"] == dict.fromkeys(TELLING, "yes") | {"calls": "no"}
    assert (found["sound"], found["enforced"]) == (True, True)
    assert found["command"] == f"toolgram serve --model {default_model()}"
    assert re.fullmatch(
        r"'zq\d{6}', to 'What is the capital of France\? Answer with one word\.'", evidence(found, "grammar")
    )


def test_a_llama_server_enforces_and_does_not_tell_all() -> None:
    with llama_server() as (url, _):
        found = examined(url)
    assert found["outcomes"] == dict.fromkeys(TELLING, "yes") | {"calls": "no", "forces": "no", "weighs": "no"}
    assert (found["sound"], found["command"]) == (True, f"toolgram serve --upstream {url}")


def test_a_completion_server_that_enforces_nothing(nothing_enforced: str, template: Path) -> None:
    found = examined(nothing_enforced, "--template", str(template))
    no = ("grammar", "schema", "required", "calls", "forces", "weighs")
    assert found["outcomes"] == dict.fromkeys(TELLING, "yes") | dict.fromkeys(no, "no")
    assert (found["sound"], found["enforced"]) == (False, False)
    assert evidence(found, "grammar").startswith("the grammar forbids 'The capital of France is Paris.', to ")
    assert found["command"] == f"toolgram serve --upstream {nothing_enforced} --chat-template {template}"
    assert found["mends"][0].startswith("grammar: a llama-server or a vLLM enforces grammars")


def test_a_server_that_only_says_that_it_enforces(template: Path) -> None:
    """It calls itself vLLM, takes grammars and does not heed them, as a proxy may that drops what it does not know."""
    with completing(SCRIPT, SHRUG, names="vllm") as url:
        found = examined(url, "--template", str(template))
    assert found["outcomes"]["grammar"] == "no"
    assert not found["enforced"]


def evidence(found: dict[str, Any], name: str) -> str:
    return next(each["evidence"] for each in found["probes"] if each["name"] == name)


def test_a_model_that_calls_of_itself_may_be_asked_for_calls(template: Path) -> None:
    call = '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
    script = {
        "set_timer": call % ("set_timer", '{"minutes": 1}'),
        "hello": call % ("get_weather", '{"city": "Oslo", "days": 1}'),
    }
    with completing(script, "Paris") as url:
        probes = ("--probe", "grammar", "--probe", "required", "--probe", "named")
        found = json.loads(run(url, "--template", str(template), *probes, "--json").stdout)
    assert [each["outcome"] for each in found["probes"]] == ["no", "yes", "yes"]
    assert found["command"].endswith(" --allow-unenforced")


def test_a_profile_says_the_style_and_is_served_with(nothing_enforced: str, template: Path, tmp_path: Path) -> None:
    file = tmp_path / "best.toml"
    file.write_text(Profile("scripted", template_hash(CHATML), style="functionary_v2").write())
    words = (nothing_enforced, "--template", str(template), "--probe", "calls")
    found = json.loads(run(*words, "--profile", str(file), "--json").stdout)
    assert found["command"].endswith(f"--chat-template {template} --profile {file}")
    both = run(*words, "--profile", str(file), "--style", "compact")
    assert (both.exit_code, both.stderr.splitlines()[-1]) == (
        2,
        "error: give --profile or --style, not both: a profile says the style",
    )


def test_the_page(nothing_enforced: str, template: Path) -> None:
    result = run(nothing_enforced, "--template", str(template))
    assert result.exit_code == 1
    assert result.stdout.startswith("scripted\nNothing is enforced: what a grammar forbids is written all the same.")
    assert "The server does what it must" in result.stdout
    for title in ("Turns", "Grammars", "Calls", "Reasoning", "Server", "Serve it"):
        assert f"\n{title}\n" in result.stdout
    assert re.search(r"\n  no +grammar +Is a grammar that .*the grammar forbids", result.stdout)
    assert f"\n  toolgram serve --upstream {nothing_enforced} --chat-template {template}\n" in result.stdout


def test_what_a_model_says_moves_no_cursor(template: Path) -> None:
    with completing({}, "\x1b[2J\x9b2J[bold]red[/bold]") as url:
        shown = run(url, "--template", str(template), "--probe", "answers").stdout
    assert "\\x1b[2J\\x9b2J[bold]red" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("smollm2", "--probe", "gramar"), "there is no probe 'gramar'; did you mean 'grammar'"),
        (("http://127.0.0.1:9",), "http://127.0.0.1:9 cannot be reached"),
        (("nothing.gguf",), "nothing.gguf"),
    ],
)
def test_what_cannot_be_examined_is_one_line(words: tuple[str, ...], said: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr
