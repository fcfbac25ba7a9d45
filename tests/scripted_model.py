"""The embedded engine with scripted logits: its model writes a text, but here and there it would like another one."""

# What the engine is made of is changed here.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

import numpy as np

from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.gguf_model import Cancel, Span
from toolgram.engines.llama_cpp.sampling import Logits

WISH, SCRIPT = 0.9, 0.09  # how likely they are where both are wanted; the rest is shared by all other tokens


class _Script:
    """What comes next: `text`, token by token, except that at the offsets of `wishes` these texts are likelier."""

    def __init__(self, engine: LlamaCpp, text: str, wishes: Mapping[int, str]) -> None:
        self._engine = engine
        self._text = text.encode()
        self._wishes = {len(text[:at].encode()): wish.encode() for at, wish in wishes.items()}
        vocabulary = engine._model.vocabulary
        self._pieces = vocabulary.pieces
        self._ids = {piece: token for token, piece in reversed(list(enumerate(vocabulary.pieces))) if piece}
        self._end = vocabulary.eos

    def evaluate(self, spans: Sequence[Span], cancel: Cancel) -> list[list[Logits]]:
        """In the place of the model's own."""
        del cancel
        return [[self._logits(self._written(span, row)) for row in span.rows] for span in spans]

    def _written(self, span: Span, row: int) -> bytes:
        """The completion, as far as this token of the span."""
        live = next(live for live in self._engine._scheduler._live if live.slot.sequence == span.sequence)
        tokens = [*live.generation.tokens[: span.start], *span.tokens[: row + 1]]
        return b"".join(map(self._pieces.__getitem__, tokens[live.generation._prompt_tokens :]))

    def _logits(self, written: bytes) -> Logits:
        chances = np.full(len(self._pieces), 1e-9, np.float32)
        if not self._text.startswith(written):  # a draft, which is wrong
            return chances
        at = len(written)
        chances[self._token(at, min(chain((end for end in self._wishes if end > at), (len(self._text),))))] = SCRIPT
        if at in self._wishes:
            chances[self._ids[self._wishes[at]]] = WISH
        return np.log(chances / chances.sum())

    def _token(self, at: int, end: int) -> int:
        """The longest token of the text at this place, up to the next wish at most."""
        if at == len(self._text):
            return self._end
        return next(self._ids[piece] for to in range(end, at, -1) if (piece := self._text[at:to]) in self._ids)


@contextmanager
def scripted(engine: LlamaCpp, text: str, wishes: Mapping[int, str]) -> Iterator[None]:
    """Let the engine's model write `text`, and at offsets in it rather wish for other texts, a token each."""
    model = engine._model
    model.evaluate = _Script(engine, text, wishes).evaluate  # type: ignore[method-assign] - undone below
    try:
        yield
    finally:
        del model.evaluate
        engine._scheduler._slots.forget()  # what seems to be read is not
