"""llguidance and XGrammar behind one interface: a grammar, and which tokens may come next.

Both are imported only where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from toolgram.caching import MEGABYTE, Memory, compiled_from, weighed
from toolgram.engines.base import SupportsGrammar
from toolgram.errors import EngineError

Backend = Literal["llguidance", "xgrammar"]


class Matcher(Protocol):
    """A grammar and how much of it was written."""

    def fill(self, bits: NDArray[np.int32]) -> None:
        """Write the mask, a bit for each token."""
        ...

    def take(self, token: int) -> bool:
        """A token was written; False where the grammar does not allow it."""
        ...

    @property
    def accepting(self) -> bool:
        """Whether the text may end here."""
        ...


class _Llguidance:
    def __init__(self, tokenizer: Any, size: int, ends: Sequence[int]) -> None:
        hf = import_module("llguidance.hf")
        self._numpy = import_module("llguidance.numpy")
        self._make = import_module("llguidance").LLMatcher
        self._tokenizer = hf.from_tokenizer(tokenizer, n_vocab=size, eos_token=list(ends))
        self._compile = weighed(compiled_from, Memory(64 * MEGABYTE))(self._compiled)

    def __call__(self, constraint: SupportsGrammar) -> _LlguidanceMatcher:
        return _LlguidanceMatcher(self._compile(constraint.grammar.to("lark")).deep_copy(), self._numpy)

    def _compiled(self, lark: str) -> Any:
        matcher = self._make(self._tokenizer, lark, log_level=0)
        if matcher.is_error():
            raise EngineError(f"llguidance refuses the grammar: {matcher.get_error().strip()}")
        return matcher


class _LlguidanceMatcher:
    def __init__(self, matcher: Any, numpy: Any) -> None:
        self._matcher = matcher
        self._numpy = numpy

    def fill(self, bits: NDArray[np.int32]) -> None:
        self._numpy.fill_next_token_bitmask(self._matcher, bits)
        if self._matcher.is_error():
            raise EngineError(f"the grammar cannot be followed: {self._matcher.get_error()}")

    def take(self, token: int) -> bool:
        return self._matcher.consume_token(token)

    @property
    def accepting(self) -> bool:
        return self._matcher.is_accepting()


class _Xgrammar:
    def __init__(self, tokenizer: Any, size: int, ends: Sequence[int]) -> None:
        self._xgrammar = import_module("xgrammar")
        make = self._xgrammar.TokenizerInfo.from_huggingface
        info = make(tokenizer, vocab_size=size, stop_token_ids=list(ends))
        self._compiler = self._xgrammar.GrammarCompiler(info)

    def __call__(self, constraint: SupportsGrammar) -> _XgrammarMatcher:
        try:
            compiled = self._compiler.compile_grammar(constraint.grammar.to("ebnf"))
        except RuntimeError as error:
            raise EngineError(f"xgrammar refuses the grammar: {error}") from error
        return _XgrammarMatcher(self._xgrammar.GrammarMatcher(compiled))


class _XgrammarMatcher:
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def fill(self, bits: NDArray[np.int32]) -> None:
        self._matcher.fill_next_token_bitmask(bits)

    def take(self, token: int) -> bool:
        return self._matcher.accept_token(token)

    @property
    def accepting(self) -> bool:
        return self._matcher.is_completed()


BACKENDS: dict[Backend, Callable[[Any, int, Sequence[int]], Callable[[SupportsGrammar], Matcher]]] = {
    "llguidance": _Llguidance,
    "xgrammar": _Xgrammar,
}
"""What makes, of a tokenizer of transformers, its number of ids and the end tokens, what starts to match a grammar."""
