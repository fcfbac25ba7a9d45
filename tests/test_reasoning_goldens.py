"""What each style that reasons makes of reasoning, in a file each: `pytest --update-golden` rewrites them.

Closed, left open, empty, prefilled, kept in the content, and cut short at a budget; where the model may call, must, and
must not. Each text is fed whole and by characters, which must read alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest

import toolgram
from situations import CHATML, WEATHER, fed, joined, tool
from toolgram import ChatTemplate, Message, ToolCall
from toolgram.chat import generate_sync
from toolgram.engines.replay import Replay
from toolgram.planning.readable_names import some_id
from toolgram.styles.base import ToolStyle
from toolgram.styles.native import NATIVE

STYLES = {style.name: style for style in NATIVE if style.wire.reasoning}
CHOICES = ("auto", "required", "none")
THOUGHT, ANSWER = "Oslo, then.", "I look."
BUDGET = 3


class Case(NamedTuple):
    """A kind of reasoning: what of a request makes it, and what the model writes; None where the style has it not."""

    name: str
    request: dict[str, Any]
    text: Callable[[ToolStyle, str], str | None]
    opens: bool = False  # whether the prompt opens the reasoning


def planned(style: ToolStyle, choice: str, *, opens: bool = False, **more: Any) -> toolgram.Plan:
    request = {
        "messages": [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": "Hello.", "reasoning_content": "A greeting."},
            {"role": "user", "content": "Rain?"},
        ],
        "tools": [tool("look", WEATHER)],
        "tool_choice": choice,
    }
    return toolgram.plan(request | more, opening(style) if opens else CHATML, style)


@cache
def opening(style: ToolStyle) -> ChatTemplate:
    """A template whose prompt opens the reasoning."""
    opener = closed(style, "none").partition(THOUGHT)[0]
    return ChatTemplate(f"{CHATML.source}{{% if add_generation_prompt %}}{{{{ {opener!r} }}}}{{% endif %}}")


def said(style: ToolStyle, choice: str, *, thought: str | None = THOUGHT) -> Message:
    """What a model says with this choice."""
    call = ToolCall("look", '{"city": "Oslo"}', some_id("look", style.wire))
    content = None if choice == "required" else ANSWER
    return Message(content, thought, () if choice == "none" else (call,))


def closed(style: ToolStyle, choice: str) -> str:
    text = planned(style, choice).write(said(style, choice))
    assert text is not None
    return text


def left_open(style: ToolStyle, choice: str) -> str | None:
    """A call right behind the thought; where none may come, and in headers, there is no such thing."""
    thought, called = (
        closed(style, choice).partition(THOUGHT)[0],
        planned(style, "required").write(said(style, "required", thought=None)),
    )
    return None if choice == "none" or called is None else f"{thought}{THOUGHT}\n{called.lstrip()}"


def empty(style: ToolStyle, choice: str) -> str:
    return closed(style, choice).replace(THOUGHT, "")


def prefilled(style: ToolStyle, choice: str) -> str:
    return THOUGHT + closed(style, choice).partition(THOUGHT)[2]


CASES = (
    Case("closed", {}, closed),
    Case("left open", {}, left_open),
    Case("left open, where calls close reasoning", {"calls_close_reasoning": True}, left_open),
    Case("empty", {}, empty),
    Case("prefilled", {}, prefilled, opens=True),
    Case("kept in the content", {"reasoning_format": "none"}, closed),
)


def shown(message: Message) -> Iterator[str]:
    """The message, a line a field."""
    if message.reasoning is not None:
        yield f"  reasoning {message.reasoning!r}"
    if message.content is not None:
        yield f"  content   {message.content!r}"
    for call in message.tool_calls:
        yield f"  call      {call.name} {call.arguments}{' (cut off)' if call.incomplete else ''}"


def lines(style: ToolStyle) -> Iterator[str]:
    for case in CASES:
        yield f"# {case.name}"
        for choice in CHOICES:
            plan = planned(style, choice, opens=case.opens, **case.request)
            text = case.text(style, choice)
            if text is None:
                continue
            whole = fed(plan.reader(), text)
            assert joined(whole) == joined(fed(plan.reader(), text, [1] * len(text)))
            assert plan.constraint is not None
            admitted = "" if plan.constraint.grammar.accepts(text) else ", not admitted"
            yield f"{choice}{admitted}: {text!r}"
            yield from shown(Message.from_events(whole))
    yield "# cut short at a budget"
    for choice in CHOICES:
        plan = planned(style, choice, opens=True, reasoning_max_tokens=BUDGET)
        rest = closed(style, choice).partition(THOUGHT)[2]
        closer = plan_closer(plan)
        engine = Replay(["Well", ", ", "let ", "me ", "see"], rest[len(closer) :] if rest.startswith(closer) else rest)
        reply = generate_sync(plan, engine)
        yield f"{choice}: {reply.text!r}"
        yield from shown(reply.message)


def plan_closer(plan: toolgram.Plan) -> str:
    """What closes the reasoning that the prompt opened."""
    reader = plan.reader()
    reader.feed("Well")
    return reader.reasoning_closers[0] if reader.reasoning_closers else ""


@pytest.mark.parametrize("name", STYLES)
def test_a_style(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"reasoning/{name}.txt", "\n".join(lines(STYLES[name])) + "\n")


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("choice", CHOICES)
def test_what_is_closed_empty_or_prefilled_says_the_same(name: str, choice: str) -> None:
    style = STYLES[name]
    for case in CASES:
        if case.name in ("closed", "prefilled", "empty"):
            text = case.text(style, choice)
            assert text is not None
            message = planned(style, choice, opens=case.opens).parse(text)
            expected = said(style, choice, thought=None if case.name == "empty" else THOUGHT)
            assert (message.reasoning or "").strip() == (expected.reasoning or "")
            assert (message.content or "").strip() == (expected.content or "")
            read = [(call.name, json.loads(call.arguments), call.id) for call in message.tool_calls]
            assert read == [(call.name, json.loads(call.arguments), call.id) for call in expected.tool_calls]
