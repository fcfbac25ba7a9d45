"""`/v1/explain`: what would be sent to the engine, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgram.conversation.media import described
from toolgram.errors import GrammarError, InvalidRequest, Relaxation
from toolgram.grammar.dialects import WRITERS
from toolgram.grammar.grammar import Grammar
from toolgram.planning.plan import Plan


def explanation(
    plan: Plan, relaxations: Sequence[Relaxation], dialect: str = "gbnf", tokens: int | None = None
) -> dict[str, Any]:
    """All that a plan holds; `relaxations` are those with its engine, `tokens` the prompt's length where that counts.

    Raises InvalidRequest for a dialect that there is not, or that cannot write the grammar.
    """
    if dialect not in WRITERS:
        raise InvalidRequest("/dialect", f"must be one of {', '.join(sorted(WRITERS))}")
    parts = described(plan.prompt_parts)
    return {
        "style": {"name": plan.style.name, "about": plan.style.about, "why": plan.why},
        "prompt": "".join(text for text, _ in parts),
        "prompt_parts": [{"text": text, "trusted": trusted} for text, trusted in parts],
        "prompt_tokens": tokens,
        "format_prompt": plan.format_prompt,
        "stop": list(plan.stop),
        "grammar": None
        if plan.constraint is None
        else {"dialect": dialect, "text": _text(plan.constraint.grammar, dialect)},
        "relaxations": relaxations_json(relaxations),
    }


def _text(grammar: Grammar, dialect: str) -> str:
    try:
        return grammar.to(dialect)
    except GrammarError as error:
        raise InvalidRequest("/dialect", f"the grammar cannot be written so: {error}") from error


def relaxations_json(relaxations: Sequence[Relaxation]) -> list[dict[str, str]]:
    """The relaxations, as JSON."""
    return [
        {"pointer": one.pointer, "keyword": one.keyword, "enforced": one.enforced, "kind": one.kind}
        for one in relaxations
    ]
