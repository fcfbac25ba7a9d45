"""What a token mask costs: over a real vocabulary, along a valid instance, token by token."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter, thread_time
from typing import Any, NamedTuple

from _schema_cases import Case, spellings
from _schema_pool import Lost, Tell, run
from _schema_tables import quantiles
from toolgram.engines.llama_cpp.gguf_model import Model
from toolgram.errors import ToolgramError
from toolgram.models import catalog
from toolgram.schema import schema_grammar

HEAD = [
    "who",
    "schemas",
    "converted p50 ms",
    "first p50 ms",
    "× its own",
    "first p95 ms",
    "masks",
    "p50 µs",
    "p75 µs",
    "× its own",
    "p95 µs",
    "max µs",
]
_LONGEST = 400  # tokens of an instance
_LIMIT = 5.0  # seconds for a schema

_llguidance: Any = importlib.import_module("llguidance")
_llguidance_numpy: Any = importlib.import_module("llguidance.numpy")
_xgrammar: Any = importlib.import_module("oracles").xgrammar()
_engine_masks: Any = importlib.import_module("toolgram.engines.llama_cpp.guide")


class Masked(NamedTuple):
    """Seconds of processor time from the schema to a grammar's text, which engines need not write for themselves, and
    from there to the first mask; and seconds of each mask along the instance."""

    converted: float
    first: float
    each: tuple[float, ...]


class Steps(NamedTuple):
    """A matcher over tokens: it computes a mask, and takes a token; `fits` asks about a whole text, and takes none."""

    mask: Callable[[], object]
    take: Callable[[int], bool]
    fits: Callable[[str], bool]


class _Tokens(NamedTuple):
    model: Model  # the pointers of the tokenizer are into it
    llguidance: Any
    xgrammar: Any
    size: int


@cache
def _tokens() -> _Tokens:
    path = catalog.cached(catalog.DEFAULT)
    if path is None:
        raise FileNotFoundError(f"masks need a vocabulary: toolgram pull {catalog.DEFAULT}")
    model = Model(path, 64, 1)
    vocabulary = model.vocabulary
    size = len(vocabulary.pieces)
    info = _xgrammar.TokenizerInfo(list(vocabulary.pieces), _xgrammar.VocabType.RAW, stop_token_ids=[vocabulary.eos])
    return _Tokens(model, _engine_masks._tokenizer(vocabulary), info, size)


def _by_llguidance(grammar: str) -> Steps:
    tokens = _tokens()
    matcher = _llguidance.LLMatcher(tokens.llguidance, grammar, log_level=0)
    if matcher.is_error():
        raise ValueError(matcher.get_error())
    bits = _llguidance_numpy.allocate_token_bitmask(1, tokens.size)

    def fits(text: str) -> bool:
        ids = tokens.llguidance.tokenize_str(text)
        other = matcher.deep_copy()
        return other.try_consume_tokens(ids) == len(ids) and other.is_accepting()

    return Steps(lambda: _llguidance_numpy.fill_next_token_bitmask(matcher, bits), matcher.consume_token, fits)


def _by_xgrammar(grammar: Any) -> Steps:
    tokens = _tokens()
    compiler = _xgrammar.GrammarCompiler(tokens.xgrammar, max_threads=1, cache_enabled=False)
    compiled = compiler.compile_grammar(grammar)
    matcher = _xgrammar.GrammarMatcher(compiled)
    bits = _llguidance_numpy.allocate_token_bitmask(1, tokens.size)  # the same layout

    def fits(text: str) -> bool:
        other = _xgrammar.GrammarMatcher(compiled)
        return other.accept_string(text) and other.is_completed()

    return Steps(lambda: matcher.fill_next_token_bitmask(bits), matcher.accept_token, fits)


def _by_json_schema(schema: str, *, strict: bool) -> Steps:
    return _by_xgrammar(_xgrammar.Grammar.from_json_schema(schema, strict_mode=strict))


def _to(dialect: str) -> Callable[[Any], str]:
    return lambda schema: schema_grammar(schema, "relaxed").to(dialect)


class _Way(NamedTuple):
    convert: Callable[[Any], str]
    read: Callable[[str], Steps]


WAYS: dict[str, _Way] = {
    "toolgram, Lark in llguidance": _Way(
        _to("lark"), lambda text: _by_llguidance(_llguidance.LLMatcher.grammar_from_lark(text))
    ),
    "llguidance, lenient": _Way(
        json.dumps,
        lambda text: _by_llguidance(_llguidance.LLMatcher.grammar_from_json_schema(text, overrides={"lenient": True})),
    ),
    "toolgram, EBNF in XGrammar": _Way(_to("ebnf"), lambda text: _by_xgrammar(_xgrammar.Grammar.from_ebnf(text))),
    "XGrammar": _Way(json.dumps, lambda text: _by_json_schema(text, strict=False)),
    "XGrammar, strict": _Way(json.dumps, lambda text: _by_json_schema(text, strict=True)),
}
_OWN = {"toolgram, Lark in llguidance": "llguidance, lenient", "toolgram, EBNF in XGrammar": "XGrammar"}
"""What an engine does with our grammar is compared to what it does with its own."""
_CLOSED = "XGrammar, strict"
"""Takes keys that are not declared for forbidden: another language, which need not hold the instance. It is what
XGrammar does by default, so the time to the first mask is compared to it, though it has less to do."""


def measure(task: tuple[str, Case], tell: Tell) -> Masked | None:
    """The masks along the first valid instance; None where the grammar is refused, or no text of it is admitted.

    Who closes objects is asked for no mask but the first where it does not admit the instance.
    """
    way, case = task
    tell(way)
    data = next(instance.data for instance in case.instances if instance.valid)
    start = thread_time()  # that of the process has steps of milliseconds while the pool's timer runs
    try:
        grammar = WAYS[way].convert(case.schema)
        read = thread_time()
        steps = WAYS[way].read(grammar)
        steps.mask()
        times = read - start, thread_time() - read
    except (ValueError, RuntimeError, ToolgramError):  # refusals are counted in the tables of verdicts
        return None
    text = next((text for text in spellings(case.schema, data) if steps.fits(text)), None)
    if text is None:
        return Masked(*times, ()) if way == _CLOSED else None
    each: list[float] = []
    for token in _tokens().llguidance.tokenize_str(text)[:_LONGEST]:
        start = perf_counter()
        steps.mask()
        each.append(perf_counter() - start)
        if not steps.take(token):
            return None
    return Masked(*times, tuple(each))


def sample(cases: Sequence[Case], count: int) -> list[Case]:
    """So many of the cases that have a valid instance, evenly spread."""
    usable = [case for case in cases if any(instance.valid for instance in case.instances)]
    step = max(len(usable) // count, 1)
    return usable[::step][:count]


def rows(cases: Sequence[Case]) -> list[list[object]]:
    """A line for each way, over the schemas that all ways could do; one process, so that nothing disturbs it."""
    _tokens()
    # Who comes after another way of the same engine finds its code in the caches of the processor: they come by turns.
    turns = [list(WAYS), list(WAYS)[::-1]]
    tasks = [(way, case) for number, case in enumerate(cases) for way in turns[number % 2]]
    by_way: dict[str, list[Masked | Lost | None]] = {way: [] for way in WAYS}
    for (way, _), found in zip(tasks, run(tasks, measure, jobs=1, seconds=_LIMIT), strict=True):
        by_way[way].append(found)
    done = [all(isinstance(each, Masked) for each in of_one) for of_one in zip(*by_way.values(), strict=True)]
    costs = {way: _costs([m for m, ok in zip(each, done, strict=True) if ok]) for way, each in by_way.items()}
    rows: list[list[object]] = []
    for way, cost in costs.items():
        own = _OWN.get(way)
        own_first = costs[_CLOSED if own == "XGrammar" else own].first[0] if own else None
        ratios = _ratio(cost.first[0], own_first), _ratio(cost.each[1], costs[own].each[1] if own else None)
        p50, p75, *others = cost.each
        first = [cost.first[0], ratios[0], cost.first[1]]
        rows.append([way, sum(done), cost.converted, *first, cost.masks, p50, p75, ratios[1], *others])
    return rows


def least() -> tuple[float, float]:
    """Milliseconds that llguidance takes to read the smallest Lark there is, and the smallest schema: best of fifty."""
    own = _llguidance.LLMatcher.grammar_from_json_schema('{"type": "null"}')
    return _reading(_llguidance.LLMatcher.grammar_from_lark('start: "a"')), _reading(own)


def _reading(grammar: str) -> float:
    spent: list[float] = []
    for _ in range(50):
        start = thread_time()
        _llguidance.LLMatcher(_tokens().llguidance, grammar, log_level=0)
        spent.append(thread_time() - start)
    return min(spent) * 1e3


class _Costs(NamedTuple):
    """Milliseconds of the conversion at the median; to the first mask from there: median, 95th; number of masks; their
    microseconds: median, 75th, 95th, most."""

    converted: float | None
    first: list[float | None]
    masks: int
    each: list[float | None]


def _costs(masked: Sequence[Masked | Lost | None]) -> _Costs:
    good = [each for each in masked if isinstance(each, Masked)]
    each = [time for one in good for time in one.each]
    (converted,) = _scaled(quantiles([each.converted for each in good], (0.5,)), 1e3)
    first = quantiles([each.first for each in good], (0.5, 0.95))
    masks = quantiles(each, (0.5, 0.75, 0.95, 1.0))
    return _Costs(converted, _scaled(first, 1e3), len(each), _scaled(masks, 1e6))


def _ratio(value: float | None, to: float | None) -> float | None:
    return value / to if value is not None and to else None


def _scaled(values: Sequence[float | None], by: float) -> list[float | None]:
    return [None if value is None else value * by for value in values]
