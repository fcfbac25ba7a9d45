"""A tokenizer of bytes, some words and special tokens: small, fast, and every character beyond ASCII in pieces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
_WORDS = ["name", "arguments", "weather", '": "', "_get", "user", "assistant", "[[", "((", "[:]", "[i]", "(s)"]


def small_tokenizer(special: Sequence[str] = SPECIAL) -> PreTrainedTokenizerFast:
    """The tokenizer, as transformers loads one."""
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    vocabulary = {char: number for number, char in enumerate(sorted(split.alphabet()))}
    merges: list[tuple[str, str]] = []
    for word in _WORDS:
        ((spelled, _),) = split.pre_tokenize_str(word)
        for left, right in zip(itertools.accumulate(spelled[:-1]), spelled[1:], strict=True):
            vocabulary.setdefault(left + right, len(vocabulary))
            merges.append((left, right))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=list(dict.fromkeys(merges))))
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special[1])
