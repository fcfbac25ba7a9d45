"""With the registered styles left aside: what discovery finds of the real templates, and how it reads their outputs."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import toolgram
from conformance.test_chat_cases import NOT_READ as HELD_TO_BE_WRONG
from conformance.test_chat_cases import body, cases, needs_cases, plain, template
from made_up import SHARED
from situations import WEATHER, tool
from toolgram import Message, ToolCall
from toolgram.planning.plan import same_message
from toolgram.styles.base import ToolStyle
from toolgram.styles.discovery import discover
from toolgram.wire import format as wire

NAMES = sorted(path.name for path in SHARED.glob("*.jinja"))

NO_STYLE = {
    "the template writes no tool calls": (
        "HuggingFaceTB-SmolLM3-3B.jinja",
        "LFM2-8B-A1B.jinja",
        "LFM2.5-Instruct.jinja",
        "google-gemma-2-2b-it.jinja",
        "ibm-granite-granite-3.3-2B-Instruct.jinja",
        "llama-cpp-rwkv-world.jinja",
        "microsoft-Phi-3.5-mini-instruct.jinja",
    ),
}

FOUND = [name for name in NAMES if not any(name in names for names in NO_STYLE.values())]

# Outputs that do not come out as expected, by reason. One that does come out must be taken off the list. Those of which
# we hold the expected message to be wrong are listed with the other tests of these outputs.
UNSHOWN = "a call inside reasoning that is never closed: no template shows that models do so"
NOT_READ = {
    UNSHOWN: frozenset({11}),
    "headers that the template never writes: other channels, other orders, other tokens": frozenset(
        {419, *range(423, 430), 432, 433}
    ),
}
HELD_WRONG = frozenset[int]().union(*HELD_TO_BE_WRONG.values())
KNOWN = HELD_WRONG.union(*NOT_READ.values())


def of_template(name: str) -> list[dict[str, Any]]:
    """The cases of a template."""
    return [case for case in cases() if case["template"] == name]


@cache
def unread(name: str) -> frozenset[int]:
    """The cases of a template that the style found from it does not read as expected."""
    style = discover(template(name)).style
    return frozenset(case["id"] for case in of_template(name) if not reads(case, style))


def reads(case: dict[str, Any], style: ToolStyle | None) -> bool:
    """Whether a style reads a case's output to the message expected."""
    try:
        message = toolgram.plan(body(case["request"]), template(case["template"]), style).parse(case["output"])
    except toolgram.ToolgramError:
        return False
    return plain(message) == plain(case["expect"])


@pytest.mark.parametrize("name", NAMES)
def test_a_style_is_found_where_calls_are_written(name: str) -> None:
    found = discover(template(name))
    reasons = [reason for reason, names in NO_STYLE.items() if name in names]
    assert (found.style is None) == bool(reasons), found.why
    assert all(reason in found.why for reason in reasons)
    assert found.style is None or len(found.readings) >= 5


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("thinking", [True, False])
def test_a_call_can_be_forced_in_what_is_found(name: str, thinking: bool) -> None:
    if (name, thinking) == ("Kimi-K3.jinja", False):
        return  # its prompt opens an answer then
    style = discover(template(name)).style
    assert style is not None
    request = {
        "messages": [{"role": "user", "content": "Rain?"}],
        "tools": [tool("get_weather", WEATHER)],
        "tool_choice": "required",
        "chat_template_kwargs": {"enable_thinking": thinking, "thinking": thinking},
    }
    plan = toolgram.plan(request, template(name), style)
    ids = [node for node in wire.walk(style.wire.turn) if isinstance(node, wire.CallId)]
    id_ = ids[0].form.format(name="get_weather", id="1" * ids[0].length) if ids else None
    message = Message(tool_calls=(ToolCall("get_weather", '{"city": "Oslo"}', id_),))
    text = plan.write(message)
    assert text is not None
    assert same_message(plan.parse(text), message)
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)


@needs_cases
@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_reads_real_outputs(name: str) -> None:
    """All outputs of a template that a style was found of, but for those listed."""
    assert unread(name) == KNOWN & {case["id"] for case in of_template(name)}


@needs_cases
def test_most_templates_have_a_style_to_be_found_that_reads_their_outputs() -> None:
    found = [name for name in NAMES if discover(template(name)).style is not None]
    assert len(found) >= 37
    assert len([name for name in found if unread(name) <= HELD_WRONG | NOT_READ[UNSHOWN]]) >= 36
