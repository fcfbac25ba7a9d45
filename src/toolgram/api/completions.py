"""`/v1/completions`: raw text after a raw prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolgram.api.chat.response import Head, usage_json
from toolgram.api.fields import boolean, inner, integer, kind, listed, mapping, string, unknown
from toolgram.api.sampling import SAMPLING_FIELDS, sampling_of
from toolgram.api.unsupported import refuse_constraints
from toolgram.engines.base import Sampling, Usage
from toolgram.errors import GrammarError, InvalidRequest
from toolgram.grammar.constraint import Constraint
from toolgram.grammar.dialects.gbnf_reader import read_gbnf
from toolgram.grammar.grammar import Grammar

MAX_PROMPTS = 128
MAX_N = 128

Json = dict[str, Any]

_FORMATS = ("response_format", "regex", "choice")
_KNOWN = frozenset(
    (
        *("prompt", "model", "grammar", "n", "best_of", "echo", "stream", "stream_options", "user"),
        *("suffix", "logprobs", *_FORMATS, *SAMPLING_FIELDS),
    )
)


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A body of `/v1/completions`; each prompt is a text, or the ids of its tokens."""

    prompts: tuple[str | tuple[int, ...], ...]
    sampling: Sampling
    constraint: Constraint | None
    model: str | None
    n: int
    echo: bool
    stream: bool
    include_usage: bool
    ignored: tuple[str, ...] = ()


def read_completion_request(body: Any) -> CompletionRequest:
    """The request that a body makes; `grammar` is GBNF. Raises InvalidRequest with a pointer into the body."""
    body = mapping(body, "")
    refuse_constraints(body, "grammar", () if body.get("response_format") == {"type": "text"} else _FORMATS)
    for key in ("suffix", "logprobs"):
        if body.get(key):
            raise InvalidRequest(f"/{key}", "no engine here can do this: leave it out")
    n = integer(body, "n", 1, MAX_N) or 1
    if (best_of := integer(body, "best_of", 1)) not in (None, n):
        raise InvalidRequest("/best_of", f"answers are not ranked here: leave it out, {best_of} is not n")
    options = inner(body, "stream_options")
    sampling = sampling_of(body)
    return CompletionRequest(
        prompts=_prompts(body.get("prompt")),
        sampling=sampling,
        constraint=_constraint(string(body, "grammar")),
        model=string(body, "model"),
        n=n,
        echo=boolean(body, "echo") or False,
        stream=boolean(body, "stream") or False,
        include_usage=boolean(options, "include_usage", "/stream_options") or False,
        ignored=unknown(body, _KNOWN),
    )


def _constraint(gbnf: str | None) -> Constraint | None:
    if gbnf is None:
        return None
    try:
        return Constraint(Grammar(read_gbnf(gbnf)))
    except GrammarError as error:
        raise InvalidRequest("/grammar", f"is not GBNF: {error}") from error


def _prompts(value: Any) -> tuple[str | tuple[int, ...], ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise InvalidRequest("/prompt", f"must be a string or a list, not {kind(value)}")
    items = listed(cast("Any", value), "/prompt")
    if items and all(isinstance(item, int) for item in items):
        return (read_ids(items, "/prompt"),)
    if not 0 < len(items) <= MAX_PROMPTS:
        raise InvalidRequest("/prompt", f"must hold from 1 to {MAX_PROMPTS} prompts, not {len(items)}")
    return tuple(
        item if isinstance(item, str) else read_ids(listed(item, f"/prompt/{i}"), f"/prompt/{i}")
        for i, item in enumerate(items)
    )


def read_ids(items: Sequence[Any], pointer: str) -> tuple[int, ...]:
    """Ids of tokens. Raises InvalidRequest."""
    for i, item in enumerate(items):
        if isinstance(item, bool) or not isinstance(item, int) or item < 0:
            raise InvalidRequest(f"{pointer}/{i}", "must be the id of a token")
    if not items:
        raise InvalidRequest(pointer, "must not be empty")
    return tuple(cast("Sequence[int]", items))


def together(usages: Mapping[int, Usage], n: int) -> Usage:
    """What the choices cost together, by their numbers; a prompt is counted once for its `n` choices."""
    ranges = (range(at, at + n) for at in range(0, max(usages, default=-1) + 1, n))
    prompts = [[usages[i] for i in range_ if i in usages] for range_ in ranges]
    return Usage(
        prompt_tokens=sum(max((one.prompt_tokens for one in told), default=0) for told in prompts),
        cached_tokens=sum(max((one.cached_tokens for one in told), default=0) for told in prompts),
        completion_tokens=sum(one.completion_tokens for one in usages.values()),
    )


def choice(index: int, text: str, finish: str | None) -> Json:
    """One choice of a completion, or of a chunk of it."""
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}


def text_completion(head: Head, choices: Sequence[Json], usage: Usage | None) -> Json:
    """A completion, or a chunk of one, which has no usage but at the end."""
    answer: Json = {
        "id": head.id,
        "object": "text_completion",
        "created": head.created,
        "model": head.model,
        "choices": list(choices),
    }
    return answer if usage is None else {**answer, "usage": usage_json([usage])}
