"""Prompts as token ids, by the tokenizer of the server that will run them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping

from toolgram.engines.base import Prompt
from toolgram.errors import EngineError

Encode = Callable[[str], Awaitable[list[tuple[int, str]]]]
"""The ids of a text and the text of each; special tokens are made of what spells them, and none is added."""

# What may be a special token; `<0x0A>` is how some vocabularies show a byte.
_TAG = re.compile(r"(?=(?!<0x[0-9A-F]{2}>)(<[^<>\s]{1,80}>|\[[^\[\]\s]{1,80}\]))")
_MOST_PLAIN = 10_000


class ServerTokens:
    """Tokenizes as a server does, but lets only trusted text make special tokens.

    A server turns whatever spells a special token into it. So the text is encoded as a whole, and then each special
    token that came of untrusted text is taken apart. Which tags are tokens is asked once for each.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._tokens: dict[str, int] = {}
        self._ids = set[int]()
        self._plain = set[str]()

    @property
    def seen(self) -> Mapping[str, int]:
        """The special tokens that were met so far, and their ids."""
        return self._tokens

    def any_special(self, tokens: Iterable[int]) -> bool:
        """Whether one of these tokens is a special one that was met."""
        return not self._ids.isdisjoint(tokens)

    async def known(self, texts: Iterable[str]) -> dict[str, int]:
        """Those of these texts that are one token, with its id."""
        texts = dict.fromkeys(texts)
        if new := [text for text in texts if text not in self._tokens and text not in self._plain]:
            found = {text: token for token, text in await self._encode(" ".join(new))}
            self._tokens.update((text, found[text]) for text in new if text in found)
            self._ids.update(found[text] for text in new if text in found)
            if len(self._plain) > _MOST_PLAIN:
                self._plain.clear()
            self._plain.update(text for text in new if text not in found)
        return {text: self._tokens[text] for text in texts if text in self._tokens}

    async def ids(self, prompt: Prompt) -> list[int]:
        """The ids of the whole prompt. Raises EngineError where the server's tokens do not fit the text."""
        text = "".join(text for text, _ in prompt)
        tokens = await self.known(match[1] for match in _TAG.finditer(text))
        ids = [token for token, _ in await self._encode(text)]
        forged = self._forged(prompt, text, tokens)
        if not any(forged):
            return ids
        special = set(tokens.values())
        if sum(token in special for token in ids) != len(forged):
            raise EngineError("the server's tokenizer finds other special tokens in the prompt than its text shows")
        names = {token: text for text, token in tokens.items()}
        flags = iter(forged)
        safe: list[int] = []
        for token in ids:
            apart = token in special and next(flags)
            safe += await self._apart(names[token]) if apart else [token]
        return safe

    def _forged(self, prompt: Prompt, text: str, tokens: Mapping[str, int]) -> list[bool]:
        """For each special token in the text whether untrusted text has a part in it."""
        if not tokens:
            return []
        trusted = bytearray()
        for part, trust in prompt:
            trusted += bytes([trust]) * len(part)
        either = "|".join(map(re.escape, sorted(tokens, key=len, reverse=True)))
        return [not all(trusted[match.start() : match.end()]) for match in re.finditer(either, text)]

    async def _apart(self, text: str) -> list[int]:
        """The ids of a tag in two halves, neither of which is one."""
        halves = [await self._encode(text[:1]), await self._encode(text[1:])]
        return [token for half in halves for token, _ in half]
