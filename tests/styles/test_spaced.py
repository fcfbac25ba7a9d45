"""Calls in the white space that a template writes around them, where it is not that of the template's family."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import tool
from toolgram import Message, ToolCall
from toolgram.styles.choose import choose_style
from toolgram.styles.discovery.as_python import python_source

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TEMPLATE = """\
{%- set newline = "\\n" %}{% if tools %}<|system|>{{ tools | tojson }}<|end|>{% endif %}
{%- for message in messages %}<|{{ message.role }}|>{{ message.content or "" }}
{%- for call in message.tool_calls or [] %}CALL{% endfor %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
LIST = """[{% for call in message.tool_calls %}{{ {"name": call.function.name, "arguments": call.function.arguments,
"id": call.id} | tojson }}{% if not loop.last %}, {% endif %}{% endfor %}]"""
JSON = '{{ {"name": call.function.name, "arguments": call.function.arguments} | tojson }}'
CALL = '{"name": "f", "arguments": {"a": 1}}'
NAME, ARGUMENTS = "{{ call.function.name }}", "{{ call.function.arguments | tojson }}"
BY_HAND = '{{ "{" }}"name":"NAME","arguments":ARGUMENTS{{ "}" }}'.replace("NAME", NAME).replace("ARGUMENTS", ARGUMENTS)
MANNERS = {  # how a template writes one call or several, the style, a call so, and one as the family has it
    "EXAONE 4": (
        f"<tool_call>{JSON}</tool_call>",
        "hermes",
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}\n</tool_call>",
    ),
    "indented": (
        f"<tool_call>\n  {JSON}\n</tool_call>",
        "hermes",
        f"<tool_call>\n  {CALL}\n</tool_call>",
        f"<tool_call>\n{CALL}\n</tool_call>",
    ),
    "Mistral 7B v0.3": (
        f"{{% if loop.first %}}[TOOL_CALLS] {LIST}{{% endif %}}",
        "mistral_nemo",
        f'[TOOL_CALLS] [{CALL[:-1]}, "id": "abcdefghi"}}]',
        f'[TOOL_CALLS][{CALL[:-1]}, "id": "abcdefghi"}}]',
    ),
    "JSON written by hand around arguments": (
        f"<tool_call>\n{BY_HAND}\n</tool_call>",
        "hermes",
        '<tool_call>\n{"name":"f","arguments":{"a": 1}}\n</tool_call>',
        f"<tool_call>\n{CALL}\n</tool_call>",
    ),
    "JSON on lines": (
        '<tool_call>\n{{ "{" }}\n  "name": "NAME",\n  "arguments": ARGUMENTS\n}\n</tool_call>'.replace(
            "NAME", NAME
        ).replace("ARGUMENTS", ARGUMENTS),
        "hermes",
        '<tool_call>\n{\n  "name": "f",\n  "arguments": {"a": 1}\n}\n</tool_call>',
        f"<tool_call>\n{CALL}\n</tool_call>",
    ),
    "Jamba": (
        f"{{{{ '<tool_calls>[' if loop.first else ',' }}}}{{{{ newline }}}}    {JSON}"
        "{% if loop.last %}{{ newline }}]</tool_calls>{% endif %}",
        "hunyuan",
        f"<tool_calls>[\n    {CALL}\n]</tool_calls>",
        f"<tool_calls>[{CALL}]</tool_calls>",
    ),
    "spaces around a name": (
        f"[TOOL_CALLS] {NAME} [ARGS] {ARGUMENTS}",
        "ministral",
        '[TOOL_CALLS] f [ARGS] {"a": 1}',
        '[TOOL_CALLS]f[ARGS]{"a": 1}',
    ),
    "Ling 3": (
        f"<tool_call>{NAME}{{{{ newline }}}}{{% for k, v in call.function.arguments.items() %}}<arg_key>{{{{ k }}}}"
        "</arg_key>{{ newline }}<arg_value>{{ v }}</arg_value>{% endfor %}{{ newline }}</tool_call>",
        "glm_4_7",
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        None,  # white space between the tags of a value may be some of the value
    ),
    "a line break before calls": (
        f"{{{{ newline }}}}[TOOL_CALLS]{NAME}[ARGS]{ARGUMENTS}",
        "ministral",
        '\n[TOOL_CALLS]f[ARGS]{"a": 1}',
        '[TOOL_CALLS]f[ARGS]{"a": 1}',
    ),
}


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("name", MANNERS)
def test_a_call_may_be_spaced_as_the_template_or_as_its_family_has_it(name: str, choice: str) -> None:
    way, style, here, elsewhere = MANNERS[name]
    template = toolgram.ChatTemplate(TEMPLATE.replace("CALL", way))
    body = {"messages": [{"role": "user", "content": "?"}], "tools": [tool("f", SCHEMA)], "tool_choice": choice}
    plan = toolgram.plan(body, template)
    assert plan.style.name == style
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    texts = {text for text in (here, elsewhere) if text}
    assert all(grammar.accepts(text) for text in texts)
    assert all(lark_accepts(grammar.to("lark"), text) and ebnf_accepts(grammar.to("ebnf"), text) for text in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    assert not any(grammar.accepts(here.replace(sign, " " + sign, 1)) for sign in "{1" if sign in here)
    for text in texts:
        read = plan.parse(text)
        assert read.content is None
        assert [(call.name, call.arguments) for call in read.tool_calls] == [("f", '{"a": 1}')]


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_so_it_is_where_a_model_that_is_not_asked_to_think_begins_otherwise(choice: str) -> None:
    """As Bielik 3, whose turns begin with a line break where the prompt opens no thoughts."""
    thinks = "{% if add_generation_prompt %}<|assistant|>{{ '<think>' + newline if enable_thinking }}{% endif %}"
    way = f"{{{{ newline if loop.first }}}}<tool_call>\n{JSON}\n</tool_call>"
    source = TEMPLATE.replace("{%- if add_generation_prompt %}<|assistant|>{% endif %}", thinks)
    assert thinks in source
    template = toolgram.ChatTemplate(source.replace("CALL", way))
    body = {"messages": [{"role": "user", "content": "?"}], "tools": [tool("f", SCHEMA)], "tool_choice": choice}
    plan = toolgram.plan(body, template)
    assert plan.constraint is not None
    call = f"<tool_call>\n{CALL}\n</tool_call>"
    texts = {call, "\n" + call}
    assert gbnf_accepted(plan.constraint.grammar.to("gbnf"), texts) == texts
    assert all(plan.constraint.grammar.accepts(text) for text in texts)
    assert plan.parse("\n" + call) == plan.parse(call)


@pytest.mark.parametrize("between", ["", "\n\n", " "])
def test_so_may_calls_be_apart_where_the_template_shows_its_tools_too(between: str) -> None:
    """Forks of Qwen 3.5 have an empty line between calls, others nothing. What may stand there may stand at the end."""
    way = f"{{% if not loop.first %}}{{{{ {between!r} }}}}{{% endif %}}<tool_call>\n{JSON}\n</tool_call>"
    template = toolgram.ChatTemplate(TEMPLATE.replace("CALL", way))
    plan = toolgram.plan({"messages": [{"role": "user", "content": "?"}], "tools": [tool("f", SCHEMA)]}, template)
    assert plan.constraint is not None
    grammar, call = plan.constraint.grammar, f"<tool_call>\n{CALL}\n</tool_call>"
    texts = {call + between + call, f"{call}\n{call}", call + between, f"{call}\n"}
    assert all(grammar.accepts(text) for text in texts)
    assert all(lark_accepts(grammar.to("lark"), text) and ebnf_accepts(grammar.to("ebnf"), text) for text in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    assert [len(plan.parse(text).tool_calls) for text in (call + between + call, call + between)] == [2, 1]


STRINGS = {"type": "object", "properties": {"s": {"type": "string"}, "e": {"enum": ["a", 1]}}, "required": ["s", "e"]}
ASKED = "<tool_call>\n<function=name>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call>"


def tagged(before: str, after: str, line: str) -> str:
    """A call with tags around its values, in white space of their own."""
    values = "".join(
        f"<parameter={key}>{before}{value}{after}</parameter>{line}" for key, value in (("s", "x > y"), ("e", "1"))
    )
    return f"<tool_call>{line}<function=f>{line}{values}</function>{line}</tool_call>"


def in_tags(before: str, after: str, line: str, asked: str = "") -> toolgram.Plan:
    """The plan of a template that writes calls so, and asks for them so."""
    text = {"": "", "\n": "{{ newline }}"}
    value = f"<parameter={{{{ k }}}}>{text[before]}{{{{ v }}}}{text[after]}</parameter>{text[line]}"
    values = f"{{% for k, v in call.function.arguments.items() %}}{value}{{% endfor %}}"
    way = f"<tool_call>{text[line]}<function={NAME}>{text[line]}{values}</function>{text[line]}</tool_call>"
    template = toolgram.ChatTemplate(TEMPLATE.replace("CALL", way).replace("{{ tools", asked + "{{ tools"))
    return toolgram.plan({"messages": [{"role": "user", "content": "?"}], "tools": [tool("f", STRINGS)]}, template)


@pytest.mark.parametrize(
    "spaces", [("", "\n", "\n"), ("", "", "\n"), ("", "", "")], ids=["Tiny Aya", "MiMo", "one line"]
)
def test_values_between_tags_have_the_white_space_of_the_template_as_what_is_more_is_theirs(
    spaces: tuple[str, str, str],
) -> None:
    plan = in_tags(*spaces)
    assert plan.style.name == "qwen_xml"
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    own, more = tagged(*spaces), tagged(*spaces).replace("x > y", "\nx\n")
    texts = {own, more}
    assert all(grammar.accepts(text) for text in texts)
    assert not grammar.accepts(own.replace("1", "\n1"))
    assert all(lark_accepts(grammar.to("lark"), text) and ebnf_accepts(grammar.to("ebnf"), text) for text in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    assert plan.parse(own).tool_calls[0].arguments == '{"s": "x > y", "e": 1}'
    assert plan.parse(more).tool_calls[0].arguments == '{"s": "\\nx\\n", "e": 1}'
    assert plan.write(plan.parse(more)) == more


@pytest.mark.parametrize("section", ["tool_call", "my_own"])
def test_parameters_may_be_indented(section: str) -> None:
    """In a family's tags, and in those of a style that is found."""
    head, end = f"<{section}>\n<function=", f"</function>\n</{section}>"
    value = "    <parameter={{ k }}>{{ v }}</parameter>{{ newline }}"
    way = f"{head}{NAME}>\n{{% for k, v in call.function.arguments.items() %}}{value}{{% endfor %}}{end}"
    template = toolgram.ChatTemplate(TEMPLATE.replace("CALL", way))
    plan = toolgram.plan({"messages": [{"role": "user", "content": "?"}], "tools": [tool("f", STRINGS)]}, template)
    assert plan.constraint is not None
    text = f"{head}f>\n    <parameter=s>  x\n</parameter>\n    <parameter=e>1</parameter>\n{end}"
    assert plan.constraint.grammar.accepts(text)
    assert plan.parse(text).tool_calls[0].arguments == '{"s": "  x\\n", "e": 1}'
    assert plan.write(plan.parse(text)) == text
    reader = plan.reader()
    events = [event for char in text for event in reader.feed(char)] + reader.finish()
    assert Message.from_events(events) == plan.parse(text)


def test_they_have_that_of_the_family_too_where_the_template_asks_for_it() -> None:
    """Tiny Aya's does, and writes another itself."""
    plan = in_tags("", "\n", "\n", ASKED)
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    texts = {tagged(before, "\n", "\n") for before in ("", "\n")}
    assert all(grammar.accepts(text) for text in texts)
    assert not grammar.accepts(tagged("\n\n", "\n", "\n"))
    assert all(lark_accepts(grammar.to("lark"), text) and ebnf_accepts(grammar.to("ebnf"), text) for text in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    assert {plan.parse(text).tool_calls[0].arguments for text in texts} == {'{"s": "x > y", "e": 1}'}


def test_arguments_in_json_have_the_separators_of_the_template() -> None:
    """In whatever JSON they stand: what a template writes around them by hand has others."""
    compact = "{{ call.function.arguments | tojson(separators=(',', ':')) }}"
    for tag in ("tool_call", "my_own"):
        way = f'<{tag}>\n{{{{ "{{" }}}}"name": "{NAME}", "arguments": {compact}}}\n</{tag}>'
        template = toolgram.ChatTemplate(TEMPLATE.replace("CALL", way))
        body = {"messages": [{"role": "user", "content": "?"}], "tools": [tool("f", SCHEMA)]}
        plan = toolgram.plan(body, template)
        assert plan.constraint is not None
        assert plan.constraint.grammar.accepts(f'<{tag}>\n{{"name": "f", "arguments": {{"a":1}}}}\n</{tag}>')


def test_what_is_spaced_as_in_the_family_is_its_own_style() -> None:
    own = toolgram.ChatTemplate(TEMPLATE.replace("CALL", f"<tool_call>\n{JSON}\n</tool_call>"))
    body = {"messages": [{"role": "user", "content": "?"}], "tools": [tool("f", SCHEMA)]}
    plan = toolgram.plan(body, own)
    text = plan.write(Message(tool_calls=(ToolCall("f", '{"a": 1}'),)))
    assert text == f"<tool_call>\n{CALL}\n</tool_call>"
    assert plan.constraint is not None
    assert not plan.constraint.grammar.accepts(f"<tool_call>{CALL}</tool_call>")


def test_such_a_style_is_the_same_when_it_was_printed() -> None:
    for way, *_ in MANNERS.values():
        style, _ = choose_style(toolgram.ChatTemplate(TEMPLATE.replace("CALL", way)))
        made: dict[str, Any] = {}
        exec(python_source(style), made)  # noqa: S102 - our own text
        assert made["STYLE"].wire == style.wire
