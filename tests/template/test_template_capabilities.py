"""What templates can express, against what a reader of them says."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import toolgram
from toolgram.template.capabilities import capabilities
from toolgram.template.chat_template import ChatTemplate

TEMPLATES = Path(__file__).resolve().parents[3] / "shared/templates"
GOLDEN = Path(__file__).parent / "data/capabilities.json"
TABLE: dict[str, dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.skipif(not TEMPLATES.is_dir(), reason="the shared data folder is not beside this checkout")
@pytest.mark.parametrize("name", TABLE)
def test_real_templates(name: str) -> None:
    found = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja").capabilities
    assert json.loads(json.dumps(asdict(found), default=sorted)) == TABLE[name]


def of(source: str, bos: str = "", eos: str = "") -> Any:
    return ChatTemplate(source, bos, eos).capabilities


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_plain_chatml() -> None:
    found = of(CHATML)
    assert found.supports_system
    assert found.supports_tool_results
    assert not found.supports_tools
    assert not found.supports_tool_calls
    assert found.tool_call_arguments is None
    assert not found.requires_alternation
    assert not found.requires_user_first
    assert not found.supports_typed_content
    assert found.supports_generation_prompt
    assert found.generation_prompt == "<|im_start|>assistant\n"
    assert found.turn_end == "<|im_end|>\n"
    assert found.stop == ("<|im_end|>",)


def test_names_in_the_source_prove_nothing() -> None:
    found = of(
        "{# tools tool_calls system reasoning_content #}" + CHATML.replace("m.role", "m.role or tools and m.tool_calls")
    )
    assert not found.supports_tools
    assert not found.supports_tool_calls
    assert not found.supports_reasoning


def test_the_end_of_a_turn_is_the_eos_token_where_the_template_writes_it() -> None:
    found = of(
        "{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}"
        "{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}",
        "<s>",
        "</s>",
    )
    assert found.stop == ("</s>",)
    assert found.turn_end == "</s>"
    assert found.generation_prompt == ""
    assert not found.supports_generation_prompt


def test_a_stop_has_all_its_brackets() -> None:
    found = of("{% for m in messages %}<<{{ m.role }}>>{{ m.content }}<</{{ m.role }}>>\n{% endfor %}")
    assert found.stop == ("<</assistant>>",)


def test_the_eos_token_always_stops() -> None:
    assert of(CHATML, "", "<|endoftext|>").stop == ("<|im_end|>", "<|endoftext|>")


def test_a_generation_prompt_in_the_place_of_the_eos_token() -> None:
    found = of(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% else %}{{ eos_token }}{% endif %}",
        "",
        "<|endoftext|>",
    )
    assert found.generation_prompt == "<|assistant|>"
    assert found.stop == ("<|end|>", "<|endoftext|>")


@pytest.mark.parametrize(
    ("arguments", "form"),
    [
        ("c.function.arguments|tojson", "object"),
        ("c.function.arguments", "text"),
        ("'' + c.function.arguments", "text"),
        ("c.function.arguments if c.function.arguments is string else c.function.arguments|tojson", "object"),
        ("c.function|tojson", "object"),
        ("c.function.arguments|length", None),
    ],
)
def test_the_form_of_arguments(arguments: str, form: str | None) -> None:
    calls = "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ " + arguments + " }}{% endfor %}"
    found = of("{% for m in messages %}{{ m.role }}: {{ m.content or '' }}" + calls + "\n{% endfor %}")
    assert found.tool_call_arguments == form
    assert found.supports_tool_calls is (form is not None)
    assert found.supports_parallel_tool_calls is (form is not None)
    assert found.supports_null_content is (form is not None)


def test_content_that_must_be_parts() -> None:
    found = of("{% for m in messages %}{{ m.role }}:{% for p in m.content %}{{ p.text }}{% endfor %}\n{% endfor %}")
    assert found.supports_typed_content
    assert found.requires_typed_content
    assert found.supports_system


@pytest.mark.parametrize("requires_list", [False, True])
def test_tools_beside_content_that_must_be_parts(requires_list: bool) -> None:
    # A text in place of the parts is an error here, which must not be taken for a lack of tools.
    content = "{% for p in m.content %}{{ p['text'] + '' }}{% endfor %}"
    shown = "{% if tools | length %}{{ tools | tojson }}{% endif %}"
    shown = shown if requires_list else "{% if tools %}{{ tools | tojson }}{% endif %}"
    found = of(shown + "{% for m in messages %}{{ m.role }}:" + content + "\n{% endfor %}")
    assert found.requires_typed_content
    assert found.supports_tools
    assert found.requires_tool_list is requires_list


@pytest.mark.parametrize(
    "source",
    [
        "",
        "nothing",
        "{{ raise_exception('no') }}",
        "{{ messages[7].content.x }}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    ],
)
def test_probing_never_raises(source: str) -> None:
    assert not of(source).supports_system


def test_probing_is_done_once() -> None:
    template = ChatTemplate(CHATML)
    assert template.capabilities is ChatTemplate(CHATML).capabilities is capabilities(template)


def test_tools_by_another_name() -> None:
    found = of("{{ functions }}|{{ datetime }}" + CHATML)
    tools = [{"type": "function", "function": {"name": name, "description": "Köln\n"}} for name in ("f", "g")]
    assert found.supports_tools
    assert found.tools_variable == "functions"
    for some in (tools[:1], tools, tools[:1]):
        variables = found.tool_variables(some, datetime(2024, 7, 26))
        assert variables["functions"] == json.dumps(some, indent=2, ensure_ascii=False)
        assert variables["datetime"].startswith("Jul 26 2024")


def test_tools_of_which_calls_in_xml_are_made() -> None:
    """As SmolLM3's template has them, beside those that Python is to call."""
    found = of("{% for tool in xml_tools or [] %}{{ tool }}{% endfor %}" + CHATML)
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert found.supports_tools
    assert found.tool_variables(tools, datetime(2024, 7, 26)) == {"xml_tools": tools}


def test_tools_that_must_be_a_list() -> None:
    found = of("{% for tool in tools %}{{ tool.function.name }}{% endfor %}" + CHATML)
    assert found.requires_tool_list
    assert found.supports_tools
    assert found.tool_variables(None, datetime(2024, 7, 26)) == {"tools": []}
    assert of(CHATML).tool_variables(None, datetime(2024, 7, 26)) == {"tools": None}


CALLS = (
    "{% for m in messages %}{{ '<|end|>' if m.role == 'user' and not loop.first }}<|{{ m.role }}|>{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}CALL{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.mark.parametrize(
    "written",
    [
        '<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>',
        '<|call|>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}<|call_end|>',
    ],
)
def test_what_closes_a_call_does_not_end_the_turn(written: str) -> None:
    """A turn that nothing ends until the next begins ends with its call's own mark; another call may follow that."""
    found = of(CALLS.replace("CALL", written))
    assert found.supports_parallel_tool_calls
    assert found.stop == ("<|end|>",)


def test_a_mark_after_the_only_call_ends_the_turn() -> None:
    written = "{{ c.function.name }}{{ c.function.arguments | tojson }}<|call|>"
    found = of(CALLS.replace("m.tool_calls or []", "(m.tool_calls or [])[:1]").replace("CALL", written))
    assert not found.supports_parallel_tool_calls
    assert found.stop == ("<|end|>", "<|call|>")


@pytest.mark.parametrize("arguments", ["arguments", "arguments if arguments is string else arguments | tojson | safe"])
def test_arguments_are_given_in_the_form_that_jinja_does_not_escape(arguments: str) -> None:
    """To join a text with one that is safe is to escape it, and the quotes around the name are HTML's then."""
    written = (
        "{% set arguments = c.function.arguments %}{% set arguments = ARGUMENTS %}"
        """{{ '[CALL]{"name": "' + c.function.name + '", "arguments": ' + arguments + '}' }}"""
    )
    found = of(CALLS.replace("CALL", written.replace("ARGUMENTS", arguments)))
    assert found.tool_call_arguments == "text"


def test_content_that_calls_and_results_take_as_parts_alone() -> None:
    """As Command A Reasoning's: it looks for thoughts in the first part, and lists the parts of a result."""
    source = (
        "{% for m in messages %}<|{{ m.role }}|>"
        "{% if m.tool_calls %}{% if m.content[0].thinking %}{{ m.content[0].thinking }}{% endif %}"
        "{% for c in m.tool_calls %}<call>{{ c.function.name }}{{ c.function.arguments | tojson }}</call>{% endfor %}"
        "{% elif m.role == 'tool' %}{% for part in m.content %}{{ part | tojson }}{% endfor %}"
        "{% elif m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}{{ part.text }}{% endfor %}"
        "{% endif %}<|end|>{% endfor %}"
    )
    found = of(source)
    assert found.requires_typed_content
    assert found.supports_tool_calls
    assert found.supports_tool_results
    plain = of(
        source.replace("m.content[0].thinking", "m.thinking").replace(
            "{% for part in m.content %}{{ part |", "{% for part in [m.content] %}{{ part |"
        )
    )
    assert plain.supports_typed_content
    assert not plain.requires_typed_content
    assert plain.supports_tool_results


SHOWN_BESIDE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.role == 'system' and tools CONDITION %}"
    "{% for tool in tools %}{{ tool.function.name }}{% endfor %}{% endif %}{% endfor %}"
)
BY_A_USER = "{% for tool in tools or [] if messages[-1].role == 'user' %}{{ tool.function.name }}{% endfor %}"


@pytest.mark.parametrize(
    ("source", "without", "empty"),
    [
        (BY_A_USER + CHATML, True, True),
        (SHOWN_BESIDE.replace("CONDITION", ""), False, True),
        (SHOWN_BESIDE.replace("CONDITION", "and m.content"), False, False),
        (CHATML, False, False),
    ],
)
def test_tools_may_need_a_system_message(source: str, without: bool, empty: bool) -> None:
    found = of(source)
    assert (found.supports_tools_without_system, found.supports_tools_with_empty_system) == (without, empty)
    assert found.supports_tools is (without or empty)  # a text of our own in the system's place may change the answer


@pytest.mark.parametrize(
    ("source", "required"),
    [
        (CHATML, False),
        (BY_A_USER + CHATML, True),
        ("{% if messages[-1].role == 'system' %}{{ raise_exception('No user.') }}{% endif %}" + CHATML, True),
    ],
)
def test_a_user_may_be_required(source: str, required: bool) -> None:
    assert of(source).requires_user is required


def test_calls_may_be_shown_beside_tools_alone() -> None:
    """As Hunyuan A13B's does, which vLLM has: a conversation that goes on without tools lost its calls."""
    source = (
        "{{ tools | tojson if tools }}{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
        "{% for call in m.tool_calls or [] if CONDITION %}<call>{{ {'name': call.function.name, 'arguments': "
        "call.function.arguments} | tojson }}</call>{% endfor %}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 17}'}}
    messages = [
        {"role": "user", "content": "How much?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "42"},
    ]
    for condition, without in (("true", True), ("tools", False)):
        template = ChatTemplate(source.replace("CONDITION", condition))
        found = template.capabilities
        assert (found.supports_tool_calls, found.supports_tool_calls_without_tools) == (True, without)
        prompt = toolgram.plan({"messages": messages}, template).prompt
        assert ('"a": 17' in prompt, "42" in prompt) == (True, True), prompt
