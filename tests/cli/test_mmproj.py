"""`--mmproj` and `--image`: a model that sees, by a projector of random weights."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from engines.projector import png, write_projector
from live_server import listening
from toolgram.cli.app import app
from toolgram.cli.serve import Loading, load
from toolgram.models.catalog import default_model
from toolgram.server.app import create_app

WIDTH = 576  # of SmolLM2's embeddings
SCHEMA: Any = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its projector beside it, a picture, and a schema."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "small.gguf").symlink_to(default_model())
    write_projector(folder / "mmproj-small.gguf", WIDTH)
    (folder / "red.png").write_bytes(png((255, 0, 0)))
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    return folder


def ask(folder: Path, *options: str) -> Any:
    files = {"small.gguf", "mmproj-small.gguf", "red.png", "schema.json"}
    return CliRunner().invoke(app, ["ask", "What is it?", *(str(folder / o) if o in files else o for o in options)])


def test_an_image_is_asked_about(folder: Path) -> None:
    shown = ("--model", "small.gguf", "--mmproj", "mmproj-small.gguf", "--image", "red.png", "--schema", "schema.json")
    result = ask(folder, *shown)
    assert result.exit_code == 0, result.stderr
    assert json.loads(json.loads(result.stdout)["content"])["colour"] in ("red", "blue")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--image", "red.png"), "needs a model that sees: give --model with its --mmproj, or --upstream"),
        (("--mmproj", "mmproj-small.gguf", "--upstream", "http://127.0.0.1:1"), "gets its own where it is started"),
        (("--mmproj", "small.gguf", "--image", "red.png"), "is no projector for images"),
        (("--mmproj", "mmproj-small.gguf", "--image", "schema.json"), "schema.json: is no image that can be shown"),
        (("--mmproj", "mmproj-small.gguf", "--image", "none.png"), "none.png: cannot be read"),
        (("--mmproj", "none.gguf", "--image", "red.png"), "none.gguf is neither a file nor a known model"),
    ],
)
def test_what_cannot_be_shown_is_an_error(folder: Path, options: tuple[str, ...], said: str) -> None:
    result = ask(folder, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr.splitlines()[-1]


def test_a_model_that_sees_is_served(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (served,) = load(Loading((str(folder / "small.gguf"),), context=1024, mmproj=str(folder / "mmproj-small.gguf")))
    assert "context of 1024 tokens" in capsys.readouterr().err
    image = base64.b64encode((folder / "red.png").read_bytes()).decode()
    by_user = {"role": "user", "content": "What is it?", "images": [image]}
    with listening(create_app([served])) as address:
        body = {"messages": [by_user], "format": SCHEMA, "stream": False}
        answer = httpx2.post(f"{address}/api/chat", json=body, timeout=240)
        shown = httpx2.post(f"{address}/api/show", json={"model": "small"}).json()
        (listed,) = httpx2.get(f"{address}/v1/models").json()["data"]
        counted = {"messages": [{"role": "user", "content": "Hi."}]}
        count = httpx2.post(f"{address}/v1/messages/count_tokens", json=counted).json()
    asyncio.run(served.engine.aclose())
    assert json.loads(answer.json()["message"]["content"])["colour"] in ("red", "blue")
    assert "vision" in shown["capabilities"]
    assert shown["model_info"]["llama.context_length"] == listed["context_length"] == 1024
    assert count["input_tokens"] > 1


def test_a_projector_that_lies_beside_a_model_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (served,) = load(Loading((str(folder / "small.gguf"),), context=512))
    asyncio.run(served.engine.aclose())
    note = f"note: --mmproj {folder / 'mmproj-small.gguf'} would show the model images, if it is the model's"
    assert note in capsys.readouterr().err


@pytest.mark.parametrize("others", [[], ["--model", "a", "--model", "b"], ["--upstream", "http://127.0.0.1:1"]])
def test_a_projector_is_for_one_model(others: list[str]) -> None:
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--mmproj", "mmproj.gguf", *others])
    assert result.exit_code == 2
    assert "--mmproj is for one --model" in result.stderr


def test_images_are_shown_in_a_conversation(folder: Path) -> None:
    typed = f"/image {folder / 'schema.json'}\n/image\n/image {folder / 'red.png'}\nWhat is it?\nAnd now?\n"
    options = ("--model", str(folder / "small.gguf"), "--mmproj", str(folder / "mmproj-small.gguf"))
    result = CliRunner().invoke(app, ["chat", *options, "--schema", str(folder / "schema.json")], input=typed)
    assert [json.loads(line)["colour"] in ("red", "blue") for line in result.stdout.splitlines()] == [True, True]
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 2
    assert "is no image that can be shown" in errors[0]
    assert errors[1] == "error: which one? /image FILE"


def test_a_model_that_does_not_see_is_given_no_image(folder: Path) -> None:
    options = ("--model", str(folder / "small.gguf"))
    result = CliRunner().invoke(app, ["chat", *options], input=f"/image {folder / 'red.png'}\n")
    assert "error: this model is shown no images: --mmproj FILE gives it a projector" in result.stderr


def test_an_agent_is_shown_an_image(folder: Path) -> None:
    words = ("agent", "Which colour is it?", "--image", "red.png", "--answer", "schema.json", "--tool-choice", "auto")
    options = (*words, "--model", "small.gguf", "--mmproj", "mmproj-small.gguf", "--max-steps", "1")
    files = {"small.gguf", "mmproj-small.gguf", "red.png", "schema.json"}
    result = CliRunner().invoke(app, [str(folder / word) if word in files else word for word in options])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["colour"] in ("red", "blue")
