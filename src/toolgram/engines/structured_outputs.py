"""How vLLM is told a constraint: what its `structured_outputs` hold, over HTTP and in Python."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Literal

from toolgram.engines.base import SupportsGrammar
from toolgram.errors import EngineError
from toolgram.grammar.constraint import Constraint

VllmDialect = Literal["ebnf", "lark", "structural_tag"]


def structured_outputs(
    constraint: SupportsGrammar, dialect: VllmDialect, tokens: Mapping[str, int], ends: Collection[str]
) -> dict[str, str]:
    """A `grammar` or a `structural_tag`.

    Markers are `tokens`, which are ids by their texts, and the turn may end with those of `ends`. Raises EngineError
    for what the dialect does not express.
    """
    if isinstance(constraint, Constraint):
        # With guidance, and before vllm-project/vllm#49227, a grammar can end with the tokenizer's end token alone.
        constraint = constraint.bind(tokens, ends)
        if constraint.trigger is not None and dialect == "lark":
            raise EngineError('guidance takes no trigger: send the whole constraint, or use dialect="structural_tag"')
        # From 0.33 on vLLM bars special tokens in what XGrammar compiles, unless that is a structural tag.
        barred = dialect == "ebnf" and not tokens.keys().isdisjoint((*constraint.markers, *ends))
        if constraint.trigger is not None or dialect == "structural_tag" or barred:
            return {"structural_tag": json.dumps(constraint.structural_tag())}
    if dialect == "structural_tag":
        raise EngineError("a grammar of one's own has no structural tag: use another dialect")
    return {"grammar": constraint.grammar.to(dialect)}
