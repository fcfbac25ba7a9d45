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


# In the manner of GLM 4.5 and 4.5V: the line break before the thoughts is the turn's, or the prompt's.
GLM = (
    "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
    "{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|>"
    "{{ '\n<think>' + (m.reasoning_content or '') + '</think>' }}{{ '\n' + m.content if m.content }}"
    "{% for call in m.tool_calls %}{{ '\n<tool_call>' + call.function.name + LINE }}"
    "{% for key, value in call.function.arguments.items() %}"
    "{{ '<arg_key>' + key + '</arg_key>' + LINE + '<arg_value>' + value | string + '</arg_value>' + LINE }}"
    "{% endfor %}</tool_call>{% endfor %}"
    "{% elif m.role == 'tool' %}{{ '<|observation|>\n<tool_response>' + m.content + '</tool_response>' }}"
    "{% else %}{{ '<|user|>\n' + m.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>LEAD{% endif %}"
)


@pytest.mark.parametrize(("lead", "line"), [("", ""), ("\n", "\n"), ("", "\n")])
def test_thoughts_begin_where_the_template_has_them(lead: str, line: str) -> None:
    template = toolgram.ChatTemplate(GLM.replace("LEAD", lead).replace("LINE", repr(line)))
    plan = toolgram.plan({"messages": [HI], "tools": [tool("f", None)]}, template)
    assert plan.style.name == ("glm_4_5" if line else "glm_4_7")
    assert plan.constraint is not None
    assert plan.prompt.endswith(f"<|assistant|>{lead}")
    for thought in ("", "Hm."):
        said = [{"role": "assistant", "content": "Yes.", "reasoning_content": thought}]
        whole = toolgram.plan({"messages": [HI, *said], "add_generation_prompt": False}, template).prompt
        turn = whole.rpartition(f"<|assistant|>{lead}")[2]
        assert turn == f"{'' if lead else chr(10)}<think>{thought}</think>\nYes."
        assert plan.constraint.grammar.accepts(turn)
        read = plan.parse(turn)
        assert (read.reasoning or "", read.content) == (thought, "Yes.")
