"""`toolgram explain --trace` on the default model (fetched into the cache on the first run, about 93 MB)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolgram.cli.app import app
from toolgram.models.catalog import default_model

PERSON = Path(__file__).resolve().parents[2] / "examples" / "person.schema.json"


@pytest.fixture(scope="module", autouse=True)
def _model() -> None:
    default_model()


def test_it_shows_what_the_model_alone_would_have_written() -> None:
    result = CliRunner().invoke(
        app, ["explain", "Methuselah was a farmer in Canaan. He was 969 years old.", "--schema", str(PERSON), "--trace"]
    )
    assert result.exit_code == 0, result.output
    raw, table, divergences = re.split(r"\n?# .*\n", result.stdout)[1:]
    assert set(json.loads(raw)) == {"name", "age", "city", "job"}
    assert table.splitlines()[1].split() == ["after", "written", "preferred", "ruled", "out"]
    assert re.search(r"^the answer, /age: instead it was about to write '9'$", divergences, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Hello."], "there is nothing to trace"),
        (["--schema", str(PERSON)], "--trace runs a request"),
    ],
)
def test_what_cannot_be_traced_is_told(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(app, ["explain", *arguments, "--trace"])
    assert result.exit_code == 2
    assert says in result.stderr
