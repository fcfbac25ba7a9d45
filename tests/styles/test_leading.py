"""White space that a template writes before an answer, and its prompt does not, as those of Vicuna and Llama 2."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import tool

VICUNA = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ 'ASSISTANT: ' + m.content + eos_token + '\n' }}"
    "{% else %}{{ m.role | upper + ': ' + m.content + '\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
LLAMA_2 = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ ' ' + m.content + ' ' + eos_token }}"
    "{% else %}{{ bos_token + '[INST] ' + m.content + ' [/INST]' }}{% endif %}{% endfor %}"
)
HI: dict[str, Any] = {"role": "user", "content": "Hi."}
CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize("tools", [None, [tool("f", {"type": "object", "properties": {}})]])
@pytest.mark.parametrize("source", [VICUNA, LLAMA_2])
def test_it_is_none_of_the_answer(source: str, tools: list[dict[str, Any]] | None) -> None:
    template = toolgram.ChatTemplate(source, "<s>", "</s>")
    plan = toolgram.plan({"messages": [HI], "tools": tools}, template)
    for text, content in ((" Hello.", "Hello."), ("Hello.", "Hello."), ("  * a", " * a"), ("\n\nHello.", "\n\nHello.")):
        assert plan.parse(text).content == content
        assert plan.constraint is None or plan.constraint.grammar.accepts(text)
    answer = {"role": "assistant", "content": plan.parse(" Hello.").content}
    later = toolgram.plan({"messages": [HI, answer, HI], "tools": tools}, template)
    assert later.prompt.startswith(plan.prompt + " Hello.")
    begun = {"messages": [HI, {"role": "assistant", "content": "Once"}], "tools": tools, "continue_final_message": True}
    assert toolgram.plan(begun, template).parse(" upon a time.").content == "Once upon a time."
    if tools:
        assert [call.name for call in plan.parse(" " + CALL).tool_calls] == ["f"]
        assert plan.parse(CALL).content is None
