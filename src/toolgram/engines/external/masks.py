"""Which tokens a constraint allows next, for engines that are not ours: transformers, MLX, one's own loop."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.base import SupportsGrammar
from toolgram.engines.external.backends import BACKENDS, Backend
from toolgram.errors import EngineError, MissingPackage

Mask = NDArray[np.bool_]
"""For each token of the vocabulary whether it may come next."""

_INT_BITS = 32


class TokenMasks:
    """Follows constraints by the tokens of a fast tokenizer of transformers.

    `backend` None takes llguidance if it is installed, else xgrammar. `ends` are the tokens that end a text, None the
    tokenizer's own. Raises MissingPackage where no backend is installed.
    """

    def __init__(self, tokenizer: Any, *, backend: Backend | None = None, ends: Sequence[int] | None = None) -> None:
        chosen: Backend | None = backend or next((name for name in BACKENDS if find_spec(name) is not None), None)
        if chosen is None:
            raise MissingPackage("a token mask", "llguidance (or xgrammar)", "embedded")
        self.vocabulary: Mapping[str, int] = {
            str(token): number for number, token in tokenizer.added_tokens_decoder.items()
        }
        self.size: int = len(tokenizer)
        self.ends: tuple[int, ...] = tuple([tokenizer.eos_token_id] if ends is None else ends)
        self._start = BACKENDS[chosen](tokenizer, self.ends)

    def follow(self, constraint: SupportsGrammar) -> Generator[Mask, int, None]:
        """The mask before each token: `next` gives the first, `send` takes the token that was chosen.

        It ends with an end token, which is allowed only where the grammar may end. Bind the constraint first:
        `constraint.bind(masks.vocabulary)`. Raises EngineError for a grammar that the backend refuses, and for a token
        that was not allowed.
        """
        matcher = self._start(constraint)
        bits = np.zeros((1, -(-self.size // _INT_BITS)), dtype=np.int32)
        while True:
            matcher.fill(bits)
            mask = np.unpackbits(bits.view(np.uint8)[0], bitorder="little")[: self.size].view(np.bool_)
            mask[list(self.ends)] = matcher.accepting
            token = yield mask
            if token in self.ends and mask[token]:
                return
            if not (0 <= token < self.size and mask[token] and matcher.take(token)):
                raise EngineError(f"token {token} is not allowed here")

    def processor(self, constraint: SupportsGrammar) -> LogitsProcessor:
        """For the `logits_processor` of transformers' `generate`; one for each call of it."""
        return LogitsProcessor(self, constraint)


class LogitsProcessor:
    """Sets the scores of what a constraint does not allow to -inf, for each sequence of a batch.

    What stands in the sequences at the first call is the prompt. Sequences may change places, as in a beam search: one
    that does not go on from what was written in its place is followed from its beginning.
    """

    def __init__(self, masks: TokenMasks, constraint: SupportsGrammar) -> None:
        self._masks = masks
        self._constraint = constraint
        self._prompt: int | None = None
        self._rows: dict[int, _Row] = {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores of the same kind, torch's or numpy's: (batch, vocabulary). Tokens beyond the vocabulary are barred."""
        sequences: list[list[int]] = input_ids.tolist()
        if self._prompt is None:
            self._prompt = len(sequences[0])
        allowed = np.zeros(tuple(scores.shape), dtype=np.bool_)
        for number, sequence in enumerate(sequences):
            mask = self._row(number, sequence[self._prompt :]).mask
            allowed[number, : len(mask)] = mask
        if isinstance(scores, np.ndarray):
            return np.where(allowed, scores, -np.inf)  # pyright: ignore[reportUnknownArgumentType] - any kind of number
        barred = import_module("torch").from_numpy(~allowed).to(scores.device)
        return scores.masked_fill(barred, -float("inf"))

    def _row(self, number: int, written: list[int]) -> _Row:
        row = self._rows.get(number)
        if row is None or row.written != written[: len(row.written)]:
            row = self._rows[number] = _Row(self._masks, self._constraint)
        row.advance(written)
        return row


class _Row:
    """One sequence; after its end it is padded, with an end token for want of better."""

    def __init__(self, masks: TokenMasks, constraint: SupportsGrammar) -> None:
        self._padding = np.zeros(masks.size, dtype=np.bool_)
        self._padding[list(masks.ends)] = True
        self._steps = masks.follow(constraint)
        self._ended = False
        self.written: list[int] = []
        self.mask = next(self._steps)

    def advance(self, written: list[int]) -> None:
        for token in written[len(self.written) :]:
            self.written.append(token)
            if self._ended:
                continue
            try:
                self.mask = self._steps.send(token)
            except StopIteration:
                self._ended, self.mask = True, self._padding
