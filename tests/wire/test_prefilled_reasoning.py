"""A turn that is continued holds what the prompt holds of it, reasoning too; a thought left empty is none."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from made_up import OBJECT, SHARED, Family, each
from situations import WEATHER, tool
from toolgram import Message
from toolgram.styles.discovery import discover

THOUGHT, ANSWER = "Let me see", "It will"
REASONING = (
    "GLM-4.7-Flash",
    "Kimi-K2-Instruct",
    "MiniMax-M3",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "Qwen-Qwen3-0.6B",
    "Qwen3.5-4B",
    "deepseek-ai-DeepSeek-V3.1",
    "deepseek-ai-DeepSeek-V3.2",
    "google-gemma-4-31B-it",
    "mistralai-Ministral-3-14B-Reasoning-2512",
    "openai-gpt-oss-120b",
    "unsloth-Apriel-1.5",
)
CALLS = "<calls>[" + each(OBJECT, ", ") + "]</calls>"
BETWEEN = Family(
    CALLS,
    content="{{ '[BEGIN FINAL RESPONSE]\n' + m.content + '\n[END FINAL RESPONSE]' if m.content }}",
    thought="{% if m.reasoning_content %}Here I think:\n{{ m.reasoning_content }}\n{% endif %}",
)
EMPTY = Family(CALLS, thought="<think>\n\n</think>\n\n", prompt="<|assistant|>\n<think>\n\n</think>\n\n")


def continued(template: toolgram.ChatTemplate, style: Any = None, **said: str) -> toolgram.Plan:
    messages = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "", **said}]
    body = {"messages": messages, "continue_final_message": True, "tools": [tool("look", WEATHER)]}
    return toolgram.plan(body, template, style)


@pytest.mark.parametrize("name", REASONING)
@pytest.mark.parametrize("found", [False, True])
def test_the_message_holds_the_whole(name: str, found: bool) -> None:
    path = SHARED / f"{name}.jinja"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    template = toolgram.ChatTemplate.from_file(path)
    style = discover(template).style if found else None
    if found and (style is None or name == "unsloth-Apriel-1.5"):
        return  # it shows no reasoning to discover
    both = continued(template, style, reasoning_content=THOUGHT, content=ANSWER)
    message = both.parse(" rain.")
    assert (message.reasoning or "").strip() == THOUGHT
    assert (message.content or "").strip() == ANSWER + " rain."
    plan = continued(template, style, reasoning_content=THOUGHT)
    reader = plan.reader()
    reader.feed(", yes")
    message = plan.parse(", yes" + reader.reasoning_closers[0])
    assert (message.reasoning or "").strip() == THOUGHT + ", yes"
    assert not message.content


def test_words_between_reasoning_and_answer_are_found() -> None:
    found = discover(BETWEEN.template)
    assert found.style is not None, found.why
    body = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("look", WEATHER)]}
    plan = toolgram.plan(body, BETWEEN.template, found.style)
    text = "Here I think:\nClouds.\n[BEGIN FINAL RESPONSE]\nIt will.\n[END FINAL RESPONSE]"
    message = plan.parse(text)
    assert ((message.reasoning or "").strip(), (message.content or "").strip()) == ("Clouds.", "It will.")
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)


def test_a_thought_that_the_template_leaves_empty_is_none() -> None:
    found = discover(EMPTY.template)
    assert found.style is not None, found.why
    body = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("look", WEATHER)]}
    assert toolgram.plan(body, EMPTY.template, found.style).parse("No.") == Message("No.")


SPACES = ("", "\n", "\n\n")


@pytest.mark.parametrize("thought", ["", "\n", "Rain."])
@pytest.mark.parametrize("said", ["", "No."])
def test_reasoning_that_the_prompt_opens_may_end_at_once_however_its_end_is_spaced(thought: str, said: str) -> None:
    family = Family(
        CALLS, thought="<think>\n{{ m.reasoning_content }}\n</think>\n\n", prompt="<|assistant|>\n<think>\n"
    )
    body = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("look", WEATHER)]}
    plan = toolgram.plan(body, family.template, "qwen_xml")
    assert plan.constraint is not None
    call = plan.write(Message(tool_calls=(toolgram.ToolCall("look", '{"city": "Oslo"}'),)))
    assert call is not None
    call = call.partition("</think>")[2].strip()
    for space in SPACES:
        for after in (said, call):
            text = f"{thought}</think>{space}{after}"
            assert plan.constraint.grammar.accepts(text), text
            message = plan.parse(text)
            assert (message.reasoning or "") == thought.strip(), text
            assert (message.content or "", len(message.tool_calls)) == ((said, 0) if after == said else ("", 1))
        required = toolgram.plan(body | {"tool_choice": "required"}, family.template, "qwen_xml")
        assert required.constraint is not None
        assert required.constraint.grammar.accepts(f"{thought}</think>{space}{call}")
