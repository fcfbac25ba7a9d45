"""A turn may end without the mark behind its calls where the template's own turns do, and only there."""

from __future__ import annotations

import pytest

import toolgram
from oracles import ebnf_accepts, lark_accepts
from situations import WEATHER, tool
from toolgram import ChatTemplate, Message

# In the manner of DeepSeek's: the section of calls is closed behind the second one alone.
TEMPLATE = """\
{%- if tools %}{{ tools | tojson }}{% endif %}
{%- for message in messages %}
  {%- if message.role == "assistant" %}{{ "<｜Assistant｜>" }}
    {%- for call in message.tool_calls %}
      {{- "<｜tool▁calls▁begin｜>" if loop.first else "\\n" -}}
      {{ "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + call.function.name + "\\n```json\\n" -}}
      {{ call.function.arguments + "\\n```<｜tool▁call▁end｜>" -}}
      {{ CLOSED -}}
    {%- endfor %}
    {{- message.content or "" }}{{ "<｜end▁of▁sentence｜>" }}
  {%- elif message.role == "tool" %}{{ "<｜tool▁output▁begin｜>" + message.content + "<｜tool▁output▁end｜>" }}
  {%- else %}{{ "<｜User｜>" + message.content }}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ "<｜Assistant｜>" }}{% endif %}"""
OPEN, CLOSED = (
    ChatTemplate(TEMPLATE.replace("CLOSED", f'"<｜tool▁calls▁end｜>" if {when} else ""'))
    for when in ("loop.index == 2", "loop.last")
)
CALL = '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Oslo"}\n```<｜tool▁call▁end｜>'
BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"


def planned(template: ChatTemplate, choice: str) -> toolgram.Plan:
    question = {"role": "user", "content": "Will it rain?"}
    offered = {"tools": [tool("get_weather", WEATHER)], "tool_choice": choice}
    return toolgram.plan({"messages": [question], **offered}, template)


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_section_that_the_template_leaves_open_may_stay_open(choice: str) -> None:
    plan = planned(OPEN, choice)
    assert plan.style.name == "deepseek_r1"
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    for calls in (CALL, f"{CALL}\n{CALL}"):
        for end in ("", "\n", END, f"\n{END}", f"{END}\n\n"):
            text = BEGIN + calls + end
            assert grammar.accepts(text)
            assert lark_accepts(lark, text)
            assert ebnf_accepts(ebnf, text)
            reader = plan.reader()
            read = Message.from_events([event for char in text for event in reader.feed(char)] + reader.finish())
            assert read == plan.parse(text)
            assert [call.incomplete for call in read.tool_calls] == [False] * calls.count("get_weather")
    assert not grammar.accepts(BEGIN + END)


def test_one_that_it_closes_is_closed() -> None:
    plan = planned(CLOSED, "required")
    assert plan.style.name == "deepseek_r1"
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(BEGIN + CALL + END)
    assert not plan.constraint.grammar.accepts(BEGIN + CALL)
