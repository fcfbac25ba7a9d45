"""Random walks under the masks of engines: at each step any of the tokens that the grammar allows next.

What comes out must be JSON, and valid. Now and then, and always when a walk gets long, a token is taken that closes
something, so that walks end.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple, Protocol

import jsonschema_rs

from _schema_cases import Case, validator
from _schema_contestants import Reader
from _schema_pool import Tell
from toolgram.errors import GrammarError, InvalidSchema, UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.schema import Mode, schema_grammar

_LONG, _LONGEST = 80, 2000  # tokens after which a walk only wants to end, and at which it is given up
_HASTE = 0.3
_CLOSERS = (b'"', b"}", b"]", b'"}', b'"]', b": ", b'": ')
_PIECES = (
    *(b'{"', b'": "', b'": {"', b'", "', b'"], "', b"}, {", b"[{", b"]}", b'": [', b", ", b' "', b", -", b"[]", b"{}"),
    *(b"true", b"false", b"null", b"12", b"-1", b"0.5", b".0", b"e+", b"e-3", b"2026-", b"-01", b"T12:", b"://", b"00"),
    *(
        b"the",
        b" of",
        b"name",
        b"id",
        b"\\n",
        b'\\"',
        b"\\\\",
        b"\\u00",
        b"1f",
        "é".encode(),
        "😀".encode(),
        b"@",
        b"ing",
    ),
)
VOCABULARY = (*(bytes([byte]) for byte in range(256)), *_PIECES, b"<end>")
_END = len(VOCABULARY) - 1
_SPECIAL = b"\xff"  # llguidance's mark of tokens that stand for no text

_llguidance: Any = importlib.import_module("llguidance")
_llguidance_numpy: Any = importlib.import_module("llguidance.numpy")
_numpy: Any = importlib.import_module("numpy")
_xgrammar: Any = importlib.import_module("oracles").xgrammar()
_llama: Any = importlib.import_module("llama_oracle")


class Walked(NamedTuple):
    """Random sentences of a grammar: how many there were, how many were JSON, and were valid.

    `unfinished` walks are not among them. `bad` is a sentence that is not valid. `unread`: what the engine said when it
    did not read the grammar, or did not go on.
    """

    sampled: int = 0
    json: int = 0
    valid: int = 0
    unfinished: int = 0
    bad: str | None = None
    unread: str | None = None


class Steps(Protocol):
    """A recogniser on its way through a text."""

    def allowed(self) -> Sequence[int]:
        """The tokens of the vocabulary that may come next; the last one is the end."""
        ...

    def take(self, token: int) -> None:
        """Goes on with a token that is allowed."""
        ...


class _ByLlguidance:
    def __init__(self, start: Any) -> None:
        self._matcher = start.deep_copy()
        self._bits = _llguidance_numpy.allocate_token_bitmask(1, len(VOCABULARY))

    def allowed(self) -> Sequence[int]:
        if self._matcher.is_stopped():
            return [_END]
        _llguidance_numpy.fill_next_token_bitmask(self._matcher, self._bits)
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error())
        return _set_bits(self._bits)

    def take(self, token: int) -> None:
        self._matcher.consume_token(token)


class _ByXgrammar:
    def __init__(self, compiled: Any) -> None:
        self._matcher = _xgrammar.GrammarMatcher(compiled)
        self._bits = _llguidance_numpy.allocate_token_bitmask(1, len(VOCABULARY))  # the same layout

    def allowed(self) -> Sequence[int]:
        self._bits.fill(-1)  # it writes nothing where everything is allowed
        self._matcher.fill_next_token_bitmask(self._bits)
        return _set_bits(self._bits)

    def take(self, token: int) -> None:
        if not self._matcher.accept_token(token):
            raise ValueError(f"XGrammar allows {VOCABULARY[token]!r} and does not take it")


def _set_bits(bits: Any) -> Sequence[int]:
    unpacked = _numpy.unpackbits(bits.view(_numpy.uint8)[0], bitorder="little")[: len(VOCABULARY)]
    return _numpy.flatnonzero(unpacked).tolist()


@cache
def _llguidance_tokens() -> Any:
    class Tokenizer:
        eos_token_id, bos_token_id, special_token_ids = _END, None, (_END,)
        tokens = VOCABULARY

        def __call__(self, text: str | bytes) -> list[int]:
            return list(text.encode() if isinstance(text, str) else text)

    return _llguidance.LLTokenizer(_llguidance.TokenizerWrapper(Tokenizer()))


@cache
def _xgrammar_compiler() -> Any:
    info = _xgrammar.TokenizerInfo(list(VOCABULARY), _xgrammar.VocabType.RAW, stop_token_ids=[_END])
    return _xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)


def _masked(grammar: Grammar, reader: Reader) -> Callable[[], Steps]:
    """What starts a walk. Raises GrammarError and what the engines raise where they do not read the grammar."""
    if reader == "lark":
        start = _llguidance.LLMatcher(_llguidance_tokens(), grammar.to("lark"), log_level=0)
        if start.is_error():
            raise ValueError(start.get_error())
        return partial(_ByLlguidance, start)
    return partial(_ByXgrammar, _xgrammar_compiler().compile_grammar(_xgrammar.Grammar.from_ebnf(grammar.to("ebnf"))))


def _walk(start: Callable[[], Steps], seed: int) -> bytes | None:
    """A random sentence; None for a walk that does not end."""
    rng = Random(seed)
    steps, out = start(), list[bytes]()
    while len(out) < _LONGEST:
        allowed = steps.allowed()
        hurry = len(out) > _LONG or rng.random() < _HASTE
        closing = [token for token in allowed if token == _END or VOCABULARY[token] in _CLOSERS] if hurry else []
        if not allowed:
            raise ValueError(f"nothing may follow {b''.join(out)!r}")
        token = _END if hurry and _END in closing else rng.choice(closing or allowed)
        if token == _END:
            return b"".join(out)
        steps.take(token)
        out.append(VOCABULARY[token])
    return None


def _sentences(grammar: Grammar, reader: Reader, count: int) -> Iterator[bytes | None]:
    if reader == "matcher":
        yield from (grammar.sample(seed).encode() for seed in range(count))
    elif reader == "gbnf":
        text = grammar.to("gbnf")
        yield from (_llama.random_sentence(text, Random(seed), _LONG, _LONGEST) for seed in range(count))
    else:
        start = _masked(grammar, reader)
        yield from (_walk(start, seed) for seed in range(count))


def walk(task: tuple[Mode, Reader, Case, int], tell: Tell) -> Walked:
    """Judge so many random sentences of the grammar of a schema by jsonschema-rs."""
    mode, reader, case, count = task
    judge = validator(case)
    tell("conversion")
    try:
        grammar = schema_grammar(case.schema, mode)
        grammar.sample(0)
    except (UnsupportedSchema, InvalidSchema, GrammarError):  # the last: there is no valid instance
        return Walked()
    if judge is None:
        return Walked()
    walked = Walked()
    sentences = _sentences(grammar, reader, count)
    while True:
        tell(f"{reader}: walks")
        try:
            sentence = next(sentences, b"")
        except (ValueError, RuntimeError) as error:  # what engines raise
            return walked._replace(unread=f"{error}"[:200])
        if sentence == b"":  # there are no more: no JSON is empty
            return walked
        if sentence is None:
            walked = walked._replace(unfinished=walked.unfinished + 1)
            continue
        is_json, fits = _verdict(judge, sentence)
        walked = walked._replace(
            sampled=walked.sampled + 1,
            json=walked.json + is_json,
            valid=walked.valid + fits,
            bad=walked.bad or (None if fits else sentence.decode(errors="replace")),
        )


def _verdict(judge: Any, sentence: bytes) -> tuple[bool, bool]:
    """Whether it is JSON, and valid."""
    try:
        value = json.loads(sentence.decode())
    except ValueError:
        return False, False
    try:
        return True, judge.is_valid(value)
    except (ValueError, jsonschema_rs.ValidationError):
        return True, False
