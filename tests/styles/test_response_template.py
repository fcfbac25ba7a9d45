"""transformers' response_template: read into a style, and a style written as one; transformers' own parser judges."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from transformers.utils.chat_parsing import ResponseParser, parse_response

import toolgram
from situations import WEATHER, tool
from toolgram import ChatTemplate, Message, TemplateError, ToolCall, ToolStyle
from toolgram.planning.readable_names import some_id
from toolgram.styles.choose import choose_style
from toolgram.styles.detect import fit
from toolgram.styles.native import NATIVE
from toolgram.styles.native.pythonic import PYTHONIC
from toolgram.styles.response_template.patterns import ANYTHING, GAP, Piece, Slot, pieces_of
from toolgram.styles.response_template.read import described_style, read_response_template
from toolgram.styles.response_template.write import response_template
from toolgram.wire import format as wire
from toolgram.wire.writer import write_freely

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "templates"
FILES = sorted(TEMPLATES.glob("*.jinja"))
CHATML = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Styles whose turns transformers' parser has no way to read: calls without tags, or as nested elements.
INEXPRESSIBLE = {"minimax_m1", "llama_3", "minimax_m3"}
READ_AGAIN = {
    *("hermes", "qwen_xml", "glm_4_7", "glm_4_5", "gemma_4", "deepseek_v3_1", "mistral_nemo", "mistral_small"),
    *("ministral", "command_r7b", "command_a_text", "firefunction", "apriel", "lfm2", "lfm2_5"),
}
PARAMETERS = {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"}}}
TOOLS = [tool("get_weather", PARAMETERS), tool("get", {"properties": {}})]
ARGUMENTS = {"city": 'São "P" <b>\n{x}, y:', "days": 3, "tags": ["a", {"k": None}]}


@cache
def spoken() -> dict[str, tuple[ToolStyle, ChatTemplate]]:
    """Each style that a known template speaks, with the first such template."""
    found: dict[str, tuple[ToolStyle, ChatTemplate]] = {}
    for file in FILES:
        template = ChatTemplate.from_file(file)
        style, _ = choose_style(template)
        found.setdefault(style.name, (style, template))
    found.setdefault("hermes", (named("hermes"), CHATML))
    return {name: pair for name, pair in found.items() if name in {style.name for style in NATIVE}}


def named(name: str) -> ToolStyle:
    return next(style for style in NATIVE if style.name == name)


def messages(style: ToolStyle) -> list[Message]:
    """Messages that the style can write."""
    ids = [some_id(name, style.wire) for name in ("get_weather", "get")]
    calls = (ToolCall("get_weather", json.dumps(ARGUMENTS), ids[0]), ToolCall("get", "{}", ids[1]))
    reason = "Hm.\nWell." if wire.holds(style.wire.turn, wire.Reasoning) else None
    tried = [
        Message("Hi,\nyou.", reason, calls),
        Message("Hi.", reason),
        Message("Hi."),
        Message(None, reason, calls[:1]),
        Message(None, None, calls),
        Message("Hi.", None, calls[1:]),
    ]
    return [message for message in tried if write_freely(style.wire, message) is not None]


def plain(message: Message) -> dict[str, Any]:
    """A message as transformers has it."""
    calls = [
        {"type": "function", "function": {"name": call.name, "arguments": json.loads(call.arguments)}}
        | ({"id": call.id} if call.id else {})
        for call in message.tool_calls
    ]
    fields = {"thinking": message.reasoning, "content": message.content, "tool_calls": calls}
    return {"role": "assistant"} | {key: value for key, value in fields.items() if value}


@pytest.mark.parametrize("name", [style.name for style in NATIVE])
def test_transformers_reads_what_the_writer_writes(name: str) -> None:
    if name not in spoken():
        pytest.skip("no template at hand speaks it")
    style, template = spoken()[name]
    if name in INEXPRESSIBLE:
        with pytest.raises(TemplateError, match=f"the style {name} has no response template: "):
            response_template(style, template)
        return
    spec = json.loads(json.dumps(response_template(style, template)))
    rng = random.Random(name)
    assert messages(style)
    for message in messages(style):
        written = write_freely(style.wire, message) or ""
        for text in (written, *(written + stop for stop in template.capabilities.stop[:1])):
            assert parse_response(text, spec, prefix="", tools=TOOLS) == plain(message), text
            parser, at = ResponseParser(spec, prefix="", tools=TOOLS), 0
            while at < len(text):
                size = rng.randint(1, 9)
                parser.feed(text[at : at + size])
                at += size
            assert parser.finalize()[0] == plain(message), text


@pytest.mark.skipif(not FILES, reason="the shared templates are not beside this checkout")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_the_prompt_opens_is_told_by_the_anchor(file: Path) -> None:
    template = ChatTemplate.from_file(file)
    request = {"messages": [{"role": "user", "content": "Hi?"}], "tools": [tool("get_weather", WEATHER)]}
    plan = toolgram.plan(request, template)
    if plan.style.is_generic or plan.style.name in INEXPRESSIBLE:
        return
    spec = response_template(plan.style, template)
    id_ = some_id("get_weather", plan.style.wire)
    call = ToolCall("get_weather", '{"city": "Oslo"}', id_)
    texts = {message: plan.write(message) for message in (Message("Yes."), Message(None, None, (call,)))}
    for message, text in texts.items():
        if text is not None:
            assert parse_response(text, spec, prefix=plan.prompt, tools=TOOLS) == plain(message), text


@pytest.mark.skipif(not FILES, reason="the shared templates are not beside this checkout")
@pytest.mark.parametrize("name", sorted(READ_AGAIN))
def test_a_style_that_is_written_is_read_again_as_the_template_spells_it(name: str) -> None:
    style, template = spoken()[name]
    spec = json.dumps(response_template(style, template))
    again = described_style(ChatTemplate(template.source, template.bos_token, template.eos_token, spec))
    assert again is not None
    # What is written may differ in white space, by which `fit` ranks styles that read the same turns. LFM2's templates
    # write no calls: there a style fits by how it is announced, which no response template says.
    if template.capabilities.supports_tool_calls:
        assert (fit(template, again) - 1) // 3 == (fit(template, style) - 1) // 3 >= 0
    for message in messages(style):
        text = write_freely(again.wire, message)
        assert text is not None
        assert parse_response(text, json.loads(spec), prefix="", tools=TOOLS) == plain(message), text


# Reading: templates of model families as transformers' documentation has them.
FUNCTION = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
XML = {
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>"},
        "tool_calls": {
            "open_pattern": r"<tool_call>\s*<function=(?P<name>\w+)>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {"tag_pattern": r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>"},
            "transform": FUNCTION,
        },
    },
}
ACTIONS = {
    "start_anchor": "<|CHATBOT_TOKEN|>",
    "fields": {
        "content": {"open": "<|START_RESPONSE|>", "close": "<|END_RESPONSE|>"},
        "thinking": {"open": "<|START_THINKING|>", "close": "<|END_THINKING|>"},
        "tool_calls": {
            "open": "<|START_ACTION|>",
            "close": "<|END_ACTION|>",
            "content": "json",
            "transform_each": True,
            "transform": {"type": "function", "function": {"name": "{tool_name}", "arguments": "{parameters}"}},
        },
    },
}
HEADERS = {
    "start_anchor": "<|start|>assistant",
    "fields": {
        "thinking": {"open": "<|channel|>analysis<|message|>", "close": "<|end|>"},
        "content": {"open": "<|channel|>final<|message|>", "close": "<|end|>"},
        "tool_calls": {
            "open_pattern": r"<\|channel\|>commentary to=functions\.(?P<name>\w+).*?<\|message\|>",
            "close": "<|call|>",
            "repeats": True,
            "content": "json",
            "transform": FUNCTION,
        },
    },
}
QUOTES = {
    "start_anchor": ["<|turn>model\n", "<tool_response|>"],
    "fields": {
        "thinking": {"open": "<|channel>thought\n", "close": "<channel|>"},
        "tool_calls": {
            "open_pattern": r"<\|tool_call>call:(?P<name>\w+)",
            "close": "<tool_call|>",
            "repeats": True,
            "content": "json",
            "content_args": {"unquoted_keys": True, "string_delims": [['<|"|>', '<|"|>']]},
            "transform": FUNCTION,
        },
        "content": {"close": ["<turn|>", "<eos>"]},
    },
}
PYTHON_CALLS = {
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open": "<|tool_call_start|>",
            "close": "<|tool_call_end|>",
            "content": "python-call-list",
            "transform_each": True,
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}},
        },
        "content": {"close": "<|im_end|>"},
    },
}
NAMED_AT_THE_END = {
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": {
            "open": "<call>",
            "close_pattern": r"</call of=(?P<name>\w+) id=(?P<id>\w+)>",
            "repeats": True,
            "content": "json",
            "transform": FUNCTION | {"id": "{id}"},
        },
        "content": {"close": "<|end|>"},
    },
}
DOCUMENTED = {
    "xml": XML,
    "actions": ACTIONS,
    "headers": HEADERS,
    "quotes": QUOTES,
    "python": PYTHON_CALLS,
    "named at the end": NAMED_AT_THE_END,
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_described_style_writes_what_transformers_reads(name: str) -> None:
    spec = {"defaults": {"role": "assistant"}, **DOCUMENTED[name]}
    style = read_response_template(spec)
    text = wire.holds(style.wire.turn, wire.Content)
    for message in messages(style):
        if text or not message.content:
            written = write_freely(style.wire, message) or ""
            expected = plain(message)
            if name == "xml":  # no field takes the text between the others
                expected.pop("content", None)
            assert parse_response(written, spec, prefix="", tools=TOOLS) == expected, written


@pytest.mark.parametrize(
    ("pattern", "pieces"),
    [
        (r"<a>\s*<b=(?P<name>\w+)>\n?", ("<a>", GAP, "<b=", Slot("name"), ">", GAP)),
        (r"(?:^|<think>\s*)", ("<think>", GAP)),
        (r"(?:<\|m\|>)?[^<]*<\|text\|>", ("<|text|>",)),
        (r"to=(?P<name>[^\s)(]+).*?<\|m\|>(?!x)", ("to=", Slot("name"), ANYTHING, "<|m|>")),
        (r"\[(?P<id>(a|b)+)\]{2}", ("[", Slot("id"), "]]")),
    ],
)
def test_patterns_are_spelled_out(pattern: str, pieces: tuple[Piece, ...]) -> None:
    assert pieces_of(pattern, "") == pieces


def test_white_space_is_that_of_the_template() -> None:
    source = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}{{ '\\n' }}<tool_call>\n<function={{ c.function.name }}>\n"
        "{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}"
        "</function>\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}{{ tools or '' }}"
    )
    template = ChatTemplate(source, response_template=json.dumps(XML))
    style = described_style(template)
    assert style is not None
    assert fit(template, style)
    call = ToolCall("f", '{"a": "b"}')
    assert write_freely(style.wire, Message(None, "Hm.", (call, call))) == (
        "<think>\nHm.\n</think>\n\n<tool_call>\n<function=f>\n<parameter=a>\nb\n</parameter>\n</function>\n</tool_call>"
        "\n<tool_call>\n<function=f>\n<parameter=a>\nb\n</parameter>\n</function>\n</tool_call>"
    )


def test_white_space_after_a_name_is_that_of_the_template() -> None:
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "{{ '\\n' }}<call>{{ c.function.name }}\n{% for k, v in c.function.arguments.items() %}"
        "<key>{{ k }}</key>\n<value>{{ v if v is string else v | tojson }}</value>\n{% endfor %}</call>{% endfor %}"
        "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}{{ tools or '' }}"
    )
    calls = {
        "open_pattern": r"<call>(?P<name>\S+)\n?",
        "close_pattern": r"</call>\s*",
        "repeats": True,
        "content": "xml-inline",
        "content_args": {"tag_pattern": r"<key>(?P<key>[^<]+)</key>\s*<value>(?P<value>.*?)</value>"},
        "transform": FUNCTION,
    }
    spec = {"start_anchor": "<|assistant|>", "fields": {"tool_calls": calls, "content": {"close": "<|end|>"}}}
    template = ChatTemplate(source, response_template=json.dumps(spec))
    style = described_style(template)
    assert style is not None
    assert fit(template, style)
    call = ToolCall("f", '{"a": "b"}')
    written = write_freely(style.wire, Message("Hi.", None, (call, call)))
    once = "<call>f\n<key>a</key>\n<value>b</value>\n</call>"
    assert written == f"Hi.{once}\n{once}"
    assert len(parse_response(written, spec, prefix="")["tool_calls"]) == 2


UNKNOWN = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "<do-it> {{ c.function | tojson }} </do-it>{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}{{ tools | tojson }}{% endif %}"
)
DESCRIBED = {
    "version": 1,
    "start_anchor": "<|assistant|>",
    "fields": {
        "content": {"close": "<|end|>"},
        "tool_calls": {
            "open": "<do-it>",
            "close": "</do-it>",
            "content": "json",
            "repeats": True,
            "transform": {"type": "function", "function": "{content}"},
        },
    },
}


def test_white_space_between_calls_is_written_once() -> None:
    source = UNKNOWN.replace("<do-it>", "{{ '\\n' }}<do-it>")
    calls = {"open": "<do-it>", "close_pattern": r"</do-it>\s*", "content": "json", "repeats": True}
    spec = {"start_anchor": "<|assistant|>", "fields": {"tool_calls": calls, "content": {"close": "<|end|>"}}}
    template = ChatTemplate(source, response_template=json.dumps(spec))
    style = described_style(template)
    assert style is not None
    assert fit(template, style)
    once = '<do-it> {"name": "f", "arguments": {}} </do-it>'
    assert write_freely(style.wire, Message("Hi.", None, (ToolCall("f", "{}"),) * 2)) == f"Hi.{once}\n{once}"


def test_a_template_of_no_known_family_is_read_as_its_tokenizer_says(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": UNKNOWN, "response_template": DESCRIBED})
    )
    template = ChatTemplate.from_hf(tmp_path)
    request = {
        "messages": [{"role": "user", "content": "Rain?"}],
        "tools": [tool("get_weather", WEATHER)],
        "tool_choice": "required",
    }
    plan = toolgram.plan(request, template)
    assert plan.style.name == "response_template"
    assert plan.why == "the tokenizer's response_template describes it"
    text = '<do-it> {"name": "get_weather", "arguments": {"city": "Oslo"}} </do-it>'
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)
    assert plan.parse(text).tool_calls == (ToolCall("get_weather", '{"city": "Oslo"}'),)


def test_a_description_that_does_not_fit_is_told_and_not_used() -> None:
    wrong = {**DESCRIBED, "fields": {**DESCRIBED["fields"], "citations": {"open": "<c>", "close": "</c>"}}}
    style, why = choose_style(ChatTemplate(UNKNOWN, response_template=json.dumps(wrong)))
    assert style.name == "discovered"
    assert "response_template/fields/citations: a message has no such part here" in why
    other = {**DESCRIBED, "fields": {"tool_calls": {**DESCRIBED["fields"]["tool_calls"], "open": "<other>"}}}
    style, why = choose_style(ChatTemplate(UNKNOWN, response_template=json.dumps(other)))
    assert style.name == "discovered"
    assert "its response_template does not read it" in why


CALLS: dict[str, Any] = DESCRIBED["fields"]["tool_calls"]


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ([], "response_template: must be an object"),
        ({"version": 2, "fields": {}}, "response_template/version: 2 is not supported"),
        ({"fields": {}, "x": 1}, "response_template/x: an unknown key"),
        ({"fields": {"thinking": 1}}, "response_template/fields: must be an object of objects"),
        ({"fields": {"thinking": {"close": "x"}}}, "/fields/thinking: nothing opens it"),
        ({"fields": {"thinking": {"open": "<", "content": "int"}}}, "/fields/thinking/content: must be text"),
        ({"fields": {"tool_calls": {**CALLS, "open": 3}}}, "/fields/tool_calls/open: must be a text"),
        ({"fields": {"tool_calls": {**CALLS, "content": "kv-lines"}}}, "/fields/tool_calls/content: calls in"),
        ({"fields": {"tool_calls": {**CALLS, "transform": "x"}}}, "/fields/tool_calls/transform: must have"),
        (
            {"fields": {"tool_calls": {"open_pattern": "[ab]", "content": "json"}}},
            "/open_pattern: '[ab]' does not determine a text",
        ),
        ({"fields": {"tool_calls": {"open_pattern": "(?P<name>x", "content": "json"}}}, "not closed"),
        ({"fields": {"tool_calls": {**CALLS, "content": "xml-inline"}}}, "/content_args/tag_pattern: must be"),
        ({"fields": {"tool_calls": {**CALLS, "content": "python-call-list"}}}, "/tool_calls/transform: must put name"),
        (
            {"fields": {"tool_calls": {"open_pattern": "<(?P<name>x)>", "close_pattern": "</(?P<name>x)>"}}},
            "/fields/tool_calls: a group is captured twice",
        ),
    ],
)
def test_what_cannot_be_read_is_named(spec: Any, where: str) -> None:
    with pytest.raises(TemplateError) as caught:
        read_response_template(spec)
    assert where in str(caught.value)


def test_calls_that_no_tag_opens_cannot_be_described() -> None:
    with pytest.raises(TemplateError, match="the style pythonic has no response template: no tag opens its list"):
        response_template(PYTHONIC, CHATML)


def test_a_name_after_the_arguments_is_written_where_it_is_read() -> None:
    style = read_response_template(NAMED_AT_THE_END)
    spec = response_template(style, CHATML)
    written = write_freely(style.wire, Message("Hi.", None, (ToolCall("get", '{"a": 1}', "Ab3dE6g8i"),)))
    assert written == 'Hi.<call>{"a": 1}</call of=get id=Ab3dE6g8i>'
    call = {"type": "function", "function": {"name": "get", "arguments": {"a": 1}}, "id": "Ab3dE6g8i"}
    message = {"role": "assistant", "content": "Hi.", "tool_calls": [call]}
    assert parse_response(written, spec, prefix="", tools=TOOLS) == message


def test_arguments_that_nothing_but_json_ends_cannot_be_described() -> None:
    """transformers ends a region where it first sees what closes it."""
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for call in m.tool_calls or [] %}"
        '{{ "<calls>[" if loop.first else ", " }}{"{{ call.function.name }}": {{ call.function.arguments | tojson }}}'
        "{{ ']</calls>' if loop.last }}{% endfor %}<|end|>{% endfor %}"
        "{% if tools %}<|tools|>{{ tools | tojson }}<|end|>{% endif %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    template = ChatTemplate(source)
    style, _ = choose_style(template)
    with pytest.raises(TemplateError, match="what ends its arguments may stand in them"):
        response_template(style, template)
