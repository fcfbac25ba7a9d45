"""The documents are true: what they show is what is printed, what they name is there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import toolgram
from toolgram.cli.app import app
from toolgram.models.catalog import default_model
from toolgram.schema.reading.keywords import _SHAPES  # pyright: ignore[reportPrivateUsage] - the list of the keywords there are
from toolgram.styles.generic import GENERIC
from toolgram.styles.registry import all_styles

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
NEEDS_MODEL = "<!-- needs the model -->"
RUN = ("python", "console")
BLOCK_TESTS = (
    "test_quick_start.py",
    "test_recordings.py",
    "test_client_pages.py",
    "test_images_guide.py",
    "test_mcp_guide.py",
    "test_mlx.py",
    "test_observing.py",
)  # which run all blocks that name them


def module(name: str) -> ModuleType:
    """A script of docs/, imported."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


run = module("run")
each_document = pytest.mark.parametrize("name", [*run.DOCUMENTS, "CHANGELOG.md"])


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@each_document
def test_what_is_shown_is_what_is_printed(name: str, request: pytest.FixtureRequest) -> None:
    text, options = text_of(name), list[str]()
    if NEEDS_MODEL in text:
        default_model()
        options.append("--model")
    if request.config.getoption("--update-golden"):
        options.append("--update")
    done = subprocess.run(
        [sys.executable, "docs/run.py", *options, name], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if "<!-- needs the data -->" in text and not (run.DATA / "templates").is_dir():
        pytest.skip("all but what needs chat templates, which a plain clone does not have, is as it is shown")


@each_document
def test_every_block_is_run_or_says_why_not(name: str) -> None:
    for block in run.blocks(text_of(name)):
        is_run = block.kind in (*RUN, "printed") and not block.mark.startswith("not run")
        is_drawing = block.kind == "" and "─►" in block.source
        assert is_run or is_drawing or block.mark.startswith(("not run: ", "run by: ")), f"{name}, line {block.line}"
        if block.mark.startswith("run by: "):
            assert Path(block.mark.removeprefix("run by: ")).name in BLOCK_TESTS, f"{name}, line {block.line}"
        for test in re.findall(r"tests/\S+\.py", block.mark):
            assert (ROOT / test).exists(), f"{name}, line {block.line}"


@each_document
def test_no_code_is_written_so_that_it_is_not_seen(name: str) -> None:
    left = run._BLOCK.sub("", text_of(name))
    assert re.findall(r"^\s*(?:```|~~~).*", left, re.MULTILINE) == []
    assert re.findall(r"^ {4,}\$ .*", left, re.MULTILINE) == []


@each_document
def test_what_is_named_is_there(name: str) -> None:
    text = text_of(name)
    here = (ROOT / name).parent
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (here / target).exists(), target
    for path in re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[^`\s]+)`", text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"\bmake ([a-z]+)\b", "\n".join(re.findall(r"`[^`]+`|^make .*$", text, re.MULTILINE))):
        assert f"\n{target}:" in text_of("Makefile"), target


def test_no_document_speaks_of_data_that_nobody_else_has() -> None:
    files = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / name for name in run.DOCUMENTS), ROOT / "SECURITY.md"]
    assert [path.name for path in files if "../shared" in path.read_text(encoding="utf-8")] == []


def test_the_quick_start_shows_the_demo() -> None:
    done = subprocess.run(["/bin/sh", "examples/demo.sh", "echo"], cwd=ROOT, check=True, capture_output=True, text=True)
    commands = [line for line in done.stdout.splitlines() if line.startswith("$ ")]
    shown = text_of("docs/quick-start.md").splitlines()
    assert commands == [line for line in shown if line.startswith("$ toolgram ask")]


def test_the_readme_names_every_generic_style() -> None:
    (generic,) = (line for line in README.splitlines() if line.startswith("- **Generic styles**"))
    assert re.findall(r"`([^`]+)`", generic) == [style.name for style in GENERIC]


def test_the_readme_counts_native_styles() -> None:
    native = [style for style in all_styles() if not style.is_generic]
    assert f"- **Native styles**: [{len(native)} of them](docs/styles.md)" in README


def test_every_command_is_described() -> None:
    commands = text_of("docs/command-line.md")
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"`toolgram {command.callback.__name__}`" in commands


def test_the_changelog_knows_this_version() -> None:
    assert f"\n## {toolgram.__version__} - " in text_of("CHANGELOG.md")


def test_the_version_is_the_same_everywhere() -> None:
    declared = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    assert toolgram.__version__ == declared
    assert f"\nversion: {declared}\n" in text_of("CITATION.cff")


def test_the_table_of_keywords_is_complete() -> None:
    names = {name for example in module("schema_table").EXAMPLES for name in example.keywords.split(", ")}
    assert names >= set(_SHAPES)


def test_an_untrue_document_is_told(tmp_path: Path) -> None:
    document = tmp_path / "untrue.md"
    document.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    command = [sys.executable, str(ROOT / "docs/run.py")]
    done = subprocess.run([*command, str(document)], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "-3\n+2" in done.stdout
    subprocess.run([*command, "--update", str(document)], check=True)
    assert "```text\n2\n```\n" in document.read_text()
