"""Prompts as token ids, by the tokenizer of the server that will run them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from toolgram.engines.base import Prompt
from toolgram.engines.forgery import any_of, broken, cut, forged
from toolgram.errors import EngineError

Encode = Callable[[str], Awaitable[list[tuple[int, str]]]]
"""The ids of a text and the text of each; special tokens are made of what spells them, and none is added."""

# No form is common to special tokens, but they begin and end with a sign, and a letter is between, or they have bars.
_MAY_BE_SPECIAL = re.compile(r"(?:[^\w\s]|_).*[^\W_].*(?:[^\w\s]|_)|<\|.*\|>", re.DOTALL)
_SIGN = re.compile(r"[^\w\s]")
_WORD_ENDS, _WORD_BEGINS = re.compile(r"\w\Z"), re.compile(r"\w")
_MOST_PLAIN = 10_000
_MOST_ROUNDS = 16  # what one special token hid may be another, and that again
# In what company tokens are tried: what is left of them, and what is right, of which ordinary ones may become a part.
_COMPANIES: tuple[Callable[[str], tuple[str, str]], ...] = (
    lambda text: (text[0], ""),
    lambda text: (text[:-1], ""),
    lambda text: ("", text[-1]),
    lambda text: ("", text[1:]),
)


class ServerTokens:
    """Tokenizes as a server does, but lets only trusted text make special tokens.

    A server turns whatever spells a special token into it, and does not tell which ones are special. But those it finds
    before it looks at what stands beside them, so that they stay whole in any company: each token that may be one, and
    each that an engine is told of, is tried once. A text is tokenized as a whole, and again with what of it untrusted
    text has made special tokens of taken apart. A server that has another vocabulary than before, since it was started
    again with another model, is known by a token of another text or a text of another token.
    """

    def __init__(self, encode: Encode) -> None:
        self._ask = encode
        self._forget()

    def _forget(self) -> None:
        self._named: dict[str, int] = {}
        self._unnamed = set[str]()
        self._special: dict[str, int] = {}
        self._ids = set[int]()
        self._tried: dict[int, str] = {}
        self._find = any_of(())

    async def _encode(self, text: str) -> list[tuple[int, str]]:
        tokens = await self._ask(text)
        tried, named = self._tried, self._named
        if any(tried.get(token, piece) != piece or named.get(piece, token) != token for token, piece in tokens):
            self._forget()
        return tokens

    @property
    def seen(self) -> Mapping[str, int]:
        """The special tokens that were met so far, and their ids."""
        return {**self._special, **self._named}

    def any_special(self, tokens: Iterable[int]) -> bool:
        """Whether one of these tokens is a special one that was met."""
        return not self._ids.isdisjoint(tokens)

    async def known(self, texts: Iterable[str]) -> dict[str, int]:
        """Those of these texts that are one token, with its id."""
        texts = dict.fromkeys(texts)
        if new := [text for text in texts if text not in self._named and text not in self._unnamed]:
            found = {text: token for token, text in await self._encode(" ".join(new))}
            self._named.update((text, found[text]) for text in new if text in found)
            self._ids.update(found[text] for text in new if text in found)
            if len(self._unnamed) > _MOST_PLAIN:
                self._unnamed.clear()
            self._unnamed.update(text for text in new if text not in found)
            named = {text: found[text] for text in new if text in found and _SIGN.search(text)}
            await self._try({text: token for text, token in named.items() if token not in self._tried})
        return {text: self._named[text] for text in texts if text in self._named}

    async def ids(self, prompt: Prompt) -> list[int]:
        """The ids of the whole prompt."""
        text = "".join(text for text, _ in prompt)
        tokens = await self._encode(text)
        ids = [token for token, _ in tokens]
        places: list[int] = []
        await self._learn(tokens, text)
        while len(found := [at + 1 for at in forged(prompt, self._find)]) > len(places):
            places = found
            ids, tokens = await self._apart(cut(text, places))
            await self._learn(tokens, text)  # what one special token hid may be another
        return ids

    async def as_text(self, prompt: Prompt) -> tuple[Prompt, int]:
        """The prompt for a server that is sent text, what is forged in it broken by a backslash; and its tokens' count.

        Raises EngineError for what a backslash does not break.
        """
        for _ in range(_MOST_ROUNDS):
            text = "".join(text for text, _ in prompt)
            tokens = await self._encode(text)
            await self._learn(tokens, text)
            if not forged(prompt, self._find):
                return prompt, len(tokens)
            prompt = broken(prompt, self._find)
        raise EngineError("the prompt has text beside an image that this server takes for a special token")

    async def _learn(self, tokens: Iterable[tuple[int, str]], text: str) -> None:
        """Find out which tokens of this text are special."""
        new = {piece: token for token, piece in tokens if token not in self._tried and _MAY_BE_SPECIAL.fullmatch(piece)}
        await self._try({piece: token for piece, token in new.items() if piece in text})

    async def _try(self, new: Mapping[str, int]) -> None:
        """Find out which of these tokens are special.

        An ordinary one may be taken for special: then it is taken apart where it is forged, and says the same.
        """
        if not new:
            return
        stay = await asyncio.gather(*(self._stay_whole(company, new) for company in _COMPANIES))
        special = set(new).intersection(*stay)
        self._special.update((piece, new[piece]) for piece in special)
        self._ids.update(new[piece] for piece in special)
        self._tried.update((token, piece) for piece, token in new.items())
        self._find = any_of(self._special)

    async def _stay_whole(self, company: Callable[[str], tuple[str, str]], tried: Mapping[str, int]) -> set[str]:
        """Those of these tokens that stay whole in some company: of no words, beside which some special ones do not."""
        lines: list[str] = []
        for text in tried:
            left, right = company(text)
            lines.append(
                ("" if _WORD_ENDS.search(left) else left) + text + ("" if _WORD_BEGINS.match(right) else right)
            )
        found = {token for token, _ in await self._encode("\n".join(lines))}
        return {text for text, token in tried.items() if token in found}

    async def _apart(self, pieces: Sequence[str]) -> tuple[list[int], list[tuple[int, str]]]:
        """The ids of a text of which no token lies in two pieces, and its tokens."""
        # A special token keeps what stands on either side of it apart: it is put between the pieces, and taken out.
        between = min(self._special, key=lambda text: sum(piece.count(text) for piece in pieces))
        number = self._special[between]
        tokens = await self._encode(between.join(pieces))
        places = [at for at, (token, _) in enumerate(tokens) if token == number]
        own = [piece.count(between) for piece in pieces]
        if len(places) != len(pieces) - 1 + sum(own):  # it does not do so here
            encoded = {piece: await self._encode(piece) for piece in dict.fromkeys(pieces)}
            tokens = [token for piece in pieces for token in encoded[piece]]
            return [token for token, _ in tokens], tokens
        put = {places[end + at] for at, end in enumerate(accumulate(own[:-1]))}
        return [token for at, (token, _) in enumerate(tokens) if at not in put], tokens
