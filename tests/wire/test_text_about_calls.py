"""Text that speaks of calls, and calls that are none: what a model wrote is kept, and no call is made of it."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import tool
from toolgram import ChatTemplate, Message, ToolCall
from toolgram.conversation.events import Cut

CHATML = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOLS = [tool(name, {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}) for name in ("f", "g")]
F, G = ToolCall("f", '{"city": "a"}'), ToolCall("g", '{"city": "b"}')


def read(style: str, text: str, **more: Any) -> Message:
    """The message, which is the same however the text is cut."""
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS, **more}
    plan = toolgram.plan(body, CHATML, style)
    whole = plan.parse(text)
    for size in (1, 3):
        reader = plan.reader()
        pieces = [reader.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert Message.from_events([*(event for events in pieces for event in events), *reader.finish()]) == whole
    return whole


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("qwen_xml", "The tag `<function=f>` opens a call of `f`."),
        ("qwen_xml", "The tag `<function=name>` opens a call."),
        ("qwen_xml", "<tool_call>\n<function=>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"),
        ("mistral_nemo", "[TOOL_CALLS] But then nothing follows, however long the text is."),
        ("ministral", "Use [TOOL_CALLS] and <tool_call> in text. An explanation follows."),
        ("llama_3", "<|python_tag|>import math\nprint(math.sqrt(2))"),
        ("llama_3", "It begins with <|python_tag|> but there is none."),
        ("glm_4_7", "<tool_call><arg_key>city</arg_key><arg_value>x</arg_value></tool_call>"),
        ("qwen_xml", "Use <function=f when you need it."),
        ("qwen_xml", "<function=f g>\n<parameter=city>\nOslo\n</parameter>\n</function>"),
        ("deepseek_v3_1", "<｜tool▁call▁begin｜>f or so"),
        ("functionary_v2", "all\n<|content|>The mark <|recipient|>f or so"),
        ("qwen_coder", '```json\n{"name": "f", "arguments": "all"}\n```'),
    ],
)
def test_text_about_calls_is_text(style: str, text: str) -> None:
    assert read(style, text) == Message(text)


def test_a_call_after_text_about_calls_is_read() -> None:
    call = "<tool_call>\n<function=f>\n<parameter=city>\na\n</parameter>\n</function>\n</tool_call>"
    assert read("qwen_xml", f"Use `<function=f>` so:\n{call}") == Message("Use `<function=f>` so:\n", None, (F,))


@pytest.mark.parametrize(
    ("style", "before", "name", "arguments"),
    [("mistral_nemo", "[TOOL_CALLS]", "name", "arguments"), ("xlam", "", "name", "arguments")],
)
def test_an_item_that_names_no_tool_takes_no_others_with_it(style: str, before: str, name: str, arguments: str) -> None:
    f, g = (f'{{"{name}": "{call.name}", "{arguments}": {call.arguments}}}' for call in (F, G))
    odd = '{"not_a_tool": {"city": "x"}}'
    assert read(style, f"{before}[{f}, {odd}, {g}]") == Message(odd, None, (F, G))
    broken = '{"not_a_tool": "x" "y"}]'
    assert read(style, f"{before}[{f}, {broken}") == Message(broken, None, (F,))


def test_an_item_that_names_no_tool_is_told_where_the_text_ends_in_it() -> None:
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}, CHATML, "apriel")
    reader, item = plan.reader(), '{"y": {"z": "w'
    events = [*reader.feed(f'<tool_calls>[{{"name": "f", "arguments": {{}}}}, {item}'), *reader.finish()]
    assert [event.text for event in events if isinstance(event, Cut)] == [item]


def test_a_call_that_was_told_is_not_told_again_where_the_text_ends_behind_it() -> None:
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}, CHATML, "mistral_nemo")
    for end in ("", ",", ", {"):
        reader = plan.reader()
        events = [*reader.feed(f'[TOOL_CALLS][{{"name": "f", "arguments": {{}}}}{end}'), *reader.finish()]
        assert "".join(event.text for event in events if isinstance(event, Cut)) in end


def test_what_was_told_of_json_is_not_told_again_where_it_breaks() -> None:
    text = '{"thought_about_next_step_only": "Hm.", "next_step": {"result": "Yes"} x}'
    assert read("thoughtful_steps", text) == Message("Yesx}", "Hm.")


@pytest.mark.parametrize("style", ["lfm2", "pythonic"])
def test_a_tool_that_there_is_not_takes_no_others_with_it(style: str) -> None:
    before, after = ("<|tool_call_start|>", "<|tool_call_end|>") if style == "lfm2" else ("", "")
    other = ToolCall("no tool", '{"a": 1}')
    text = f'{before}[f(city="a"), no tool(a=1), g(city="b")]{after}'
    assert read(style, text).tool_calls == (F, other, G)


@pytest.mark.parametrize("value", ["@x", "<x>", "", "\N{ROCKET} none"])
def test_a_call_whose_arguments_cannot_be_read_is_none_without_them(value: str) -> None:
    (call,) = read("hermes", f'<tool_call>\n{{"name": "f", "arguments": {value}}}\n</tool_call>').tool_calls
    assert (call.name, call.incomplete) == ("f", True)


@pytest.mark.parametrize("end", ["</tool_call>", "</function>\n", "</function>\n</tool_call>"])
def test_a_call_is_whole_whichever_of_its_closing_tags_is_missing(end: str) -> None:
    opened = "<tool_call>\n<function={}>\n<parameter=city>\n{}\n</parameter>\n"
    f, g = (opened.format(call.name, text) for call, text in ((F, "a"), (G, "b")))
    assert read("qwen_xml", f"{f}{end}\n{g}{end}") == Message(None, None, (F, G))


@pytest.mark.parametrize("space", ["\n", "\n\n", " \n\n"])
def test_a_value_that_nobody_closed_ends_alike_however_its_text_is_cut(space: str) -> None:
    tools = [tool("f", {"properties": {"place": {"type": "object"}}})]
    text = f'<tool_call>\n<function=f>\n<parameter=place>\n{{"x": 1.5}}{space}</function>\n</tool_call>'
    call = ToolCall("f", '{"place": {"x": 1.5}}')
    assert read("qwen_xml", text, tools=tools) == Message(None, None, (call,))


@pytest.mark.parametrize("between", ["", " ", "<tool_call|><|tool_call>"])
def test_several_calls_of_gemma_may_stand_in_one_pair_of_tokens(between: str) -> None:
    f, g = (f'call:{call.name}{{city:<|"|>{text}<|"|>}}' for call, text in ((F, "a"), (G, "b")))
    assert read("gemma_4", f"<|tool_call>{f}{between}{g}<tool_call|>") == Message(None, None, (F, G))


def test_what_stands_before_the_closing_token_of_gemma_is_all_that_is_said() -> None:
    assert read("gemma_4", '<|tool_call>call:f{city:<|"|>a<|"|>}}<tool_call|>') == Message("}", None, (F,))


def test_a_broken_call_is_incomplete_wherever_it_stands() -> None:
    broken = '<tool_call>\n{"name": "f", "arguments": {no json}}\n</tool_call>'
    good = f'<tool_call>\n{{"name": "g", "arguments": {G.arguments}}}\n</tool_call>'
    for text, incomplete in ((broken + good, [True, False]), (good + broken, [False, True])):
        assert [call.incomplete for call in read("hermes", text).tool_calls] == incomplete


def test_what_closes_the_reasoning_is_none_of_the_answer() -> None:
    text = "<|START_THINKING|>Hm.<|END_THINKING|>Yes."  # <|START_RESPONSE|> is missing
    assert read("command_r7b", text) == Message("Yes.", "Hm.")


def test_the_key_of_a_parameter_that_is_cut_off_is_no_more_than_the_key() -> None:
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}, CHATML, "qwen_xml")
    for end in ("", ">", ">\n"):
        (call,) = plan.parse(f"<tool_call>\n<function=f>\n<parameter=city{end}").tool_calls
        assert (call.arguments, call.incomplete) == ('{"city', True)


def test_words_of_python_are_values_among_keyword_arguments() -> None:
    (call,) = read("pythonic", "[f(city=None, days=[True, {'a': False}])]").tool_calls
    assert call.arguments == '{"city": null, "days": [true, {"a": false}]}'
