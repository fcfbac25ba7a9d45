"""Calls that models write otherwise than their templates: whoever reads them where nothing forbade them reads calls.

Each is what users of other servers report (the styles' files name where).
"""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import CHATML, WEATHER, fed, joined, tool

BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Rain?"}],
    "tools": [tool("get_weather", WEATHER), tool("list_boxes", {"type": "object", "properties": {}})],
}
ARGUMENTS = '{"city": "Oslo"}'
JSON = f'{{"name": "get_weather", "arguments": {ARGUMENTS}}}'
THOUGHT = "<|start|>assistant<|channel|>analysis<|message|>The weather is needed."
THEN = f"{THOUGHT}<|end|><|start|>assistant"
MESSAGE = f" <|constrain|>json<|message|>{ARGUMENTS}"
FUNCTION = "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>"
OSLO, BOXES = ("get_weather", ARGUMENTS), ("list_boxes", "{}")
CALLS: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "a channel of another name": ("harmony", f"{THEN}<|channel|>comment to=functions.get_weather{MESSAGE}", (OSLO,)),
    "the channel twice": (
        "harmony",
        f"{THEN}<|channel|>commentary to=functions.get_weather<|channel|>analysis{MESSAGE}",
        (OSLO,),
    ),
    "the tool twice": (
        "harmony",
        f"{THEN} to=functions.get_weather<|channel|>commentary to=functions.get_weather{MESSAGE}",
        (OSLO,),
    ),
    "no namespace": ("harmony", f"{THEN}<|channel|>commentary to=get_weather{MESSAGE}", (OSLO,)),
    "no namespace before the channel": ("harmony", f"{THEN} to=get_weather<|channel|>commentary{MESSAGE}", (OSLO,)),
    "the tool as the type": (
        "harmony",
        f"{THEN}<|channel|>final <|constrain|>functions.get_weather<|message|>{ARGUMENTS}",
        (OSLO,),
    ),
    "thoughts that nobody ended": (
        "harmony",
        f"{THOUGHT}<|start|>assistant<|channel|>commentary to=functions.get_weather{MESSAGE}",
        (OSLO,),
    ),
    "an empty message": (
        "harmony",
        f"{THEN}<|channel|>commentary to=functions.list_boxes <|constrain|>json<|message|>",
        (BOXES,),
    ),
    "no arguments": ("ministral", "[TOOL_CALLS]list_boxes[ARGS]", (BOXES,)),
    "an id": ("ministral", f"[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{ARGUMENTS}", (OSLO,)),
    "no token before the arguments": ("ministral", f"[TOOL_CALLS]get_weather{ARGUMENTS}" * 2, (OSLO, OSLO)),
    "the list of Nemo": ("ministral", f"[TOOL_CALLS] [{JSON}, {JSON}]", (OSLO, OSLO)),
    "an object": ("ministral", f"[TOOL_CALLS]{JSON}", (OSLO,)),
    "no id": ("mistral_small", f"[TOOL_CALLS]get_weather[ARGS]{ARGUMENTS}" * 2, (OSLO, OSLO)),
    "no tokens in it": ("mistral_small", f"[TOOL_CALLS]get_weather{ARGUMENTS}", (OSLO,)),
    "a list": ("mistral_small", f"[TOOL_CALLS][{JSON}]", (OSLO,)),
    "the form of Small": ("mistral_nemo", f"[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{ARGUMENTS}", (OSLO,)),
    "the form of Ministral": ("mistral_nemo", f"[TOOL_CALLS]get_weather[ARGS]{ARGUMENTS}" * 2, (OSLO, OSLO)),
    "the JSON of Qwen 3": ("qwen_xml", f"<tool_call>\n{JSON}\n</tool_call>", (OSLO,)),
    "no closing tag": ("qwen_xml", f"<tool_call>\n{FUNCTION}", (OSLO,)),
    "no tags around functions": ("qwen_xml", f"{FUNCTION}\n{FUNCTION}", (OSLO, OSLO)),
    "two functions between two tags": ("qwen_xml", f"<tool_call>\n{FUNCTION}\n{FUNCTION}\n</tool_call>", (OSLO, OSLO)),
    "lines": (
        "glm_4_7",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
        (OSLO,),
    ),
    "JSON": ("glm_4_7", f"<tool_call>{JSON}</tool_call>", (OSLO,)),
    "JSON after the name": ("glm_4_5", f"<tool_call>get_weather\n{ARGUMENTS}\n</tool_call>", (OSLO,)),
}


def plan(style: str, **more: Any) -> toolgram.Plan:
    return toolgram.plan({**BODY, **more}, CHATML, style=style)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_read_as_what_is_meant(name: str) -> None:
    style, text, calls = CALLS[name]
    made = plan(style)
    message = made.parse(text)
    assert tuple((call.name, call.arguments) for call in message.tool_calls) == calls
    assert not any(call.incomplete for call in message.tool_calls)
    assert not message.content
    assert message.reasoning == ("The weather is needed." if style == "harmony" else None)
    whole = joined(fed(made.reader(), text))
    assert all(joined(fed(made.reader(), text, [size] * len(text))) == whole for size in (1, 2, 3, 7))


def test_a_second_tool_that_a_call_is_addressed_to_is_text_and_not_lost() -> None:
    made = plan("harmony")
    text = f"{THEN} to=functions.get_weather<|channel|>commentary to=functions.list_boxes{MESSAGE}"
    message = made.parse(text)
    assert [(call.name, call.arguments) for call in message.tool_calls] == [OSLO]
    assert message.content == "list_boxes"
    whole = joined(fed(made.reader(), text))
    assert all(joined(fed(made.reader(), text, [size] * len(text))) == whole for size in (1, 2, 3, 7))


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_call_may_be_on_any_channel(choice: str) -> None:
    made = plan("harmony", tool_choice=choice)
    assert made.constraint is not None
    grammar = made.constraint.grammar
    assert grammar.accepts(f"{THEN}<|channel|>final to=functions.get_weather{MESSAGE}")
    assert grammar.accepts(f"{THEN} to=functions.get_weather<|channel|>final{MESSAGE}")
    assert not grammar.accepts(f"{THEN}<|channel|>comment to=functions.get_weather{MESSAGE}")
    assert grammar.accepts(f"{THEN}<|channel|>final<|message|>{ARGUMENTS}") == (choice == "auto")


def test_no_thought_of_gpt_oss_holds_the_header_of_a_message() -> None:
    text = f"{THOUGHT}<|start|>assistant<|channel|>commentary to=functions.get_weather{MESSAGE}"
    made = plan("harmony")
    assert made.constraint is not None
    assert not made.constraint.grammar.accepts(text)
    assert made.constraint.grammar.accepts(text.replace("needed.", "needed.<|end|>"))


@pytest.mark.parametrize(
    "header",
    [
        " to=user<|channel|>final",
        "<|channel|>final to=user",
        "<|channel|>commentary to=user",
        "<|channel|>commentary to=assistant",
        "<|channel|>commentary to=assistant<|channel|>final",
    ],
)
def test_what_gpt_oss_says_to_somebody_is_no_call(header: str) -> None:
    for text in ("It rains.", ARGUMENTS):
        message = plan("harmony").parse(f"{THEN}{header}<|message|>{text}")
        assert (message.content, message.reasoning, message.tool_calls) == (text, "The weather is needed.", ())
    thought = (
        f"{THOUGHT.replace('analysis', 'analysis to=assistant')}<|end|><|start|>assistant<|channel|>final<|message|>"
    )
    message = plan("harmony").parse(f"{thought}It rains.")
    assert (message.content, message.reasoning) == ("It rains.", "The weather is needed.")


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("ministral", f"get_weather[ARGS]{ARGUMENTS}"),
        ("qwen_xml", JSON),
        ("glm_4_7", f"get_weather\n{ARGUMENTS}"),
    ],
)
def test_what_nothing_announces_is_text(style: str, text: str) -> None:
    assert not plan(style).parse(text).tool_calls


def test_a_call_without_arguments_that_it_needs_or_that_was_cut_off_is_none_that_is_whole() -> None:
    reader = plan("ministral").reader()
    events = [*reader.feed("[TOOL_CALLS]list_boxes[ARGS]"), *reader.finish(cut=True)]
    assert [call.incomplete for call in toolgram.Message.from_events(events).tool_calls] == [True]
    message = plan("ministral").parse("[TOOL_CALLS]get_weather[ARGS]")
    assert [call.incomplete for call in message.tool_calls] == [True]


@pytest.mark.parametrize("style", ["hermes", "ministral"])
def test_line_breaks_in_the_strings_of_arguments_are_escaped(style: str) -> None:
    arguments = '{\n "city": "Os\nlo\t\\n\\""\n}'
    whole = {
        "hermes": f'<tool_call>\n{{"name": "get_weather", "arguments": {arguments}}}\n</tool_call>',
        "ministral": f"[TOOL_CALLS]get_weather[ARGS]{arguments}",
    }[style]
    made = plan(style)
    (call,) = made.parse(whole).tool_calls
    assert (call.arguments, call.incomplete) == ('{\n "city": "Os\\nlo\\t\\n\\""\n}', False)
    assert all(
        toolgram.Message.from_events(fed(made.reader(), whole, [size] * len(whole))).tool_calls == (call,)
        for size in (1, 2, 5)
    )
    bare = f'{{"name": "get_weather", "arguments": {arguments}}}'
    assert [each.arguments for each in made.parse(bare, lenient=True).tool_calls] == [call.arguments]
