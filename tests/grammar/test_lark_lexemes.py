"""How the Lark writer chooses lexemes: strings and numbers whole, and single characters where all else fails."""

from __future__ import annotations

import re
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import TokenOracles, lark_accepts
from toolgram.grammar.components import components
from toolgram.grammar.dialects.lark import repair
from toolgram.grammar.dialects.lark.growth import Growth
from toolgram.grammar.dialects.lark.lexing.alphabet import Alphabet
from toolgram.grammar.dialects.lark.lexing.automaton import Automaton
from toolgram.grammar.dialects.lark.linear import regular
from toolgram.grammar.dialects.lark.quotes import Quotes
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import (
    EMPTY,
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
from toolgram.grammar.matcher import Matcher
from toolgram.grammar.walk import uses, with_children
from toolgram.schema import schema_grammar

_STRING = re.compile(r'"([^"\\]|\\.)*"', re.DOTALL)
_EITHER = re.compile(r""""([^"\\]|\\.)*"|'([^'\\]|\\.)*'""", re.DOTALL)
_SWAP = str.maketrans("\"'", "'\"")
_SWAPPED = {chars('"a'): chars("'a"), not_chars('"\\'): not_chars("'\\"), not_chars('"'): not_chars("'")}
_NAMES = st.text('ab"\\\né', max_size=3)


def _near(text: str) -> list[str]:
    return [text, text + "!", text[:-1], text[1:], text + text]


def _assert_agree(grammar: Grammar, texts: list[str]) -> None:
    lark = grammar.to("lark")
    for text in texts:
        assert lark_accepts(lark, text) == grammar.accepts(text), text


def test_what_reads_on_over_what_follows_is_one_with_it_though_it_is_back_where_it_began() -> None:
    rules: Rules = {"root": seq(Ref("many"), "<"), "many": choice(seq("<", Ref("many")), EMPTY)}
    _assert_agree(Grammar(rules), ["", "<", "<<", "<<<", "<a"])


def test_strings_keys_and_numbers_are_lexemes() -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "size": {"type": "number"}},
        "required": ["kind"],
    }
    lines = schema_grammar(schema).to("lark").splitlines()
    assert lines[0] == 'start: "{" "\\"kind\\": " /"a"|"b"/ (", " root_members::0x0)? "}"'
    one, other = lines[1].split(" | ")
    assert one == 'root_members::_: "\\"size\\": " NUMBER root_more::set_bit(0) %if bit_clear(0)'
    assert other == "KEY json_value root_more::_"
    assert 'KEY: KEY_2 & ~/"(kind|size)": /' in lines
    assert 'KEY_2: STRING ": "' in lines


def test_a_pattern_is_one_lexeme() -> None:
    grammar = schema_grammar({"type": "string", "format": "uri"})
    assert grammar.to("lark").startswith("start: QUOTED\n")
    _assert_agree(grammar, ['"http://a.b/c?d#e"', '"http://[::1]:8/%20"', '"a b"', '"%"', '""', '"x:"'])


@given(st.lists(_NAMES, min_size=1, max_size=5, unique=True), st.lists(_NAMES, max_size=5))
def test_keys_that_are_none_of_some(names: list[str], others: list[str]) -> None:
    grammar = schema_grammar({"type": "object", "properties": {name: {"type": "null"} for name in names}})
    spelled = [grammar.sample(seed) for seed in range(4)]
    escapes = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n"})
    spelled += [f'{{"{name.translate(escapes)}": {value}}}' for name in (*names, *others) for value in ("null", "1")]
    _assert_agree(grammar, [near for text in spelled for near in _near(text)])


@st.composite
def _expressions(draw: st.DrawFn) -> Expr:
    leaves = st.one_of(
        st.text('"\\a', max_size=3).map(Literal),
        st.sampled_from([chars("a"), chars('"a'), not_chars('"\\'), not_chars('"'), Text(('"',)), Text(("a",))]),
    )
    inner = draw(
        st.recursive(
            leaves,
            lambda parts: st.one_of(
                st.lists(parts, max_size=3).map(lambda items: seq(*items)),
                st.lists(parts, min_size=1, max_size=3).map(lambda options: choice(*options)),
                st.tuples(parts, st.sampled_from([(0, None), (0, 1), (1, 2), (2, 2), (3, 3)])).map(
                    lambda drawn: Repeat(drawn[0], *drawn[1])
                ),
            ),
            max_leaves=5,
        )
    )
    return draw(st.sampled_from([inner, seq('"', inner, '"')]))


@settings(max_examples=300, deadline=None)
@given(_expressions())
def test_what_is_taken_for_a_string_is_one(expr: Expr) -> None:
    rules = {"root": expr}
    matcher = Matcher(rules)
    if Quotes(rules, uses(rules), components(uses(rules))).is_string(expr):
        for seed in range(6):
            assert _STRING.fullmatch(matcher.sample(seed))


@settings(max_examples=300, deadline=None)
@given(_expressions(), _expressions(), st.booleans())
def test_so_is_one_between_quotes_of_either_kind(one: Expr, other: Expr, nested: bool) -> None:
    swapped = _swapped(other)
    expr = seq(one, swapped) if nested else choice(one, swapped)
    rules = {"root": choice(expr, Ref("of-python")), "expr": expr, "of-python": seq("'", repeat(not_chars("'\\")), "'")}
    quotes = Quotes(rules, uses(rules), components(uses(rules)))
    assert quotes.is_string(Ref("of-python"))
    if quotes.is_string(expr):
        matcher = Matcher({"root": expr})
        for seed in range(6):
            assert _EITHER.fullmatch(matcher.sample(seed))


def _swapped(expr: Expr) -> Expr:
    """The expression with the one kind of quotes for the other."""
    match expr:
        case Literal(text):
            return Literal(text.translate(_SWAP))
        case CharSet():
            return _SWAPPED.get(expr, expr)
        case Text(without):
            return Text(tuple(each.translate(_SWAP) for each in without))
        case _:
            return with_children(expr, _swapped)


@st.composite
def _linear_rules(draw: st.DrawFn) -> Rules:
    names = [f"r{number}" for number in range(draw(st.integers(1, 5)))]
    way = st.tuples(st.text("ab", min_size=1, max_size=2), st.sampled_from([*map(Ref, names), EMPTY]))
    ways = st.lists(way, min_size=1, max_size=3)
    return {
        "root": Ref("r0"),
        **{name: choice(*(seq(*drawn) for drawn in draw(ways)), draw(st.sampled_from("ab"))) for name in names},
    }


@settings(max_examples=200, deadline=None)
@given(_linear_rules(), st.lists(st.text("ab", max_size=8), max_size=8))
def test_rules_that_recur_at_their_ends(rules: Rules, texts: list[str]) -> None:
    straight, _ = regular(rules, uses(rules), components(uses(rules)), lambda _: True)
    assert "root" in straight
    one, other = Matcher(rules), Matcher(straight)
    for text in [*texts, *map(one.sample, range(4)), *map(other.sample, range(4))]:
        assert one.accepts(text) == other.accepts(text)


_DIGIT = chars("0123456789")
_LETTER = choice(not_chars('"\\', (0, 31)), seq("\\", chars('"\\n')))
_CONTRIVED: dict[str, Rules] = {
    "a chain that comes back": {
        "root": Ref("r0"),
        **{f"r{n}": choice(seq("abc", Ref(f"r{n + 1}")), seq("bcd", Ref("r0"))) for n in range(1000)},
        "r1000": chars("xy"),
    },
    "numbers after numbers": {"root": seq(*(seq(Repeat(_DIGIT, 1, n + 1), chars(str(n % 10))) for n in range(60)))},
    "words after words": {"root": seq(choice(*(f"{n}x" for n in range(900))), choice(*(f"x{n}" for n in range(900))))},
    "many texts that begin alike": {
        "root": choice(*(seq(Text((f"<{n}>",)), f"<{n}>", repeat(chars("ab<>"))) for n in range(60)))
    },
    "a string that doubles": {
        "root": seq('"', Ref("w40"), '"'),
        "w0": _LETTER,
        **{f"w{n}": choice(seq(Ref(f"w{n - 1}"), Ref(f"w{n - 1}")), "x") for n in range(1, 41)},
    },
    "a word that doubles, before a marker": {
        "root": seq(Ref("w30"), "<"),
        "w0": chars("ab"),
        **{f"w{n}": choice(seq(Ref(f"w{n - 1}"), Ref(f"w{n - 1}")), "x") for n in range(1, 31)},
    },
    "states that lead everywhere, in a string": {
        "root": seq('"', Ref("q0"), '"'),
        **{
            f"q{n}": choice(
                seq(chr(97 + n % 26), Ref(f"q{(n * 7 + 1) % 60}")), seq("Z", Ref(f"q{(n * 11 + 3) % 60}")), "!"
            )
            for n in range(60)
        },
    },
    "a value or any text": {
        "root": seq(choice(Ref("value"), Text(("</p>",))), "</p>"),
        "value": choice(
            seq('"', repeat(_LETTER), '"'),
            seq("[", optional(seq(Ref("value"), repeat(seq(", ", Ref("value"))))), "]"),
        ),
    },
}


@pytest.mark.parametrize("name", _CONTRIVED)
def test_contrived_grammars_take_no_longer(name: str) -> None:
    grammar = Grammar(_CONTRIVED[name])
    start = process_time()
    grammar.to("lark")
    assert process_time() - start < 5  # many times what it takes
    _assert_agree(grammar, [near for seed in range(3) for near in _near(grammar.sample(seed))])


@pytest.mark.parametrize("name", ["words after words", "a value or any text", "a word that doubles, before a marker"])
def test_all_is_taken_apart_where_work_is_not_allowed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "_MOST_WORK", 0)
    grammar = Grammar(_CONTRIVED[name])
    _assert_agree(grammar, [near for seed in range(3) for near in _near(grammar.sample(seed))])


def test_a_string_beside_text_is_taken_apart() -> None:
    string = seq('"', repeat(_LETTER), '"')
    grammar = Grammar({"root": choice(seq(Ref("string"), "!"), seq(Text(("?",)), "?")), "string": string})
    _assert_agree(grammar, ['"a"!', '"a"?', '"a', "a?", '"a\\""!', '"a"', "?", '"!'])


def test_raw_text_that_recurs_is_one_lexeme_with_its_marker() -> None:
    rest = choice(seq(not_chars("<x"), Ref("rest")), seq("x", Ref("begun")), EMPTY)  # all but "xy", quotes too
    begun = choice(seq(not_chars("<xy"), Ref("rest")), seq("x", Ref("begun")), EMPTY)
    value = seq('{"a": ', Ref("string"), "}")
    rules = {"root": seq("<v>", choice(Ref("rest"), Ref("value")), Text(("</v>",)), "</v>"), "value": value}
    string = seq('"', repeat(_LETTER), '"')
    grammar = Grammar({**rules, "rest": rest, "begun": begun, "string": string})
    _assert_agree(grammar, [near for seed in range(8) for near in _near(grammar.sample(seed))])
    root = seq("<v>", Ref("rest"), "</v>", Text(("</v>",)))
    alone = Grammar({"root": root, "rest": rest, "begun": begun})
    assert alone.to("lark").splitlines()[0] == 'start: "<v>" LEXEME TEXT'
    _assert_agree(alone, [near for seed in range(8) for near in _near(alone.sample(seed))])


def test_raw_text_may_have_literals_of_its_own_before_its_marker() -> None:
    some, mark = chars("0123456789abcdef"), Token("<|q|>")
    number = seq(repeat(some, 2, 2), repeat(seq("-", repeat(some, 4, 4)), 3, 3), "-", repeat(some, 3, 3))
    grammar = Grammar({"root": seq("id:", mark, number, mark, ",x:", mark, Text(("<|q|>",)), mark)})
    assert "LEXEME: /<\\|q\\|>[0-9a-f]{2}(\\-[0-9a-f]{4}){3}\\-[0-9a-f]{3}<\\|q\\|>/" in grammar.to("lark").splitlines()
    _assert_agree(grammar, [near for seed in range(12) for near in _near(grammar.sample(seed))])


def test_a_word_is_run_once_for_each_thing_that_follows_it() -> None:
    words = {"w0": repeat(chars("ab"), 1, 3), **{f"w{n}": choice(Ref(f"w{n - 1}"), "c") for n in range(1, 18)}}
    doubled = choice(seq("1", Ref("w17")), seq("2", Ref("w17")), seq("3", Ref("w17"), "4"))
    alphabet = Alphabet([doubled], words)
    automaton = Automaton(doubled, alphabet, words)
    for text, is_word in (("1ab", True), ("2c", True), ("3c4", True), ("3c", False), ("1c4", False), ("1abab", False)):
        states = automaton.start
        for char in text:
            mask = alphabet.of_char(char)
            states = next((to for step, to in automaton.moves(states) if step & mask), 0)
        assert automaton.accepts(states) == is_word, text


def test_a_literal_grows_by_the_beginning_of_each_part_that_may_follow() -> None:
    parts = [optional(seq(f"<p{n}>", Text(("</p>",)), "</p>")) for n in range(20)]
    call = seq("<call f>\n", *parts, "</call>")
    thought = seq(Text(("</think>", f"{START}f>\n"), START), "\n</think>")
    grammar = Grammar({"root": choice(seq("<call ", thought), call)})
    assert len(grammar.to("lark")) < 200 * len(parts)
    _assert_agree(grammar, ["<call f>\n</think>", "<call f>\n</call>", "<call f>\n<p3>x</p><p7></p></call>", "<call f"])
    _assert_agree(grammar, [near for seed in range(4) for near in _near(grammar.sample(seed))])


def test_growing_ends_where_too_much_would_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, grown = list[None](), vars(Growth)["_grown"]

    def counted(*given: Any) -> Any:
        begun.append(None)
        return grown(*given)

    monkeypatch.setattr(Growth, "_grown", counted)
    channel = choice("<<", "a")
    calls = {
        f"call-{name}": seq(choice(seq(name, channel), seq(channel, name)), end)
        for name, end in (("ab", "<)"), ("<<a", ")"), ("ba", "a)"))
    }
    call = choice(*map(Ref, calls), seq("ab", choice(*map(Ref, calls))))
    text = Text(("<b",))
    grammar = Grammar({"root": seq(repeat(text, 2), call, repeat(call), choice("a", text)), **calls})
    assert len(grammar.to("lark")) < 2_000
    assert len(begun) < 10_000  # as often as there are parts; else the machine's memory is too small for them
    _assert_agree(grammar, [near for seed in range(3) for near in _near(grammar.sample(seed))])


def test_a_marker_that_begins_with_a_bracket_is_whole() -> None:
    grammar = Grammar({"root": seq(Text(("[CALL]",)), "[CALL]", "[", repeat(_DIGIT, 1), "]", optional("[CALL]"))})
    assert grammar.to("lark").splitlines()[0] == 'start: TEXT "[" /[0-9]+/ "]" "[CALL]"?'
    _assert_agree(grammar, ["x[CALL][1]", "[CALL][12][CALL]", "[CALL][]", "[CALL[CALL][1]"])


def test_what_follows_a_rule_that_may_be_empty_is_looked_at() -> None:
    nested = choice(seq("<", Ref("nested"), "<<"), EMPTY)
    grammar = Grammar({"root": seq(chars("<"), Ref("nested")), "nested": nested})
    _assert_agree(grammar, ["<" * count for count in range(24)])


def test_raw_text_before_a_special_token_is_one_lexeme() -> None:
    oracles = TokenOracles(("</id>",))
    not_12 = seq("1", choice(seq(not_chars("<2"), Ref("rest")), seq("2", not_chars("<"), Ref("rest"))))
    rules: dict[str, Expr] = {
        "root": seq("<id>", choice(Ref("other"), "none", Ref("list")), Token("</id>", oracles.ids["</id>"])),
        "other": choice(seq(not_chars("<1["), Ref("rest")), not_12),
        "rest": repeat(not_chars("<")),
        "list": seq("[", repeat(Ref("list")), "]"),
    }
    grammar = Grammar(rules)
    lark = grammar.to("lark")
    assert lark.startswith('start: "<id>" (OTHER <[256]> | "none" <[256]> | list <[256]>)\n')
    for text in ("1", "12", "123", "none", "nones", "[]", "[[][]]", "[", "a[", "", "<"):
        whole = f"<id>{text}</id>"
        assert oracles.lark_accepts(lark, oracles.tokenized(whole)) == grammar.accepts(whole), text
