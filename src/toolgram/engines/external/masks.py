"""Which tokens a constraint allows next, for engines that are not ours: transformers, MLX-LM, one's own loop."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import islice, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.base import Prompt, SupportsGrammar
from toolgram.engines.external.backends import BACKENDS, Backend
from toolgram.engines.forgery import any_of, cut, forged
from toolgram.errors import EngineError, MissingPackage
from toolgram.grammar.constraint import Constraint

Mask = NDArray[np.bool_]
"""For each token of the vocabulary whether it may come next."""

_INT_BITS = 32
_SIGN = re.compile(r"[^\w\s]")  # words and white space say nothing that a template would say by them


class TokenMasks:
    """Follows constraints by the tokens of a fast tokenizer of transformers, also as MLX-LM wraps it.

    `backend` None takes llguidance if it is installed, else xgrammar. `ends` are the tokens that end a text, as the
    `generation_config.eos_token_id` of a model has them, None the tokenizer's own (MLX-LM knows all of them); what ends
    the turns of a template is in `plan.stop`, which each constraint is given. Raises MissingPackage where no backend is
    installed, EngineError for a tokenizer that the backend does not take.
    """

    def __init__(
        self, tokenizer: Any, *, backend: Backend | None = None, ends: int | Sequence[int] | None = None
    ) -> None:
        chosen: Backend | None = backend or next((name for name in BACKENDS if find_spec(name) is not None), None)
        if chosen is None:
            raise MissingPackage("a token mask", "llguidance (or xgrammar)", "embedded")
        if _is_of_mlx(tokenizer):
            ends = sorted(tokenizer.eos_token_ids) if ends is None else ends
            tokenizer = tokenizer._tokenizer  # noqa: SLF001 - nothing else gives what it wraps
        added: Mapping[int, Any] = tokenizer.added_tokens_decoder
        self.vocabulary: Mapping[str, int] = {str(token): number for number, token in added.items()}
        self.size: int = 1 + max(tokenizer.get_vocab().values())  # some have gaps among their ids
        self._tokenizer = tokenizer
        self._special = {number for number, token in added.items() if token.special}
        self._tags = any_of(text for text, token in self.vocabulary.items() if self._is_tag(text, token))
        plain = (number for number in sorted(self._special) if not (added[number].lstrip or added[number].rstrip))
        self._between = list(islice(plain, 1))
        own: int | Sequence[int] | None = tokenizer.eos_token_id if ends is None else ends
        self.ends: tuple[int, ...] = (own,) if isinstance(own, int) else tuple(own or ())
        try:
            self._start = BACKENDS[chosen](tokenizer, self.size, self.ends)
        except (ValueError, RuntimeError) as error:
            raise EngineError(f"{chosen} does not take this tokenizer: {error}") from error

    def _is_tag(self, text: str, token: int) -> bool:
        return token in self._special or _SIGN.search(text) is not None

    def ends_with(self, stop: Iterable[str]) -> tuple[int, ...]:
        """The tokens that end a text, and those of these texts that are one token: of `plan.stop` the turn's own."""
        more = (self.vocabulary[text] for text in stop if text in self.vocabulary)
        return tuple(dict.fromkeys((*self.ends, *more)))

    def encode(self, prompt: Prompt) -> list[int]:
        """The ids of a prompt in its parts (`plan.prompt_parts`), as if it were one text, and nothing added.

        What text that is not trusted spells of added tokens is cut, so that it stays text; a tokenizer that puts a
        space behind every special token (Llama 2's) puts one there.
        """
        first, *others = cut("".join(text for text, _ in prompt), [at + 1 for at in forged(prompt, self._tags)])
        ids = self._ids(first)
        for piece in others:
            ids += self._ids_behind(piece)
        return ids

    def decode(self, written: Iterable[int], stop: Iterable[str] = ()) -> str:
        """The text of tokens that were written under a mask, up to their end: what follows it in a batch is padding."""
        ends = self.ends_with(stop)
        ids = list(takewhile(lambda token: token not in ends, map(int, written)))
        # What begins a text may lose its space, and in any some lose those before signs.
        begun, whole = (
            self._tokenizer.decode(self._between + tokens, clean_up_tokenization_spaces=False) for tokens in ([], ids)
        )
        return whole.removeprefix(begun)

    def _ids_behind(self, piece: str) -> list[int]:
        """The ids of what does not begin the prompt: behind a special token no space is put before it."""
        between = self._tokenizer.convert_ids_to_tokens(self._between)
        ids = self._ids("".join(between) + piece)
        return ids[1:] if ids[:1] == self._between else self._ids(piece)

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)

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


def _is_of_mlx(value: object) -> bool:
    """Whether it is an array of MLX, or a tokenizer of MLX-LM, which are not asked for: few machines have them."""
    return type(value).__module__.partition(".")[0] in ("mlx", "mlx_lm")


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
            mask = self._row(number, sequence[self._prompt :]).mask
            allowed[number, : len(mask)] = mask
        if isinstance(scores, np.ndarray):
            return np.where(allowed, scores, -np.inf)  # pyright: ignore[reportUnknownArgumentType] - any kind of number
        if _is_of_mlx(scores):
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
