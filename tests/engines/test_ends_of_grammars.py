"""A turn under a grammar ends with the token that the model ends its turns with, whatever end the server knows."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import httpx2
import pytest

from engines.fake_sglang import FakeSglang
from engines.fake_vllm import FakeVllm, serving
from engines.peers import llama_server
from engines.small_tokenizer import SPECIAL
from toolgram.engines.base import Chunk, Sampling
from toolgram.engines.remote.llama_server import LlamaServer
from toolgram.engines.remote.sglang import Sglang
from toolgram.engines.remote.vllm import Vllm
from toolgram.grammar.constraint import Constraint
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Ref, Token, chars, optional, repeat, seq

OTHER = next(text for text in SPECIAL if text != "<|im_end|>")
WORDS = Constraint(Grammar({"root": repeat(chars((97, 122)), 1)}))
ITSELF = Constraint(Grammar({"root": seq("(", optional(Ref("root")), ")")}))


def said(engine: LlamaServer | Sglang | Vllm, constraint: Constraint, **sampling: Any) -> list[Chunk]:
    """What an engine says that wants to end the turn."""

    async def chunks() -> list[Chunk]:
        asked = engine.generate((("Hi.", True),), constraint, Sampling(max_tokens=40, **sampling))
        found = [chunk async for chunk in asked]
        await engine.aclose()
        return found

    return asyncio.run(chunks())


@pytest.mark.parametrize("constraint", [WORDS, ITSELF], ids=["words", "itself"])
@pytest.mark.parametrize("anyhow", [True, False], ids=["new", "old"])
@pytest.mark.parametrize("dialect", ["ebnf", "structural_tag", "lark"])
def test_a_vllm_lets_a_turn_end(
    dialect: Literal["ebnf", "structural_tag", "lark"], anyhow: bool, constraint: Constraint
) -> None:
    fake = FakeVllm(backend="llguidance" if dialect == "lark" else "xgrammar", ends_anyhow=anyhow)
    end = fake.tokenizer.convert_tokens_to_ids(OTHER)
    with serving(fake.app) as url:
        engine = Vllm(url, dialect=dialect)
        for _ in range(2):
            chunks = said(engine, constraint, ends=(OTHER, "<|im_end|>"), logit_bias={end: 100.0})
            assert constraint.grammar.accepts("".join(chunk.text for chunk in chunks))
            assert [token for chunk in chunks for token in chunk.tokens][-1] == end
            assert chunks[-1].finish == "stop"


@pytest.mark.parametrize("backend", ["xgrammar", "llguidance"])
def test_sglang_is_sent_the_ends(backend: str) -> None:
    fake = FakeSglang(backend=backend)
    end = fake.tokenizer.convert_tokens_to_ids(OTHER)
    with serving(fake.app) as url:
        engine = Sglang(url, "org/model", dialect="lark" if backend == "llguidance" else "ebnf")
        texts = ["".join(c.text for c in said(engine, WORDS, ends=(OTHER,), logit_bias={end: 100.0})) for _ in range(8)]
    assert [len(text) for text in texts] == [1] * 8


def test_a_llama_server_lets_a_turn_of_tokens_end() -> None:
    """One without tokens of its own may go to a server that reads none, and an end as text could be spelled."""
    marked = Constraint(Grammar({"root": seq(Token("<file_sep>"), WORDS.grammar.rules["root"])}))
    with llama_server() as (url, _):
        tokenized = httpx2.post(f"{url}/tokenize", json={"content": "<|im_start|>", "parse_special": True})
        (end,) = tokenized.json()["tokens"]
        marker, *words, last = said(LlamaServer(url), marked, ends=("<|im_start|>",), logit_bias={end: 100.0})
    assert marker.text == "<file_sep>"
    assert WORDS.grammar.accepts("".join(chunk.text for chunk in words))
    assert (last.usage and last.usage.completion_tokens, last.finish) == (3, "stop")
