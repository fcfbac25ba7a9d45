"""Whether and how long a model is to reason, by the names of other APIs than OpenAI's.

`thinking` is DeepSeek's, GLM's and Kimi's, `reasoning` OpenRouter's, `enable_thinking` and `thinking_budget` Qwen's;
vLLM's name for a budget is `thinking_token_budget`, llama-server's `thinking_budget_tokens`::

    {"thinking": {"type": "disabled"}}
    {"reasoning": {"effort": "low", "max_tokens": 2000}}
    {"enable_thinking": true, "thinking_budget": 2000}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BeforeValidator

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_EFFORTS: tuple[Effort, ...] = get_args(Effort)
_UNSAID = ("auto", "default")


def _said(effort: Any) -> Any:
    return None if effort in _UNSAID else effort


SaidEffort = Annotated[Effort | None, BeforeValidator(_said)]
"""An effort as clients tell it: what leaves it to the model ("auto"; Groq's name is "default") is none."""
_TYPES = ("enabled", "disabled", "adaptive", "auto")
_BUDGETS = ("thinking_budget", "thinking_token_budget", "thinking_budget_tokens")
_OPENROUTERS = frozenset(("effort", "enabled", "max_tokens"))


@dataclass(frozen=True, slots=True)
class Thinking:
    """What the fields of a body say of reasoning: whether there is to be some, with which effort, of at most so many
    tokens; None where nothing is said. `heeded` are the names of the fields that were understood."""

    on: bool | None = None
    effort: Effort | None = None
    most: int | None = None
    heeded: frozenset[str] = frozenset()


def thinking_of(fields: Mapping[str, Any]) -> Thinking:
    """What the fields of a body say of reasoning. One in another shape is none of these, and says nothing."""
    on: bool | None = None
    effort: Effort | None = None
    most: int | None = None
    heeded: set[str] = set()
    match fields.get("thinking"):
        case {"type": str(type_)} as given if type_ in _TYPES:
            on, most = type_ != "disabled", _count(given, "budget_tokens")
            heeded.add("thinking")
        case _:
            pass
    if isinstance(given := fields.get("reasoning"), Mapping):
        said = cast("Mapping[str, Any]", given)
        effort = next((each for each in _EFFORTS if each == said.get("effort")), None)
        on = said["enabled"] if isinstance(said.get("enabled"), bool) else on
        most = most if (count := _count(said, "max_tokens")) is None else count
        if said.keys() <= _OPENROUTERS and said.get("effort") in (None, *_EFFORTS, *_UNSAID):
            heeded.add("reasoning")
    if isinstance(enabled := fields.get("enable_thinking"), bool):
        on = enabled
        heeded.add("enable_thinking")
    for name in _BUDGETS:
        if (budget := _count(fields, name)) is not None:
            most = budget
            heeded.add(name)
    return Thinking(on, effort, None if on is False else most, frozenset(heeded))


def _count(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def as_variables(*, on: bool) -> dict[str, Any]:
    """Whether a model is to reason, as chat templates are told: most know the first name, DeepSeek's, Granite's and
    Kimi's the second, MiniMax's the third."""
    return {"enable_thinking": on, "thinking": on, "thinking_mode": "enabled" if on else "disabled"}
