"""Recognisers that are not ours, for what we write: llguidance for Lark, XGrammar for EBNF and structural tags.

llama.cpp's own recogniser needs a vocabulary, so GBNF is read by it only where an engine is tested.
"""

from __future__ import annotations

import json
import re
import sys
from functools import lru_cache
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

_BYTES = LLTokenizer("byte")


@lru_cache(maxsize=512)
def _lark_matcher(lark: str) -> LLMatcher:
    matcher = LLMatcher(_BYTES, lark, log_level=0)
    if matcher.is_error():
        raise ValueError(f"{matcher.get_error()}\n{lark}")
    return matcher


def lark_accepts(lark: str, text: str) -> bool:
    """Whether llguidance takes the whole text as a sentence. Raises ValueError for Lark that it cannot read."""
    matcher = _lark_matcher(lark).deep_copy()
    tokens = _BYTES.tokenize_bytes(text.encode())
    taken = matcher.try_consume_tokens(tokens)
    if matcher.is_error():
        raise ValueError(f"{matcher.get_error()}\n{lark}")
    return taken == len(tokens) and matcher.is_accepting()


@lru_cache(maxsize=1)
def xgrammar() -> Any:
    """XGrammar with a torch of mocks: it uses torch only for its masks, which a recogniser needs not."""
    if "torch" not in sys.modules:
        for name in ("torch", "torch.utils", "torch.utils.cpp_extension", "torch.nn", "torch.cuda"):
            sys.modules[name] = _Mocked(name)
            sys.modules[name].__spec__ = ModuleSpec(name, None)
    import xgrammar
    import xgrammar.testing

    return xgrammar


class _Mocked(ModuleType):
    """A module that has every attribute: a type for what looks like one, so that annotations can be made of them."""

    __path__: list[str] = []  # noqa: RUF012 - what makes a module a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "compile":
            return lambda function=None, **_: function if function is not None else lambda inner: inner
        value = type(name, (), {}) if name[:1].isupper() else MagicMock(name=name)
        setattr(self, name, value)
        return value


@lru_cache(maxsize=512)
def _ebnf_grammar(ebnf: str) -> Any:
    return xgrammar().Grammar.from_ebnf(ebnf)


def ebnf_accepts(ebnf: str, text: str) -> bool:
    """Whether XGrammar takes the whole text as a sentence. Raises RuntimeError for EBNF that it cannot read."""
    return bool(xgrammar().testing._is_grammar_accept_string(_ebnf_grammar(ebnf), text))


@lru_cache(maxsize=512)
def _structural_tag_grammar(tag: str) -> Any:
    return xgrammar().Grammar.from_structural_tag(tag)


def structural_tag_accepts(tag: dict[str, Any], text: str) -> bool:
    """Whether XGrammar takes the whole text by the structural tag. Raises RuntimeError for one that it cannot read."""
    return bool(xgrammar().testing._is_grammar_accept_string(_structural_tag_grammar(json.dumps(tag)), text))


class TokenOracles:
    """llguidance and XGrammar with a vocabulary of single bytes and some special tokens, which follow them."""

    def __init__(self, special: tuple[str, ...], control: tuple[str, ...] | None = None) -> None:
        """`control` are those of the special tokens that no text is, by default all of them."""
        self.ids = {text: 256 + i for i, text in enumerate(special)}
        self._end = 256 + len(special)
        tokens = [*(bytes([code]) for code in range(256)), *(text.encode() for text in (*special, "</s>"))]
        never = self.ids.values() if control is None else [self.ids[text] for text in control]
        raw = SimpleNamespace(
            eos_token_id=self._end, bos_token_id=None, tokens=tokens, special_token_ids=[*never, self._end]
        )
        self._llguidance = LLTokenizer(TokenizerWrapper(_Bytes(raw)))
        info = xgrammar().TokenizerInfo(tokens, xgrammar().VocabType.RAW, stop_token_ids=[self._end])
        self._xgrammar = xgrammar().GrammarCompiler(info)

    def tokenized(self, text: str) -> list[int]:
        """The text in tokens: the special ones as themselves, all else as bytes."""
        pattern = "|".join(map(re.escape, sorted(self.ids, key=len, reverse=True))) or "(?!)"
        pieces = re.split(f"({pattern})", text)
        return [token for piece in pieces for token in ([self.ids[piece]] if piece in self.ids else piece.encode())]

    def lark_accepts(self, lark: str, tokens: list[int]) -> bool:
        """Whether llguidance takes these tokens as a sentence."""
        matcher = LLMatcher(self._llguidance, lark, log_level=0)
        taken = matcher.try_consume_tokens(tokens)
        if matcher.is_error():
            raise ValueError(f"{matcher.get_error()}\n{lark}")
        return taken == len(tokens) and matcher.is_accepting()

    def ebnf_accepts(self, ebnf: str, tokens: list[int]) -> bool:
        """Whether XGrammar takes these tokens as a sentence."""
        return self._followed(self._xgrammar.compile_grammar(ebnf), tokens)

    def structural_tag_accepts(self, tag: dict[str, Any], tokens: list[int]) -> bool:
        """Whether XGrammar takes these tokens by the structural tag."""
        return self._followed(self._xgrammar.compile_structural_tag(tag), tokens)

    def wrong_masks(self, ebnf: str, tokens: list[int]) -> list[tuple[int, int]]:
        """Where XGrammar's mask before one of these tokens differs from what its parser takes: places, and tokens.

        Of all that may come the special tokens are looked at, and the one that comes. Grammars are compiled by one
        compiler, as a server has it, which knows parts of those before.
        """
        matcher, wrong = xgrammar().GrammarMatcher(self._xgrammar.compile_grammar(ebnf)), list[tuple[int, int]]()
        bits = np.zeros((1, -(-(self._end + 1) // 32)), dtype=np.int32)
        for place, token in enumerate(tokens):
            matcher.fill_next_token_bitmask(bits)
            mask = np.unpackbits(bits.view(np.uint8)[0], bitorder="little")
            for each in {token, *self.ids.values()}:
                taken = matcher.accept_token(each)
                if taken:
                    matcher.rollback(1)
                if taken != bool(mask[each]):
                    wrong.append((place, each))
            assert matcher.accept_token(token)
        return wrong

    def _followed(self, grammar: Any, tokens: list[int]) -> bool:
        matcher = xgrammar().GrammarMatcher(grammar)
        return all(matcher.accept_token(token) for token in [*tokens, self._end])


class _Bytes:
    """What llguidance asks of a tokenizer: text to bytes."""

    def __init__(self, raw: SimpleNamespace) -> None:
        self.__dict__.update(raw.__dict__)

    def __call__(self, text: bytes) -> list[int]:
        return list(text)
