"""Whether and how long to reason, by the names of other APIs: what a template is told of it, and what is not heeded."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from toolgram.api.chat.request import read_chat_request
from toolgram.api.messages.request import read_messages_request
from toolgram.api.responses.request import read_responses_request

ASKED: Any = [{"role": "user", "content": "Hi."}]
SHOWS = "{{ enable_thinking }} {{ thinking }} {{ thinking_mode }} {{ reasoning_effort }}|{{ messages[-1].content }}"
"""A template that prints what it is told."""
NOTHING = " " * 3
ON, OFF = "True True enabled ", "False False disabled "


def told(**fields: Any) -> tuple[str, int | None, tuple[str, ...]]:
    """What the template is told, the most tokens of reasoning, and the fields that are named as not heeded."""
    generation = read_chat_request({"messages": ASKED, **fields}).generation
    plan = generation.plan(toolgram.ChatTemplate(SHOWS, "", "</s>"))
    return plan.prompt.partition("|")[0], generation.request.reasoning_max_tokens, generation.ignored


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (NOTHING, None, ())),
        ({"thinking": {"type": "disabled"}}, (OFF, None, ())),
        ({"thinking": {"type": "enabled", "clear_thinking": False}}, (ON, None, ())),
        ({"thinking": {"type": "enabled", "budget_tokens": 64}}, (ON, 64, ())),
        ({"thinking": {"type": "adaptive"}}, (ON, None, ())),
        ({"enable_thinking": False}, (OFF, None, ())),
        ({"enable_thinking": True, "thinking_budget": 64}, (ON, 64, ())),
        ({"thinking_token_budget": 64}, (NOTHING, 64, ())),
        ({"thinking_budget_tokens": 64}, (NOTHING, 64, ())),
        ({"reasoning": {"effort": "low"}}, (NOTHING + "low", None, ())),
        ({"reasoning": {"effort": "none"}}, (OFF, None, ())),
        ({"reasoning": {"effort": "auto"}}, (NOTHING, None, ())),
        ({"reasoning_effort": "auto"}, (NOTHING, None, ())),
        ({"reasoning_effort": "default", "enable_thinking": False}, (OFF, None, ())),
        ({"reasoning": {"enabled": False}}, (OFF, None, ())),
        ({"reasoning": {"max_tokens": 64}}, (NOTHING, 64, ())),
        ({"reasoning": {"effort": "high", "exclude": True}}, (NOTHING + "high", None, ("reasoning",))),
        # What OpenAI's API has, and what a template is told by name, go before.
        ({"reasoning_effort": "high", "reasoning": {"effort": "low"}}, (NOTHING + "high", None, ())),
        ({"reasoning_max_tokens": 8, "thinking_budget": 64}, (NOTHING, 8, ())),
        (
            {"enable_thinking": True, "chat_template_kwargs": {"enable_thinking": False}},
            ("False True enabled ", None, ()),
        ),
        # Other shapes say nothing, and are named.
        ({"thinking": "hard"}, (NOTHING, None, ("thinking",))),
        ({"thinking": {"type": "deep"}}, (NOTHING, None, ("thinking",))),
        ({"reasoning": "high", "enable_thinking": 1}, (NOTHING, None, ("reasoning", "enable_thinking"))),
        ({"reasoning": {"effort": 3}, "thinking_budget": -1}, (NOTHING, None, ("reasoning", "thinking_budget"))),
        ({"enable_thinking": False, "thinking_budget": 64}, (OFF, None, ())),
        ({"think": False}, (NOTHING, None, ("think",))),
    ],
)
def test_what_a_template_is_told(fields: dict[str, Any], expected: Any) -> None:
    assert told(**fields) == expected


def test_an_effort_may_change_in_the_course_of_a_conversation() -> None:
    def told_by_messages(*turns: dict[str, Any], **fields: Any) -> object:
        body = {"model": "m", "max_tokens": 9, "messages": [*ASKED, *turns], **fields}
        return read_messages_request(body).request.chat_template_kwargs

    def told_by_responses(*items: dict[str, Any], **fields: Any) -> object:
        read = read_responses_request({"input": [*ASKED, *items], **fields})
        return read.generation.request.chat_template_kwargs, read.generation.ignored

    def changed(effort: str | None) -> dict[str, Any]:
        return {"role": "system", "content": [], "output_config": {"effort": effort}}

    def updated(effort: str) -> dict[str, Any]:
        return {"type": "configuration_update", "reasoning": {"effort": effort}}

    body = {"model": "m", "max_tokens": 9, "messages": [changed("low"), *ASKED, changed("high")]}
    assert list(read_messages_request(body).request.messages) == ASKED  # they say nothing
    with pytest.raises(toolgram.InvalidRequest, match="must hold more than a change of the effort"):
        read_messages_request({**body, "messages": [changed("low")]})
    high = {"reasoning_effort": "high"}
    assert told_by_messages(changed("low"), changed("high"), output_config={"effort": "max"}) == high
    assert told_by_messages(changed(None), output_config={"effort": "high"}) == high
    assert told_by_responses(updated("low"), updated("high"), reasoning={"effort": "max"}) == (high, ())
    assert told_by_responses(reasoning={"effort": "high"}) == (high, ())
    other = {"type": "configuration_update", "text": {"verbosity": "low"}}
    assert told_by_responses(other, reasoning={"effort": "high"}) == (high, ("input.configuration_update.text",))


@pytest.mark.parametrize(("type_", "expected"), [("disabled", OFF), ("adaptive", ON)])
def test_the_messages_api_tells_it_by_the_same_names(type_: str, expected: str) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": ASKED, "thinking": {"type": type_}}
    plan = read_messages_request(body).plan(toolgram.ChatTemplate(SHOWS, "", "</s>"))
    assert plan.prompt.partition("|")[0] == expected
