"""The engines that the contract is held to, each made ready for a while."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Literal

from engines.contract import Peer
from engines.fake_router import FakeRouter
from engines.fake_sglang import FakeSglang
from engines.fake_vllm import CONTEXT, FakeVllm, serving
from toolgram.engines.base import Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.llama_cpp.bundled_server import LlamaObject
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.remote.llama_server import LlamaServer
from toolgram.engines.remote.sglang import Sglang
from toolgram.engines.remote.vllm import Vllm
from toolgram.engines.replay import Replay
from toolgram.grammar.grammar import Grammar
from toolgram.models.catalog import default_model

SLOTS = 4
_PROCESS = Path(__file__).with_name("llama_server_process.py")


class Recorded(Replay):
    """Answers each request as it was answered before: by a sentence of its grammar, a letter at a time."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        text = "The sea is wide, the sea is deep." * 40
        if constraint is not None:
            assert isinstance(constraint.grammar, Grammar)
            sentences = map(constraint.grammar.sample, count(sampling.seed or 0))
            text = next(text for text in sentences if "\ufffd" not in text)  # which would look like broken bytes
        async for chunk in Replay(tuple(text)).generate(prompt, constraint, sampling):
            yield chunk


@contextmanager
def llama_server(port: int = 0, *projector: Path) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """The address of a llama-server in a process of its own, and the process; with a projector it takes images."""
    command = [sys.executable, str(_PROCESS), str(default_model()), str(SLOTS), str(port), *map(str, projector)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def embedded_peer() -> Generator[Peer]:
    engine = LlamaCpp(default_model(), context=2048)
    yield Peer(engine, context=2048)
    engine.close()


@contextmanager
def llama_object_peer() -> Generator[Peer]:
    engine = LlamaObject(default_model(), context=2048, parallel=SLOTS)
    yield Peer(engine, context=2048)
    engine.close()


@contextmanager
def llama_server_peer() -> Generator[Peer]:
    with llama_server() as (url, _):
        yield Peer(LlamaServer(url, timeout=240), context=2048)


@contextmanager
def llama_router_peer() -> Generator[Peer]:
    with llama_server() as (url, _), serving(FakeRouter(url, {"small": ()}).app) as router:
        yield Peer(LlamaServer(router, model="small", timeout=240), context=2048)


@contextmanager
def fake_vllm_peer(backend: str, dialect: Literal["ebnf", "lark", "structural_tag"]) -> Generator[Peer]:
    with serving(FakeVllm(backend).app) as url:
        yield Peer(Vllm(url, dialect=dialect), context=CONTEXT)


@contextmanager
def fake_sglang_peer(backend: str, dialect: Literal["ebnf", "lark"]) -> Generator[Peer]:
    with serving(FakeSglang(backend).app) as url:
        yield Peer(Sglang(url, "org/model", dialect=dialect), context=CONTEXT)


@contextmanager
def replay_peer() -> Generator[Peer]:
    yield Peer(Recorded(), context=None, invents=False)


@contextmanager
def vllm_peer(url: str, dialect: Literal["ebnf", "lark", "structural_tag"]) -> Generator[Peer]:
    yield Peer(Vllm(url, dialect=dialect), context=2048)


PEERS: dict[str, Callable[[], AbstractContextManager[Peer]]] = {
    "embedded": embedded_peer,
    "llama-object": llama_object_peer,
    "llama-server": llama_server_peer,
    "llama-router-fake": llama_router_peer,
    "vllm-xgrammar-fake": lambda: fake_vllm_peer("xgrammar", "ebnf"),
    "vllm-tags-fake": lambda: fake_vllm_peer("xgrammar", "structural_tag"),
    "vllm-guidance-fake": lambda: fake_vllm_peer("llguidance", "lark"),
    "sglang-xgrammar-fake": lambda: fake_sglang_peer("xgrammar", "ebnf"),
    "sglang-llguidance-fake": lambda: fake_sglang_peer("llguidance", "lark"),
    "replay": replay_peer,
}
# `make test-vllm` starts real servers, one for each backend, and says where.
if url := os.environ.get("TOOLGRAM_VLLM_XGRAMMAR"):
    PEERS |= {"vllm-xgrammar": lambda: vllm_peer(url, "ebnf"), "vllm-tags": lambda: vllm_peer(url, "structural_tag")}
if guidance_url := os.environ.get("TOOLGRAM_VLLM_GUIDANCE"):
    PEERS |= {"vllm-guidance": lambda: vllm_peer(guidance_url, "lark")}
