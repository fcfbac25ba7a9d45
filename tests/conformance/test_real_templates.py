"""Every real chat template gets the tools into its prompt, and a turn that its grammar and its reader agree on.

The prompt is what transformers renders, to the letter, wherever the template can express the conversation.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from jinja2.exceptions import TemplateError
from transformers.utils import chat_template_utils

import toolgram
from situations import WEATHER, tool
from toolgram.conversation.events import Unreadable
from toolgram.styles.choose import choose_style
from toolgram.styles.discovery import discover

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "templates"
NAMES = sorted(path.name for path in TEMPLATES.glob("*.jinja"))


@pytest.mark.skipif(not NAMES, reason="the shared templates are not beside this checkout")
def test_the_templates_are_there() -> None:
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
def test_tools_are_shown_and_called(name: str) -> None:
    request = {
        "messages": [{"role": "user", "content": "Will it rain?"}],
        "tools": [tool("get_weather", WEATHER)],
        "tool_choice": "required",
    }
    plan = toolgram.plan(request, toolgram.ChatTemplate.from_file(TEMPLATES / name))
    assert "get_weather" in plan.prompt
    for seed in range(5):
        text = plan.constraint.grammar.sample(seed)
        reader = plan.reader()
        events = [*reader.feed(text), *reader.finish()]
        assert not [event for event in events if isinstance(event, Unreadable)]
        assert {call.name for call in plan.parse(text).tool_calls} == {"get_weather"}


USUAL: tuple[Any, ...] = (
    *(
        {"type": ["string", "null"]},
        {"type": ["string", "integer", "null"]},
        {"type": "null"},
        {"enum": ["a", None, 1]},
    ),
    *({"type": "object"}, {"type": "object", "properties": {"a": {"type": ["number", "null"], "description": None}}}),
    *(True, {}, {"const": 1}, {"type": "string", "description": None}, {"type": "string", "default": None}),
    *({"type": "array"}, {"type": "array", "items": True}, {"type": "array", "items": {"type": ["string", "null"]}}),
    *({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [True]}, {"not": {"type": "string"}}),
    *({"type": "object", "additionalProperties": {"type": ["integer", "null"]}}, {"$ref": "#/$defs/x"}),
    {"type": "array", "items": [{"type": "string"}, {"type": ["number", "null"]}], "minItems": 2, "maxItems": 2},
    {"type": "array", "items": [{"type": "number"}, {"type": "number"}], "additionalItems": False},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": False},
    {"type": ["array", "null"], "items": {"oneOf": [{"const": "a"}, {"const": "b", "type": "string"}]}},
    {"description": "Which.", "allOf": [{"$ref": "#/$defs/x"}], "default": []},
    {"type": ["object", "null"], "properties": {"a": {"$ref": "#/properties/key_0"}}, "required": ["a"]},
    {"type": "object", "propertyNames": {"enum": ["a"]}, "additionalProperties": {"type": "number"}},
)


@pytest.mark.parametrize("name", NAMES)
def test_usual_schemas_are_announced(name: str) -> None:
    properties = {f"key_{at}": schema for at, schema in enumerate(USUAL)}
    odd = tool("f", {"type": "object", "properties": properties, "$defs": {"x": {"type": "string"}}})
    request = {"messages": [{"role": "user", "content": "Hi"}], "tools": [tool("get_weather", WEATHER), odd]}
    prompt = toolgram.plan(request, toolgram.ChatTemplate.from_file(TEMPLATES / name)).prompt
    assert [key for key in properties if key not in prompt] == []


NOW = datetime(2024, 7, 26, 12, 0)
PLACE = {"type": "string", "description": "Where."}
FORECAST = tool("get_weather", {"type": "object", "properties": {"city": PLACE}, "required": ["city"]})
USER = {"role": "user", "content": "Will it rain?"}
ID = "abcdefgh0"
CALL = {"id": ID, "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "system": [{"role": "system", "content": "Be brief."}, USER, {"role": "assistant", "content": "Where?"}, USER],
    "result": [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": ID, "name": "get_weather", "content": "rain"},
    ],
    "reasoning": [USER, {"role": "assistant", "content": "Where?", "reasoning_content": "Hm."}, USER],
}


def rendered_by_transformers(template: toolgram.ChatTemplate, messages: Any, tools: Any) -> str | None:
    """What transformers renders; None where the template refuses, or goes wrong."""
    try:
        rendered, _ = chat_template_utils.render_jinja_template(
            [messages],
            tools=tools,
            chat_template=template.source,
            add_generation_prompt=True,
            bos_token=template.bos_token,
            eos_token=template.eos_token,
        )
    except (TemplateError, TypeError, KeyError):
        return None
    return rendered[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_day_has_one_prompt(name: str) -> None:
    """A time of day in the system text would spoil all that an engine keeps of the turns before."""
    template = toolgram.ChatTemplate.from_file(TEMPLATES / name)
    request = {"messages": [USER], "tools": [FORECAST]}
    later = NOW.replace(hour=23, minute=59, second=58)
    assert toolgram.plan(request, template, now=NOW).prompt == toolgram.plan(request, template, now=later).prompt


# These show no call of a message that has content, be it empty; the prompt shows it.
DROPS_CALLS = ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja")


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_is_what_transformers_renders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But where the template would leave out tools, calls or reasoning, or refuses: the prompt shows them."""

    class Clock(datetime):
        @classmethod
        def now(cls, _: Any = None) -> Clock:
            return cls(2024, 7, 26, 12, 0)

    monkeypatch.setattr(chat_template_utils, "datetime", Clock)
    template = toolgram.ChatTemplate.from_file(TEMPLATES / name, "<s>", "</s>")
    can = template.capabilities
    form = choose_style(template)[0].wire.call_id
    id_ = form.fitted("get_weather", ID, 0) if form is not None and form.has_name else ID
    for what, conversation in CONVERSATIONS.items():
        messages = json.loads(json.dumps(conversation).replace(ID, id_))
        for tools in ([], [FORECAST]):
            theirs = rendered_by_transformers(template, messages, tools or None)
            prompt = toolgram.plan({"messages": messages, "tools": tools}, template, now=NOW).prompt
            shows_calls = can.supports_tool_calls and name not in DROPS_CALLS
            # The message is put where the template looks; transformers gives it as it is.
            as_it_is = can.reasoning_field in (None, "reasoning_content")
            expressed = {"system": True, "result": shows_calls, "reasoning": as_it_is}[what]
            expressed = expressed and (can.supports_tools or not tools)
            if theirs is not None and expressed:
                assert prompt == theirs
            shown = [
                "Will it rain?",
                *(["get_weather"] if tools else []),
                *(["Oslo", "rain"] if what == "result" else []),
            ]
            assert all(text in prompt for text in shown)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("google-gemma-4")])
@pytest.mark.parametrize("required", [["zip", "City"], []])
def test_keys_are_in_the_order_that_the_template_gives_them(name: str, required: list[str]) -> None:
    template = toolgram.ChatTemplate.from_file(TEMPLATES / name, "<bos>", "<eos>")
    properties = {"zip": {"type": "string"}, "City": {"type": "string"}, "at": {"type": "object"}}
    arguments = json.dumps({"zip": "Z", "City": "C", "at": {"b": 1, "a": 2}})
    called = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    turn = {"role": "assistant", "tool_calls": [called]}
    result = {"role": "tool", "tool_call_id": "c", "content": "R"}
    plan = toolgram.plan(
        {
            "messages": [{"role": "user", "content": "Hi"}, turn, result],
            "tools": [tool("f", {"type": "object", "properties": properties, "required": required})],
            "tool_choice": "required",
        },
        template,
    )
    shown = 'call:f{at:{a:2,b:1},City:<|"|>C<|"|>,zip:<|"|>Z<|"|>}'
    assert shown in plan.prompt
    assert plan.constraint.grammar.accepts(f"<|tool_call>{shown}<tool_call|>")


@pytest.mark.skipif(not NAMES, reason="the shared templates are not beside this checkout")
@pytest.mark.parametrize("name", ["GLM-4.6.jinja", "GLM-4.7-Flash.jinja", "Qwen-Qwen3-0.6B.jinja", "Qwen3.5-4B.jinja"])
def test_a_schema_answer_behind_reasoning_is_admitted_as_the_template_writes_it(name: str) -> None:
    template = toolgram.ChatTemplate.from_file(TEMPLATES / name, "<s>", "</s>")
    answer = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": answer}}
    plan = toolgram.plan({"messages": [USER], "response_format": form}, template, now=NOW)
    message = toolgram.Message('{"a": 1}', "Hm.")
    said = {"role": "assistant", "content": message.content, "reasoning_content": message.reasoning}
    asked = toolgram.plan({"messages": [USER]}, template, now=NOW).prompt
    rendered = template.render([USER, said], add_generation_prompt=False, now=NOW)
    turn = rendered.partition(asked)[2].removesuffix(template.capabilities.turn_end)
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(turn)
    assert plan.parse(turn) == message
    assert plan.write(message) == turn


# What stands between an answer and a call after it in the history, though the answer is shown as it was given.
BREAKS = {
    "Qwen-Qwen2.5-7B-Instruct.jinja": "\n",
    "Qwen-Qwen3-0.6B.jinja": "\n",
    "Qwen3-Coder.jinja": "\n\n",
    "Qwen3.5-4B.jinja": "\n\n",
    "ibm-granite-granite-4.0.jinja": "\n",
}


@pytest.mark.parametrize("name", [name for name in NAMES if name in BREAKS])
@pytest.mark.parametrize("found", ["its own style", "a discovered one"])
@pytest.mark.parametrize("more", ["", "\n"])
def test_the_line_break_before_a_call_is_none_of_the_answer(name: str, found: str, more: str) -> None:
    """Else the template, which writes its own, would show the model another text than it wrote."""
    template = toolgram.ChatTemplate.from_file(TEMPLATES / name, "<s>", "</s>")
    style = discover(template).style if found == "a discovered one" else None
    request = {"messages": [USER], "tools": [FORECAST], "chat_template_kwargs": {"enable_thinking": False}}
    plan = toolgram.plan(request, template, style, now=NOW)
    call = plan.write(toolgram.Message(None, None, (toolgram.ToolCall("get_weather", '{"city": "Oslo"}'),)))
    assert call is not None
    space = call[: len(call) - len(call.lstrip())]  # a tag that the prompt opened may have some after it
    raw = f"{space}Let me see.{more}{BREAKS[name]}{call.lstrip()}"
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(raw)
    turn = plan.parse(raw).to_openai()
    assert turn["content"] == f"Let me see.{more}"
    assert plan.write(plan.parse(raw)) == raw
    turn["tool_calls"][0]["id"] = ID
    result = {"role": "tool", "tool_call_id": ID, "content": "rain"}
    after = toolgram.plan({**request, "messages": [USER, turn, result]}, template, style, now=NOW)
    kept = raw.lstrip() in after.prompt
    assert kept or (more and BREAKS[name] == "\n\n")  # those trim the answer


@pytest.mark.parametrize("name", [name for name in NAMES if "GLM" in name or "Laguna" in name])
def test_where_thinking_is_off_there_is_no_place_for_it(name: str) -> None:
    """Some prompts then open reasoning that is empty, others end with what closes it."""
    template = toolgram.ChatTemplate.from_file(TEMPLATES / name, "<s>", "</s>")
    request = {"messages": [USER], "tools": [FORECAST], "chat_template_kwargs": {"enable_thinking": False}}
    plan = toolgram.plan(request, template, now=NOW)
    assert plan.prompt.endswith("</think>")
    assert plan.decision is not None
    assert plan.decision.at_once
    assert plan.constraint is not None
    assert not any(plan.constraint.grammar.accepts(f"{space}<think>Hm.</think>Yes.") for space in ("", "\n"))
    assert plan.constraint.grammar.accepts("Yes.")
    assert plan.parse("\nYes.").content in ("Yes.", "\nYes.")


@pytest.mark.parametrize("name", NAMES)
def test_what_the_template_writes_behind_an_answer_is_no_promise_of_a_call(name: str) -> None:
    template, tools = toolgram.ChatTemplate.from_file(TEMPLATES / name), [tool("get_weather", WEATHER)]
    ask: list[dict[str, Any]] = [{"role": "user", "content": "Rain?"}]
    plan = toolgram.plan({"messages": ask, "tools": tools}, template)
    answered = [*ask, {"role": "assistant", "content": "Zq, it rains."}, {"role": "user", "content": "Ok."}]
    before, answer, behind = toolgram.plan({"messages": answered, "tools": tools}, template).prompt.rpartition(
        "Zq, it rains."
    )
    mark = next((mark for mark in sorted(plan.style.wire.marks, key=len) if behind.startswith(mark)), "")
    begun = [text for at in range(len(before) + 1) if plan.constraint.grammar.accepts(text := before[at:] + answer)]
    assert [text for text in begun if not plan.constraint.grammar.accepts(text + mark)] == []
