"""What engines make of our grammars: whether they take them, the time to the first mask, and who takes which texts."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import toolgram
from _schema_walks import VOCABULARY
from toolgram.grammar.grammar import Grammar
from toolgram.models import catalog

_llguidance: Any = importlib.import_module("llguidance")
_masks: Any = importlib.import_module("llguidance.numpy")
_oracles: Any = importlib.import_module("oracles")
_llama: Any = importlib.import_module("llama_oracle")
_ODD = '<>"{}[]/\\,: \naé'
_LONGEST = 4_000  # characters of a sentence that engines are asked about


class Reading(NamedTuple):
    """How an engine read a grammar: milliseconds to a first mask (llama.cpp: to the grammar), or what it said."""

    milliseconds: float
    refused: str = ""


@cache
def vocabulary() -> tuple[bytes, ...]:
    """The tokens of SmolLM2 where it was fetched, else single bytes and some pieces; the last one ends a text."""
    path = catalog.cached("smollm2")
    return _tokens(path) if path else VOCABULARY


def _tokens(path: Path) -> tuple[bytes, ...]:
    model: Any = importlib.import_module("toolgram.engines.llama_cpp.gguf_model")
    tokens: Any = importlib.import_module("toolgram.engines.llama_cpp.vocabulary")
    loaded = model._load(path)
    pieces = tokens.Vocabulary.of_model(loaded).pieces
    return (*(piece for piece in pieces if piece != b"<|im_end|>"), b"<|im_end|>")


@cache
def _llguidance_tokens() -> Any:
    ids = {token[0]: number for number, token in enumerate(vocabulary()) if len(token) == 1}

    class Tokenizer:
        tokens = vocabulary()
        eos_token_id, bos_token_id, special_token_ids = len(tokens) - 1, None, (len(tokens) - 1,)

        def __call__(self, text: str | bytes) -> list[int]:
            return [ids[byte] for byte in (text.encode() if isinstance(text, str) else text)]

    return _llguidance.LLTokenizer(_llguidance.TokenizerWrapper(Tokenizer()))


@cache
def _xgrammar_compiler() -> Any:
    xgrammar = _oracles.xgrammar()
    tokens = list(vocabulary())
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, stop_token_ids=[len(tokens) - 1])
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)


def _by_llguidance(lark: str) -> None:
    matcher = _llguidance.LLMatcher(_llguidance_tokens(), lark, log_level=0)
    _masks.fill_next_token_bitmask(matcher, _masks.allocate_token_bitmask(1, len(vocabulary())))
    if matcher.is_error():
        raise ValueError(matcher.get_error())


def _by_xgrammar(ebnf: str) -> None:
    compiled = _xgrammar_compiler().compile_grammar(_oracles.xgrammar().Grammar.from_ebnf(ebnf))
    bits = _masks.allocate_token_bitmask(1, len(vocabulary()))
    _oracles.xgrammar().GrammarMatcher(compiled).fill_next_token_bitmask(bits)


def _by_llama(gbnf: str) -> None:
    _llama.gbnf_accepts(gbnf, "")


_READERS: dict[str, Callable[[str], None]] = {"lark": _by_llguidance, "ebnf": _by_xgrammar, "gbnf": _by_llama}


def reading(dialect: str, text: str) -> Reading:
    """How the engine of a dialect reads a grammar."""
    _llguidance_tokens() if dialect == "lark" else _xgrammar_compiler() if dialect == "ebnf" else None
    start = time.process_time()
    try:
        _READERS[dialect](text)
    except BaseException as error:  # a panic of llguidance is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return Reading(0, f"{type(error).__name__}: {error}".splitlines()[0][:100])
    return Reading((time.process_time() - start) * 1000)


def sentences(grammar: Grammar, count: int, rng: Random) -> Iterable[str]:
    """Sentences of a grammar, and as many near misses: one character left out, put in or changed."""
    for _ in range(count):
        text = grammar.sample(rng.randrange(1 << 30))
        if len(text) > _LONGEST:
            continue
        yield text
        at = rng.randrange(len(text) + 1)
        char = rng.choice(_ODD)
        yield rng.choice((text[:at] + text[at + 1 :], text[:at] + char + text[at:], text[:at] + char + text[at + 1 :]))


def disagreements(grammar: Grammar, texts: Iterable[str]) -> tuple[int, list[str]]:
    """How many texts were asked about, and those on which our matcher, llguidance and XGrammar differ."""
    asked, found = 0, list[str]()
    for text in texts:
        asked += 1
        verdicts = {
            grammar.accepts(text),
            _oracles.lark_accepts(grammar.to("lark"), text),
            _oracles.ebnf_accepts(grammar.to("ebnf"), text),
        }
        if len(verdicts) > 1:
            found.append(text)
    return asked, found


def grammar_of(tools: Sequence[Any], template: Path, now: datetime) -> Grammar:
    """The grammar of a turn with these tools."""
    body = {"messages": [{"role": "user", "content": "Have a look."}], "tools": list(tools)}
    constraint = toolgram.plan(body, toolgram.ChatTemplate.from_file(template), now=now).constraint
    if constraint is None:
        raise ValueError("a request with tools has a constraint")
    return constraint.grammar
