"""What people ask models for promises no call: where one may be made, all of it may be written, and is content."""

from __future__ import annotations

import pytest

import toolgram
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, tool
from toolgram import Message
from toolgram.styles.registry import all_styles

TOOLS = [tool("get_weather", WEATHER), tool("wait", {"type": "object", "properties": {}})]
ANSWERS = (
    "Hello.",
    '{"rain": true}',
    '{"id": 3, "type": "city"}',
    '{"type": "city", "name": "get_weather"}',
    "[1, 2]",
    '[{"name": "Oslo", "id": 3}, {"type": "city"}]',
    "[Oslo](https://oslo.no)",
    "[ ] take a coat",
    "- one\n- two",
    "| a | b |",
    "# Title\n\n> Quote",
    "---\nname: Oslo\n---",
    '```json\n{"rain": true}\n```',
    "```python\nprint(1)\n```",
    "Use functools.",
    ">>> 1 + 1\n2",
    "See:\n>>> get_weather()\nNone",
    "<b>Oslo</b>",
    "<div>\n</div>",
    "<!-- Oslo -->",
    "a < b",
    "<",
    "I could wait()",
    "get_weather",
    "Action: wait",
    "Thought: rain.\nFinal answer: yes.",
    "assistant: hi",
    "to=user",
    "@@ -1 +1 @@",
    "“Ja” – 你好",
)

# Text that ends each part of its turns, and so none of an answer.
MARKS = {"functionary_v3": ">>>"}


@pytest.mark.parametrize("style", [style.name for style in all_styles()])
def test_usual_answers_are_admitted_and_content(style: str) -> None:
    plan = toolgram.plan({"messages": [{"role": "user", "content": "?"}], "tools": TOOLS}, CHATML, style=style)
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    mark = MARKS.get(style, "\0")
    for answer in (answer for answer in ANSWERS if mark not in answer and not answer.endswith(mark[0])):
        text = plan.write(Message(answer))
        assert text is not None, answer
        assert plan.parse(text) == Message(answer)
        assert grammar.accepts(text), answer
        assert lark_accepts(lark, text), answer
        assert ebnf_accepts(ebnf, text), answer
