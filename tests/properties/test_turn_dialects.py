"""Three dialects, three recognisers: each accepts what the grammar of a turn accepts, and nothing else."""

from __future__ import annotations

import random

import pytest

from llama_oracle import gbnf_accepts
from oracles import ebnf_accepts, lark_accepts
from situations import PIECES, Situation, situations

SAMPLES = 25


def mutated(text: str, rng: random.Random) -> str:
    """The text with one piece put in, taken out or put in the place of another."""
    at, size = rng.randrange(len(text) + 1), rng.randrange(4)
    return text[:at] + rng.choice([*PIECES, ""]) + text[at + size :]


@pytest.mark.parametrize("situation", situations(), ids=str)
def test_the_dialects_agree_on_sentences_and_on_near_misses(situation: Situation) -> None:
    grammar = situation.plan.constraint.grammar
    gbnf, lark, ebnf = (grammar.to(dialect) for dialect in ("gbnf", "lark", "ebnf"))
    rng = random.Random(str(situation))
    texts = [grammar.sample(seed) for seed in range(SAMPLES)]
    for text in [*texts, *(mutated(text, rng) for text in texts)]:
        expected = grammar.accepts(text)
        verdicts = lark_accepts(lark, text), ebnf_accepts(ebnf, text), gbnf_accepts(gbnf, text)
        assert verdicts == (expected,) * 3, (text, verdicts)
