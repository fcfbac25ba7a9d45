"""What a chat template can do, and how a call looks in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolgram.conversation.message import Message, ToolCall
from toolgram.errors import ToolgramError
from toolgram.planning.plan import Plan, plan
from toolgram.template.chat_template import ChatTemplate

Json = dict[str, Any]

_DAYS = (datetime(2024, 1, 2), datetime(2025, 6, 7))
_USER: Json = {"role": "user", "content": "Will it rain?"}
_FIELDS: Json = {"city": {"type": "string"}, "days": {"type": "integer"}}
_TOOL: Json = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": _FIELDS}},
}
_CALL = '{"city": "Paris", "days": 3}'
_THOUGHT = "I look it up."
_BEGUN = "It will"


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that a template can do, or not; `how` says more of it."""

    name: str
    can: bool
    how: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.how})" if self.how else self.name


def abilities(template: ChatTemplate) -> tuple[Ability, ...]:
    """What a template can do."""
    return tuple(_abilities(template))


def _abilities(template: ChatTemplate) -> Iterator[Ability]:
    can = template.with_tools.capabilities
    yield Ability("system messages", can.supports_system, "" if can.supports_late_system else "the first alone")
    yield Ability("a conversation that the assistant begins", not can.requires_user_first)
    yield Ability("tools", can.supports_tools)
    form = {"object": "arguments as objects", "text": "arguments as JSON text", None: ""}[can.tool_call_arguments]
    yield Ability("calls", can.supports_tool_calls, form)
    if can.supports_tool_calls:
        yield Ability("several calls in a turn", can.supports_parallel_tool_calls)
        yield Ability("content beside calls", can.supports_content_with_calls)
        told = [("ids", can.supports_tool_ids_in_results), ("names", can.supports_tool_names_in_results)]
        by = " and ".join(word for word, is_told in told if is_told) or "their order alone"
        yield Ability("results of tools", can.supports_tool_results, f"told apart by {by}")
    yield Ability("reasoning of earlier turns", can.supports_reasoning)
    yield Ability("pictures and sounds", bool(can.part_types), ", ".join(sorted(can.part_types)))
    yield Ability("answers that are begun", _continues(template))
    yield Ability("control tokens in a user's text as text", _keeps_text(template))
    yield Ability("the same prompt on another day", _prompt(template, now=_DAYS[0]) == _prompt(template, now=_DAYS[1]))


def example_call(template: ChatTemplate) -> str | None:
    """A call in the template's own form, or in that of the style that it gets; None where it takes no such request."""
    if (made := _planned(template, [_USER], tools=[_TOOL])) is None:
        return None
    ids = (None, made.call_ids(0)("get_weather", 0))  # some formats carry one, and some want reasoning before it
    calls = [(ToolCall("get_weather", _CALL, id_),) for id_ in ids]
    said = [Message(tool_calls=call, reasoning=why) for why in (None, _THOUGHT) for call in calls]
    return next((text for text in map(made.write, said) if text is not None), None)


def _planned(template: ChatTemplate, messages: Sequence[Json], now: datetime = _DAYS[0], **body: Any) -> Plan | None:
    try:
        return plan({"messages": list(messages), **body}, template, now=now)
    except ToolgramError:  # the template does not take it
        return None


def _prompt(template: ChatTemplate, now: datetime) -> str:
    made = _planned(template, [_USER], now)
    return "" if made is None else made.prompt


def _continues(template: ChatTemplate) -> bool:
    """Whether a prompt may end in an answer that goes on."""
    begun = {"role": "assistant", "content": _BEGUN}
    made = _planned(template, [_USER, begun], continue_final_message=True, add_generation_prompt=False)
    return made is not None and made.prompt.endswith(_BEGUN)


def _keeps_text(template: ChatTemplate) -> bool:
    """Whether what ends a turn ends none where a user says it: it is known then whose it is, and goes in as text."""
    ends = template.capabilities.stop
    said = " ".join(("a", *ends, "b"))
    made = _planned(template, [{"role": "user", "content": said}])
    if made is None or not ends:
        return False
    users = [text for text, trusted in made.prompt_parts if not trusted]
    return all(any(end in text for text in users) for end in ends)
