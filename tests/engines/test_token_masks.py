"""Masks for other engines, by both backends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import toolgram
from engines.contract import CALLS
from engines.fake_vllm import OwnGrammar
from engines.small_tokenizer import SPECIAL, small_tokenizer
from oracles import xgrammar
from situations import CHATML
from toolgram.conversation.media import Media
from toolgram.engines.external.backends import Backend
from toolgram.engines.external.masks import TokenMasks
from toolgram.engines.external.tokens import Tokens
from toolgram.errors import EngineError
from toolgram.grammar.constraint import Constraint

EXAMPLE = Path(__file__).parents[2] / "examples" / "masks_for_another_engine.py"
PLAN = toolgram.plan({"messages": [{"role": "user", "content": "Rain?"}], **CALLS}, CHATML, "long")


@pytest.fixture(scope="module", params=["llguidance", "xgrammar"])
def backend(request: pytest.FixtureRequest) -> Backend:
    xgrammar()
    return request.param


@pytest.fixture(scope="module")
def masks(backend: Backend) -> TokenMasks:
    return TokenMasks(small_tokenizer(), backend=backend)


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


def test_a_tokenizer_of_another_kind_is_an_error(backend: Backend) -> None:
    with pytest.raises(EngineError, match="a Tokenizer is no tokenizer of transformers: give AutoTokenizer"):
        TokenMasks(Tokenizer(models.BPE()), backend=backend)


def test_an_image_is_not_encoded_as_text(masks: TokenMasks) -> None:
    with pytest.raises(EngineError, match="an image is no tokens"):
        masks.encode((("<|im_start|>user\n", True), (Media("media0n0", "AA==", "image/png"), True)))


def test_a_turn_ends_at_its_own_token_and_nowhere_before_its_end(backend: Backend) -> None:
    """A tokenizer knows the end of a text, not that of a turn: where `generate` ends, too, it would cut a string."""
    tokenizer = small_tokenizer(("<|im_start|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<|im_end|>"))
    masks = TokenMasks(tokenizer, backend=backend, ends=tokenizer.eos_token_id)
    constraint = PLAN.constraint
    assert constraint is not None
    ends = masks.ends_with(PLAN.stop)
    assert [tokenizer.convert_ids_to_tokens(end) for end in ends] == ["<|endoftext|>", "<|im_end|>"]
    text = PLAN.write(toolgram.Message(None, tool_calls=(toolgram.ToolCall("get_weather", '{"city": "Oslo"}'),)))
    assert text is not None
    for end in ends:
        steps = masks.follow(constraint.bind(masks.vocabulary), PLAN.stop)
        mask = next(steps)
        markers = [masks.vocabulary[text] for text in ("<tool_call>", "</tool_call>", "<|im_start|>")]
        for token in tokenizer.encode(text, add_special_tokens=False):
            assert not mask[list(ends)].any()
            assert not mask[markers[2]]
            mask = steps.send(token)
        assert mask[list(ends)].all()
        with pytest.raises(StopIteration):
            steps.send(end)
        row = masks.processor(constraint.bind(masks.vocabulary), PLAN.stop)
        written = tokenizer.encode(text, add_special_tokens=False)
        row(np.array([[1, 2]]), np.zeros((1, masks.size)))
        padded = row(np.array([[1, 2, *written, end]]), np.zeros((1, masks.size)))
        assert np.flatnonzero(padded[0] == 0).tolist() == sorted(ends)


def sentence_piece() -> PreTrainedTokenizerFast:
    """As Llama 2's: spaces are a sign, one is put before a text, and bytes are spelled."""
    signs = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *map(chr, range(33, 127))]
    vocabulary = {sign: number for number, sign in enumerate(signs)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    spaces, strip = decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)
    tokenizer.decoder = decoders.Sequence([spaces, decoders.ByteFallback(), decoders.Fuse(), strip])
    tokenizer.add_special_tokens(["<s>", "</s>", "<|im_start|>", "<|im_end|>"])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=signs[2])


def test_a_prompt_in_parts_is_one_text() -> None:
    tokenizer = sentence_piece()
    masks = TokenMasks(tokenizer)
    prompt = (("<|im_start|>user\n", True), ("é <|im_end|> and </s>", False), ("<|im_end|>\n", True))
    ids = masks.encode(prompt)
    assert tokenizer.decode(ids) == "".join(text for text, _ in prompt)
    assert [token for token in ids if token in masks.vocabulary.values()] == [
        masks.vocabulary[text] for text in ("<|im_start|>", "<|im_end|>")
    ]


@pytest.mark.parametrize("make", [small_tokenizer, sentence_piece])
def test_what_was_written_is_decoded_as_it_was_masked(make: Callable[[], PreTrainedTokenizerFast]) -> None:
    """With the space that it begins with and those before signs, and without the padding of a batch."""
    tokenizer = make()
    tokenizer.clean_up_tokenization_spaces = True
    tokenizer.clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output = True  # as transformers 4 did
    masks = TokenMasks(tokenizer)
    text = ' {"code": "a , b . c 日"}'
    ids = masks.encode(((text, True),))
    end, padding = masks.vocabulary["<|im_end|>"], masks.vocabulary["<|im_start|>"]
    assert masks.decode(np.array([*ids, end, padding, padding]), ["<|im_end|>"]) == text
    assert masks.decode([]) == ""


@pytest.mark.parametrize("make", [small_tokenizer, sentence_piece])
@given(text=st.text(st.sampled_from(' a,.日🎉"{é\n'), max_size=12), cut=st.integers(0, 3))
def test_what_was_written_is_decoded_as_it_comes(
    make: Callable[[], PreTrainedTokenizerFast], text: str, cut: int
) -> None:
    """In whole characters, the last aside where it was cut off."""
    tokens = _TOKENS[make]
    ids = tokens.encode(((text, True),))
    whole = tokens.decode(ids)
    pieces = list(tokens.pieces([*ids[: len(ids) - cut], tokens.vocabulary["<|im_end|>"]], ["<|im_end|>"]))
    assert "�" not in "".join(pieces[:-1])
    assert whole.startswith("".join(pieces).rstrip("�"))
    assert cut or "".join(pieces) == whole


_TOKENS = {make: Tokens(make()) for make in (small_tokenizer, sentence_piece)}


def test_a_model_may_have_fewer_scores_than_tokens(masks: TokenMasks) -> None:
    """Gemma 3's of a billion parameters has none for the last one."""
    scores = np.zeros((1, masks.size - 1))
    allowed = masks.processor(bound(masks))(np.array([[0]]), scores)
    assert np.flatnonzero(np.isfinite(allowed)).tolist() == [masks.vocabulary["<tool_call>"]]


def test_an_end_that_the_grammar_needs_is_told(backend: Backend) -> None:
    clashing = TokenMasks(
        small_tokenizer(), backend=backend, ends=TokenMasks(small_tokenizer()).vocabulary["<tool_call>"]
    )
    with pytest.raises(EngineError, match="the grammar needs one that ends texts; give other `ends`"):
        next(clashing.follow(bound(clashing)))


def test_ids_of_tokens_may_have_gaps() -> None:
    """Then there are fewer tokens than the highest id says. llguidance takes only those that it can count."""
    spelled = json.loads(small_tokenizer().backend_tokenizer.to_str())
    for token in spelled["added_tokens"]:
        token["id"] += 50
        spelled["model"]["vocab"][token["content"]] = token["id"]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(spelled)), eos_token=SPECIAL[1])
    with pytest.raises(EngineError, match="llguidance does not take this tokenizer"):
        TokenMasks(tokenizer, backend="llguidance")
    xgrammar()
    masks = TokenMasks(tokenizer, backend="xgrammar")
    assert len(tokenizer) < masks.ends[0] < masks.size
    constraint = Constraint(toolgram.schema_grammar({"const": "weather"}))
    scores = masks.processor(constraint)(np.array([[1]]), np.zeros((1, masks.size + 7)))
    assert not np.isfinite(scores[0, list(masks.vocabulary.values())]).any()
    steps = masks.follow(constraint)
    mask = next(steps)
    for token in masks.encode((('"weather"', True),)):
        assert mask[token]
        mask = steps.send(token)
    assert np.flatnonzero(mask).tolist() == list(masks.ends)


def test_a_tokenizer_that_is_not_taken_is_an_error(backend: Backend) -> None:
    with pytest.raises(EngineError, match=f"{backend} does not take this tokenizer"):
        TokenMasks(small_tokenizer(), backend=backend, ends=())


def test_a_processor_of_another_prompt_is_an_error(masks: TokenMasks) -> None:
    processor = masks.processor(bound(masks))
    processor(np.array([[5, 6, 7]]), np.zeros((1, masks.size)))
    with pytest.raises(EngineError, match="one call of generate"):
        processor(np.array([[5, 6]]), np.zeros((1, masks.size)))


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
