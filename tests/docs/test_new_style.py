"""The style that docs/howto/new-family.md adds in one block works like those that are there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import toolgram
from situations import ANSWER, CHATML, TOOL_CHOICES, WEATHER, tool
from toolgram.chat import generate_sync
from toolgram.conversation.events import Unreadable
from toolgram.engines.replay import Replay
from toolgram.planning.plan import same_message
from toolgram.styles import registry
from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Opt, Seq, WireFormat

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/howto/new-family.md"
CALL = '<call get_weather>{"city": "Oslo", "days": 3}</call>'


@pytest.fixture(autouse=True)
def _named_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    """The document's style, registered for one test."""
    found = re.search(r"```python\n([^`]*register_style\(NAMED_TAGS\)\n)```", DOCUMENT.read_text())
    assert found is not None
    monkeypatch.setattr(registry, "_registered", dict[str, Any]())
    exec(found[1], {"toolgram": toolgram, "json": json})  # noqa: S102 - our own document


def planned(
    choice: str = "auto", *, parallel: bool = True, answer: bool = False, style: str | ToolStyle = "named_tags"
) -> toolgram.Plan:
    request: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Will it rain?"}],
        "tools": [tool("get_time", None), tool("get_weather", WEATHER)],
        "tool_choice": TOOL_CHOICES[choice],
        "parallel_tool_calls": parallel,
    }
    if answer:
        request["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER}}
    return toolgram.plan(request, CHATML, style=style)


def test_it_is_known_and_announces_the_tools() -> None:
    assert "named_tags" in toolgram.style_names()
    plan = planned()
    assert plan.format_prompt is not None
    assert plan.format_prompt in plan.prompt
    assert '"name": "get_weather"' in plan.format_prompt


@pytest.mark.parametrize("choice", TOOL_CHOICES)
@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("answer", [True, False])
def test_every_sentence_reads_back(choice: str, parallel: bool, answer: bool) -> None:
    plan = planned(choice, parallel=parallel, answer=answer)
    assert plan.constraint is not None
    for seed in range(30):
        text = plan.constraint.grammar.sample(seed)
        reader = plan.reader()
        events = [event for piece in text for event in reader.feed(piece)] + reader.finish()
        assert not [event for event in events if isinstance(event, Unreadable)], text
        message = toolgram.Message.from_events(events)
        assert message == plan.parse(text)
        again = plan.write(message)
        assert again is not None
        assert plan.constraint.grammar.accepts(again)
        assert same_message(plan.parse(again), message, json_content=answer)


def test_an_engine_that_knows_its_tag_as_a_token_gets_the_token() -> None:
    constraint = planned("required").constraint
    assert constraint is not None
    bound = constraint.bind({"</call>": 7}).grammar
    assert "<[7]>" in bound.to("gbnf")
    assert "<[7]>" in bound.to("lark")
    assert "Token(7)" in bound.to("ebnf")


def test_a_call_may_begin_as_an_answer_does() -> None:
    call = Call(Seq(Mark("[call "), Name(), Lit("]"), Arguments(), Mark("[/call]")))
    brackets = ToolStyle("brackets", WireFormat(Seq(Opt(Content()), Many(call))), "calls in brackets", lambda _: "")
    plan = planned(answer=True, style=brackets)
    assert plan.parse('[call get_weather]{"city": "Oslo"}[/call]').tool_calls
    assert plan.parse("[1]").content == "[1]"


def test_an_engine_runs_it() -> None:
    reply = generate_sync(planned("required"), Replay(CALL), new_id=lambda: "call_1")
    assert reply.finish_reason == "tool_calls"
    assert reply.message.tool_calls == (toolgram.ToolCall("get_weather", '{"city": "Oslo", "days": 3}', "call_1"),)
