"""Templates render as transformers renders them, and stay within the sandbox."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from transformers.utils import chat_template_utils

from toolgram.errors import TemplateError
from toolgram.template.chat_template import ChatTemplate

TEMPLATES = Path(__file__).resolve().parents[3] / "shared/templates"
NOW = datetime(2024, 7, 26, 12, 0)

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
SCALARS = {"a": {"type": "string", "description": "A."}, "b": {"type": "integer", "description": "B."}}

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "find <é>",
            "description": "Finds & 'tells' \"things\"",
            "parameters": {
                "type": "object",
                "properties": {
                    "q": {"type": "string", "description": "What.", "enum": ["a", "b"]},
                    "n": {"type": ["integer", "null"], "default": 3},
                    "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
                },
                "required": ["q"],
            },
        },
    },
    {"type": "function", "function": {"name": "now", "description": "", "parameters": NOTHING}},
]
SIMPLE: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {"name": "f", "description": "F.", "parameters": {**NOTHING, "properties": SCALARS}},
    },
]


def say(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def calling(arguments: Any, content: Any = None, count: int = 1, **fields: Any) -> dict[str, Any]:
    calls = [
        {"id": f"abcdefgh{at}", "type": "function", "function": {"name": "find <é>", "arguments": arguments}}
        for at in range(count)
    ]
    return say("assistant", content, tool_calls=calls, **fields)


def result(at: int = 0) -> dict[str, Any]:
    return say("tool", '{"r": "<b>"}', name="find <é>", tool_call_id=f"abcdefgh{at}")


ARGUMENTS = {"q": "é <x> \"'", "n": 1, "l": [{"x": 1.5}, None]}
CONVERSATIONS = [
    [say("user", "Hi <b>&amp; é")],
    [say("system", "  Be brief. \n"), say("user", " a \n"), say("assistant", "\nb</think>\n\nc "), say("user", "d")],
    [say("user", "a"), calling(ARGUMENTS), result(), say("assistant", "done"), say("user", "b")],
    [say("user", "a"), calling('{"q": "é"}', "", reasoning_content="hm"), result()],
    [say("system", "S"), say("user", "a"), calling(ARGUMENTS, "first", 2, thinking="hm"), result(), result(1)],
    [say("user", [{"type": "text", "text": "part"}, {"type": "image", "image": "x"}])],
    [say("user", "a"), say("assistant", "b", reasoning="hm")],
    [say("developer", "D"), say("user", "a"), say("user", "b")],
]


# Refused by transformers: a generator given to `tojson`, of which we make a list; a list of the template's own that it
# adds to; arguments that it reads as JSON.
BEYOND = {"llama-cpp-deepseek-r1", "Kimi-K2-Instruct", "deepseek-ai-DeepSeek-V3.2"}


def theirs(template: ChatTemplate, monkeypatch: pytest.MonkeyPatch, messages: Any, **options: Any) -> str | None:
    class Clock(datetime):
        @classmethod
        def now(cls, _: Any = None) -> Clock:
            return cls(2024, 7, 26, 12, 0)

    monkeypatch.setattr(chat_template_utils, "datetime", Clock)
    try:
        rendered, _ = chat_template_utils.render_jinja_template(
            [messages],
            chat_template=template.source,
            bos_token=template.bos_token,
            eos_token=template.eos_token,
            **options,
        )
    except Exception:  # noqa: BLE001  whatever the template raises: ours has to raise too
        return None
    return rendered[0]


def ours(template: ChatTemplate, messages: Any, **options: Any) -> str | None:
    try:
        return template.render(messages, now=NOW, **options)
    except TemplateError:
        return None


@pytest.mark.skipif(not TEMPLATES.is_dir(), reason="the shared data folder is not beside this checkout")
@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.jinja")), ids=lambda path: path.stem)
def test_renders_as_transformers_does(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = ChatTemplate.from_file(path, "<s>", "</s>")
    rendered = 0
    for messages in CONVERSATIONS:
        for tools in (None, SIMPLE, TOOLS):
            for extra in ({}, {"enable_thinking": False}, {"functions": "[]", "datetime": "now"}):
                for prompt in (False, True):
                    options = {"tools": tools, "add_generation_prompt": prompt, **extra}
                    expected = theirs(template, monkeypatch, messages, **options)
                    found = ours(template, messages, **options)
                    assert found == expected or (expected is None and path.stem in BEYOND)
                    rendered += expected is not None
    assert rendered


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}{% break %}{% endfor %}",
        "{% generation %}{% set x = 1 %}{{ x }}{% endgeneration %}[{{ x }}]",
        "  {% if true %}\n a\n  {% endif %}\n b ",
        "{{ messages|tojson(indent=2) }}{{ {'b': '</é>', 'a': 1}|tojson(sort_keys=true, separators=(',', ':')) }}",
        "{{ {'é': 1}|tojson(ensure_ascii=true) }}{{ [1, 'a', none, true] }}{{ 'a' ~ 1 ~ none ~ [1] }}{{ 1.0 }}",
        "{% macro m(x) %}<{{ x }}{{ caller() if caller }}>{% endmacro %}{{ m(1) }}{% call m(2) %}c{% endcall %}",
        "{% for x in [3, [4, [5]]] recursive %}{{ loop(x) if x is iterable else x }}{{ loop.last }}{% endfor %}",
        "{% for x in range(5) if x % 2 %}{{ x }}{{ loop.length }}{{ loop.index }}{% else %}none{% endfor %}",
        "{% set ns = namespace(n=0) %}{% for x in [1, 2] %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}",
        "{% set ns = namespace(_n=0) %}",
        "{{ dict(a=1) }}{{ dict.fromkeys('ab', 1) }}",
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ 'a'|center(9) }}{{ 'a\nb'|indent(2) }}{{ [1, 2]|join(', ') }}{{ 'aa'|replace('a', 'b') }}{{ [1, 2]|sum }}",
        "{{ '%s-%05d' % ('a', 3) }}{{ '{:>4}'.format('x') }}{{ 'ab'.replace('a', 'c').join(['1', '2']) }}{{ '-' * 3 }}",
        "{{ '%s' | format(70000) }}{{ '%05d=%s' | format(3, 'x') }}",
        "{{ strftime_now('%Y-%m-%d') }}{{ missing }}{{ missing is defined }}{{ missing.x }}",
        "{{ [1, 2, 3]|batch(2)|list }}{{ 'one two'|wordwrap(3) }}{{ [1]|string }}",
        "{{ 2 ** 8 }}{{ [1] + [2] }}{{ 7 // 2 }}{{ 7 / 2 }}{{ -1 }}{{ 'a' + 'b' }}{{ 'a' + 1 }}",
    ],
)
def test_each_feature_is_as_in_transformers(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    template = ChatTemplate(source)
    messages = [say("user", "Hi"), say("assistant", "Yo")]
    assert ours(template, messages) == theirs(template, monkeypatch, messages)


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{% set x = [] %}{% for m in messages %}{% set _ = x.append(m.role) %}{% endfor %}{{ x }}", "['user']"),
        ("{% set x = namespace(a=[1, [2]]) %}{% set _ = x.a[1].append(3) %}{{ x.a.pop(0) }}{{ x.a }}", "1[[2, 3]]"),
        ("{% set x = {'a': 1} %}{% set _ = x.update({'b': messages}) %}{{ x.b == messages }}{{ x|length }}", "True2"),
        ("{% macro m() %}{% set x = [] %}{% set _ = x.append(1) %}{{ x }}{% endmacro %}{{ m() }}{{ m() }}", "[1][1]"),
        ("""{{ ('{"a": [1]}' | from_json).a }}""", "[1]"),
    ],
)
def test_a_template_may_change_what_it_made_itself(source: str, written: str) -> None:
    assert [ChatTemplate(source).render([say("user", "Hi")]) for _ in range(2)] == [written, written]


@pytest.mark.parametrize(
    "source",
    [
        "{% set _ = messages.append(1) %}",
        "{% set _ = messages[0].update({'role': 'system'}) %}",
        "{% set x = [messages] %}{% set _ = x[0].pop() %}",
        "{% set x = [1] %}{% set _ = x.extend(x) %}",
    ],
)
def test_what_a_template_was_given_stays_as_it_is(source: str) -> None:
    messages = [say("user", "Hi")]
    with pytest.raises(TemplateError, match="is unsafe"):
        ChatTemplate(source).render(messages)
    assert messages == [say("user", "Hi")]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a\n{% if %}", "line 2: Expected an expression"),
        ("\n\n{{ a.b.c }}", "line 3: 'a' is undefined"),
        ("{{ raise_exception('only users') }}", "^the template refuses the conversation: only users$"),
        ("\n{{ 1 / 0 }}", "line 2: ZeroDivisionError"),
        ("{% include 'x' %}", "line 1"),
    ],
)
def test_errors_say_what_and_where(source: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        ChatTemplate(source).render([])


LAUGHS = "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
HOSTILE = [
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}",
    "{% for i in range(9999) %}{% set x = range(99999)|map('string')|list %}{% endfor %}",
    "{% for i in range(10 ** 9) %}{% endfor %}",
    "{% for x in [1] recursive %}{{ loop([1] * 100) }}{% endfor %}",
    "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(99) }}",
    "{% for i in range(99999) %}{% for j in range(99) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}{% endfor %}",
    "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    *(
        LAUGHS + use
        for use in ("{{ ns.x }}", "{{ ns.x|tojson }}", "{{ '' ~ ns.x }}", "{{ '%s' % ns.x }}", "{{ ns.x|string }}")
    ),
    "{% set ns = namespace(x=2) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{{ 'a' * 10 ** 9 }}",
    "{{ 9 ** 10000000 }}",
    "{{ 'a'.ljust(10 ** 10) }}",
    "{{ 'a'|center(10 ** 10) }}",
    "{{ 'a'|indent(10 ** 10, true) }}",
    "{{ ('a' * 99999).replace('a', 'a' * 99999) }}",
    "{{ ('a' * 99999)|replace('a', 'a' * 99999) }}",
    "{{ ('a' * 99999).join(['b'] * 99999) }}",
    "{{ (['b'] * 99999)|join('a' * 99999) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '%1000000000d'|format(1) }}",
    "{{ '{:1000000000d}'.format(1) }}",
    "{{ '{:{}}'.format(1, 1000000000) }}",
    "{{ [1]|batch(10 ** 9, 'x')|list }}",
    "{{ [1]|tojson(indent=10 ** 9) }}",
    "{{ lipsum(n=10 ** 6) }}",
    "{% for i in range(99999) %}{{ 'a' * 1000000 }}{% endfor %}",
    "{% set x %}{% for i in range(99999) %}{{ 'a' * 1000000 }}{% endfor %}{% endset %}",
    "{% set x %}{% for i in range(99999) %}{{ 'a'.ljust(1000000) }}{% endfor %}{% endset %}",
    "{% set x = 'a' * 1000000 %}{% for i in range(99999) %}{{ x[i:] }}{% endfor %}",
    "{% set x = [1] %}{% for i in x %}{% set _ = x.append(i) %}{% endfor %}",
    *("{% set x = [] %}{% set _ = x.append(x) %}" + use for use in ("{{ x }}", "{{ x|tojson }}", "{{ x|string }}")),
    "{% set x = {} %}{% set _ = x.update({'a': x}) %}{{ x|tojson }}",
]


@pytest.mark.parametrize("source", HOSTILE)
def test_a_hostile_template_is_stopped(source: str) -> None:
    started = time.thread_time()
    with pytest.raises(TemplateError):
        ChatTemplate(source).render([])
    assert time.thread_time() - started < 5


def test_a_hostile_template_is_stopped_in_any_thread_and_leaves_none_behind() -> None:
    before = threading.active_count()
    template = ChatTemplate(HOSTILE[0])
    caught: list[TemplateError] = []

    def render() -> None:
        with pytest.raises(TemplateError) as error:
            template.render([])
        caught.append(error.value)

    threads = [threading.Thread(target=render) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(caught) == 3
    assert threading.active_count() == before


def test_threads_share_a_template() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")
    texts: dict[int, set[str]] = {}

    def render(at: int) -> None:
        texts[at] = {template.render([say("user", str(at))] * 3) for _ in range(200)}

    threads = [threading.Thread(target=render, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {at: {str(at) * 3} for at in range(4)}


def test_a_long_conversation_is_within_the_limits() -> None:
    template = ChatTemplate(
        "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t + m.content %}{% endfor %}{{ ns.t }}"
    )
    assert len(template.render([say("user", "x" * 1000)] * 1000)) == 1_000_000


def test_tojson_takes_a_generator() -> None:
    template = ChatTemplate("{{ tools|map(attribute='function')|tojson }}")
    assert template.render([], [{"function": {"name": "f"}}]) == '[{"name": "f"}]'


def test_now_is_the_callers() -> None:
    template = ChatTemplate("{{ strftime_now('%d %b %Y') }}")
    assert template.render([], now=NOW) == "26 Jul 2024"
