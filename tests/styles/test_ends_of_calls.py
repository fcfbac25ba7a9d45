"""Where a template writes the results of calls right behind them, a turn of calls ends with what opens these."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgram
from situations import WEATHER, tool
from toolgram import Message, ToolCall

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "templates"

real = pytest.mark.skipif(not TEMPLATES.exists(), reason=f"there are no templates at {TEMPLATES}")

ASKED = {"messages": [{"role": "user", "content": "Rain in Oslo?"}], "tools": [tool("get_weather", WEATHER)]}


def plan(name: str, **more: object) -> toolgram.Plan:
    return toolgram.plan({**ASKED, **more}, toolgram.ChatTemplate.from_file(TEMPLATES / f"{name}.jinja"))


@real
@pytest.mark.parametrize(
    ("name", "end", "opener", "call"),
    [
        (
            "GLM-4.6",
            "<|user|>",
            "<|observation|>",
            "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
        ),
        (
            "google-gemma-4-31B-it",
            "<turn|>",
            "<|tool_response>",
            '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>',
        ),
        (
            "mistralai-Ministral-3-14B-Reasoning-2512",
            "[INST]",
            "[TOOL_RESULTS]",
            '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}',
        ),
    ],
)
def test_a_turn_ends_with_what_opens_results(name: str, end: str, opener: str, call: str) -> None:
    made = plan(name)
    assert made.stop == (end, opener)
    for text in (call, call + opener, call + end):
        assert made.parse(text) == Message(tool_calls=(ToolCall("get_weather", '{"city": "Oslo"}'),))
    assert made.constraint is not None
    assert [made.constraint.grammar.accepts(text) for text in ("It rains.", f"It{opener}")] == [True, False]


@real
@pytest.mark.parametrize("name", ["Qwen3-Coder", "Kimi-K3", "openai-gpt-oss-120b", "google-gemma-4-31B-it-interleaved"])
def test_a_turn_that_ends_before_them_does_not(name: str) -> None:
    made = plan(name)
    assert made.stop == toolgram.ChatTemplate.from_file(TEMPLATES / f"{name}.jinja").capabilities.stop


CALLS = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}"
    "{% if m.role == 'tool' %}RESULT{{ m.content }}<|done|>{% else %}<|{{ m.role }}|>{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}"
    """<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>"""
    "CLOSER{% endfor %}{% if not m.tool_calls %}<|end|>{% endif %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.mark.parametrize(
    ("result", "closer", "stop"),
    [
        ("<|result|>", "", ("<|end|>", "<|result|>")),
        ("<|result|>", "<|eoc|>", ("<|end|>",)),  # each call is closed with it
        ("<tool_call>result: ", "", ("<|end|>",)),  # so begins a call, too
        ("<tool_response>", "", ("<|end|>",)),  # it may be meant as text, as no control token of this model's may
        ("Result: <|result|>", "", ("<|end|>",)),
    ],
)
def test_what_opens_results_is_told_from_what_is_a_part_of_calls(
    result: str, closer: str, stop: tuple[str, ...]
) -> None:
    source = CALLS.replace("RESULT", result).replace("CLOSER", closer)
    made = toolgram.plan(ASKED, toolgram.ChatTemplate(source))
    assert (made.style.name, made.stop) == ("hermes", stop)


@real
@pytest.mark.parametrize("name", ["google-gemma-4-31B-it", "GLM-4.6"])
@pytest.mark.parametrize("style", ["compact", "long", "functionary_v3", "mistral_small", "harmony"])
def test_calls_of_another_style_end_otherwise(name: str, style: str) -> None:
    template = toolgram.ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")
    assert toolgram.plan(ASKED, template, style=style).stop == template.capabilities.stop


@real
def test_what_begins_messages_does_not_end_a_turn() -> None:
    source = (TEMPLATES / "openai-gpt-oss-120b.jinja").read_text()
    made = toolgram.plan(ASKED, toolgram.ChatTemplate(source.replace("<|call|>", "")))
    assert (made.style.name, made.stop) == ("harmony", ("<|return|>",))
