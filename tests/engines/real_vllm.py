"""Starts vLLM once for each of its grammar backends, holds it to the engine contract, and stops it.

The documents' commands are typed before it, too, and their program runs with it in its own process.

Argument: the virtual environment that has vLLM and, in `model`, a model.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

_START_SECONDS = 300
# One thread, bound to no core, and nothing compiled: the machine is small, and others use it.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = re.compile(r"```python\n(from vllm import LLM.*?)```", re.DOTALL)
_REQUESTS = """
city = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
tools = [{"type": "function", "function": {"name": "get_weather", "parameters": city}}]
schema = {"type": "json_schema", "json_schema": {"name": "capital", "schema": city}}
paris, italy = ([{"role": "user", "content": text}] for text in ("Weather in Paris?", "The capital of Italy?"))
requests = [
    {"messages": paris, "tools": tools, "tool_choice": "required", "parallel_tool_calls": False},
    {"messages": italy, "response_format": schema},
    {"messages": italy},
]
"""
_OPTIONS = ["--host", "127.0.0.1", "--max-model-len", "2048", "--max-num-seqs", "32", "--dtype", "float32"]


@contextmanager
def vllm(home: Path, backend: str, options: Sequence[str] = ()) -> Generator[str]:
    """The address of a server that answers; `options` are more of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [home / "bin" / "python", "-m", "vllm.entrypoints.openai.api_server", "--model", home / "model"]
    command += [*_OPTIONS, "--enforce-eager", "--port", str(port)]
    command += ["--structured-outputs-config.backend", backend, *options]
    with (home / f"{backend}.log").open("w") as log:
        process = subprocess.Popen(command, env={**os.environ, **_ENVIRONMENT}, stdout=log, stderr=log)
        try:
            _wait(process, f"http://127.0.0.1:{port}", log.name)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def _wait(process: subprocess.Popen[bytes], url: str, log: str) -> None:
    until = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):  # noqa: S310 - our own address
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise SystemExit(f"vLLM does not start: see {log}")


def fails_in_its_process(home: Path, backend: str) -> bool:
    """Whether the guide's program prints anything but a call, an answer in its schema, and one in words."""
    (program,) = _PROGRAM.findall((_ROOT / "docs/guides/vllm.md").read_text(encoding="utf-8"))
    small = "enforce_eager=True, dtype='float32', max_model_len=2048"
    if backend == "guidance":
        small += ", structured_outputs_config={'backend': 'guidance'}"
        program = program.replace("plan.stop)", "plan.stop, dialect='lark')")
    program = program.replace('"Qwen3-8B"', repr(str(home / "model"))).replace("LLM(folder)", f"LLM(folder, {small})")
    with NamedTemporaryFile("w", suffix=".py") as file:
        file.write(_REQUESTS + program)
        file.flush()
        environment = {**os.environ, **_ENVIRONMENT, "PYTHONPATH": str(_ROOT / "src")}
        command = [home / "bin" / "python", file.name]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if line.startswith("Message(")]
    expected = ("name='get_weather', arguments='{\"city\": \"Paris\"}'", 'content=\'{"city": "Rome"}\'', "Rome")
    if len(told) == len(expected) and all(part in line for part, line in zip(expected, told, strict=True)):
        return False
    sys.stderr.write(f"vLLM in its own process, {backend}: {done.stdout}\n")
    return True


def main() -> int:
    home = Path(sys.argv[1]).absolute()
    failed = 0
    for backend in ("xgrammar", "guidance"):
        failed |= fails_in_its_process(home, backend)
        with vllm(home, backend) as url:
            environment = {**os.environ, f"TOOLGRAM_VLLM_{backend.upper()}": url}
            # What the documents tell to type before a vLLM is typed before the one that uses vLLM's own default.
            documented = [["tests/docs/test_quick_start.py", "-k", "vLLM"]] if backend == "xgrammar" else []
            for tests in (["tests/engines/test_contract.py", "-k", "vllm and not fake"], *documented):
                command = [sys.executable, "-m", "pytest", *tests]
                failed |= subprocess.run(command, env=environment, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
