"""The space that many vocabularies put before a text, and what the first token of an answer means behind it.

Those of Llama 2, Mistral 7B and Phi-3, made by SentencePiece, write a text that begins, or follows a special token,
with a space before it that is none of it: "Hello" is the one token " Hello". So a model begins its answer with such a
token, and means the text without that space: the grammar is asked about that text, and it is what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SPACE = b" "


@dataclass(frozen=True)
class PrefixSpace:
    """Of a vocabulary: the tokens that spell what `meant` tokens have behind their first space, and the token that has
    a space before the text of another one."""

    meant: Mapping[int, tuple[int, ...]]
    spaced: Mapping[int, int]

    @classmethod
    def of(cls, texts: Mapping[bytes, int]) -> PrefixSpace:
        """Of the tokens that are text, among which is every byte."""
        begin_so = {token: piece.removeprefix(_SPACE) for piece, token in texts.items() if piece.startswith(_SPACE)}
        meant = {token: tuple(_spelled(text, texts)) for token, text in begin_so.items()}
        return cls(meant, {tokens[0]: token for token, tokens in meant.items() if len(tokens) == 1})

    def allowed(self, mask: NDArray[np.bool_], admits: Callable[[Sequence[int]], bool]) -> NDArray[np.bool_]:
        """The tokens that an answer may begin with where, without a space before them, those of the mask are admitted;
        `admits` says whether several are, one after the other."""
        found = mask.copy()
        for token, tokens in self.meant.items():
            found[token] = all(mask[first] for first in tokens[:1]) and (not tokens[1:] or admits(tokens))
        return found

    def meaning(self, tokens: Sequence[int]) -> list[int]:
        """Tokens that spell what an answer means that begins with these."""
        return [*self.meant.get(tokens[0], tokens[:1]), *tokens[1:]]

    def beside(self, tokens: Iterable[int]) -> tuple[int, ...]:
        """These tokens, and those that mean the same."""
        tokens = tuple(tokens)
        return tokens + tuple(self.spaced[token] for token in tokens if token in self.spaced)


def _spelled(text: bytes, texts: Mapping[bytes, int]) -> Iterator[int]:
    """Tokens of a text, the longest first."""
    while text:
        end = next(end for end in range(len(text), 0, -1) if text[:end] in texts)
        yield texts[text[:end]]
        text = text[end:]
