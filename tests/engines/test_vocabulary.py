"""How a prompt in trusted and untrusted parts is cut up before llama.cpp turns text into tokens."""

from __future__ import annotations

import pytest

from toolgram.engines import llama_c
from toolgram.engines import vocabulary as vocabularies
from toolgram.engines.base import Prompt
from toolgram.engines.vocabulary import Vocabulary

TOKENS = {
    "<unk>": llama_c.TOKEN_UNKNOWN,
    "<|im_start|>": llama_c.TOKEN_CONTROL,
    "<|im_end|>": llama_c.TOKEN_CONTROL,
    "<|im_end|>x": llama_c.TOKEN_CONTROL,
    "<|user|>": llama_c.TOKEN_CONTROL | llama_c.TOKEN_RSTRIP,
    "<mask>": llama_c.TOKEN_CONTROL | llama_c.TOKEN_LSTRIP,
    "<tool_call>": llama_c.TOKEN_USER_DEFINED,
    "[INST]": llama_c.TOKEN_USER_DEFINED,
    "    ": llama_c.TOKEN_USER_DEFINED,
    "]<]mm[>[": llama_c.TOKEN_USER_DEFINED,
    "[>[b]": llama_c.TOKEN_USER_DEFINED,
    "word": llama_c.TOKEN_USER_DEFINED,
    "~": llama_c.TOKEN_USER_DEFINED,
}


@pytest.fixture
def vocabulary(monkeypatch: pytest.MonkeyPatch) -> Vocabulary:
    """Some tokens, and a tokenizer that makes one token of each run of text: the run itself."""

    def whole(_: Vocabulary, text: str) -> list[str]:
        return [text] if text else []

    monkeypatch.setattr(Vocabulary, "_ids", whole)
    return Vocabulary(0, tuple(text.encode() for text in TOKENS), tuple(TOKENS.values()), 2, frozenset({2}))


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ((("<|im_start|>user\n", True), ("hi", False), ("<|im_end|>", True)), [1, "user\nhi", 2]),
        ((("<|im_start|>", False), ("<|im_start|>", True)), ["<|im_start|>", 1]),
        ((("<|im_", True), ("end|>", True)), [2]),
        ((("<|im_", True), ("end|>", False)), ["<|im_end|>"]),
        ((("<tool_", False), ("call>", False)), ["<", "tool_call>"]),
        ((("<|im_end|>xy", True),), [3, "y"]),
        ((("a <|user|> \n b <mask> c", True),), ["a ", 4, "b", 5, " c"]),
        ((("<|user|>", True), ("  hi", False)), [4, "hi"]),
        ((("<unk>", True), ("<unk>", False)), [0, "<unk>"]),
        ((("<tool_call>", True),), ["<tool_call>"]),
        ((("a<tool_call>b", False),), ["a<", "tool_call>b"]),
        ((("[INST]", False), ("[INST]", True)), ["[", "INST][INST]"]),
        ((("a    b", False),), ["a    b"]),
        ((("]<]mm[>[x", False),), ["]", "<]mm[>[x"]),
        ((("]<]mm[>[b]", False),), ["]", "<]mm[", ">[b]"]),  # one begins in the other
        ((("<tool_", True), ("call>", False)), ["<", "tool_call>"]),
        ((("<|im_end|>[", True), ("INST]<|im_end|>", False)), [2, "[", "INST]<|im_end|>"]),
        ((("a word~", False),), ["a word~"]),
        ((), []),
    ],
)
def test_a_prompt_is_cut_at_trusted_control_tokens(
    vocabulary: Vocabulary, prompt: Prompt, expected: list[int | str]
) -> None:
    assert vocabulary.tokenize(prompt) == expected


def test_markers_are_control_and_user_defined_tokens(vocabulary: Vocabulary) -> None:
    assert vocabulary.special == {text: token for token, text in enumerate(TOKENS) if token != 0}


def test_what_was_asked_for_lately_is_not_tokenized_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def tokens(_: Vocabulary, text: str) -> list[int]:
        asked.append(text)
        return list(map(ord, text))

    monkeypatch.setattr(vocabularies, "_REMEMBERED", 10)
    monkeypatch.setattr(Vocabulary, "_asked", tokens)
    vocabulary = Vocabulary(0, tuple(text.encode() for text in TOKENS), tuple(TOKENS.values()), 2, frozenset({2}))
    for text in ("abcd", "efgh", "abcd", "ijkl", "abcd", "efgh", "a text that is too long", "efgh"):
        assert vocabulary.tokenize(((text, False),)) == list(map(ord, text))
    assert asked == ["abcd", "efgh", "ijkl", "efgh", "a text that is too long", "efgh"]
