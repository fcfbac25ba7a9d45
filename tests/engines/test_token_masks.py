"""Masks for other engines, by both backends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toolgram
from engines.contract import CALLS
from engines.fake_vllm import OwnGrammar
from engines.small_tokenizer import small_tokenizer
from oracles import xgrammar
from situations import CHATML
from toolgram.engines.external.masks import TokenMasks
from toolgram.errors import EngineError

EXAMPLE = Path(__file__).parents[2] / "examples" / "masks_for_another_engine.py"
PLAN = toolgram.plan({"messages": [{"role": "user", "content": "Rain?"}], **CALLS}, CHATML, "long")


@pytest.fixture(scope="module", params=["llguidance", "xgrammar"])
def masks(request: pytest.FixtureRequest) -> TokenMasks:
    xgrammar()
    return TokenMasks(small_tokenizer(), backend=request.param)


def bound(masks: TokenMasks) -> Any:
    assert PLAN.constraint is not None
    return PLAN.constraint.bind(masks.vocabulary)


def written(masks: TokenMasks, seed: int) -> list[int]:
    """Random tokens that the masks allow, up to the end; a closing quote rather than one more letter."""
    random, tokens = np.random.default_rng(seed), list[int]()
    steps = masks.follow(bound(masks))
    mask = next(steps)
    quote = small_tokenizer().convert_tokens_to_ids('"')
    while True:
        tokens.append(quote if mask[quote] and random.random() < 0.3 else int(random.choice(np.flatnonzero(mask))))
        try:
            mask = steps.send(tokens[-1])
        except StopIteration:
            return tokens


def test_random_tokens_under_the_masks_are_a_sentence(masks: TokenMasks) -> None:
    assert PLAN.constraint is not None
    for seed in range(8):
        *tokens, end = written(masks, seed)
        text = small_tokenizer().decode(tokens)
        assert end in masks.ends
        assert masks.vocabulary["<tool_call>"] == tokens[0]
        assert PLAN.constraint.grammar.accepts(text), text


def test_a_token_that_is_not_allowed_is_an_error(masks: TokenMasks) -> None:
    for wrong in (masks.ends[0], masks.vocabulary["</tool_call>"], -1, masks.size):
        steps = masks.follow(bound(masks))
        next(steps)
        with pytest.raises(EngineError, match="is not allowed here"):
            steps.send(wrong)


def test_a_grammar_that_is_refused_is_an_error(masks: TokenMasks) -> None:
    with pytest.raises(EngineError, match="refuses the grammar"):
        next(masks.follow(OwnGrammar("root = nowhere")))


def test_a_processor_bars_what_the_masks_do(masks: TokenMasks) -> None:
    """Two sequences, of which the second is longer, change places half way; scores are wider than the vocabulary."""
    rows = [written(masks, 1), written(masks, 2)]
    processor, prompt, end = masks.processor(bound(masks)), [5, 6, 7], masks.ends[0]
    for step in range(max(map(len, rows))):
        if step == 20:
            rows.reverse()
        sequences = [prompt + (row + [end] * step)[:step] for row in rows]
        scores = processor(np.array(sequences), np.zeros((2, masks.size + 40), dtype=np.float32))
        assert np.isneginf(scores[:, masks.size :]).all()
        for row, score in zip(rows, scores, strict=True):
            steps = masks.follow(bound(masks))
            mask = next(steps)
            for token in row[:step]:
                if token == end:
                    mask = np.zeros(masks.size, dtype=np.bool_)
                    mask[end] = True
                    break
                mask = steps.send(token)
            assert ((score[: masks.size] == 0) == mask).all()


def test_the_example_says_what_it_wants() -> None:
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    said = [line for line in run.stderr.splitlines() if "PyTorch" not in line]  # which transformers would have
    assert (run.returncode, run.stdout) == (1, "")
    assert said == ["give the folder of a model of Hugging Face, with its tokenizer and chat template"]


def test_the_example_runs(tmp_path: Path) -> None:
    tokenizer = small_tokenizer()
    tokenizer.chat_template = CHATML.source
    tokenizer.save_pretrained(tmp_path)
    run = subprocess.run([sys.executable, EXAMPLE, tmp_path], capture_output=True, text=True, check=True)
    (call,) = json.loads(run.stdout)["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"])["city"] in ("Paris", "Rome")
