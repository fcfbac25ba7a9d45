"""A turn of calls that are all the same ends after the third, in every style that writes several; or goes round."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import CHATML, WEATHER, tool
from toolgram.chat import EndedRepetition, generate_sync
from toolgram.chat.equal_calls import MOST
from toolgram.conversation.message import Message, ToolCall
from toolgram.engines.base import Sampling
from toolgram.engines.replay import Replay
from toolgram.planning.readable_names import some_id
from toolgram.styles.registry import all_styles, find_style

ONE = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Rain?"}],
    "tools": [tool("get_weather", ONE), tool("get_time", WEATHER)],
    "tool_choice": "required",
    "parallel_tool_calls": True,
}
SAME = '{"city": "Oslo"}'


def planned(style: str, **more: Any) -> toolgram.Plan:
    return toolgram.plan(BODY | more, CHATML, style=style)


def turn(plan: toolgram.Plan, *calls: tuple[str, str]) -> str | None:
    """A turn of these calls."""
    made = [ToolCall(name, text, some_id(name, plan.format)) for name, text in calls]
    return plan.write(Message(tool_calls=tuple(made)))


SEVERAL = [style.name for style in all_styles() if turn(planned(style.name), *[("get_weather", SAME)] * 5) is not None]


def test_most_styles_write_several() -> None:
    assert len(SEVERAL) > 25


@pytest.mark.parametrize("style", SEVERAL)
def test_the_turn_ends_after_three(style: str) -> None:
    plan = planned(style)
    text = turn(plan, *[("get_weather", SAME)] * 5)
    assert text is not None
    reply = generate_sync(plan, Replay(list(text)), Sampling(max_tokens=len(text)))
    assert [(call.name, call.arguments, call.incomplete) for call in reply.message.tool_calls] == [
        ("get_weather", SAME, False)
    ] * MOST
    assert (reply.finish_reason, reply.ended_repetitions) == ("tool_calls", (EndedRepetition(MOST - 1, ""),))
    assert text.startswith(reply.text)
    assert 0 < reply.usage.completion_tokens < len(text)
    assert find_style(style) is not None


@pytest.mark.parametrize("other", [("get_weather", '{"city": "Rome"}'), ("get_time", SAME)])
def test_calls_that_differ_go_on(other: tuple[str, str]) -> None:
    plan = planned("hermes")
    text = turn(plan, *[("get_weather", SAME), ("get_weather", SAME), other] * 2)
    assert text is not None
    reply = generate_sync(plan, Replay(list(text)))
    assert (len(reply.message.tool_calls), reply.ended_repetitions) == (6, ())


@pytest.mark.parametrize("size", [2, 3, 8])
def test_a_turn_that_goes_round_and_round_ends_after_three_rounds(size: int) -> None:
    plan = planned("hermes")
    around = [("get_weather", f'{{"city": "{number}"}}') for number in range(size)]
    before = ("get_time", '{"city": "Rome"}')
    text = turn(plan, before, *around * 5)
    assert text is not None
    reply = generate_sync(plan, Replay(list(text)), Sampling(max_tokens=len(text)))
    calls = 1 + MOST * size
    assert (len(reply.message.tool_calls), reply.ended_repetitions) == (calls, (EndedRepetition(calls - 1, ""),))
    reply = generate_sync(plan, Replay(list(turn(plan, *around * 2, before, *around * 2) or "")))
    assert (len(reply.message.tool_calls), reply.ended_repetitions) == (4 * size + 1, ())


def test_it_is_turned_off() -> None:
    plan = planned("hermes", end_repetitions=False)
    text = turn(plan, *[("get_weather", SAME)] * 5)
    assert text is not None
    reply = generate_sync(plan, Replay(list(text)))
    assert (len(reply.message.tool_calls), reply.ended_repetitions) == (5, ())


def test_a_call_that_has_begun_is_no_end() -> None:
    plan = planned("hermes")
    text = turn(plan, *[("get_weather", SAME)] * 5)
    assert text is not None
    reply = generate_sync(plan, Replay([text]))
    assert len(reply.message.tool_calls) == 5
