"""Which tokens a constraint allows next, for engines that are not ours: transformers, MLX-LM, one's own loop."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.base import SupportsGrammar
from toolgram.engines.external.backends import BACKENDS, Backend
from toolgram.engines.external.tokens import Tokens, is_of_mlx
from toolgram.errors import EngineError, MissingPackage
from toolgram.grammar.constraint import Constraint

Mask = NDArray[np.bool_]
"""For each token of the vocabulary whether it may come next."""

_INT_BITS = 32


class TokenMasks(Tokens):
    """Follows constraints by the tokens of a tokenizer, of the kinds that `Tokens` takes.

    `backend` None takes llguidance if it is installed, else xgrammar. What ends the turns of a template is in
    `plan.stop`, which each constraint is given. Raises MissingPackage where no backend is installed, EngineError for a
    tokenizer that the backend does not take.
    """

    def __init__(
        self, tokenizer: Any, *, backend: Backend | None = None, ends: int | Sequence[int] | None = None
    ) -> None:
        chosen: Backend | None = backend or next((name for name in BACKENDS if find_spec(name) is not None), None)
        if chosen is None:
            raise MissingPackage("a token mask", "llguidance (or xgrammar)", "embedded")
        super().__init__(tokenizer, ends=ends)
        try:
            self._start = BACKENDS[chosen](self._tokenizer, self.size, self.ends)
        except (ValueError, RuntimeError) as error:
            raise EngineError(f"{chosen} does not take this tokenizer: {error}") from error

    def follow(self, constraint: SupportsGrammar, stop: Iterable[str] = ()) -> Generator[Mask, int, None]:
        """The mask before each token: `next` gives the first, `send` takes the token that was chosen.

        It ends with an end token, or one of the texts in `stop` (`plan.stop`) that are one token; these are allowed
        only where the grammar may end. Bind the constraint first: `constraint.bind(masks.vocabulary)`. Raises
        EngineError for a grammar that the backend refuses, and for a token that was not allowed.
        """
        matcher = self._start(constraint)
        ends = list(self.ends_with(stop))
        barred = list(self._special.difference(self._named(constraint)))
        bits = np.zeros((1, -(-self.size // _INT_BITS)), dtype=np.int32)
        while True:
            matcher.fill(bits)
            mask = np.unpackbits(bits.view(np.uint8)[0], bitorder="little")[: self.size].view(np.bool_)
            mask[barred] = False  # to XGrammar they are text, which may stand in strings
            mask[ends] = matcher.accepting
            if not mask.any():
                raise EngineError("no token may come here: the grammar needs one that ends texts; give other `ends`")
            token = yield mask
            if token in ends and mask[token]:
                return
            if not (0 <= token < self.size and mask[token] and matcher.take(token)):
                raise EngineError(f"token {token} is not allowed here")

    def _named(self, constraint: SupportsGrammar) -> set[int]:
        """The special tokens that a grammar may name: of one that says nothing of its markers any."""
        if not isinstance(constraint, Constraint):
            return self._special
        return {self.vocabulary[text] for text in constraint.markers if text in self.vocabulary}

    def processor(self, constraint: SupportsGrammar, stop: Iterable[str] = ()) -> LogitsProcessor:
        """For the `logits_processor` of transformers' `generate` or the `logits_processors` of MLX-LM's, one for each
        call of it; `stop` as in `follow`.

        Its `eos_token_id` (MLX-LM's `tokenizer.eos_token_ids`) must be `ends_with(stop)`: by itself it does not end at
        all of them.
        """
        return LogitsProcessor(self, constraint, stop)


class LogitsProcessor:
    """Sets the scores of what a constraint does not allow to -inf, for each sequence of a batch.

    What stands in the sequences at the first call is the prompt. Sequences may change places, as in a beam search: one
    that does not go on from what was written in its place is followed from its beginning.
    """

    def __init__(self, masks: TokenMasks, constraint: SupportsGrammar, stop: Iterable[str] = ()) -> None:
        self._masks = masks
        self._constraint = constraint
        self._stop = tuple(stop)
        self._prompt: int | None = None
        self._rows: dict[int, _Row] = {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores of the same kind, torch's, MLX's or numpy's: (batch, vocabulary).

        Tokens beyond the vocabulary are barred. The ids are (batch, tokens), or those of one sequence, as MLX-LM has
        them.
        """
        sequences: list[list[int]] = [input_ids.tolist()] if input_ids.ndim == 1 else input_ids.tolist()
        if self._prompt is None:
            self._prompt = len(sequences[0])
        if len(sequences[0]) < self._prompt:
            raise EngineError("a processor is for one call of generate: this prompt is shorter than the first one")
        allowed = np.zeros(tuple(scores.shape), dtype=np.bool_)
        for number, sequence in enumerate(sequences):
            mask = self._row(number, sequence[self._prompt :]).mask[: scores.shape[1]]  # some tokens have no score
            allowed[number, : len(mask)] = mask
        if isinstance(scores, np.ndarray):
            return np.where(allowed, scores, -np.inf)  # pyright: ignore[reportUnknownArgumentType] - any kind of number
        if is_of_mlx(scores):
            mlx = import_module("mlx.core")
            return mlx.where(mlx.array(allowed), scores, mlx.array(-np.inf, scores.dtype))
        barred = import_module("torch").from_numpy(~allowed).to(scores.device)
        return scores.masked_fill(barred, -float("inf"))

    def _row(self, number: int, written: list[int]) -> _Row:
        row = self._rows.get(number)
        if row is None or row.written != written[: len(row.written)]:
            row = self._rows[number] = _Row(self._masks, self._constraint, self._stop)
        row.advance(written)
        return row


class _Row:
    """One sequence; after its end it is padded, with an end token for want of better."""

    def __init__(self, masks: TokenMasks, constraint: SupportsGrammar, stop: Sequence[str]) -> None:
        self._padding = np.zeros(masks.size, dtype=np.bool_)
        self._padding[list(masks.ends_with(stop))] = True
        self._steps = masks.follow(constraint, stop)
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
