"""What is built is whole, and each extra is enough for what it is named for.

The wheel, made from the source archive, is installed into empty environments that see no other packages than those
which its extras declare.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import httpx2
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolgram.models.catalog import default_model

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("embedded", "remote", "hub", "agent", "cli", "server", "mcp", "python", "search", "otel")
SILENT = {"stdin": subprocess.DEVNULL, "text": True, "encoding": "utf-8"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the source archive and of the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, check=False, capture_output=True, **SILENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Environments:
    """Environments by their extra; "" has none."""
    return Environments(next(built.glob("*.whl")), tmp_path_factory)


class Environments:
    """Environments in which the wheel is installed, made when they are asked for."""

    def __init__(self, wheel: Path, folders: pytest.TempPathFactory) -> None:
        self._wheel = wheel
        self._folders = folders
        self._made: dict[str, Path] = {}

    def __getitem__(self, extra: str) -> Path:
        """The folder of the interpreter."""
        if extra not in self._made:
            folder = self._folders.mktemp(f"with-{extra or 'nothing'}")
            venv.create(folder, symlinks=sys.platform != "win32")
            programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
            pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet"]
            subprocess.run([*pip, "--no-deps", "--no-index", str(self._wheel)], check=True)
            (info,) = folder.rglob("toolgram-*.dist-info")
            link(packages(PathDistribution(info), extra), info.parent)
            self._made[extra] = programs
        return self._made[extra]

    def run(self, extra: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        """What the interpreter does, where nothing but the environment says where packages are."""
        command = [self[extra] / "python", "-I", *arguments]
        no_hub = {**os.environ, "HF_HUB_OFFLINE": "1"}  # which is tried for half a minute where there is no network
        return subprocess.run(command, check=False, capture_output=True, cwd=cwd, env=no_hub, **SILENT)

    def error(self, extra: str, code: str) -> str:
        """The exception that the code ends with: its class and message."""
        done = self.run(extra, "-c", code)
        assert done.returncode == 1, done.stdout
        return done.stderr.splitlines()[-1]


def packages(toolgram: Distribution, extra: str) -> dict[str, Distribution]:
    """What pip would install with toolgram, of what is installed here."""
    found = {"toolgram": toolgram}
    seen = set[tuple[str, str]]()

    def add(name: str, extras: Iterable[str]) -> None:
        package = found.setdefault(name, toolgram if name == "toolgram" else distribution(name))
        for extra in {"", *extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for requirement in map(Requirement, package.requires or ()):
                if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                    add(canonicalize_name(requirement.name), requirement.extras)

    add("toolgram", [extra])
    del found["toolgram"]
    return found


def link(found: dict[str, Distribution], site: Path) -> None:
    """Make these packages, and no others, those of an environment."""
    for package in found.values():
        for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(package.locate_file(top))))


def test_the_archives_are_fit_for_an_index(built: Path) -> None:
    archives = [str(path) for path in built.iterdir()]
    assert len(archives) == 2
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *archives], check=False, capture_output=True, **SILENT
    )
    assert done.returncode == 0, done.stdout


def test_all_is_everything(python: Environments) -> None:
    (info,) = python["all"].parent.rglob("toolgram-*.dist-info")
    toolgram = PathDistribution(info)
    whole = set(packages(toolgram, "all"))
    for extra in EXTRAS:
        assert set(packages(toolgram, extra)) <= whole, extra
    assert toolgram.metadata.get_all("Project-URL")


def test_without_extras_it_is_the_library(python: Environments) -> None:
    code = """
import toolgram
template = toolgram.ChatTemplate("{% for message in messages %}{{ message.content }}\\n{% endfor %}")
request = {"messages": [{"role": "user", "content": "Hi."}], "response_format": {"type": "json_object"}}
print(toolgram.plan(request, template).parse('{"a": 1}').content)
from toolgram.engines import Replay
"""
    done = python.run("", "-c", code)
    assert (done.stdout, done.stderr) == ('{"a": 1}\n', "")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("from toolgram.engines import LlamaCpp", "the embedded engine needs httpx2: pip install 'toolgram[embedded]'"),
        (
            "import toolgram.engines.llama_cpp.engine",
            "the embedded engine needs httpx2: pip install 'toolgram[embedded]'",
        ),
        (
            "from toolgram.engines import Vllm",
            "an engine that is a server needs httpx2: pip install 'toolgram[remote]'",
        ),
        (
            "from toolgram.engines import LlamaServer",
            "an engine that is a server needs httpx2: pip install 'toolgram[remote]'",
        ),
        (
            "import toolgram.engines.external.masks",
            "a token mask needs numpy: pip install 'toolgram[embedded]'",
        ),
        ("from toolgram.server.app import create_app", "toolgram serve needs orjson: pip install 'toolgram[server]'"),
        (
            "from toolgram.models.catalog import resolve; resolve('org/repo:m.gguf')",
            "a model of the Hugging Face Hub needs huggingface_hub: pip install 'toolgram[hub]'",
        ),
        (
            "from toolgram.agent.docstrings import described; described('Do it.')",
            "a docstring needs docstring_parser: pip install 'toolgram[agent]'",
        ),
        ("from toolgram.agent import Agent", "an agent needs anyio: pip install 'toolgram[agent]'"),
        ("import toolgram.agent.isolated", "an agent needs anyio: pip install 'toolgram[agent]'"),
        ("import toolgram.agent.openapi", "an operation that runs needs httpx2: pip install 'toolgram[agent]'"),
        ("import toolgram.agent.mcp", "an MCP server needs httpx2: pip install 'toolgram[mcp]'"),
    ],
)
def test_the_library_says_what_is_missing_in_a_sentence(code: str, said: str, python: Environments) -> None:
    assert python.error("", code) == f"toolgram.errors.MissingPackage: {said}"
    # What is said is enough: nothing else is missing then.
    extra = re.search(r"\[(\w+)\]", said)
    assert extra is not None
    assert "MissingPackage" not in python.run(extra[1], "-c", code).stderr


@pytest.mark.parametrize(
    ("command", "extra"), [((), "cli"), (("ask", "Hi."), "cli"), (("serve",), "server"), (("styles",), "cli")]
)
def test_the_command_says_what_is_missing_in_a_sentence(
    command: tuple[str, ...], extra: str, python: Environments
) -> None:
    done = python.run("", "-m", "toolgram", *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: the command line needs typer: pip install 'toolgram[{extra}]'\n"


def test_a_server_asks_for_its_own_extra(python: Environments) -> None:
    done = python.run("cli", "-m", "toolgram", "serve")
    assert (done.returncode, done.stderr) == (2, "error: toolgram serve needs orjson: pip install 'toolgram[server]'\n")


@pytest.mark.parametrize(
    ("command", "given"),
    [("serve", "examples/tools.py"), ("list", '{"mcpServers": {"tools": {"command": "none"}}}')],
)
def test_tools_ask_for_the_extra_of_mcp(command: str, given: str, python: Environments, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(given)
    source = str(tmp_path / "mcp.json") if given.startswith("{") else str(ROOT / given)
    done = python.run("cli", "-m", "toolgram", "tools", command, source)
    assert done.returncode == 2
    assert re.fullmatch(r"error: .*MCP servers? needs? .*: pip install 'toolgram\[mcp\]'\n", done.stderr)


def test_traces_ask_for_their_own_extra(python: Environments) -> None:
    code = "from toolgram.server.tracing import exporting; exporting()"
    said = "toolgram serve --otel needs opentelemetry: pip install 'toolgram[otel]'"
    assert python.error("server", code) == f"toolgram.errors.MissingPackage: {said}"
    assert python.run("otel", "-c", code).returncode == 0


def test_with_cli_the_demo_runs(python: Environments, tmp_path: Path) -> None:
    default_model()
    command = ["/bin/sh", str(ROOT / "examples/demo.sh"), str(python["cli"] / "toolgram")]
    done = subprocess.run(command, check=False, capture_output=True, cwd=tmp_path, **SILENT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("style: ")
    assert "not enforced" not in done.stderr
    assert '"arguments": "{\\"city\\": \\"Paris\\", \\"days\\": 3}"' in done.stdout
    assert '{\\"name\\": \\"Maria\\", \\"age\\": 31' in done.stdout


def test_with_server_it_serves(python: Environments, tmp_path: Path) -> None:
    default_model()
    command = [str(python["server"] / "toolgram"), "serve", "--port", "0", "--ctx-size", "512"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, text=True) as server:
        assert server.stdout is not None
        address = re.search(r"http://[\d.:]+/v1", server.stdout.readline())
        assert address is not None
        try:
            body = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 2}
            answer = httpx2.post(f"{address[0]}/chat/completions", json=body, timeout=60).json()
        finally:
            server.terminate()
    assert answer["choices"][0]["finish_reason"] == "length"
