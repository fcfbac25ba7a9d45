"""A reader comes to the end of every text: what it reads again, it reads as something else."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import toolgram
from situations import CHATML, WEATHER, fed, joined, tool
from toolgram.styles.native import NATIVE
from toolgram.wire.program import Program, compile_format
from toolgram.wire.reader import states

TOOLS = [tool("get_weather", WEATHER), tool("wait", {"type": "object", "properties": {}})]
BEGINNINGS = ("{", '{"rain": 1}', "[", '[{"name": "get_weather"', "}", "get_weather", '"', " ", "\n", "x", "```json\n{")


def program(style: str) -> Program:
    return compile_format(next(each.wire.turn for each in NATIVE if each.name == style))


@pytest.mark.parametrize("answer", [None, {"type": "json_object"}], ids=["text", "json"])
@pytest.mark.parametrize("style", [style.name for style in NATIVE])
def test_all_orders_of_marks_and_of_what_bodies_begin_with_are_read_to_the_end(
    style: str, answer: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"messages": [{"role": "user", "content": "Rain?"}], "tools": TOOLS}
    plan = toolgram.plan(body | ({"response_format": answer} if answer else {}), CHATML, style=style)
    enter_text, entered = states.enter_text, itertools.count()

    def counted(*given: Any, **more: Any) -> None:
        assert next(entered) < 100, "the reader goes round"
        enter_text(*given, **more)

    monkeypatch.setattr(states, "enter_text", counted)
    pieces = (*program(style).marks, *BEGINNINGS)
    for pair in itertools.product(pieces, repeat=2):
        text = "".join(pair)
        entered = itertools.count()
        assert joined(fed(plan.reader(), text)) == joined(fed(plan.reader(), text, [1] * len(text))), text
