"""vLLM 0.33 bars special tokens in all that XGrammar compiles but structural tags: markers stay tokens for all that."""

from __future__ import annotations

import asyncio
import json

import pytest

from engines.fake_vllm import FakeVllm, serving
from engines.small_tokenizer import SPECIAL
from toolgram.engines.base import Chunk, Sampling
from toolgram.engines.remote.vllm import Vllm
from toolgram.grammar.constraint import Constraint
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Token, chars, repeat, seq

OPENER, CLOSER = SPECIAL[2:]
CALL = Constraint(Grammar({"root": seq(Token(OPENER), repeat(chars((97, 122)), 1, 3), Token(CLOSER))}))


def written(fake: FakeVllm) -> list[Chunk]:
    """What a server writes of a call."""

    async def chunks() -> list[Chunk]:
        with serving(fake.app) as url:
            engine = Vllm(url)
            asked = engine.generate((("Call.", True),), CALL, Sampling(max_tokens=20))
            found = [chunk async for chunk in asked]
            await engine.aclose()
            return found

    return asyncio.run(chunks())


@pytest.mark.parametrize(
    ("release", "bars"), [("0.32.0", False), ("0.33.0", True), ("0.34.1.dev5+g1", True), ("dev", True)]
)
def test_markers_are_written_as_tokens(release: str, bars: bool) -> None:
    fake = FakeVllm(release=release, bars=bars)
    chunks = written(fake)
    tokens = [token for chunk in chunks for token in chunk.tokens]
    opener, closer = fake.tokenizer.convert_tokens_to_ids([OPENER, CLOSER])
    assert tokens[0] == opener
    assert closer in tokens
    text = "".join(chunk.text for chunk in chunks)
    assert CALL.grammar.accepts(text)


def test_a_grammar_is_sent_as_it_is_where_that_bars_nothing() -> None:
    older, newer = FakeVllm(release="0.32.0", bars=False), FakeVllm()
    for fake in (older, newer):
        written(fake)
    (plain,), (tagged,) = older.asked, newer.asked
    ebnf = plain["structured_outputs"]["grammar"]
    assert json.loads(tagged["structured_outputs"]["structural_tag"]) == {
        "type": "structural_tag",
        "format": {"type": "grammar", "grammar": ebnf},
    }
