"""Texts as the tokens of a tokenizer of transformers, for engines that are not ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any

from toolgram.conversation.media import media_in
from toolgram.engines.base import Prompt
from toolgram.engines.forgery import any_of, cut, forged
from toolgram.errors import EngineError

_BROKEN = "\ufffd"  # where a character is not whole yet
_SIGN = re.compile(r"[^\w\s]")  # words and white space say nothing that a template would say by them


class Tokens:
    """Encodes prompts, and decodes what was written, by a tokenizer of transformers, also as MLX-LM wraps it.

    `vocabulary` are the ids of its special and added tokens by their texts, as `constraint.bind` takes them. `ends` are
    the tokens that end a text, as the `generation_config.eos_token_id` of a model has them, None the tokenizer's own
    (MLX-LM knows all of them). Raises EngineError for a tokenizer of another kind.
    """

    def __init__(self, tokenizer: Any, *, ends: int | Sequence[int] | None = None) -> None:
        if is_of_mlx(tokenizer):
            ends = sorted(tokenizer.eos_token_ids) if ends is None else ends
            tokenizer = tokenizer._tokenizer  # noqa: SLF001 - nothing else gives what it wraps
        if not hasattr(tokenizer, "added_tokens_decoder"):
            kind = type(tokenizer).__name__
            raise EngineError(f"a {kind} is no tokenizer of transformers: give AutoTokenizer.from_pretrained(folder)")
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

    def _is_tag(self, text: str, token: int) -> bool:
        return token in self._special or _SIGN.search(text) is not None

    def ends_with(self, stop: Iterable[str]) -> tuple[int, ...]:
        """The tokens that end a text, and those of these texts that are one token: of `plan.stop` the turn's own."""
        more = (self.vocabulary[text] for text in stop if text in self.vocabulary)
        return tuple(dict.fromkeys((*self.ends, *more)))

    def encode(self, prompt: Prompt) -> list[int]:
        """The ids of a prompt in its parts (`plan.prompt_parts`), as if it were one text, and nothing added.

        What text that is not trusted spells of added tokens is cut, so that it stays text; a tokenizer that puts a
        space behind every special token (Llama 2's) puts one there. Raises EngineError where there are images.
        """
        if media_in(prompt):
            raise EngineError("an image is no tokens: the engine is shown it by itself")
        first, *others = cut("".join(text for text, _ in prompt), [at + 1 for at in forged(prompt, self._tags)])
        ids = self._ids(first)
        for piece in others:
            ids += self._ids_behind(piece)
        return ids

    def decode(self, written: Iterable[int], stop: Iterable[str] = ()) -> str:
        """The text of tokens that were written under a mask, up to their end: what follows it in a batch is padding."""
        return self._behind(self._between, list(self._up_to_end(written, stop)))

    def pieces(self, written: Iterable[int], stop: Iterable[str] = ()) -> Iterator[str]:
        """What `decode` gives, piece by piece, as the tokens come: whole characters, for `plan.reader`."""
        before, held = self._between, list[int]()
        for token in self._up_to_end(written, stop):
            held.append(token)
            text = self._behind(before, held)
            if text and not text.endswith(_BROKEN):
                yield text
                before, held = held, []
        if held:  # a character that was cut off
            yield self._behind(self._between, held)

    def _up_to_end(self, written: Iterable[int], stop: Iterable[str]) -> Iterator[int]:
        ends = self.ends_with(stop)
        return takewhile(lambda token: token not in ends, map(int, written))

    def _behind(self, before: list[int], ids: list[int]) -> str:
        """The text of tokens behind others: what begins a text may lose its space, and in any some lose those before
        signs."""
        begun, whole = (
            self._tokenizer.decode(tokens, clean_up_tokenization_spaces=False) for tokens in (before, before + ids)
        )
        return whole.removeprefix(begun)

    def _ids_behind(self, piece: str) -> list[int]:
        """The ids of what does not begin the prompt: behind a special token no space is put before it."""
        between = self._tokenizer.convert_ids_to_tokens(self._between)
        ids = self._ids("".join(between) + piece)
        return ids[1:] if ids[:1] == self._between else self._ids(piece)

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)


def is_of_mlx(value: object) -> bool:
    """Whether it is an array of MLX, or a tokenizer of MLX-LM, which are not asked for: few machines have them."""
    return any(kind.__module__.partition(".")[0] in ("mlx", "mlx_lm") for kind in type(value).__mro__)
