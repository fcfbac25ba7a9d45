"""Llama 4: what its template writes before a call stands between two tokens, which its models put around a call."""

from __future__ import annotations

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import WEATHER, tool

TEMPLATE = toolgram.ChatTemplate(
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|header_start|>{{ m.role }}<|header_end|>\n\n"
    "{% if m.tool_calls %}<|python_start|>{{ m.content or '' }}<|python_end|>{% for call in m.tool_calls %}"
    '{"name": "{{ call.function.name }}", "parameters": {{ call.function.arguments | tojson }}}{% endfor %}'
    "{% else %}{{ m.content }}{% endif %}<|eot|>{% endfor %}"
    "{% if add_generation_prompt %}<|header_start|>assistant<|header_end|>\n\n{% endif %}"
)
CALL = '{"name": "get_weather", "parameters": {"city": "Oslo"}}'


@pytest.mark.parametrize(
    ("text", "content", "calls", "admitted"),
    [
        (CALL, None, 1, True),
        (CALL + CALL, None, 2, True),
        (f"<|python_start|><|python_end|>{CALL}", None, 1, True),
        (f"<|python_start|>I look.<|python_end|>{CALL}", "I look.", 1, True),
        (f"<|python_start|>{CALL}<|python_end|>", None, 1, False),
        ("It rains.", "It rains.", 0, True),
    ],
)
def test_turns_are_read_and_admitted(text: str, content: str | None, calls: int, admitted: bool) -> None:
    body = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("get_weather", WEATHER)]}
    plan = toolgram.plan(body, TEMPLATE)
    assert plan.style.name == "llama_4"
    message = plan.parse(text)
    assert (message.content, [call.name for call in message.tool_calls]) == (content, ["get_weather"] * calls)
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    assert grammar.accepts(text) is admitted
    assert lark_accepts(grammar.to("lark"), text) is admitted
    assert ebnf_accepts(grammar.to("ebnf"), text) is admitted
    assert (text in gbnf_accepted(grammar.to("gbnf"), {text})) is admitted
