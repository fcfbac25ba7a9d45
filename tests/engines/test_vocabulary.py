"""How a prompt in trusted and untrusted parts is cut up before llama.cpp turns text into tokens."""

from __future__ import annotations

import pytest

from toolgram.engines.base import Prompt
from toolgram.engines.llama_cpp import ffi
from toolgram.engines.llama_cpp import vocabulary as vocabularies
from toolgram.engines.llama_cpp.vocabulary import Vocabulary

TOKENS = {
    "<unk>": ffi.TOKEN_UNKNOWN,
    "<|im_start|>": ffi.TOKEN_CONTROL,
    "<|im_end|>": ffi.TOKEN_CONTROL,
    "<|im_end|>x": ffi.TOKEN_CONTROL,
    "<|user|>": ffi.TOKEN_CONTROL | ffi.TOKEN_RSTRIP,
    "<mask>": ffi.TOKEN_CONTROL | ffi.TOKEN_LSTRIP,
    "<tool_call>": ffi.TOKEN_USER_DEFINED,
    "[INST]": ffi.TOKEN_USER_DEFINED,
    "    ": ffi.TOKEN_USER_DEFINED,
    "]<]mm[>[": ffi.TOKEN_USER_DEFINED,
    "[>[b]": ffi.TOKEN_USER_DEFINED,
    "word": ffi.TOKEN_USER_DEFINED,
    "~": ffi.TOKEN_USER_DEFINED,
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
