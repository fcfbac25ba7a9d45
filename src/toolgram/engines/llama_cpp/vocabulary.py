"""The tokens of a GGUF model: their bytes, the special ones, and text to ids."""

from __future__ import annotations

import ctypes
import re
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.base import Prompt
from toolgram.engines.forgery import any_of, forged
from toolgram.engines.llama_cpp import ffi
from toolgram.engines.llama_cpp.escapes import Escapes
from toolgram.engines.llama_cpp.numbers import Numbers
from toolgram.engines.llama_cpp.prefix_space import PrefixSpace
from toolgram.engines.llama_cpp.spelling import Spelling, is_closing, is_opening
from toolgram.errors import PromptTooLong
from toolgram.work import give_way

_SIGN = re.compile(r"[^\w\s]|_")  # words and white space that a vocabulary has of its own are text, if user-defined
_SIGNS = re.compile(rb"[^\w\"'`\\\x80-\xff]+\Z")  # white space and signs that stand between values; no escapes
_NO_TEXT = ffi.TOKEN_CONTROL | ffi.TOKEN_UNKNOWN | ffi.TOKEN_UNUSED
_MARKERS = ffi.TOKEN_CONTROL | ffi.TOKEN_USER_DEFINED | ffi.TOKEN_UNKNOWN
_LONGEST_PIECE = 64  # bytes of a token that may begin a forced text
_BETWEEN = "\x02"  # a byte that no token has with others
_REMEMBERED = 1 << 21  # characters of text whose tokens are remembered
_USUAL_LENGTH = 4  # characters of a token, in most languages
_AT_ONCE = 1 << 18  # characters that are tokenized in no time
_WINDOW, _AT_ENDS = 1 << 16, 8  # characters of a piece; tokens that it may have more than in the whole


class _Remembered:
    """The tokens of the texts that were asked for last: a conversation comes again, a turn longer each time."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, array[int]] = OrderedDict()
        self._left = _REMEMBERED
        self._lock = threading.Lock()

    def get(self, text: str) -> Iterable[int] | None:
        """Its tokens, if they are known."""
        with self._lock:
            if text in self._tokens:
                self._tokens.move_to_end(text)
            return self._tokens.get(text)

    def put(self, text: str, tokens: Iterable[int]) -> None:
        """Remember them, and forget those that were not asked for the longest."""
        with self._lock:
            self._left -= 0 if text in self._tokens else len(text)
            self._tokens[text] = array("i", tokens)
            while self._left < 0:
                forgotten, _ = self._tokens.popitem(last=False)
                self._left += len(forgotten)


@dataclass(frozen=True)
class Vocabulary:
    """The vocabulary of a loaded model; valid as long as the model is. Safe to share between threads."""

    pointer: int
    pieces: tuple[bytes, ...]
    attributes: tuple[int, ...]
    eos: int
    ends: frozenset[int]
    _known: _Remembered = field(default_factory=_Remembered, repr=False, compare=False)

    @classmethod
    def of_model(cls, model: int) -> Vocabulary:
        """Read all tokens from llama.cpp."""
        c = ffi.library().c
        pointer: int = c.llama_model_get_vocab(model)
        ids = range(c.llama_vocab_n_tokens(pointer))
        return cls(
            pointer,
            tuple(_piece(pointer, token) for token in ids),
            tuple(c.llama_vocab_get_attr(pointer, token) for token in ids),
            c.llama_vocab_eos(pointer),
            frozenset(token for token in ids if c.llama_vocab_is_eog(pointer, token)),
        )

    @cached_property
    def special(self) -> Mapping[str, int]:
        """The text of each control or user-defined token, and its id."""
        return self._with(ffi.TOKEN_CONTROL | ffi.TOKEN_USER_DEFINED)

    def beginning(self, tokens: Sequence[int]) -> list[int]:
        """The tokens that the text of these tokens may begin with, however it is cut; markers are one token each."""
        text, _ = self._to_marker(tokens)
        prefixes = (text[:end] for end in range(1, min(len(text), _LONGEST_PIECE) + 1))
        return [self._texts[prefix] for prefix in prefixes if prefix in self._texts] or list(tokens[:1])

    def begun(self, tokens: Sequence[int]) -> list[int]:
        """An answer's first tokens as the vocabulary writes the same text where nothing is before it."""
        text, others = self._to_marker(tokens)
        whole = _text(text)
        return list(tokens) if whole is None else [*self._ids(whole), *others]

    def joined(self, tokens: Sequence[int], tokenize: Callable[[bytes], list[int]]) -> list[int]:
        """Tokens up to the first marker, as their text is cut as a whole, and the others."""
        text, others = self._to_marker(tokens)
        found = [] if _text(text) is None else tokenize(text)  # parts of characters are cut otherwise
        same = b"".join(map(self.pieces.__getitem__, found)) == text  # not every vocabulary has tokens for every text
        return [*found, *others] if same else list(tokens)

    def _to_marker(self, tokens: Sequence[int]) -> tuple[bytes, Sequence[int]]:
        """The text of tokens up to the first marker, and the tokens from there on."""
        marked = (at for at, token in enumerate(tokens) if self.attributes[token] & ffi.TOKEN_CONTROL)
        marker = next(marked, len(tokens))
        return b"".join(self.pieces[token] for token in tokens[:marker]), tokens[marker:]

    def is_between(self, token: int) -> bool:
        """Whether it is white space and signs, as they stand between values."""
        return self._is_text(token) and _SIGNS.match(self.pieces[token]) is not None

    def is_longer(self, token: int, by: bytes) -> bool:
        """Whether there is a token of its text and this."""
        return self.pieces[token] + by in self._texts

    def longer(self, token: int, among: Iterable[int]) -> list[int]:
        """Those of some tokens whose text begins with that of this one, and has more.

        Where it opens a bracket that closes at once in one of them, it is not meant to be closed: others come first.
        """
        piece = self.pieces[token]
        begin_so = (one for one in among if self.pieces[one].startswith(piece) and self._is_text(one))
        found = [one for one in begin_so if self.pieces[one] != piece]
        filled = [one for one in found if not is_closing(self.pieces[one][len(piece)])]
        return filled or found if is_opening(piece) else found

    def _is_text(self, token: int) -> bool:
        return not self.attributes[token] & _NO_TEXT

    @cached_property
    def first_bytes(self) -> NDArray[np.uint8]:
        """The first byte of each token; 0 for one of no text."""
        first = (piece[:1] if self._is_text(token) else b"" for token, piece in enumerate(self.pieces))
        return np.frombuffer(b"".join(byte or b"\0" for byte in first), dtype=np.uint8)

    @cached_property
    def escapes(self) -> Escapes:
        """Which tokens make escapes, and which only look so."""
        return Escapes.of(self._texts, self.first_bytes)

    @cached_property
    def spelling(self) -> Spelling:
        """Which tokens of signs begin with which."""
        return Spelling.of(self._texts, self.first_bytes)

    @cached_property
    def numbers(self) -> Numbers:
        """Which tokens numbers are made of, and end with."""
        return Numbers.of(self._texts, self.first_bytes)

    def prefix_after(self, tokens: Sequence[int]) -> PrefixSpace | None:
        """How a text is written behind these tokens, if with a space before it that is none of it."""
        follows_text = bool(tokens) and not self.attributes[tokens[-1]] & _MARKERS
        return None if follows_text else self._prefix_space

    @cached_property
    def _prefix_space(self) -> PrefixSpace | None:
        if not all(bytes((byte,)) in self._texts for byte in range(256)):
            return None
        spaced = any(self.pieces[token].startswith(b" ") for token in self._asked("a"))
        return PrefixSpace.of(self._texts) if spaced else None

    @cached_property
    def _texts(self) -> Mapping[bytes, int]:
        """The bytes of each token that is text, and its id; of equal ones the first that is no mere byte, which models
        write in parts of characters alone."""
        plain = filter(self._is_text, reversed(range(len(self.pieces))))
        bytes_first = sorted(plain, key=lambda token: not self.attributes[token] & ffi.TOKEN_BYTE)
        return {self.pieces[token]: token for token in bytes_first}

    @cached_property
    def by_text(self) -> Mapping[str, int]:
        """The text of each token that is no mere part of a character, and its id."""
        plain = {text: token for piece, token in self._texts.items() if (text := _text(piece)) is not None}
        return {**plain, **self.special}

    def ends_with(self, texts: tuple[str, ...]) -> frozenset[int]:
        """The tokens that end a text: the model's own, and those of these texts that are one token."""
        return self.ends | {self.special[text] for text in texts if text in self.special}

    @cached_property
    def longest(self) -> int:
        """How many bytes the longest token has."""
        return max(map(len, self.pieces))

    def check_length(self, prompt: Prompt, most: int) -> None:
        """Raises PromptTooLong for a prompt of certainly more than `most` tokens, without tokenizing much more of it.

        Of a long one pieces are tokenized by themselves, of which each may have a few tokens more than in the whole.
        """
        text = "".join(part for part, _ in prompt)
        too_long = PromptTooLong(None, most, f"it has {len(text)} characters, and the context holds {most} tokens")
        if len(text) > most * self.longest:
            raise too_long
        if len(text) <= max(most * _USUAL_LENGTH, _AT_ONCE):  # the count itself tells more
            return
        count = 0
        for start in range(0, len(text), _WINDOW):
            give_way()
            count += len(self._asked(text[start : start + _WINDOW])) - _AT_ENDS
            if count > most:
                raise too_long

    def tokenize(self, prompt: Prompt) -> list[int]:
        """The ids of a prompt, as if it were one text, but with control tokens out of trusted parts only.

        Nothing is added: the text of a chat template holds its own start token. What the vocabulary
        has as plain tokens, but for words and white space, is spelled out where untrusted text has a part in it.
        """
        ids: list[int] = []
        run, strip_next, goes_on = "", False, False
        for text, token in self._split(prompt):
            run += text.lstrip() if strip_next and not run else text
            strip_next = strip_next and not run
            if token is not None and token >= 0:
                attributes = self.attributes[token]
                ids += self._ids_of(run.rstrip() if attributes & ffi.TOKEN_LSTRIP else run, goes_on=goes_on)
                ids.append(token)
                strip_next = bool(attributes & ffi.TOKEN_RSTRIP)
                run, goes_on = "", False
            elif token is not None:
                ids += self._ids_of(run, goes_on=goes_on)
                run, goes_on = "", goes_on or bool(run)
        ids += self._ids_of(run, goes_on=goes_on)
        return ids

    def _ids_of(self, text: str, *, goes_on: bool) -> Iterable[int]:
        """The tokens of a text; of one that goes on another, without a space before it."""
        if not (text and goes_on and self._prefix_space):
            return self._ids(text)
        ids = list(self._ids(_BETWEEN + text))
        return ids[ids.index(self._texts[_BETWEEN.encode()]) + 1 :]

    def _split(self, prompt: Prompt) -> list[tuple[str, int | None]]:
        """Runs of text, each with the token that follows it: none, or -1 where the text is only broken apart."""
        text = "".join(part for part, _ in prompt)
        ends = [(at + 1, at + 1, -1) for at in forged(prompt, self._tags)]
        start = 0
        for trusted, parts in groupby(prompt, key=itemgetter(1)):
            run = "".join(part for part, _ in parts)
            found = self._control.finditer(run) if trusted else ()
            ends += ((start + match.start(), start + match.end(), self._control_ids[match[0]]) for match in found)
            start += len(run)
        split: list[tuple[str, int | None]] = []
        at = 0
        for start, end, token in sorted(ends):
            if start >= at:
                split.append((text[at:start], token))
                at = end
        split.append((text[at:], None))
        return split

    @cached_property
    def _control_ids(self) -> Mapping[str, int]:
        return self._with(ffi.TOKEN_CONTROL | ffi.TOKEN_UNKNOWN)

    @cached_property
    def _control(self) -> re.Pattern[str]:
        return any_of(self._control_ids)

    @cached_property
    def _tags(self) -> re.Pattern[str]:
        return any_of(text for text in self._with(ffi.TOKEN_USER_DEFINED) if _SIGN.search(text))

    def _with(self, attribute: int) -> dict[str, int]:
        tokens = (token for token, attributes in enumerate(self.attributes) if attributes & attribute)
        return {self.pieces[token].decode(errors="replace"): token for token in tokens if self.pieces[token]}

    def _ids(self, text: str) -> Iterable[int]:
        known = self._known.get(text)
        if known is None:
            known = self._asked(text)
            self._known.put(text, known)
        return known

    def _asked(self, text: str) -> list[int]:
        if not text:
            return []
        c = ffi.library().c
        raw = text.encode(errors="replace")  # lone surrogates have no bytes
        room = len(raw) + 8
        buffer = (ctypes.c_int32 * room)()
        count = c.llama_tokenize(self.pointer, raw, len(raw), buffer, room, False, False)  # noqa: FBT003 - C knows no names
        if count < 0:
            buffer = (ctypes.c_int32 * -count)()
            count = c.llama_tokenize(self.pointer, raw, len(raw), buffer, -count, False, False)  # noqa: FBT003 - as above
        return buffer[:count]


def _text(piece: bytes) -> str | None:
    """The text of a token; None where it is a part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return None


def _piece(vocabulary: int, token: int) -> bytes:
    c = ffi.library().c
    size = 256
    while True:
        buffer = ctypes.create_string_buffer(size)
        count = c.llama_token_to_piece(vocabulary, token, buffer, size, 0, True)  # noqa: FBT003 - C knows no names
        if count >= 0:
            return buffer.raw[:count]
        size = -count
