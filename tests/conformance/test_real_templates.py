"""Every real chat template gets the tools into its prompt, and a turn that its grammar and its reader agree on."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgram
from situations import WEATHER, tool
from toolgram.events import Unreadable

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "templates"
NAMES = sorted(path.name for path in TEMPLATES.glob("*.jinja"))


@pytest.mark.skipif(not NAMES, reason="the shared templates are not beside this checkout")
def test_the_templates_are_there() -> None:
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
def test_tools_are_shown_and_called(name: str) -> None:
    request = {
        "messages": [{"role": "user", "content": "Will it rain?"}],
        "tools": [tool("get_weather", WEATHER)],
        "tool_choice": "required",
    }
    plan = toolgram.plan(request, toolgram.ChatTemplate.from_file(TEMPLATES / name))
    assert "get_weather" in plan.prompt
    for seed in range(5):
        text = plan.constraint.grammar.sample(seed)
        reader = plan.reader()
        events = [*reader.feed(text), *reader.finish()]
        assert not [event for event in events if isinstance(event, Unreadable)]
        assert {call.name for call in plan.parse(text).tool_calls} == {"get_weather"}
