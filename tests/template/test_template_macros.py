"""What templates write of tools is remembered where the tools alone decide it, and nowhere else."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from toolgram.errors import TemplateError
from toolgram.template import macros
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.sandbox import environment

TEMPLATES = Path(__file__).resolve().parents[3] / "shared/templates"
NOW = datetime(2026, 1, 1)
SHOW = "{% macro show(tool, mark='') %}{{ mark ~ tool.function.name }}{% endmacro %}"


SET_BEFORE = (
    "{% if x %}{% set n = 2 %}{{ n }}{% endif %}",
    "{% if x %}{% set n = 2 %}{% elif x is none %}{% set n = 3 %}{% else %}{% set n = 4 %}{% endif %}{{ n }}",
    "{% for y in x %}{% set n = y %}{{ n }}{% endfor %}",
    "{% if x %}{% set n %}{{ x }}{% endset %}{% for y in n if y != n %}{{ y ~ n }}{% endfor %}{% endif %}",
    "{% if x %}{% set n, m = x %}{% if m %}{{ n }}{% endif %}{% endif %}",
    "{% if x %}{% set n = namespace(k=x) %}{% set n.k = n.k + 1 %}{{ n.k }}{% endif %}",
    "{% macro g(n) %}{{ n }}{% endmacro %}{% macro h() %}{% set n = 2 %}{{ n }}{% endmacro %}{{ g(x) ~ h() }}",
    "{% if x %}{% set n = 2 %}{% macro g() %}{{ n }}{% endmacro %}{{ g() }}{% endif %}",
)
READ_BEFORE = (
    "{% if x %}{% set n = 2 %}{% endif %}{{ n }}",
    "{% if x %}{% set n = 2 %}{% elif x is none %}3{% else %}{% set n = 4 %}{% endif %}{{ n }}",
    "{% if x %}{% set n = 2 %}{% elif n %}{% set n = 3 %}{% endif %}",
    "{% for y in x %}{% if y %}{% set n = y %}{% endif %}{{ n }}{% endfor %}",
    "{% for y in x %}{% set n = y %}{% else %}{{ n }}{% endfor %}",
    "{% if x %}{% set n = n + 1 %}{{ n }}{% endif %}",
    "{% if x %}{% set n %}{{ n }}{% endset %}{% endif %}",
    "{% if x %}{% set n.k = 1 %}{% set n = 2 %}{% endif %}",
    "{% for y in x if n %}{% set n = y %}{{ n }}{% endfor %}",
    "{% for y in x %}{{ n }}{% endfor %}{% set n = 2 %}",
    "{% macro g() %}{{ n }}{% endmacro %}{{ g() }}{% set n = 2 %}",
    "{% for y in x %}{{ n }}{% endfor %}{% macro n() %}{% endmacro %}",
)
"""Of macros: `n`, which the template sets too, is set before it is read, whichever way it goes, or may not be."""


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A tool with these parameters."""
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": "It.", "parameters": parameters}}


def rendered(source: str, *tools: Any, **variables: Any) -> str:
    return ChatTemplate(source).render([{"role": "user", "content": "x"}], json.loads(json.dumps(tools)), **variables)


def pure(source: str) -> set[str]:
    return set(macros.pure_macros(environment().parse(source)))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (SHOW, {"show"}),
        (SHOW + "{% macro twice(tool) %}{{ show(tool) ~ show(tool) }}{% endmacro %}", {"show", "twice"}),
        ("{% macro deep(x) %}{% if x.items %}[{{ deep(x.items) }}]{% endif %}{% endmacro %}", {"deep"}),
        ("{% macro f(x) %}{% set ns = namespace(n=0) %}{% set ns.n = 1 %}{{ ns.n ~ x }}{% endmacro %}", {"f"}),
        ("{% macro f(x) %}{% for y in x %}{{ y ~ loop.index }}{% endfor %}{% endmacro %}", {"f"}),
        ("{% set n = 1 %}{% macro f(x) %}{{ x ~ n }}{% endmacro %}", set[str]()),
        ("{% set n = 1 %}{% macro f(x, y=n) %}{{ x ~ y }}{% endmacro %}", set[str]()),
        ("{% for n in [1, 2] %}{% macro f(x) %}{{ x ~ n }}{% endmacro %}{{ f(1) }}{% endfor %}", set[str]()),
        ("{% macro f(x) %}{% set n.m = x %}{% endmacro %}{% set n = namespace(m=0) %}", set[str]()),
        ("{% set range = 1 %}{% macro f(x) %}{{ range }}{% endmacro %}", set[str]()),
        ("{% macro f(x) %}1{% endmacro %}{% macro f(x) %}2{% endmacro %}", set[str]()),
        ("{% macro g(x) %}{{ f(x) }}{% endmacro %}{% set n = 1 %}{% macro f(x) %}{{ n }}{% endmacro %}", set[str]()),
        ("{% macro f(x) %}{% macro g() %}{{ x }}{% endmacro %}{{ g() }}{% endmacro %}", {"f"}),
        ("{% macro f(x) %}{{ x | random }}{% endmacro %}", set[str]()),
        *((f"{{% set n = 1 %}}{{% macro f(x) %}}{body}{{% endmacro %}}", {"f"}) for body in SET_BEFORE),
        *((f"{{% set n = 1 %}}{{% macro f(x) %}}{body}{{% endmacro %}}", set[str]()) for body in READ_BEFORE),
        ("{% set n = 1 %}{% macro f(x=n) %}{% set n = 2 %}{{ n ~ x }}{% endmacro %}", set[str]()),
        ("{% block b %}{% endblock %}" + SHOW, set[str]()),
    ],
)
def test_a_pure_macro_reads_nothing_that_the_template_sets(source: str, names: set[str]) -> None:
    assert pure(source) == names


def test_other_tools_and_arguments_are_written_otherwise() -> None:
    source = (
        SHOW + "{% for tool in tools %}{{ show(tool) ~ show(tool, mark) ~ show(mark='+', tool=tool) }};{% endfor %}"
    )
    for _ in range(2):
        assert rendered(source, tool("a"), mark="-") == "a-a+a;"
        assert rendered(source, tool("b"), tool("a"), mark="*") == "b*b+b;a*a+a;"


def test_a_variable_that_a_macro_reads_counts() -> None:
    source = (
        "{% macro f(tool) %}{% if other %}{{ other }}{% endif %}{{ tool.function.name }}{% endmacro %}{{ f(tools[0]) }}"
    )
    assert pure(source) == {"f"}  # where there is no such variable
    assert [rendered(source, tool("a"), **given) for given in ({}, {"other": 1}, {"other": 2}, {})] == [
        "a",
        "1a",
        "2a",
        "a",
    ]


def test_a_function_of_the_request_is_none_of_jinjas() -> None:
    source = "{% macro f(tool) %}{{ range is string }}{% endmacro %}{{ f(tools[0]) }}"
    assert [rendered(source, tool("a")), rendered(source, tool("a"), range="x")] == ["False", "True"]


def test_a_macro_may_change_what_it_is_given() -> None:
    source = (
        "{% macro f(tool, state) %}{% set state.n = state.n + 1 %}{{ state.n }}{% endmacro %}"
        "{% set state = namespace(n=0) %}{{ f(tools[0], state) ~ f(tools[0], state) }}"
    )
    assert rendered(source, tool("a")) == rendered(source, tool("a")) == "12"


def test_json_is_written_as_it_is_asked_for() -> None:
    source = "{{ tools[0] | tojson(indent=1) ~ tools[0] | tojson ~ tools[0] | tojson(separators=(',', ':')) }}"
    one = tool("a", x={"type": "string"})
    indented, compact = json.dumps(one, ensure_ascii=False, indent=1), json.dumps(one, separators=(",", ":"))
    every = indented, json.dumps(one, ensure_ascii=False), compact
    assert rendered(source, one) == rendered(source, one) == "".join(every)


@pytest.mark.parametrize("indent", ["none", "0", "2", "-1", "true", "'--'", "'\\n'"])
def test_lists_of_tools_are_written_from_what_is_known_of_these(indent: str) -> None:
    """As `json.dumps` writes them, in any order, the tools themselves or a part of each."""
    made = f"tojson(indent={indent}, sort_keys=false)"
    source = f"{{{{ tools | {made} ~ tools | map(attribute='function') | {made} ~ (tools * 2) | {made} }}}}"
    one, two = tool("a\nb", x={"enum": ["\n", {}, []]}), tool("b")
    as_python = {"none": None, "true": True, "'--'": "--", "'\\n'": "\n"}
    space: Any = as_python[indent] if indent in as_python else int(indent)
    for tools in ([one], [one, two], [two, one], [two, one]):
        lists = tools, [each["function"] for each in tools], tools * 2
        assert rendered(source, *tools) == "".join(json.dumps(each, ensure_ascii=False, indent=space) for each in lists)


def test_a_list_that_repeats_a_tool_is_weighed_first() -> None:
    with pytest.raises(TemplateError, match="writes a value without bound"):
        rendered("{{ (tools * 100000) | tojson(indent=1) }}", {**tool("a"), "description": "x" * 1000})


def test_what_python_writes_otherwise_is_not_taken_for_the_same() -> None:
    template = ChatTemplate(SHOW + "{{ tools[0].function.parameters | string ~ show(tools[0]) }}")
    for made in (dict[str, Any], OrderedDict[str, Any], dict[str, Any]):
        parameters = made(type="object", default=date(2026, 1, 1))
        tools = [{"type": "function", "function": {"name": "a", "parameters": parameters}}]
        assert template.render([], tools) == f"{parameters}a"


def test_a_filter_of_a_set_block_may_read_what_is_set_outside() -> None:
    source = "{% set m = n %}{% macro f(t) %}{% set x | default(m) %}{{ t.type }}{% endset %}{{ x }}{% endmacro %}"
    assert pure(source) == set()
    assert rendered(source + "{{ f(tools[0]) }}", tool("a"), n=1) == "function"


def test_a_tool_is_written_as_python_writes_it() -> None:
    source = "{{ tools[0] | string ~ (tools[0].function.parameters.properties | string | length) ~ none | string }}"
    one, two = tool("a", x={"default": True}), tool("a", x={"default": 1})
    for each in (one, two, one):
        assert rendered(source, each) == f"{each}{len(str(each['function']['parameters']['properties']))}None"


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.jinja")), ids=lambda path: path.stem)
def test_real_templates_write_the_same_of_known_tools(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = ChatTemplate.from_file(path, "<s>", "</s>")
    described = {"type": "string", "description": "What."}
    tools = [tool("first", a=described, b={**described, "enum": ["x", "y"]}), tool("second", a=described)]
    messages = [{"role": "user", "content": "x"}]

    def texts() -> list[str]:
        every = [template.capabilities.tool_variables(tools[:count], NOW) for count in (1, 2, 2)]
        return [template.render(messages, now=NOW, **variables) for variables in every]

    def never(*_: object, **__: object) -> None:
        """Nothing is remembered."""

    remembered = texts() + texts()
    monkeypatch.setattr(macros.Remembered, "of_macro", never)
    monkeypatch.setattr(macros.Remembered, "of_json", never)
    monkeypatch.setattr(macros.Remembered, "of_text", never)
    assert remembered == texts() * 2


TYPES = """{% macro kind(schema) %}{{ schema.type }}{% if schema['items'] is mapping %}[{{ kind(schema['items']) }}
{%- endif %}{% endmacro %}{{ kind(tools[0].function.parameters.properties.x) }}"""


def test_a_schema_inside_of_others_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = list[str]()
    note = macros.TOGETHER.note
    monkeypatch.setattr(macros.TOGETHER, "note", lambda *given: noted.append(given[2][0]) or note(*given))
    inner = {"type": "of this test", "items": {"type": "string"}}
    for outer in ("first", "second"):
        assert rendered(TYPES, tool("a", x={"type": outer, "items": inner})) == f"{outer}[of this test[string"
    assert noted == ["string", "of this test[string", "first[of this test[string", "second[of this test[string"]


def test_schemas_may_hold_one_another_in_any_way() -> None:
    shared: dict[str, Any] = {"type": "leaf"}
    for _ in range(60):  # as a tree it would be larger than any memory
        shared = {"type": "of", "left": shared, "right": shared}
    circle: dict[str, Any] = {"type": "round"}
    circle["itself"] = [circle]
    flat = "{% macro w(schema) %}{{ schema.type }}{% endmacro %}{{ w(tools[0].function.parameters.properties.x) }}"
    template = ChatTemplate(flat)
    strange: dict[str, Any] = {"type": "string"}
    for more in (shared, circle):
        assert template.render([], [tool("a", x=strange, y=more)]) == "string"


def test_numbers_that_are_equal_and_written_otherwise_are_others() -> None:
    source = "{% macro w(schema, value) %}{{ value }}{% endmacro %}{% for name, each in "
    source += "tools[0].function.parameters.properties | items %}{{ w(each['items'], each.default) }} {% endfor %}"
    values = [0.0, -0.0, 0, False, 1.0, 1, True]
    kinds = {f"p{n}": {"items": {"type": "number"}, "default": value} for n, value in enumerate(values)}
    assert rendered(source, tool("a", **kinds)) == "0.0 -0.0 0 False 1.0 1 True "


@dataclass
class Meter:
    """Counts steps, and renders nothing."""

    left: int = 100
    remembered: macros.Remembered | None = None
    eval_ctx: Any = None

    def spend(self, steps: int = 1) -> bool:
        self.left -= steps
        return True


def test_steps_count_whether_a_text_is_known_or_not() -> None:
    written: list[str] = []

    def write() -> str:
        meter.spend(7)
        written.append("text")
        return "text"

    for _ in range(2):
        meter = Meter()
        assert macros.written(meter, ("a key of this test alone",), write) == "text"
        assert meter.left == 93
    assert written == ["text"]
