"""Rounds of loops over tools as macros: the same prompts, and no tool written out twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jinja2 import nodes

from toolgram import ChatTemplate
from toolgram.template import chat_template, sandbox

TEMPLATES = Path(__file__).resolve().parents[3] / "shared/templates"
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
    for name, properties in (
        ("look", {}),
        ("find", {"text": {"type": "string"}, "most": {"type": "integer"}}),
        ("look", {"at": {"type": "string"}}),
    )
]
MESSAGES = [{"role": "user", "content": "Hello."}, {"role": "user", "content": "Have a look."}]
PARAMETERS = "t.function.parameters.properties"
ALIKE = {
    "where it is in the loop": """{% for t in tools %}{{ loop.index0 }}{{ loop.last }}
        {%- for p in PARAMETERS %}{{ loop.first }}{{ p }}{% endfor %}{{ loop.revindex }}{% endfor %}""",
    "a name set in a round": """{% for t in tools %}{% set f = t.function %}{{ f.name }}
        {%- for p in f.parameters.properties %}{% set p = p ~ 1 %}{{ p }}{% endfor %}{{ p }}{% endfor %}""",
    "its item set anew": """{% for t in tools %}{% if t.function %}{% set t = t.function %}{% endif %}{{ t.name }}
        {%- for p in t.parameters.properties %}{{ p }}{% endfor %}{% endfor %}""",
    "a loop that filters": """{% for t in tools if PARAMETERS %}{% for p in PARAMETERS %}{{ p }}{% else %}none
        {%- endfor %}{{ loop.length }}{% else %}no tools{% endfor %}""",
    "the loop's place in an inner loop's else": """{% for t in tools %}{% for p in PARAMETERS %}{{ p }}
        {%- else %}{{ loop.index }}{% endfor %}{% endfor %}""",
    "macros, its own name among them": """{% macro _round_0(x) %}<{{ x }}>{% endmacro %}{% macro all(tools) %}
        {%- for t in tools %}{{ _round_0(t.function.name) }}{% for p in PARAMETERS %}{{ p }}{% endfor %}{% endfor %}
        {%- endmacro %}{{ all(tools) }}""",
    "a namespace outside": """{% set ns = namespace(n=0) %}{% for t in tools %}{% for p in PARAMETERS %}
        {%- set ns.n = ns.n + 1 %}{{ p }}{% endfor %}{{ ns.n }}{% endfor %}""",
    "a name set outside": """{% set mark = '#' %}{% for t in tools %}{{ mark }}{% for p in PARAMETERS %}{{ p }}
        {%- endfor %}{% endfor %}""",
    "other variables": """{% for m in messages %}{% for t in tools %}{{ t.function.name }}{% endfor %}{{ m.content }}
        {{- messages[loop.index0 - 1].content }}{% endfor %}""",
    "a round that ends the loop": """{% for t in tools %}{% for p in PARAMETERS %}{{ p }}{% endfor %}
        {%- if loop.index == 2 %}{% break %}{% endif %}{{ t.function.name }}{% endfor %}""",
    "more of the loop": """{% for t in tools %}{% for p in PARAMETERS %}{{ p }}{% endfor %}
        {{- loop.previtem is defined }}{{ loop.cycle('a', 'b') }}{% endfor %}""",
    "a loop's place in what an inner loop filters by": """{% for t in tools %}{% set n = loop.index0 %}
        {%- for p in PARAMETERS if n %}{{ p }}{% endfor %}{% endfor %}""",
    "a macro in a round": """{% for t in tools %}{% macro say(p) %}({{ p }}){% endmacro %}
        {%- for p in PARAMETERS %}{{ say(p) }}{% endfor %}{% endfor %}""",
    "what a macro has of its own": """{% macro all() %}{% for t in tools %}{% for p in PARAMETERS %}{{ caller() ~ p }}
        {%- endfor %}{{ varargs[0] ~ kwargs.k }}{% endfor %}{% endmacro %}{% call all(1, k=2) %}#{% endcall %}""",
    "a loop in itself": """{% for t in tools recursive %}{% for p in PARAMETERS %}{{ p }}{% endfor %}{% endfor %}""",
}
EXPECTED = {
    "where it is in the loop": "0False31FalseTruetextFalsemost22TrueTrueat1",
    "a name set in a round": "lookfindtext1most1lookat1",
    "its item set anew": "lookfindtextmostlookat",
    "a loop that filters": "textmost2at2",
    "the loop's place in an inner loop's else": "1textmostat",
    "macros, its own name among them": "<look><find>textmost<look>at",
    "a namespace outside": "0textmost2at3",
    "a name set outside": "##textmost#at",
    "other variables": "lookfindlookHello.Have a look.lookfindlookHave a look.Hello.",
    "a round that ends the loop": "looktextmost",
    "more of the loop": "FalseatextmostTruebatTruea",
    "a loop's place in what an inner loop filters by": "textmostat",
    "a macro in a round": "(text)(most)(at)",
    "what a macro has of its own": "12#text#most12#at12",
    "a loop in itself": "textmostat",
}


def shown(source: str, tools: list[dict[str, Any]] = TOOLS) -> str:
    return ChatTemplate(source.replace("PARAMETERS", PARAMETERS), "<s>", "</s>").render(MESSAGES, tools)


@pytest.mark.parametrize("name", [*ALIKE])
def test_it_writes_what_jinja_writes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a round reads; twice, since what is remembered is written again."""
    assert shown(ALIKE[name]) == shown(ALIKE[name]) == EXPECTED[name]

    def none(tree: nodes.Template, pure: object) -> dict[str, frozenset[str]]:
        return {}

    monkeypatch.setattr(chat_template, "rounds_as_macros", none)
    assert shown(f"{ALIKE[name]}{{# another template #}}") == EXPECTED[name]


def rounds(source: str) -> list[str]:
    """The macros that were made of rounds, and which are pure."""
    return sorted(name for name in chat_template.compiled(source).macros if name.startswith("_round"))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("Qwen3-Coder", 1),
        ("openai-gpt-oss-120b", 1),
        ("meetkai-functionary-medium-v3.2", 2),
        ("CohereForAI-c4ai-command-r-plus-tool_use", 3),
    ],
)
def test_templates_that_write_tools_out_have_such_rounds(name: str, count: int) -> None:
    assert len(rounds((TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8"))) == count


def test_a_tool_that_is_known_is_not_written_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a set that is new."""
    source = "{% for t in tools %}{{ t.function.name }}{% for p in PARAMETERS %}{{ p }}{% endfor %}{% endfor %}"
    shown(source)
    written = list[str]()
    monkeypatch.setattr(sandbox.MeteredEnvironment, "getattr", _noting(written))
    new: dict[str, Any] = {"type": "function", "function": {"name": "new", "parameters": {"properties": {"x": {}}}}}
    assert shown(source, [*TOOLS, new]) == "lookfindtextmostlookatnewx"
    assert written == ["new"]


def _noting(written: list[str]) -> Any:
    ask = sandbox.MeteredEnvironment.getattr

    def getattr_(self: sandbox.MeteredEnvironment, obj: Any, attribute: str) -> Any:
        found = ask(self, obj, attribute)
        if attribute == "name":
            written.append(found)
        return found

    return getattr_
