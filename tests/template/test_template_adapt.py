"""Conversations rewritten to what a template can express."""

from __future__ import annotations

import copy
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from toolgram.errors import InvalidRequest
from toolgram.template.adapt import adapt, neutralised
from toolgram.template.capabilities import ReasoningField
from toolgram.template.chat_template import ChatTemplate

SEED = Path(__file__).resolve().parents[3] / "shared/seeds/003_8b0e678405ed2946.txt"

CHATML = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ALTERNATING = ChatTemplate(
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('no') }}{% endif %}"
    "{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('no') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}</s>{% endfor %}"
)
CALLS = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "<call>{{ c.function.name }}{{ ARGUMENTS }}#{{ c.id }}</call>{% endfor %}<|end|>{% endfor %}"
)
OBJECTS = ChatTemplate(CALLS.replace("ARGUMENTS", "c.function.arguments|tojson"))
TEXTS = ChatTemplate(CALLS.replace("ARGUMENTS", "'' + c.function.arguments"))
SINGLE = ChatTemplate(
    "{% for m in messages %}{% if m.tool_calls and m.tool_calls|length > 1 %}{{ raise_exception('one') }}{% endif %}"
    "{% endfor %}" + OBJECTS.source
)
SHORT_IDS = ChatTemplate(
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ raise_exception('nine') }}"
    "{% endif %}{% endfor %}{% endfor %}" + OBJECTS.source
)
TYPED = ChatTemplate(
    "{% for m in messages %}<|{{ m.role }}|>{% for p in m.content %}{{ p.text if p.type == 'text' else '[IMG]' }}"
    "{% endfor %}<|end|>{% endfor %}"
)


REASONS = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.FIELD %}<think>{{ m.FIELD }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} {{ c.function.arguments|tojson }}</call>{% endfor %}"
    "{% endfor %}"
)
THINKING_PARTS = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' and not m.content and not m.tool_calls %}"
    "{{ raise_exception('says nothing') }}{% endif %}{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ '<think>' + p.thinking + '</think>' if p.type == 'thinking' else p.text }}{% endfor %}"
    "{% endif %}{% endfor %}"
)


def call(name: str, arguments: Any, id_: str | None = "call_1") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def user(content: Any = "Hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def system(content: str) -> dict[str, Any]:
    return {"role": "system", "content": content}


def result(content: str, id_: str | None = "call_1", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **({"tool_call_id": id_} if id_ else {}), **fields}


def roles(turns: list[dict[str, Any]]) -> list[str]:
    return [turn["role"] for turn in turns]


def names_as_text(turn: dict[str, Any]) -> str:
    return (turn["content"] or "") + "".join(
        f"<tool_call>{json.dumps(each)}</tool_call>" for each in turn["tool_calls"]
    )


def test_the_input_is_left_as_it_is() -> None:
    messages = [system("S"), user([{"type": "text", "text": "a"}]), calling(call("f", "{}")), result("r")]
    before = copy.deepcopy(messages)
    for template in (CHATML, ALTERNATING, OBJECTS, TYPED):
        adapt(messages, template.capabilities, extra_system="X", call_text=names_as_text)
    adapt(messages, OBJECTS.capabilities)
    assert messages == before


def test_developers_are_system_and_functions_are_tools() -> None:
    messages = [
        {"role": "developer", "content": "D"},
        user(),
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "f", "content": "r"},
    ]
    turns = adapt(messages, OBJECTS.capabilities)
    assert roles(turns) == ["system", "user", "assistant", "tool"]
    assert turns[2]["tool_calls"] == [call("f", {"a": 1}, "call_0")]
    assert turns[3] == {"role": "tool", "name": "f", "content": "r", "tool_call_id": "call_0"}


@pytest.mark.parametrize(
    ("messages", "extra", "expected"),
    [
        ([system("S"), user()], "X", [system("S\n\nX"), user()]),
        ([user()], "X", [system("X"), user()]),
        ([system("S"), system("T"), user()], None, [system("S\n\nT"), user()]),
        ([system(""), user()], None, [system(""), user()]),
        ([user()], None, [user()]),
    ],
)
def test_system_text_goes_into_one_system_message(
    messages: list[dict[str, Any]], extra: str | None, expected: list[dict[str, Any]]
) -> None:
    assert adapt(messages, CHATML.capabilities, extra_system=extra) == expected


def test_system_text_goes_into_the_first_user_turn_where_there_is_no_system_role() -> None:
    capabilities = ALTERNATING.capabilities
    assert not capabilities.supports_system
    assert adapt([system("S"), user()], capabilities, extra_system="X") == [user("S\n\nX\n\nHi")]
    turns = adapt([{"role": "assistant", "content": "A"}, user()], capabilities, extra_system="X")
    assert turns == [user("X"), {"role": "assistant", "content": "A"}, user()]


BESIDE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.role == 'system' %}{{ tools | tojson }}{% endif %}"
    "{% endfor %}"
)
IN_DEFAULT = (
    "{% set text = messages[0].content if messages[0].role == 'system' else 'Help.' %}<|system|>{{ text }}"
    "{% if text and tools %}{{ tools | tojson }}{% endif %}"
    "{% for m in messages if m.role != 'system' %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
)


@pytest.mark.parametrize(
    ("source", "messages", "tools", "expected"),
    [
        (BESIDE, [user()], True, [system(""), user()]),
        (BESIDE, [user()], False, [user()]),
        (BESIDE, [system("S"), user()], True, [system("S"), user()]),
        (IN_DEFAULT, [system(""), user()], True, [user()]),
        (IN_DEFAULT, [system(""), user()], False, [system(""), user()]),
    ],
)
def test_tools_get_the_system_message_that_shows_them(
    source: str, messages: list[dict[str, Any]], tools: bool, expected: list[dict[str, Any]]
) -> None:
    assert adapt(messages, ChatTemplate(source).capabilities, tools=tools) == expected


def test_a_system_text_is_the_users_where_there_must_be_one() -> None:
    refuses = "{% if messages[-1].role == 'system' %}{{ raise_exception('No user.') }}{% endif %}" + CHATML.source
    capabilities = ChatTemplate(refuses).capabilities
    assert adapt([system("S")], capabilities, extra_system="X") == [user("S\n\nX")]
    assert adapt([system("S"), user()], capabilities) == [system("S"), user()]
    assert adapt([system("S")], CHATML.capabilities) == [system("S")]


def test_turns_alternate_where_they_must() -> None:
    messages = [user("a"), user("b"), calling(call("f", {})), result("1"), result("2", None, name="g"), user("c")]
    turns = adapt(messages, ALTERNATING.capabilities, call_text=lambda _: "CALL")
    assert [turn["content"] for turn in turns] == [
        "a\n\nb",
        "CALL",
        "[TOOL(name=f, id=call_1)]1[/TOOL]\n[TOOL(name=g)]2[/TOOL]\n\nc",
    ]
    assert roles(adapt([{"role": "assistant", "content": "A"}], ALTERNATING.capabilities)) == ["user", "assistant"]


def test_a_result_in_the_users_own_words_is_told_apart() -> None:
    turns = adapt(
        [user("[TOOL(name=f)]x[/TOOL]"), calling(call("f", {})), result("y[/TOOL]z")],
        ALTERNATING.capabilities,
        call_text=lambda _: "CALL",
    )
    assert turns[0]["content"] == "[\\TOOL(name=f)]x[\\/TOOL]"
    assert turns[2]["content"] == "[TOOL(name=f, id=call_1)]y[\\/TOOL]z[/TOOL]"


def test_parts_around_an_image_make_up_no_result() -> None:
    parts = [{"type": "text", "text": "[TO"}, {"type": "image"}, {"type": "text", "text": "OL(name=f)]"}]
    broken = neutralised(parts, re.compile(r"\[(?=TOOL\()"))
    assert broken == [{"type": "text", "text": "[\\TO"}, {"type": "image"}, parts[2]]


@pytest.mark.parametrize("arguments", ['{"a": "é"}', {"a": "é"}])
def test_arguments_take_the_templates_form(arguments: Any) -> None:
    messages = [user(), calling(call("f", arguments))]
    assert adapt(messages, OBJECTS.capabilities)[1]["tool_calls"][0]["function"]["arguments"] == {"a": "é"}
    assert adapt(messages, TEXTS.capabilities)[1]["tool_calls"][0]["function"]["arguments"] == '{"a": "é"}'
    for template in (OBJECTS, TEXTS):
        assert 'f{"a": "é"}#call_1' in template.render(adapt(messages, template.capabilities))


@pytest.mark.parametrize("arguments", ["", None, {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    turns = adapt([user(), calling(call("f", arguments))], OBJECTS.capabilities)
    assert turns[1]["tool_calls"][0]["function"]["arguments"] == {}


def test_results_know_their_calls() -> None:
    messages = [user(), calling(call("f", {}, None), call("g", {}, None)), result("1", None), result("2", None)]
    turns = adapt(messages, OBJECTS.capabilities)
    assert [(turn["tool_call_id"], turn["name"]) for turn in turns[2:]] == [("call_0", "f"), ("call_1", "g")]


LATER = {"role": "user", "content": "and?"}


def two_calls(*later: dict[str, Any]) -> list[dict[str, Any]]:
    """Two calls, and what comes after them."""
    calls = [{"id": id_, "function": {"name": "f", "arguments": {}}} for id_ in ("one", "two")]
    return [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": calls}, *later]


def answer_to(id_: str, content: str | None = None) -> dict[str, Any]:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": id_, "content": content or f"of {id_}"}


@pytest.mark.parametrize(
    ("later", "wanted"),
    [
        ([answer_to("two"), answer_to("one")], ["of one", "of two"]),
        ([answer_to("two"), LATER, answer_to("one")], ["of one", "of two", "and?"]),
        ([LATER, answer_to("one"), answer_to("two")], ["of one", "of two", "and?"]),
        ([answer_to("one"), answer_to("none"), answer_to("two")], ["of one", "of two", "of none"]),
        ([answer_to("one"), LATER, answer_to("one", "again")], ["of one", "and?", "[TOOL(id=one)]again[/TOOL]"]),
        (
            [answer_to("one"), *two_calls(answer_to("two", "new two"), answer_to("one", "new one"))],
            ["of one", "a", "", "new one", "new two"],
        ),
        ([answer_to("two"), LATER], ["[no result]", "of two", "and?"]),
        ([answer_to("one"), LATER], ["of one", "and?"]),
    ],
    ids=[
        *("in another order", "one late", "both late", "one of no call", "twice", "ids that are used again"),
        *("none of the first", "none of the last"),
    ],
)
def test_results_stand_behind_their_calls_in_the_order_of_these(later: list[Any], wanted: list[str]) -> None:
    turns = adapt(two_calls(*later), OBJECTS.capabilities)
    assert [turn["content"] or "" for turn in turns[2:]] == wanted


def test_an_id_that_a_turn_has_twice_is_answered_twice() -> None:
    same = json.loads(json.dumps(two_calls()).replace('"two"', '"one"'))
    turns = adapt([*same, answer_to("one", "1"), answer_to("one", "2")], OBJECTS.capabilities)
    assert [turn["content"] or "" for turn in turns[2:]] == ["1", "2"]


def test_a_result_that_the_template_shows_of_no_call_is_the_users() -> None:
    shown = OBJECTS.source.replace("{% for m in messages %}", "{% for m in messages %}{% set n = loop.previtem %}")
    picky = ChatTemplate(
        "{% for m in messages %}{% if m.role != 'tool' or loop.previtem.tool_calls or loop.previtem.role == 'tool' %}"
        + shown.removeprefix("{% for m in messages %}").removesuffix("{% endfor %}")
        + "{% endif %}{% endfor %}"
    )
    alone = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, answer_to("none")]
    assert picky.render(adapt(alone, picky.capabilities)).endswith("<|user|>[TOOL(id=none)]of none[/TOOL]<|end|>")
    assert picky.render(adapt(two_calls(answer_to("none")), picky.capabilities)).endswith("<|tool|>of none<|end|>")


def test_a_number_that_the_template_counts_itself_is_none_where_it_shows_no_calls() -> None:
    counts = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.name ~ ':0 ' if m.role == 'tool' }}{{ m.content }}{% endfor %}"
    )
    assert not ChatTemplate(counts).capabilities.supports_results_without_calls
    assert ChatTemplate(counts.replace(":0", ":")).capabilities.supports_results_without_calls


def test_a_system_text_that_would_replace_the_first_one_is_the_users() -> None:
    last = ChatTemplate(
        "{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}"
        "{% set ns.system = m.content %}{% endif %}{% endfor %}{{ ns.system }}"
        "{% for m in messages %}{% if m.role != 'system' %}<|{{ m.role }}|>{{ m.content }}{% endif %}{% endfor %}"
    )
    messages = [
        {"role": "system", "content": "RULES"},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "system", "content": "NOTE"},
    ]
    assert not last.capabilities.supports_late_system
    shown = last.render(adapt(messages, last.capabilities, extra_system="TOOLS"))
    assert shown == "RULES\n\nTOOLS<|user|>a<|assistant|>b<|user|>NOTE"


def test_several_calls_are_written_one_by_one_where_a_turn_holds_one() -> None:
    messages = [
        user(),
        calling(call("f", {}, "a"), call("g", {}, "b"), content="C"),
        result("2", "b"),
        result("1", "a"),
        user("c"),
    ]
    turns = adapt(messages, SINGLE.capabilities)
    assert roles(turns) == ["user", "assistant", "tool", "assistant", "tool", "user"]
    assert [turn["content"] for turn in turns] == ["Hi", "C", "1", None, "2", "c"]
    assert SINGLE.render(turns)


def test_ids_are_shortened_where_the_template_wants_nine_characters() -> None:
    turns = adapt([user(), calling(call("f", {}, "call_12345")), result("r", "call_12345")], SHORT_IDS.capabilities)
    short = turns[1]["tool_calls"][0]["id"]
    assert len(short) == 9
    assert short.isalnum()
    assert turns[2]["tool_call_id"] == short
    assert (
        adapt([user(), calling(call("f", {}, "abcdefghi"))], SHORT_IDS.capabilities)[1]["tool_calls"][0]["id"]
        == "abcdefghi"
    )


def test_text_parts_are_flattened_and_images_never() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    assert adapt([user(parts)], CHATML.capabilities) == [user("ab")]
    assert adapt([system("S"), user([*parts, image])], TYPED.capabilities) == [
        {"role": "system", "content": [{"type": "text", "text": "S"}]},
        user([*parts, image]),
    ]
    with pytest.raises(InvalidRequest) as caught:
        adapt([user(), user([*parts, image])], CHATML.capabilities)
    assert caught.value.pointer == "/messages/1/content/2"


@pytest.mark.parametrize(
    "source",
    [
        *(REASONS.replace("FIELD", name) for name in get_args(ReasoningField) if name != "content"),
        THINKING_PARTS,
    ],
)
def test_reasoning_stands_where_the_template_looks_for_it(source: str) -> None:
    template = ChatTemplate(source)
    answer = {"role": "assistant", "content": "Rain.", "reasoning_content": "I look."}
    messages = adapt([{"role": "user", "content": "Hi"}, answer], template.capabilities)
    assert template.render(messages) == "<|user|>Hi<|assistant|><think>I look.</think>Rain."


def test_reasoning_that_a_style_writes_is_not_shown_twice() -> None:
    template = ChatTemplate(REASONS.replace("FIELD", "reasoning_content"))
    turn = {"role": "assistant", "content": None, "reasoning_content": "I look.", "tool_calls": [call("f", {})]}
    messages = [{"role": "user", "content": "Hi"}, turn]
    written = adapt(messages, template.capabilities, call_text=lambda _: "Why: I look. Call: f()")
    assert template.render(written).count("I look.") == 1
    alone = adapt(messages, template.capabilities, call_text=lambda _: "Call: f()")
    assert template.render(alone).count("I look.") == 1


@pytest.mark.parametrize("said", ["", None, []])
def test_an_answer_that_says_nothing_is_left_out_where_the_template_refuses_it(said: Any) -> None:
    template = ChatTemplate(THINKING_PARTS)
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": said},
        {"role": "user", "content": "?"},
    ]
    assert template.render(adapt(messages, template.capabilities)) == "<|user|>Hi<|user|>?"


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        ({"role": "wizard", "content": ""}, "/messages/0/role"),
        ({"role": "user", "content": 7}, "/messages/0/content"),
        (calling(call("f", "[]")), "/messages/0/tool_calls/0/function/arguments"),
        (calling({"id": "x", "type": "function"}), "/messages/0/tool_calls/0/function"),
    ],
)
def test_what_is_malformed_is_refused_at_its_place(message: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        adapt([message], OBJECTS.capabilities)
    assert caught.value.pointer == pointer


def test_calls_that_a_template_cannot_write_need_a_text() -> None:
    with pytest.raises(InvalidRequest) as caught:
        adapt([user(), calling(call("f", {}))], CHATML.capabilities)
    assert caught.value.pointer == "/messages/1/tool_calls"


# This template shows the system message only where the last message is a user's.
SYSTEM_ONLY_WITH_THE_LAST_MESSAGE = {"mistralai-Mistral-Nemo-Instruct-2407"}
TEMPLATES = Path(__file__).resolve().parents[3] / "shared/templates"
LONG = [
    {"role": "developer", "content": "zq-system"},
    user([{"type": "text", "text": "zq-one"}]),
    user("zq-two"),
    calling(call("zq_f", '{"a": "zq-three"}', "call_00000001"), call("zq_g", {"a": "zq-four"}, "call_00000002")),
    result("zq-five", "call_00000001"),
    result("zq-six", "call_00000002"),
    {"role": "assistant", "content": "zq-seven"},
    user("zq-eight"),
    calling(call("zq_f", "", "call_00000003"), content="zq-nine"),
    result("zq-ten", "call_00000003"),
]
WORDS = [f"zq-{word}" for word in ["system", "one", "two", "three", "four", "five", "six", "seven", "eight", "ten"]]


@pytest.mark.skipif(not TEMPLATES.is_dir(), reason="the shared data folder is not beside this checkout")
@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.jinja")), ids=lambda path: path.stem)
@pytest.mark.parametrize("native", [True, False])
def test_real_templates_take_all_of_a_conversation(path: Path, native: bool) -> None:
    template = ChatTemplate.from_file(path)
    capabilities = template.capabilities
    call_text = None if native and capabilities.supports_tool_calls else names_as_text
    turns = adapt(LONG, capabilities, extra_system="zq-extra", call_text=call_text)
    text = template.render(turns, **capabilities.tool_variables(None, datetime(2024, 7, 26)))
    lost = {"zq-system"} if path.stem in SYSTEM_ONLY_WITH_THE_LAST_MESSAGE else set[str]()
    assert [word for word in WORDS if word not in text and word not in lost] == []
    assert "None" not in text.replace("NONE", "")


# The report of 2024, which shows four templates and the prompts that they give.


def seed_section(title: str, level: int) -> str:
    text = SEED.read_text(encoding="utf-8")
    return text.split(f"\n{'#' * level} {title}\n", 1)[1]


def seed_block(text: str) -> str:
    return text.split("```js\n", 1)[1].split("\n```", 1)[0]


@pytest.mark.skipif(not SEED.is_file(), reason="the shared data folder is not beside this checkout")
@pytest.mark.parametrize(
    ("name", "style"),
    [
        ("mistral_instruct_v0_1", "TOOLS_MIXTRAL"),
        ("functionary_v2_2", "TYPESCRIPT_FUNCTIONARY_V2"),
        ("hermes_2_pro_mistral", "TOOLS_SHORT"),
        ("llama2", "TOOLS_SHORT"),
    ],
)
def test_prompts_of_the_reference_report(name: str, style: str) -> None:
    messages = json.loads(seed_block(SEED.read_text(encoding="utf-8")))
    template = ChatTemplate(seed_block(seed_section(name, 1)), "<s>", "</s>")
    expected = seed_block(seed_section(f"{name} / {style} / with tools", 3))
    turns = adapt(messages, template.capabilities, call_text=names_as_text)
    assert template.render(turns) == expected
