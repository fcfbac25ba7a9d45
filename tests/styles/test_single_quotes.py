"""Where arguments are written in Python, strings stand between either kind of quotes, and mean the same in both."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts, structural_tag_accepts
from situations import A_FEW, CHATML, fed, joined, tool

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "unit": {"enum": ["C", "it's", 'say "F"', 3, None]},
        "kind": {"const": "x"},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[^/]*$"},
        "word": {"type": "string", "pattern": "^[a-z]+$"},
        "day": {"type": "string", "format": "date"},
        "short": {"type": "string", "minLength": 1, "maxLength": 5},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "more": {
            "type": "object",
            "properties": {"mode": {"enum": ["fast", "slow"]}, "a b": {"type": "string"}},
            "additionalProperties": {"type": "integer"},
        },
        "marked": {"type": "object", "patternProperties": {"^x-": {"type": "boolean"}}, "additionalProperties": False},
        "any": {},
        "x-y": {"type": "string"},
        "a b": {"type": "integer"},
    },
    "additionalProperties": False,
}
TEMPLATE = toolgram.ChatTemplate(
    "{% if tools %}Call tools as <run>f(a='b')</run>: {{ tools | tojson }}{% endif %}{% for m in messages %}"
    "<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% if m.tool_calls %}{% for call in m.tool_calls %}"
    "<run>{{ call.function.name }}({% for k, v in call.function.arguments.items() %}{{ k }}="
    "{% if v is string %}'{{ v | replace('\\\\', '\\\\\\\\') | replace(\"'\", \"\\\\'\") | replace('\\n', '\\\\n') }}'"
    "{% elif v is mapping or v is iterable %}{{ v | tojson }}{% else %}{{ v }}{% endif %}"
    "{% if not loop.last %}, {% endif %}{% endfor %})</run>{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    eos_token="<|im_end|>",  # noqa: S106 - not a password
)
"""A family that nobody has seen, which writes its strings between single quotes."""

AROUND = {
    "pythonic": ("[", "]"),
    "lfm2": ("<|tool_call_start|>[", "]<|tool_call_end|>"),
    "lfm2_5": ("<|tool_call_start|>[", "]<|tool_call_end|>"),
    "discovered": ("<run>", "</run>"),
}
each_style = pytest.mark.parametrize("style", list(AROUND))

ADMITTED: dict[str, Any] = {
    "text='Oslo'": {"text": "Oslo"},
    "text=''": {"text": ""},
    'text="Oslo"': {"text": "Oslo"},
    r"text='it\'s'": {"text": "it's"},
    'text="it\'s"': {"text": "it's"},
    "text='say \"hi\"'": {"text": 'say "hi"'},
    r"text='say \"hi\"'": {"text": 'say "hi"'},
    r'text="it\'s"': {"text": "it's"},
    r"text='a\\'": {"text": "a\\"},
    r"text='a\n\tb\u00e9\ud83d\ude00'": {"text": "a\n\tbé😀"},
    r"text='\x1b[0m\U0001F600'": {"text": "\x1b[0m😀"},
    r'text="\x41\U0010ffff"': {"text": "A\U0010ffff"},
    "text='f(x=\"y\", z=[1])]<|tool'": {"text": 'f(x="y", z=[1])]<|tool'},
    "unit='C'": {"unit": "C"},
    r"unit='it\'s'": {"unit": "it's"},
    'unit="it\'s"': {"unit": "it's"},
    "unit='say \"F\"'": {"unit": 'say "F"'},
    "unit=3, kind='x'": {"unit": 3, "kind": "x"},
    "code='AB-\"c'": {"code": 'AB-"c'},
    r"code='AB-\'c'": {"code": "AB-'c"},
    'code="AB-\'c"': {"code": "AB-'c"},
    "word='abc', day='2024-02-29'": {"word": "abc", "day": "2024-02-29"},
    r"short='\'\'\'\'\''": {"short": "'''''"},
    'short=\'"""""\'': {"short": '"""""'},
    "tags=['a', \"b\", 'c']": {"tags": ["a", "b", "c"]},
    "more={'mode': 'fast', 'a b': \"c\", 'it\\'s': 1, \"m'\": 2}": {
        "more": {"mode": "fast", "a b": "c", "it's": 1, "m'": 2}
    },
    "marked={'x-a': True, \"x-b\": False}": {"marked": {"x-a": True, "x-b": False}},
    "any={'a': ['b', {\"c\": 'd'}], \"e\": None}": {"any": {"a": ["b", {"c": "d"}], "e": None}},
    "any='x'": {"any": "x"},
}
NEAR_MISSES = [
    "text='Oslo\"",
    "text=\"Oslo'",
    "text='Oslo",
    "text=Oslo'",
    "text='it's'",
    "text='a\nb'",
    r"text='\q'",
    r"text='\x4'",
    r"text='\U00110000'",
    r"text='a\'",
    "text=''Oslo''",
    "'text'='Oslo'",
    "unit='F'",
    "unit='it's'",
    "unit='3'",
    "kind='y'",
    "code='ab-c'",
    "code='AB-/'",
    r"code='AB-\'\"'",  # of a language each character has one spelling
    "word='Abc'",
    "word=''",
    "day='2023-02-29'",
    "short=''",
    "short='abcdef'",
    r"short='\'\'\'\'\'\''",
    "tags=['a', 'b', 'c', 'd']",
    "more={'mode': 'quick'}",
    "more={'a b': 1}",
    "more={'mode\": 'fast'}",
    "more={'mode': 'fast', 'mode': 'slow'}",
    "marked={'y': True}",
    "marked={'x-a': 'b'}",
]


@cache
def planned(style: str) -> toolgram.Plan:
    body = {
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [tool("f", PARAMETERS)],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    made = toolgram.plan(body, TEMPLATE) if style == "discovered" else toolgram.plan(body, CHATML, style=style)
    assert made.style.name == style
    return made


@cache
def recognisers(style: str) -> dict[str, Callable[[str], bool]]:
    """What each dialect's own recogniser takes."""
    constraint = planned(style).constraint
    assert constraint is not None
    grammar, tag = constraint.grammar, constraint.structural_tag()
    lark, ebnf, gbnf = (grammar.to(dialect) for dialect in ("lark", "ebnf", "gbnf"))
    return {
        "ours": grammar.accepts,
        "llguidance": lambda text: lark_accepts(lark, text),
        "XGrammar": lambda text: ebnf_accepts(ebnf, text),
        "XGrammar's tags": lambda text: structural_tag_accepts(tag, text),
        "llama.cpp": lambda text: text in gbnf_accepted(gbnf, {text}),
    }


def call(style: str, arguments: str) -> str:
    before, after = AROUND[style]
    return f"{before}f({arguments}){after}"


@each_style
@pytest.mark.parametrize("arguments", list(ADMITTED))
def test_both_quotes_are_admitted_and_read(style: str, arguments: str) -> None:
    text = call(style, arguments)
    assert {name: takes(text) for name, takes in recognisers(style).items()} == dict.fromkeys(recognisers(style), True)
    message = planned(style).parse(text)
    assert [json.loads(each.arguments) for each in message.tool_calls] == [ADMITTED[arguments]]
    whole, single = (fed(planned(style).reader(), text, cuts) for cuts in (None, [1] * len(text)))
    assert joined(whole) == joined(single)


@each_style
@pytest.mark.parametrize("arguments", NEAR_MISSES)
def test_what_is_near_is_not_admitted(style: str, arguments: str) -> None:
    text = call(style, arguments)
    assert not any(takes(text) for takes in recognisers(style).values())
    assert joined(fed(planned(style).reader(), text)) == joined(fed(planned(style).reader(), text, [1] * len(text)))


@each_style
def test_all_take_the_same_sentences_and_what_is_near(style: str) -> None:
    constraint = planned(style).constraint
    assert constraint is not None
    grammar, takes = constraint.grammar, recognisers(style)
    for seed in range(60):
        rng, text = random.Random(seed), grammar.sample(seed)
        at = rng.randrange(len(text))
        for each in (text, text[:at] + rng.choice("'\"\\,x") + text[at + rng.randrange(2) :]):
            said = {takes[name](each) for name in ("ours", "llguidance", "XGrammar")}
            assert len(said) == 1, each
        message = planned(style).parse(text)
        assert not message.tool_calls[0].incomplete
        assert message.content is None


@each_style
@A_FEW
@given(text=st.text(st.characters(codec="utf-8")))
def test_a_text_in_either_is_the_same(style: str, text: str) -> None:
    inside = json.dumps(text, ensure_ascii=False)[1:-1]
    single = inside.replace('\\"', '"').replace("'", "\\'")
    readings = [planned(style).parse(call(style, f"text={each}")) for each in (f'"{inside}"', f"'{single}'")]
    assert [json.loads(each.tool_calls[0].arguments) for each in readings] == [{"text": text}] * 2
    constraint = planned(style).constraint
    assert constraint is not None
    assert constraint.grammar.accepts(call(style, f"text='{single}'"))


@pytest.mark.parametrize("text", ["['rain', 'sun']", "['Oslo'](https://oslo.no) is wet.", "f(text='Oslo')", "'f'"])
def test_an_answer_in_such_quotes_stays_one(text: str) -> None:
    body = {"messages": [{"role": "user", "content": "Go."}], "tools": [tool("f", PARAMETERS)]}
    plan = toolgram.plan(body, CHATML, style="pythonic")
    message = plan.parse(text)
    assert (message.content, message.tool_calls) == (text, ())
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    assert grammar.accepts(text)
    assert lark_accepts(grammar.to("lark"), text)
    assert ebnf_accepts(grammar.to("ebnf"), text)


def test_the_writer_keeps_the_form_that_is_shown() -> None:
    arguments = json.dumps({"text": 'it\'s "so"', "tags": ["a"]})
    message = toolgram.Message(tool_calls=(toolgram.ToolCall("f", arguments),))
    assert planned("lfm2").writable(message)
    assert planned("discovered").writable(message)
    assert [planned(style).write(message) for style in ("lfm2", "discovered")] == [
        call("lfm2", 'text="it\'s \\"so\\"", tags=["a"]'),
        call("discovered", "text='it\\'s \"so\"', tags=['a']"),
    ]
