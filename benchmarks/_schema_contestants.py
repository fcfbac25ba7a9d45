"""Who turns schemas into grammars: toolgram, read by each engine's own parser, and the engines by themselves."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Literal, NamedTuple

import _peers as peers
from _schema_cases import Case, spellings, that_say
from _schema_pool import Tell
from toolgram.errors import GrammarError, InvalidSchema, UnsupportedSchema
from toolgram.grammar.matcher import Matcher
from toolgram.schema import Mode, RuleNames, Spelling, compile_schema, schema_grammar
from toolgram.schema.writing.values import spell_as

Reader = Literal["matcher", "lark", "ebnf", "gbnf"]
READERS: tuple[Reader, ...] = ("matcher", "lark", "ebnf", "gbnf")
MODES: tuple[Mode, ...] = ("exact", "relaxed")

Accepts = Callable[[str], bool]
Texts = Callable[[Any], list[str]]

_llguidance: Any = importlib.import_module("llguidance")
_llama: Any = importlib.import_module("llama_oracle")
_xgrammar: Any = importlib.import_module("oracles").xgrammar()
_LOG_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")  # what XGrammar puts before its messages
_BYTES = _llguidance.LLTokenizer("byte")
_llama._library()  # once, before processes are forked


class Contestant(NamedTuple):
    """A way from a schema to something that accepts texts, and the texts that it is asked about an instance.

    `every` asks about all of them; else the first that is accepted is enough.
    """

    name: str
    reader: Reader | None
    convert: Callable[[Any, Tell], Accepts]
    texts: Callable[[Any], Texts]
    every: bool = False


class Outcome(NamedTuple):
    """What became of a schema: a refusal, or verdicts on the texts of each instance.

    `seconds` is the time of the conversion; `accepted` the first text of each instance that was accepted;
    `trouble` what the reader said when it gave up.
    """

    seconds: float
    refusal: str | None = None
    keyword: str | None = None
    verdicts: tuple[tuple[bool, ...], ...] = ()
    accepted: tuple[str | None, ...] = ()
    trouble: str | None = None


def judge(task: tuple[Contestant, Case], tell: Tell) -> Outcome:
    """Convert the schema, and ask about its instances."""
    contestant, case = task
    start = perf_counter()
    seconds = -1.0
    try:
        accepts = contestant.convert(case.schema, tell)
        seconds = perf_counter() - start
        tell("reading")
        accepts("")  # some read their grammar only now
    except Exception as error:  # noqa: BLE001 - whatever a converter raises is its refusal, and is reported
        return Outcome(seconds if seconds >= 0 else perf_counter() - start, *_refusal(error))
    texts = contestant.texts(case.schema)
    verdicts: list[tuple[bool, ...]] = []
    accepted: list[str | None] = []
    trouble: str | None = None
    for index, instance in enumerate(case.instances):
        tell(f"instance {index}")
        row: list[bool] = []
        first: str | None = None
        for text in that_say(texts(instance.data), case, instance):
            try:
                row.append(accepts(text))
            except ValueError as error:
                row.append(False)
                trouble = trouble or f"{error}"[:200]
            if row[-1] and first is None:
                first = text
            if row[-1] and not contestant.every:
                break
        verdicts.append(tuple(row))
        accepted.append(first)
    return Outcome(seconds, None, None, tuple(verdicts), tuple(accepted), trouble)


def _refusal(error: Exception) -> tuple[str, str]:
    """What is said, and the keyword that it is about, or the beginning of what is said."""
    said = f"{error}".strip() or type(error).__name__
    match error:
        case UnsupportedSchema():
            return said, error.keyword
        case InvalidSchema():
            return said, f"invalid: {error.keyword or error.reason}"
        case _:
            return said, f"{type(error).__name__}: {_LOG_PLACE.sub('', said).splitlines()[0][:70]}"


# toolgram


def _ours(mode: Mode, reader: Reader, schema: Any, tell: Tell) -> Accepts:
    tell("schema to grammar")
    grammar = schema_grammar(schema, mode)
    if reader != "matcher":
        tell(f"grammar to {reader}")
        try:
            grammar.to(reader)
        except GrammarError:
            if Matcher(grammar.rules).viable(""):
                raise
            return lambda _: False  # no dialect can say that there is no text; nor need an engine be asked
        tell(f"{reader} in its engine")
    match reader:
        case "matcher":
            return grammar.accepts
        case "lark":
            return _read_by_llguidance(_llguidance.LLMatcher.grammar_from_lark(grammar.to("lark")))
        case "ebnf":
            return _read_by_xgrammar(_xgrammar.Grammar.from_ebnf(grammar.to("ebnf")))
        case "gbnf":
            return _read_by_llama(grammar.to("gbnf"))


def _own_texts(mode: Mode, schema: Any) -> Texts:
    """The canonical text first, if the value has one."""
    compiled = compile_schema(
        schema,
        pointer="",
        mode=mode,
        closed=False,
        spelling=Spelling(),
        names=RuleNames(),
        root_name="root",
    )

    def texts(data: Any) -> list[str]:
        own = spell_as(compiled.type, data, Spelling())
        return list(dict.fromkeys([*([] if own is None else [own]), *spellings(schema, data)]))

    return texts


# Peers


def _read_by_llguidance(grammar: str) -> Accepts:
    start = _llguidance.LLMatcher(_BYTES, grammar, log_level=0)
    if start.is_error():
        raise ValueError(start.get_error())

    def accepts(text: str) -> bool:
        matcher = start.deep_copy()
        tokens = _BYTES.tokenize_bytes(text.encode())
        taken = matcher.try_consume_tokens(tokens)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return taken == len(tokens) and matcher.is_accepting()

    return accepts


def _llguidance_own(options: dict[str, Any], schema: Any, tell: Tell) -> Accepts:
    tell("conversion")
    return _read_by_llguidance(_llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options))


def _read_by_xgrammar(grammar: Any) -> Accepts:
    made: list[Any] = []

    def accepts(text: str) -> bool:
        if not made:
            made.append(_xgrammar.testing._get_matcher_from_grammar(grammar))
        (matcher,) = made
        matcher.reset()
        return matcher.accept_string(text) and matcher.is_terminated()

    return accepts


def _xgrammar_own(schema: Any, tell: Tell) -> Accepts:
    tell("conversion")
    return _read_by_xgrammar(_xgrammar.Grammar.from_json_schema(json.dumps(schema), strict_mode=False))


def _llama_own(schema: Any, tell: Tell) -> Accepts:
    tell("conversion")
    return _read_by_llama(peers.llama_gbnf(schema))


def _read_by_llama(gbnf: str) -> Accepts:
    def accepts(text: str) -> bool:
        try:
            return _llama.gbnf_accepts(gbnf, text)
        except ValueError:  # it holds the whole grammar
            raise ValueError("llama.cpp does not read the grammar") from None

    return accepts


def _peer_texts(schema: Any) -> Texts:
    return partial(spellings, schema)


OURS = {
    (mode, reader): Contestant(
        f"toolgram {mode}", reader, partial(_ours, mode, reader), partial(_own_texts, mode), every=True
    )
    for mode in MODES
    for reader in READERS
}
PEERS = (
    Contestant("llguidance", None, partial(_llguidance_own, {}), _peer_texts),
    Contestant("llguidance lenient", None, partial(_llguidance_own, {"lenient": True}), _peer_texts),
    Contestant("XGrammar", None, _xgrammar_own, _peer_texts),
    Contestant("llama.cpp", None, _llama_own, _peer_texts),
)
