"""`toolgram ask` on the default model (fetched into the cache on the first run, about 93 MB)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolgram.cli.app import app
from toolgram.models.catalog import default_model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module", autouse=True)
def _model() -> None:
    default_model()


def test_a_required_call_is_made() -> None:
    options = ("--tools", str(EXAMPLES / "tools.py"), "--tool-choice", "required", "--no-parallel", "--stream")
    result = CliRunner().invoke(app, ["ask", "What will the weather be in Paris over the next three days?", *options])
    assert result.exit_code == 0
    calls = json.loads(result.stdout)["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["get_weather"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"city": "Paris", "days": 3}
    assert calls[0]["id"].startswith("call_")
    assert "<tool_call>" in result.stderr


def test_an_answer_matches_its_schema() -> None:
    schema = EXAMPLES / "person.schema.json"
    question = "Maria is 31 years old. She is a nurse in Lisbon."
    result = CliRunner().invoke(app, ["ask", question, "--schema", str(schema)])
    assert result.exit_code == 0
    person = json.loads(json.loads(result.stdout)["content"])
    assert set(person) == {"name", "age", "city", "job"}
    assert 0 <= person["age"] <= 130


def test_tokens_are_counted_by_the_model() -> None:
    tools = ("--tools", str(EXAMPLES / "tools.py"))
    shown = CliRunner().invoke(app, ["explain", "Will it rain in Paris? " * 20, *tools, "--model", "smollm2"])
    assert shown.exit_code == 0, shown.stderr
    size = re.search(r"# Size\n\d+ characters, (\d+) tokens of SmolLM2", shown.stdout)
    assert size is not None
    assert int(size[1]) > 200
    linted = CliRunner().invoke(app, ["lint", str(default_model()), *tools])
    assert (linted.exit_code, "prompt, tokens" in linted.stdout) == (0, True)


def test_a_prompt_that_no_context_holds_is_explained_all_the_same(tmp_path: Path) -> None:
    request = tmp_path / "long.json"
    request.write_text(json.dumps({"messages": [{"role": "user", "content": "word " * 300_000}]}))
    shown = CliRunner().invoke(app, ["explain", "--request", str(request), "--model", "smollm2"])
    assert shown.exit_code == 0
    assert "characters: prompt is too long" in shown.stdout


def test_a_truncated_model_is_told(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with default_model().open("rb") as file:
        cut.write_bytes(file.read(20_000_000))
    result = CliRunner().invoke(app, ["ask", "Hi.", "--model", str(cut)])
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in result.stderr
