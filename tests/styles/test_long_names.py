"""A tool's name may be as long as any API takes it: what engines read of it is nested no deeper for that."""

from __future__ import annotations

import pytest

import toolgram
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, tool
from toolgram.styles.registry import all_styles

NAME = "mcp__" + "look_up_" * 15 + "all"  # of 128 letters, which Anthropic's API takes; OpenAI's takes 64


@pytest.mark.parametrize("closed", [False, True], ids=["", "calls close reasoning"])
@pytest.mark.parametrize("style", [style.name for style in all_styles()])
def test_engines_read_the_grammar_of_a_long_name(style: str, *, closed: bool) -> None:
    request = {
        "messages": [{"role": "user", "content": "?"}],
        "tools": [tool(NAME, {"type": "object", "properties": {}}), tool("look", None)],
        "calls_close_reasoning": closed,
        "reasoning_max_tokens": 100,
    }
    plan = toolgram.plan(request, CHATML, style=style)
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    for text in map(grammar.sample, range(3)):
        assert lark_accepts(lark, text)
        assert ebnf_accepts(ebnf, text)
