"""vLLM in one's own process: what its `SamplingParams` are given, so that it keeps to a constraint."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from toolgram.engines.base import SupportsGrammar
from toolgram.engines.external.tokens import Tokens
from toolgram.engines.structured_outputs import VllmDialect, structured_outputs


def sampling_options(
    tokens: Tokens, constraint: SupportsGrammar | None, stop: Iterable[str] = (), *, dialect: VllmDialect = "ebnf"
) -> dict[str, Any]:
    """Keyword arguments of `vllm.SamplingParams` for a plan's `constraint` and `stop`; the text that comes is what
    `plan.parse` takes.

    `stop` is among them only where the plan has no constraint and its turn ends with what is no token. `dialect` goes
    with the backend of vLLM's `structured_outputs_config`: "ebnf" or "structural_tag" with xgrammar, vLLM's default,
    "lark" with guidance. A vLLM with a `reasoning_parser` keeps to no grammar before the end of a reasoning. Raises
    EngineError for what the dialect does not express.
    """
    stop = tuple(stop)
    ends = tokens.ends_with(stop)
    options: dict[str, Any] = {
        "stop_token_ids": list(ends),
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
    }
    if constraint is None:
        texts = [text for text in stop if text not in tokens.vocabulary]
        return {**options, "stop": texts} if texts else options
    named = [text for text, token in tokens.vocabulary.items() if token in ends]
    told = structured_outputs(constraint, dialect, tokens.vocabulary, named)
    return {**options, "structured_outputs": import_module("vllm.sampling_params").StructuredOutputsParams(**told)}
