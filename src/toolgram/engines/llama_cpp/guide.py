"""Which tokens a grammar allows next, by llguidance."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import llguidance.numpy
import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

from toolgram.caching import MEGABYTE, Memory, compiled_from, weighed
from toolgram.engines.llama_cpp import ffi
from toolgram.engines.llama_cpp.prefix_space import PrefixSpace
from toolgram.engines.llama_cpp.vocabulary import Vocabulary
from toolgram.errors import EngineError, GrammarRefused

_PLACE = re.compile(r"at \d+\(\d+\): ")
_LONGEST_REASON = 500
_FEW_TOKENS = 4  # ways to write the white space that may stand before an end


class Guide:
    """A grammar and how much of it was written; one for each generation.

    Where the answer begins behind a `prefix` space, the first token means what is behind it. Every method raises
    EngineError where the grammar outgrows llguidance's limits.
    """

    def __init__(
        self,
        matcher: LLMatcher,
        tokenizer: LLTokenizer,
        vocabulary: Vocabulary,
        ends: frozenset[int],
        prefix: PrefixSpace | None,
    ) -> None:
        self._matcher = matcher
        self._tokenizer = tokenizer
        self._prefix = prefix  # until something is written
        self._ends = np.fromiter(ends, dtype=np.intp)
        self._vocabulary = vocabulary
        self._pieces = vocabulary.pieces
        self._size = len(vocabulary.pieces)
        self._bits = llguidance.numpy.allocate_token_bitmask(1, self._size)
        self._mask: NDArray[np.bool_] | None = None
        self._began = False  # whether the token that was taken last began an answer behind such a space

    @property
    def accepting(self) -> bool:
        """Whether the text may end here."""
        return self._matcher.is_accepting()

    @property
    def done(self) -> bool:
        """Whether the text must end here, or has nothing but white space before its end: there is nothing to ask."""
        self._check()
        return self._matcher.is_stopped() or (self.accepting and self._only_space_follows(self._matcher))

    def forced(self) -> list[int]:
        """The tokens that must come next, whatever the model would say."""
        tokens = self._matcher.compute_ff_tokens()
        return self._vocabulary.begun(tokens) if self._prefix else tokens

    def allowed(self) -> NDArray[np.bool_]:
        """For each token of the vocabulary whether it may come next; end tokens only where the text may end."""
        mask = self._next(self._matcher)
        self._check()
        if self.accepting:
            mask[self._ends] = True
        if not mask.any():
            raise EngineError("the grammar allows no token here")
        return mask

    def _next(self, matcher: LLMatcher) -> NDArray[np.bool_]:
        """The tokens that may come next; those of the text so far are found once."""
        if matcher is self._matcher and self._mask is not None:
            return self._mask
        llguidance.numpy.fill_next_token_bitmask(matcher, self._bits)
        mask = np.unpackbits(self._bits.view(np.uint8)[0], bitorder="little")[: self._size].view(np.bool_)
        if matcher is self._matcher:
            if self._prefix:
                mask = self._prefix.allowed(mask, lambda tokens: self.allowed_beginning(tokens) == list(tokens))
            self._mask = mask
        return mask

    def _only_space_follows(self, matcher: LLMatcher) -> bool:
        """Whether every way on ends, after white space at most."""
        mask = self._next(matcher)
        if np.count_nonzero(mask) > _FEW_TOKENS + len(self._ends):
            return False
        tokens = [token for token in np.flatnonzero(mask).tolist() if token not in self._ends]
        return all(self._pieces[token].isspace() for token in tokens) and all(
            (after := matcher.deep_copy()).consume_tokens(self._meaning([token], matcher))
            and (after.is_stopped() or (after.is_accepting() and self._only_space_follows(after)))
            for token in tokens
        )

    def consume(self, tokens: Sequence[int]) -> None:
        """Tell what was written; the tokens must be allowed."""
        if not tokens:
            return
        meaning, self._mask, self._prefix = self._meaning(tokens, self._matcher), None, None
        if not self._matcher.consume_tokens(meaning):
            self._check()

    def _meaning(self, tokens: Sequence[int], matcher: LLMatcher) -> list[int]:
        """What is written with these tokens, as the grammar has it."""
        return self._prefix.meaning(tokens) if self._prefix and matcher is self._matcher else list(tokens)

    def take(self, token: int) -> list[int]:
        """Tell what the model chose; or, if that promises what the grammar forbids, the tokens to choose from instead.

        A model that writes ` [` has a number in mind: a list of strings it would begin by ` ["`, which is one token.
        Where strings are all that may follow, it would be lost, and take what was to end one, such as `",`, for their
        beginning. So where whatever may follow white space and signs is one token with them, it must be that token. But
        a space is one with what follows it: four before a quote are three and ` "`.
        """
        before, prefix, count = self._next(self._matcher), self._prefix, len(self._meaning((token,), self._matcher))
        self._began = prefix is not None
        self.consume((token,))
        if not self._vocabulary.is_between(token) or self._matcher.is_stopped() or self.accepting:
            return []
        following = self._following()
        if b" " in following or not all(self._vocabulary.is_longer(token, bytes((byte,))) for byte in following):
            return []
        instead = self._vocabulary.longer(token, np.flatnonzero(before).tolist())
        if instead:
            if not self._matcher.rollback(count):
                self._check()
            self._mask, self._prefix = before, prefix
        return instead

    def join(self, token: int, most: int) -> list[int]:
        """The tokens that are written where this one was taken last: itself, or those of its text and what is forced.

        A model that writes `n` may have chosen `nature_park` by it, if the rest is forced, and one that writes `"}` an
        end of which the grammar spells the rest. But of these texts the vocabulary makes `nature`, `_`, `park`, and
        `"`, `}}`: after `n` and `ature` the model would go on as after a text that it does not know. So they are cut as
        they are elsewhere. No more than `most` tokens.

        Where an answer begins behind a space of the vocabulary, a model may begin it with that space or without: the
        first token stays as the model chose it.
        """
        forced = self.forced()
        if self._began or not forced:
            return [token]
        joined = self._vocabulary.joined((token, *forced), self._tokenizer.tokenize_bytes)
        if joined[0] == token or len(joined) > most:
            return [token]
        if not self._matcher.rollback(1):
            self._check()
        if self._matcher.validate_tokens(joined) < len(joined):  # the grammar may want one token as such
            joined = [token]
        self.consume(joined)
        return joined

    def _following(self) -> bytes:
        """The bytes that may come next, where the text may not end; 0 for a token of no text."""
        forced = self._matcher.compute_ff_bytes()
        if forced:
            return forced[:1]
        first = self._vocabulary.first_bytes[self._next(self._matcher)]
        return bytes(np.flatnonzero(np.bincount(first)).tolist())

    def allowed_beginning(self, tokens: Sequence[int]) -> list[int]:
        """As many of these tokens, from the first on, as may come next; nothing is consumed."""
        return list(tokens[: self._matcher.validate_tokens(list(tokens))])

    def _check(self) -> None:
        if self._matcher.is_error():
            raise EngineError(f"the grammar cannot be followed: {_reason(self._matcher)}")


class Guides:
    """Compiles grammars for one vocabulary, and remembers the last ones."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokenizer = _tokenizer(vocabulary)
        self._compile = weighed(compiled_from, Memory(64 * MEGABYTE))(partial(_compile, self._tokenizer))

    def start(self, lark: str, ends: tuple[str, ...] = (), prefix: PrefixSpace | None = None) -> Guide:
        """A guide at the start of the grammar, where `ends` end the text too as tokens.

        Raises GrammarRefused for one that llguidance refuses.
        """
        matcher = self._compile(lark).deep_copy()
        return Guide(matcher, self._tokenizer, self._vocabulary, self._vocabulary.ends_with(ends), prefix)


def _compile(tokenizer: LLTokenizer, lark: str) -> LLMatcher:
    matcher = LLMatcher(tokenizer, lark, log_level=0)
    if matcher.is_error():
        raise GrammarRefused(f"llguidance refuses the grammar: {_reason(matcher)}")
    return matcher


def _reason(matcher: LLMatcher) -> str:
    """What is wrong, without its place in a text that nobody has seen, and without llguidance's own backtrace."""
    return _PLACE.sub("", matcher.get_error().strip()).partition("\n")[0][:_LONGEST_REASON]


def _tokenizer(vocabulary: Vocabulary) -> LLTokenizer:
    """Only control tokens are special to llguidance; what stands for no text (unknown, unused) is never allowed."""
    tokens = [
        b"\xff" + piece
        if attributes & ffi.TOKEN_CONTROL
        else b""
        if attributes & (ffi.TOKEN_UNKNOWN | ffi.TOKEN_UNUSED)
        else piece
        for piece, attributes in zip(vocabulary.pieces, vocabulary.attributes, strict=True)
    ]
    others = sorted(vocabulary.ends - {vocabulary.eos})
    make: Callable[..., LLTokenizer] = getattr(LLTokenizer, "from_llamacpp")  # noqa: B009 - the type stub lacks it
    return make(
        tokens=tokens,
        vocab_ptr=vocabulary.pointer,
        tokenize_fptr=ffi.library().address("llama_tokenize"),
        eos_token=[vocabulary.eos, *others] if vocabulary.eos >= 0 else others,
    )
