"""What the documents tell to type with one's own model, typed: against a GGUF file, a llama-server, a vLLM made up."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import httpx2
import pytest

from engines import fake_vllm
from engines.fake_sglang import FakeSglang
from engines.fake_vllm import FakeVllm
from engines.peers import llama_server
from situations import CHATML
from toolgram.models.catalog import default_model

ROOT = Path(__file__).resolve().parents[2]
MARK = f"run by: {Path(__file__).relative_to(ROOT)}"
WEATHER = {"type": "object", "properties": {"city": {"enum": ["Paris", "Oslo"]}}, "required": ["city"]}
BODY = {
    "messages": [{"role": "user", "content": "Will it rain in Paris?"}],
    "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}],
    "tool_choice": "required",
    "parallel_tool_calls": False,
}


def blocks(kind: str) -> list[str]:
    """The blocks of the documents that this test runs, each once."""
    spec = importlib.util.spec_from_file_location("docs_run_here", ROOT / "docs/run.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in run.DOCUMENTS]
    found = [block for text in texts for block in run.blocks(text)]
    return list(dict.fromkeys(block.source for block in found if block.kind == kind and block.mark == MARK))


# A command in two documents is one, however it is commented on.
COMMANDS = list(
    {
        line.partition("#")[0].rstrip(): line
        for block in sorted(blocks("sh"), key=lambda text: "vLLM" in text)
        for line in block.splitlines()
    }.values()
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of somebody who has the default model under each of the names that the documents have for it."""
    model = default_model()
    snapshot = tmp_path / "hub" / "models--org--repo" / "snapshots" / ("0" * 40)
    (tmp_path / "hub" / "models--org--repo" / "refs").mkdir(parents=True)
    (tmp_path / "hub" / "models--org--repo" / "refs" / "main").write_text("0" * 40)
    names = [tmp_path / "model.gguf", snapshot / "model.gguf", snapshot / "model-Q4_K_M.gguf"]
    names += [tmp_path / path for command in COMMANDS for path in re.findall(r"~/(\S+)", command)]
    for name in names:
        name.parent.mkdir(parents=True, exist_ok=True)
        name.symlink_to(model)
    return tmp_path


@contextmanager
def typed(command: str, home: Path) -> Iterator[str]:
    """The address of a server that was started by a command, which says where it listens."""
    program, *words = shlex.split(command, comments=True)
    assert program == "toolgram"
    words = [str(home / word[2:]) if word.startswith("~/") else word for word in words]
    environment = {**os.environ, "HF_HUB_CACHE": str(home / "hub"), "HF_HUB_OFFLINE": "1"}
    line = [sys.executable, "-m", "toolgram", *words, "--port", "0"]  # the last one counts
    with (
        (home / "errors").open("w") as errors,
        subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, cwd=home, env=environment, text=True) as server,
    ):
        assert server.stdout is not None
        found = re.search(r"http://[\d.:]+(?=/v1)", server.stdout.readline())
        try:
            assert found is not None, (home / "errors").read_text()
            yield found[0]
        finally:
            server.terminate()


@contextmanager
def upstream(command: str, home: Path) -> Iterator[str]:
    """The command, with the addresses of servers of the kind that its comment names, where it has one.

    For one vLLM that is the one that `make test-vllm` started.
    """
    with ExitStack() as running:

        def started() -> str:
            if "llama-server" in command:
                return running.enter_context(llama_server())[0]
            if "SGLang" in command:
                (home / "chat_template.jinja").write_text(CHATML.source)
                (home / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')
                return running.enter_context(fake_vllm.serving(FakeSglang(root=str(home)).app))
            if (real := os.environ.get("TOOLGRAM_VLLM_XGRAMMAR")) and command.count("http://") == 1:
                return real
            return running.enter_context(fake_vllm.serving(FakeVllm(template=CHATML.source).app))

        yield re.sub(r"http://\S+", lambda _: started(), command)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_serves_a_model_that_calls(command: str, home: Path) -> None:
    with upstream(command, home) as filled, typed(filled, home) as address:
        answer = httpx2.post(f"{address}/v1/chat/completions", json=BODY, timeout=60).json()
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert call["function"]["arguments"] in ('{"city": "Paris"}', '{"city": "Oslo"}')


def test_the_clients_call(home: Path) -> None:
    snippets = blocks("python")
    assert len(snippets) == 2
    with typed("toolgram serve", home) as address:
        for snippet in snippets:
            printed = StringIO()
            with redirect_stdout(printed):
                exec(snippet.replace("http://127.0.0.1:8000", address), {})  # noqa: S102 - our own document
            assert "city" in printed.getvalue()
