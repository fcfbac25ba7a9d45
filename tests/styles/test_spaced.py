"""Calls in the white space that a template writes around them, where it is not that of the template's family."""

from __future__ import annotations

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import tool
from toolgram import Message, ToolCall

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TEMPLATE = """\
{%- if tools %}<|system|>{{ tools | tojson }}<|end|>{% endif %}
{%- for message in messages %}<|{{ message.role }}|>{{ message.content or "" }}
{%- for call in message.tool_calls or [] %}CALL{% endfor %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
LIST = """[{% for call in message.tool_calls %}{{ {"name": call.function.name, "arguments": call.function.arguments,
"id": call.id} | tojson }}{% if not loop.last %}, {% endif %}{% endfor %}]"""
JSON = '{{ {"name": call.function.name, "arguments": call.function.arguments} | tojson }}'
CALL = '{"name": "f", "arguments": {"a": 1}}'
MANNERS = {  # how a template writes one call or several, the style, a call so, and one as the family has it
    "EXAONE 4": (
        f"<tool_call>{JSON}</tool_call>",
        "hermes",
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}\n</tool_call>",
    ),
    "indented": (
        f"<tool_call>\n  {JSON}\n</tool_call>",
        "hermes",
        f"<tool_call>\n  {CALL}\n</tool_call>",
        f"<tool_call>\n{CALL}\n</tool_call>",
    ),
    "Mistral 7B v0.3": (
        f"{{% if loop.first %}}[TOOL_CALLS] {LIST}{{% endif %}}",
        "mistral_nemo",
        f'[TOOL_CALLS] [{CALL[:-1]}, "id": "abcdefghi"}}]',
        f'[TOOL_CALLS][{CALL[:-1]}, "id": "abcdefghi"}}]',
    ),
}


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("name", MANNERS)
def test_a_call_may_be_spaced_as_the_template_or_as_its_family_has_it(name: str, choice: str) -> None:
    way, style, here, elsewhere = MANNERS[name]
    template = toolgram.ChatTemplate(TEMPLATE.replace("CALL", way))
    body = {"messages": [{"role": "user", "content": "?"}], "tools": [tool("f", SCHEMA)], "tool_choice": choice}
    plan = toolgram.plan(body, template)
    assert plan.style.name == style
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    texts = {here, elsewhere}
    assert all(grammar.accepts(text) for text in texts)
    assert all(lark_accepts(grammar.to("lark"), text) and ebnf_accepts(grammar.to("ebnf"), text) for text in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    assert not grammar.accepts(here.replace("{", " {", 1))
    for text in texts:
        assert [(call.name, call.arguments) for call in plan.parse(text).tool_calls] == [("f", '{"a": 1}')]


def test_what_is_spaced_as_in_the_family_is_its_own_style() -> None:
    own = toolgram.ChatTemplate(TEMPLATE.replace("CALL", f"<tool_call>\n{JSON}\n</tool_call>"))
    body = {"messages": [{"role": "user", "content": "?"}], "tools": [tool("f", SCHEMA)]}
    plan = toolgram.plan(body, own)
    text = plan.write(Message(tool_calls=(ToolCall("f", '{"a": 1}'),)))
    assert text == f"<tool_call>\n{CALL}\n</tool_call>"
    assert plan.constraint is not None
    assert not plan.constraint.grammar.accepts(f"<tool_call>{CALL}</tool_call>")
