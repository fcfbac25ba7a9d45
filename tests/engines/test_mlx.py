"""Masks in MLX-LM's own loops, on a model of random weights that MLX runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx_lm
import pytest
from mlx_lm.generate import BatchGenerator
from mlx_lm.models.llama import Model, ModelArgs
from mlx_lm.sample_utils import make_sampler

import toolgram
from engines.small_tokenizer import small_tokenizer
from situations import CHATML, tool
from toolgram.engines.external.masks import TokenMasks

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guides/transformers.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"<!-- run by: tests/engines/test_mlx.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": 320,  # more than there are tokens, as models have it
    "tie_word_embeddings": True,
}
CITY: Any = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Oslo", "Córdoba"]}, "days": {"type": "integer", "maximum": 9}},
    "required": ["city"],
    "additionalProperties": False,
}
REQUEST: Any = {
    "messages": [{"role": "user", "content": "Will it rain <|im_end|>?"}],
    "tools": [tool("get_weather", CITY)],
    "tool_choice": "required",
}
PLAN = toolgram.plan(REQUEST, CHATML, "long")
STEPS = 120
stream_generate: Any = vars(mlx_lm)["stream_generate"]  # its type says nothing of most of what it takes

Written = list[int]


def random_model(seed: int) -> Any:
    mx.random.seed(seed)
    return Model(ModelArgs(**CONFIG))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as it lies in a folder of Hugging Face."""
    made = tmp_path_factory.mktemp("model")
    random_model(0).save_weights(str(made / "model.safetensors"))
    tokenizer: Any = small_tokenizer()
    tokenizer.chat_template = CHATML.source
    tokenizer.save_pretrained(made)
    (made / "config.json").write_text(json.dumps({**CONFIG, "eos_token_id": tokenizer.eos_token_id}))
    return made


@pytest.fixture(scope="module")
def loaded(folder: Path) -> tuple[Any, Any]:
    return mlx_lm.load(str(folder))[:2]


@pytest.fixture(scope="module")
def masks(loaded: tuple[Any, Any]) -> TokenMasks:
    return TokenMasks(loaded[1])


def processor(masks: TokenMasks) -> Any:
    assert PLAN.constraint is not None
    return masks.processor(PLAN.constraint.bind(masks.vocabulary), PLAN.stop)


def check_written(masks: TokenMasks, written: Sequence[int]) -> None:
    """It is a sentence of the grammar, or was cut off and is the beginning of one."""
    assert PLAN.constraint is not None
    grammar, text = PLAN.constraint.grammar, masks.decode(written, PLAN.stop)
    if written[-1] in masks.ends_with(PLAN.stop):
        assert grammar.accepts(text)
        assert PLAN.parse(text).tool_calls
    else:
        assert len(written) == STEPS
        grammar.after(text.rstrip("\ufffd"))  # else it raises


def test_the_ends_are_those_that_mlx_lm_knows(loaded: tuple[Any, Any], masks: TokenMasks) -> None:
    assert set(masks.ends) == loaded[1].eos_token_ids
    assert masks.ends_with(PLAN.stop) == (masks.vocabulary["<|im_end|>"],)


def test_the_program_of_the_guide_calls(folder: Path) -> None:
    said = StringIO()
    with redirect_stdout(said):
        exec(PROGRAM.replace("Qwen3-0.6B-4bit", str(folder)), {"request": REQUEST})  # noqa: S102 - the page's own code
    assert "ToolCall(name='get_weather'" in said.getvalue()


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_is_streamed_is_the_whole(loaded: tuple[Any, Any], masks: TokenMasks, temperature: float) -> None:
    model, tokenizer = loaded
    mx.random.seed(5)
    written = Written()

    def tokens() -> Iterator[int]:
        for piece in stream_generate(
            model,
            tokenizer,
            masks.encode(PLAN.prompt_parts),
            max_tokens=STEPS,
            sampler=make_sampler(temp=temperature),
            logits_processors=[processor(masks)],
        ):
            written.append(piece.token)
            yield piece.token

    reader = PLAN.reader()
    events = [event for text in masks.pieces(tokens(), PLAN.stop) for event in reader.feed(text)]
    check_written(masks, written)
    assert toolgram.Message.from_events([*events, *reader.finish()]) == PLAN.parse(masks.decode(written, PLAN.stop))


def test_a_batch_has_a_processor_for_each(loaded: tuple[Any, Any], masks: TokenMasks) -> None:
    model, tokenizer = loaded
    mx.random.seed(6)
    ends = [[end] for end in tokenizer.eos_token_ids]
    batch = BatchGenerator(model, stop_tokens=ends, sampler=make_sampler(temp=1.0))
    prompts = [masks.encode(PLAN.prompt_parts)] * 3
    numbers = batch.insert(prompts, [STEPS] * 3, logits_processors=[[processor(masks)] for _ in prompts])
    written: dict[int, Written] = {number: [] for number in numbers}
    while responses := batch.next_generated():
        for response in responses:
            written[response.uid].append(response.token)
    assert len(set(map(tuple, written.values()))) == 3
    for tokens in written.values():
        check_written(masks, tokens)


def test_a_draft_that_is_taken_back_changes_nothing(loaded: tuple[Any, Any], masks: TokenMasks) -> None:
    model, tokenizer = loaded
    prompt = masks.encode(PLAN.prompt_parts)

    def greedily(**how: Any) -> Written:
        steps = stream_generate(model, tokenizer, prompt, max_tokens=STEPS, logits_processors=[processor(masks)], **how)
        return [piece.token for piece in steps]

    assert greedily(draft_model=random_model(1), num_draft_tokens=3) == greedily()
