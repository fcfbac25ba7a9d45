"""The Lark writer: which lexemes it chooses, what it spells, and that llguidance reads it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer

from oracles import lark_accepts
from toolgram import schema_grammar
from toolgram.errors import GrammarError
from toolgram.grammar.dialects.lark import write_lark
from toolgram.grammar.dialects.lark.regex import regex, text_expression
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import (
    MAX_CODE_POINT,
    START,
    CharSet,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Text,
    Token,
    chars,
    choice,
    not_chars,
    optional,
    repeat,
    seq,
)

MARKER = "<tool_call>"
_TOKENIZER = LLTokenizer("byte")  # its first special token, 256, is <|tool|>
_TOOL = Token("<|tool|>", 256)


def many_tools(count: int) -> Rules:
    """A format like a real one: text, then calls of `count` tools with five parameters each."""
    string = seq('"', Repeat(choice(not_chars('"\\', (0, 31)), seq("\\", chars('"\\/bfnrt'))), 0, None), '"')
    integer = seq(optional("-"), choice("0", seq(chars((49, 57)), Repeat(chars((48, 57)), 0, 18))))
    arguments = seq(
        '{"city": ', Ref("string"), ', "days": ', Ref("integer"), optional(seq(', "unit": ', choice('"c"', '"f"'))),
        optional(seq(', "tags": [', Ref("string"), Repeat(seq(", ", Ref("string")), 0, None), "]")),
        optional(seq(', "near": ', choice("true", "false"))), "}",
    )  # fmt: skip
    tools = {f"tool-{n}": seq(f'{{"name": "get_{n}", "arguments": ', arguments, "}") for n in range(count)}
    return {
        "root": seq(Text((MARKER,)), Repeat(seq(Ref("call"), Text((MARKER,))), 0, None)),
        "call": seq(MARKER, choice(*map(Ref, tools)), "</tool_call>"),
        **tools,
        "string": string,
        "integer": integer,
    }


def test_what_binds_tighter_is_in_parentheses() -> None:
    some = optional(seq("a", Repeat(optional("b"), 2, 3), optional(choice("c", "de"))))
    assert regex(some) == "(a(b?){2,3}(c|de)?)?"
    assert regex(Repeat(some, 0, None)) == "((a(b?){2,3}(c|de)?)?)*"
    assert regex(seq(choice("a", "b"), Repeat(Repeat(Literal("ab"), 1, None), 2, 2))) == "(a|b)((ab)+){2}"


def test_a_word_that_is_used_once_is_written_there_if_it_is_small() -> None:
    words = {f"word-{number}": choice(seq("a", Ref(f"word-{number + 1}")), "b") for number in range(1500)}
    lark = write_lark({"root": seq('"', Ref("word-0"), '"'), **words, "word-1500": choice("c", "d")})
    assert 5 < lark.count("WORD_") // 2 < 1500
    assert max(map(len, lark.splitlines())) < 200
    assert lark_accepts(lark, f'"{"a" * 1400}b"')
    assert lark_accepts(lark, f'"{"a" * 1500}d"')
    assert not lark_accepts(lark, f'"{"a" * 1400}c"')


def test_text_and_its_marker_are_one_lexeme() -> None:
    lark = write_lark(many_tools(2))
    first = lark.splitlines()[0]
    assert first == "start: TEXT call_rest (TEXT call_rest)* TEXT_2 | TEXT_2"
    assert "STRING" in lark
    assert "INTEGER" in lark


def test_a_value_is_a_lexeme_without_the_comma_after_it() -> None:
    """Where any value may stand there too, a lexeme with both ran on over that value, and was taken apart."""
    keys = {"kind": {"const": 2}, "on": {"const": True}, "name": {"type": "string"}}
    one = {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}
    outer = {"type": "object", "properties": {"of": one}, "required": ["of"], "additionalProperties": False}
    grammar = schema_grammar({"anyOf": [outer, {"type": "object"}]})
    first, *_ = (lark := grammar.to("lark")).splitlines()
    assert '"\\"kind\\": " "2" ", " "\\"on\\": " "true" ", " "\\"name\\": "' in first
    for text in ('{"of": {"kind": 2, "on": true, "name": ""}}', '{"of": {"kind": 25, "on": [2, true]}}'):
        assert grammar.accepts(text)
        assert lark_accepts(lark, text)


def test_many_tools() -> None:
    lark = write_lark(many_tools(30))
    one = '<tool_call>{"name": "get_1", "arguments": {"city": "a", "days": -10, "near": true}}</tool_call>'
    assert lark_accepts(lark, "")
    assert lark_accepts(lark, f"It < is.\n{one}{one.replace('get_1', 'get_12')}Well")
    assert not lark_accepts(lark, one.replace("get_1", "get_30"))
    assert not lark_accepts(lark, one.replace("-10", "-01"))
    assert not lark_accepts(lark, one + MARKER)


def test_rule_names() -> None:
    rules: Rules = {
        "root": seq(Ref("start"), Ref("a-b2")),
        "start": seq("(", optional(Ref("root")), ")"),
        "a-b2": Literal("!"),
    }
    lark = write_lark(rules)
    assert lark_accepts(lark, "(()!)!")
    assert not lark_accepts(lark, "()")


def _takes(lark: str, *parts: bytes | int) -> bool:
    matcher = LLMatcher(_TOKENIZER, lark)
    assert not matcher.get_error()
    tokens = [
        token for part in parts for token in ([part] if isinstance(part, int) else _TOKENIZER.tokenize_bytes(part))
    ]
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


def test_special_token_after_text() -> None:
    lark = write_lark({"root": seq(Text(("<|tool|>",)), _TOOL, Repeat(chars("ab"), 1, None))})
    assert _takes(lark, b"hi <", 256, b"ab")
    assert not _takes(lark, b"hi ", 256)
    assert not _takes(lark, b"hi <|tool|>ab")


def test_what_follows_the_same_special_token() -> None:
    lark = write_lark({"root": choice(seq(_TOOL, "a", Token("bc")), seq(_TOOL, "ab", Token("d")))})
    assert _takes(lark, 256, b"abc")
    assert _takes(lark, 256, b"abd")
    assert not _takes(lark, 256, b"ab")


@pytest.mark.parametrize("rules", [{"root": Ref("gone")}, {"main": Literal("a")}])
def test_malformed(rules: Rules) -> None:
    with pytest.raises(GrammarError):
        Grammar(rules).to("lark")


def test_what_begins_alike_after_a_text_is_written_once() -> None:
    tools = [seq(Token("<|from|>"), "assistant ", name, Ref("value")) for name in ("get", "set", "list")]
    rules: Rules = {
        "root": seq(Text(("<|from|>",)), Repeat(seq("\n", choice(*tools)), 0, None)),
        "value": seq("[", optional(Ref("value")), "]"),
    }
    lark = write_lark(rules)
    assert lark.count("TEXT: ") == lark.count("TEXT_2: ") == 1
    assert "TEXT_3" not in lark
    assert lark_accepts(lark, "<|\n\n<|from|>assistant get[[]]\n<|from|>assistant list[]")
    assert not lark_accepts(lark, "hi<|from|>assistant get[]")
    assert not lark_accepts(lark, "hi\n<|from|>assistant let[]")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6))
def test_any_literal(text: str) -> None:
    lark = write_lark({"root": seq(Literal(text), Repeat(Token(text), 0, None))})
    assert lark_accepts(lark, text)
    assert lark_accepts(lark, text * 3)
    assert not lark_accepts(lark, text[1:])


@given(
    st.lists(st.tuples(st.characters(exclude_categories=["Cs"]), st.integers(0, 40)), min_size=1, max_size=4),
    st.booleans(),
    st.characters(exclude_categories=["Cs"]),
)
def test_any_character_set(drawn: list[tuple[str, int]], negated: bool, other: str) -> None:
    pieces = [(ord(char), min(ord(char) + width, 0x10FFFF)) for char, width in drawn]
    charset: CharSet = not_chars(*pieces) if negated else chars(*pieces)
    lark = write_lark({"root": charset})
    near = {code + step for bounds in charset.ranges for code in bounds for step in (-1, 0, 1)} | {ord(other)}
    for code in near:
        if 0 <= code <= MAX_CODE_POINT and not 0xD800 <= code <= 0xDFFF:
            assert lark_accepts(lark, chr(code)) == (chr(code) in charset)


@given(
    st.lists(st.text("ab<", min_size=1, max_size=4), min_size=1, max_size=3),
    st.text("ab<", max_size=3),
    st.lists(st.text("ab<c", max_size=9), max_size=9),
)
def test_text_as_an_expression(without: list[str], seen: str, texts: list[str]) -> None:
    if any(marker in seen for marker in without):
        return
    text = Text(tuple(without), seen)
    one, other = Grammar({"root": text}), Grammar({"root": text_expression(text)})
    for sample in [*texts, *map(one.sample, range(3)), *map(other.sample, range(3))]:
        assert one.accepts(sample) == other.accepts(sample)


_CHAINS: dict[str, Callable[[int], Expr]] = {
    "one way on": lambda n: seq(chars("ab"), Ref(f"r{n + 1}")),
    "or the end": lambda n: choice(seq(f"ab{n}", Ref(f"r{n + 1}")), f"a{n}"),
    "or two steps": lambda n: choice(seq("ab", Ref(f"r{n + 1}")), seq("cd", Ref(f"r{n + 2}"))),
    "text before each": lambda n: seq(Text((MARKER,)), optional(seq(MARKER, Ref(f"r{n + 1}")))),
    "back to the first": lambda n: choice(seq("abc", Ref(f"r{n + 1}")), seq("bcd", Ref("r0"))),
}


@pytest.mark.parametrize("kind", _CHAINS)
def test_a_long_chain_of_rules(kind: str) -> None:
    steps = {f"r{n}": _CHAINS[kind](n) for n in range(250)}
    grammar = Grammar({"root": Ref("r0"), **steps, "r250": chars("xy"), "r251": Literal("z")})
    lark = grammar.to("lark")
    for text in map(grammar.sample, range(3)):
        for near in (text, text + "!", text[:-1], text[1:], text + text):
            assert lark_accepts(lark, near) == grammar.accepts(near)


def test_a_long_chain_of_rules_that_end_in_text() -> None:
    steps = {f"r{n}": choice(seq(f"ab{n}", Ref(f"r{n + 1}")), seq("x", Ref(f"r{n + 2}"))) for n in range(120)}
    text = Text((MARKER,))
    grammar = Grammar({"root": seq(Ref("r0"), MARKER, "!"), **steps, "r120": text, "r121": text})
    lark = grammar.to("lark")
    for sample in map(grammar.sample, range(3)):
        assert lark_accepts(lark, sample)
        assert not lark_accepts(lark, sample + "!")


def test_what_is_nested_deeply_becomes_rules() -> None:
    inner: Expr = Ref("list")
    for level in range(90):
        inner = choice(seq(f"<{level}>", inner, f"</{level}>"), f"[{level}]")
    grammar = Grammar({"root": inner, "list": seq("(", repeat(Ref("list")), ")")})
    lark = grammar.to("lark")
    for text in map(grammar.sample, range(20)):
        for near in (text, text[1:], text + "]"):
            assert lark_accepts(lark, near) == grammar.accepts(near)


@pytest.mark.parametrize("mark", ["<call>", "<call><get>"])
def test_what_a_text_must_not_begin_with_takes_a_text_as_long_that_is_hardly_nested(mark: str) -> None:
    def written(name: str) -> str:
        first = tuple(f'{START}{{"name": "{name}{last}"' for last in "xy")
        return Grammar({"root": seq(Text((*first, mark, "<|end|>"), START), mark)}).to("lark")

    short, long = written("q" * 60), written("q" * 120)
    assert len(long) < 2.1 * len(short)
    assert lark_accepts(long, f'{{"name": "qq"}}{mark}')
    assert not lark_accepts(long, f'{{"name": "{"q" * 120}x"{mark}')


@pytest.mark.parametrize("seen", ["", "<", "a <get_", "<|", START])
def test_text_that_any_of_several_marks_may_end_is_written_once(seen: str) -> None:
    names = ["get", "get_weather", "get_weather_alerts", "a", "b", "code", "cod", "search", "think"]
    without = (*(f"<{name}>" for name in names), "<|end|>", "[end]", *([f"{START}!b"] if seen == START else []))
    calls: Rules = {name: seq(f"<{name}>", repeat(chars("xy<"), 1), f"</{name}>") for name in names}
    call = choice(*map(Ref, calls))
    more = choice(seq(call, repeat(seq("\n", call)), optional("\n")), "[end]", "")
    grammar = Grammar({"root": seq(Text(without, seen), more), **calls})
    lark = grammar.to("lark")
    pieces = ["<", "!", "<|end|>", "|end|>", "[end]", "[en", "weather>", "e\n", *(f"<{name}>" for name in names)]
    rng = Random(1)
    accepted = 0
    for sample in map(grammar.sample, range(60)):
        at = rng.randrange(len(sample) + 1)
        text = "".join(rng.choices(pieces, k=rng.randrange(4)))
        for near in (sample, text, text + sample, sample[:at] + text + sample[at:], sample[:at] + sample[at + 1 :]):
            accepted += grammar.accepts(near)
            assert lark_accepts(lark, near) == grammar.accepts(near), near
    assert accepted > 60
    assert len(lark) < 6_000  # the names are written some times, and not all once more up to each
