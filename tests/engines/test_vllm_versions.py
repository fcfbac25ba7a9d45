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
WORD = repeat(chars((97, 122)), 1, 3)
CALL = Constraint(Grammar({"root": seq(Token(OPENER), WORD, Token(CLOSER))}))


def written(fake: FakeVllm, constraint: Constraint) -> list[Chunk]:
    """What a server writes."""

    async def chunks() -> list[Chunk]:
        with serving(fake.app) as url:
            engine = Vllm(url)
            asked = engine.generate((("Call.", True),), constraint, Sampling(max_tokens=20))
            found = [chunk async for chunk in asked]
            await engine.aclose()
            return found

    return asyncio.run(chunks())


@pytest.mark.parametrize("bars", [True, False], ids=["0.33", "before"])
def test_markers_are_written_as_tokens(bars: bool) -> None:
    fake = FakeVllm(bars=bars)
    chunks = written(fake, CALL)
    tokens = [token for chunk in chunks for token in chunk.tokens]
    opener, closer = fake.tokenizer.convert_tokens_to_ids([OPENER, CLOSER])
    assert tokens[0] == opener
    assert closer in tokens
    assert CALL.grammar.accepts("".join(chunk.text for chunk in chunks))


def test_a_grammar_with_tokens_is_in_a_tag_and_any_other_is_sent_as_it_is() -> None:
    fake, plain = FakeVllm(), Constraint(Grammar({"root": WORD}))
    written(fake, CALL)
    written(fake, plain)
    tagged, sent = (body["structured_outputs"] for body in fake.asked)
    bound = CALL.bind(fake.tokenizer.added_tokens_encoder).grammar
    format_ = {"type": "grammar", "grammar": bound.to("ebnf")}
    assert json.loads(tagged["structural_tag"]) == {"type": "structural_tag", "format": format_}
    assert sent == {"grammar": plain.grammar.to("ebnf")}
