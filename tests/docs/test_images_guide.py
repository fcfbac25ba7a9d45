"""What docs/guides/images.md says, typed, with a projector of random weights."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from engines.projector import png, write_projector
from toolgram.models.catalog import default_model

ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- run by: tests/docs/test_images_guide.py -->"
BLOCKS = re.findall(rf"{MARK}\n```(\w+)\n(.*?)```", (ROOT / "docs/guides/images.md").read_text(), re.DOTALL)
WIDTH = 576  # of SmolLM2's embeddings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the page names."""
    (tmp_path / "model.gguf").symlink_to(default_model())
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "receipt.png").write_bytes(png((255, 255, 255)))
    write_projector(tmp_path / "mmproj.gguf", WIDTH)
    return tmp_path


def run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr  # a number may go on until the tokens run out
    return done.stdout


def test_the_page_has_a_server_a_question_and_a_program() -> None:
    assert [kind for kind, _ in BLOCKS] == ["sh", "sh", "python"]


def test_the_server_starts(folder: Path) -> None:
    command = [sys.executable, "-m", *shlex.split(BLOCKS[0][1]), "--port", "0", "--ctx-size", "512"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        server.terminate()
    assert line.startswith("serving model at http://127.0.0.1:")


def test_the_question_is_answered(folder: Path) -> None:
    answer = json.loads(run(folder, "-m", *shlex.split(BLOCKS[1][1])))
    assert answer["content"].startswith('{"shop": "')


def test_the_program_runs(folder: Path) -> None:
    assert run(folder, "-c", BLOCKS[2][1]).startswith("{'total': ")
