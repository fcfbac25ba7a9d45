from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from llguidance.numpy import allocate_token_bitmask

import toolgram
from oracles import ebnf_accepts, xgrammar
from small_languages import SOME, random_rules, sentences, strings
from toolgram.errors import GrammarError
from toolgram.grammar.dialects.ebnf import write_ebnf
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import (
    EMPTY,
    NOTHING,
    CharSet,
    Choice,
    Except,
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
from toolgram.grammar.tidy import tidy

CODE_POINTS = st.characters(exclude_categories=["Cs"]).map(ord)
CHAR_SETS = st.lists(st.tuples(CODE_POINTS, CODE_POINTS).map(lambda pair: (min(pair), max(pair))), min_size=1).map(
    lambda ranges: chars(*ranges)
)


@given(random_rules())
@SOME
def test_xgrammar_reads_the_same_language(rules: Rules):
    assume(Matcher(rules).viable(""))
    ebnf = write_ebnf(tidy(rules))
    assert {text for text in strings(4) if ebnf_accepts(ebnf, text)} == sentences(rules, 4), ebnf


@given(st.text(st.characters(exclude_categories=["Cs"])))
@SOME
def test_every_literal_is_escaped(text: str):
    ebnf = write_ebnf({"root": Literal(text)})
    assert ebnf_accepts(ebnf, text)
    assert not ebnf_accepts(ebnf, text + "!")
    assert len(ebnf.split("\n")) == 2


@given(CHAR_SETS)
@SOME
def test_every_class_is_escaped(charset: CharSet):
    ebnf = write_ebnf({"root": charset})
    borders = {code for low, high in charset.ranges for code in (low - 1, low, high, high + 1)}
    for char in (chr(code) for code in borders if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF):
        assert ebnf_accepts(ebnf, char) == (char in charset)


@given(CHAR_SETS)
@SOME
def test_no_class_is_negated(charset: CharSet):
    # XGrammar before 0.2.8, which a vLLM may have, takes one that names a character beyond ASCII for one without ASCII.
    assert "[^" not in write_ebnf({"root": charset})


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [
        (0x20, 0x7E, " -~"),
        (0xE0, 0xFF, "à-ÿ"),
        (0xE0, 0x17F, "à-ſ"),
        (0xE0, 0x180, "à-ſƀ"),
        (0x1200, 0xD7A3, "ሀ-쿿퀀-힣"),
        (0x30000, 0x31234, "𰀀-𰿿𱀀-𱈴"),
        (0x10000, 0x60010, "𐀀-\\U0003FFFF\\U00040000-\\U0005FFFF\\U00060000-\\U00060010"),
    ],
)
def test_ranges_are_cut_where_xgrammar_before_0_2_8_loses_their_ends(low: int, high: int, written: str):
    assert write_ebnf({"root": CharSet(((low, high),))}) == f"root ::= [{written}]\n"


def test_markers_that_hold_another_one_are_not_named():
    # XGrammar before 0.2.8 misses the shorter one where it stands in the longer one, but not at its beginning.
    assert write_ebnf({"root": Text(("<a>", "a", "b"))}) == (
        'root ::= text-0\ntext-0 ::= TagDispatch(excludes=("a", "b",))\n'
    )


def test_strings_are_right_recursive():
    string = seq('"', repeat(choice(not_chars('"\\'), seq("\\", chars('"\\')))), '"')
    assert write_ebnf({"root": string}) == (
        'root ::= "\\"" root-more\nroot-more ::= [\\u0000-!#-\\u005B\\]-쿿퀀-\\uD7FF\\uE000-\\U0010FFFF] root-more'
        ' | "\\\\" ["\\\\] root-more | "\\""\n'
    )


STRING: Rules = {
    "char": choice(not_chars('"\\', (0, 31)), Ref("escape")),
    "escape": seq("\\", chars('"\\n')),
    "rest": seq(repeat(Ref("char")), '"'),
}


def test_a_loop_begins_with_what_its_item_begins_with():
    ebnf = write_ebnf({"root": seq('"', repeat(Ref("char"), 1), '",'), **STRING})
    assert ebnf.startswith(
        'root ::= "\\"" root-more ","\n'
        'root-more ::= [ !#-\\u005B\\]-쿿퀀-\\uD7FF\\uE000-\\U0010FFFF] root-more | "\\\\" escape-rest root-more'
        ' | [ !#-\\u005B\\]-쿿퀀-\\uD7FF\\uE000-\\U0010FFFF] "\\"" | "\\\\" escape-rest "\\""\n'
    )
    assert [text for text in ('"",', '"a",', '"ab\\n",', '"a"', '"a\n",') if ebnf_accepts(ebnf, text)] == [
        '"a",',
        '"ab\\n",',
    ]


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 1), (0, 3), (2, 3), (3, 3), (60, 64), (0, 257), (2, 384), (127, 385), (128, 600), (500, 600), (601, 601)],
)
def test_strings_of_so_many_characters(low: int, high: int):
    ebnf = write_ebnf({"root": seq('"', repeat(Ref("char"), low, high), '",'), **STRING})
    borders = {count + more for count in (0, 127, 256, 384, low, high) for more in (-1, 0, 1)}
    for count in borders - {-1}:
        for char in ("a", "é", "\\n", '\\"'):
            assert ebnf_accepts(ebnf, f'"{char * count}",') == (low <= count <= high), (char, count)
    assert ebnf.count("\\uDFFF") <= 35  # rules that take most characters, however many are counted


@pytest.mark.parametrize(("low", "high"), [(0, 40), (2, 60), (30, 48), (55, 60), (0, 300), (40, 41)])
def test_masks_of_strings_of_so_many_characters(low: int, high: int):
    """XGrammar believes what a grammar says about the characters ahead."""
    longer = ["a" * count for count in (2, 3, 4, 5, 6, 15, 16, 17, 18, 40)]
    longer += [
        *(text + end for text in longer for end in ('"', '",', '"x', "\\n", "\\", "\n", "é")),
        "é",
        "éa",
        '",',
        '"a',
    ]
    tokens = [*(bytes([byte]) for byte in range(128)), *(text.encode() for text in longer), b"</s>"]
    info = xgrammar().TokenizerInfo(tokens, xgrammar().VocabType.RAW, stop_token_ids=[len(tokens) - 1])
    rules: Rules = {"root": seq('"', repeat(Ref("char"), low, high), '",'), **STRING}
    compiled = xgrammar().GrammarCompiler(info, cache_enabled=False).compile_grammar(write_ebnf(tidy(rules)))
    ours, theirs = Matcher(rules), xgrammar().GrammarMatcher(compiled)
    bits = allocate_token_bitmask(1, len(tokens))
    for count in range(-1, high + 1):
        before = '"' + "a" * count if count >= 0 else ""
        if min(abs(count - place) for place in (0, low, high, high - 16, high - 4)) < 3:
            theirs.fill_next_token_bitmask(bits)
            taken = {token for number, token in enumerate(tokens[:-1]) if bits[0, number // 32] >> number % 32 & 1}
            assert taken == {token for token in tokens[:-1] if ours.viable(before + token.decode())}
        assert theirs.accept_token(tokens.index(b'"' if count < 0 else b"a")) == (count < high)


def test_characters_that_what_follows_may_begin_with_have_a_rule_for_each_number():
    word = seq(repeat(chars((97, 122), "-"), 0, 61), chars((97, 122)), ".")
    ebnf = write_ebnf({"root": word})
    assert len([line for line in ebnf.splitlines() if "-few ::=" in line]) == 61
    for text, is_one in ((f"{'a' * 62}.", True), (f"{'a' * 63}.", False), ("a-b.", True), ("a-.", False), (".", False)):
        assert ebnf_accepts(ebnf, text) is is_one, text


def test_most_characters_have_no_rule_for_each_number_even_where_what_follows_may_be_one():
    for high in (200, 250):
        line = seq(repeat(not_chars("<"), 0, high), "\n</")
        ebnf = write_ebnf({"root": line})
        assert "-few ::=" not in ebnf
        assert ebnf.count("\\uDFFF") <= 35
        for count in (0, 1, high - 1, high, high + 1):
            assert ebnf_accepts(ebnf, "\n" * count + "\n</") is (count <= high), count


def test_strings_of_different_lengths_share_their_rules():
    strings = (seq('"', repeat(Ref("char"), 0, high), '"') for high in (3, 5))
    ebnf = write_ebnf({"root": seq(*strings), **STRING})
    assert len([line for line in ebnf.splitlines() if "-to-" in line.split(" ::= ")[0]]) == 5


def other(*texts: str) -> Expr:
    return Except(Ref("char"), not_chars('"\\', (0, 31)), Ref("escape"), texts)


@SOME
@given(st.lists(st.sets(st.text("abé", max_size=4), min_size=1, max_size=4), min_size=1, max_size=2), st.data())
def test_strings_that_are_none_of_some(sets: list[set[str]], data: st.DataObject):
    ebnf = write_ebnf({"root": seq(*[other(*sorted(texts)) for texts in sets]), **STRING})
    endings = sorted({text[at:] for texts in sets for text in texts for at in range(len(text) + 1)})
    before = st.sampled_from(["", "a", "b", "é", "n", "\\n", 'x\\"'])
    for _ in range(20):
        words = [data.draw(before) + data.draw(st.sampled_from(endings)) for _ in sets]
        fits = all(word not in texts for word, texts in zip(words, sets, strict=True))
        assert ebnf_accepts(ebnf, "".join(f'"{word}"' for word in words)) == fits, words


def test_strings_that_are_none_of_some_share_a_loop():
    rules: Rules = {"root": choice(seq(other("ab", "a", "x"), other("b")), seq(other("", "n"), ":")), **STRING}
    ebnf = write_ebnf(rules)
    assert ebnf.count("] other |") == 1
    matcher = Matcher(rules)
    characters = ['"', "\\", "a", "b", "x", "n", " ", ":", "é", "\n"]
    texts = ['"' + "".join(text) for text in product(characters, repeat=4)]
    assert {text for text in texts if ebnf_accepts(ebnf, text)} == {text for text in texts if matcher.accepts(text)}


@pytest.mark.parametrize(
    ("expr", "written"),
    [
        (Repeat(chars("xy"), 1, None), 'root ::= [xy] root-more\nroot-more ::= [xy] root-more | ""\n'),
        (Repeat(chars("xy"), 3, None), 'root ::= [xy]{3} root-more\nroot-more ::= [xy] root-more | ""\n'),
        (repeat(chars("xy"), 0, 3000), "root ::= [xy]{0,3000}\n"),
        (Choice((EMPTY, Literal("a"))), 'root ::= "a" | ""\n'),
        (seq(optional("a"), "b"), 'root ::= "a"? "b"\n'),
        (not_chars(), "root ::= [\\u0000-쿿퀀-\\uD7FF\\uE000-\\U0010FFFF]\n"),
        (Token("<t>", 12), "root ::= Token(12)\n"),
        (Token("<t>"), 'root ::= "<t>"\n'),
    ],
)
def test_spelling(expr: Expr, written: str):
    assert write_ebnf({"root": expr}) == written


@pytest.mark.parametrize("text", ["", "<cal", "<<call", "é<call\n😀"])
def test_free_text(text: str):
    ebnf = write_ebnf({"root": seq(Text(("<call>",)), optional("<call>"))})
    assert ebnf_accepts(ebnf, text)
    assert ebnf_accepts(ebnf, text + "<call>")
    assert not ebnf_accepts(ebnf, text + "<call> ")


def test_free_text_is_a_dispatch_of_xgrammar():
    assert write_ebnf({"root": seq(Text(("<a>", '"é')), "<a>")}) == (
        'root ::= text-0 "<a>"\ntext-0 ::= TagDispatch(excludes=("<a>", "\\"é",))\n'
    )


@SOME
@given(st.lists(st.text("ab<é", min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_free_text_after_the_beginning_of_a_marker(markers: list[str], data: st.DataObject):
    seen = data.draw(st.sampled_from(["", *(marker[:end] for marker in markers for end in range(1, len(marker)))]))
    assume(not any(marker in seen for marker in markers))
    rules: Rules = {"root": seq(Text(tuple(markers), seen), optional(seq("<", Text(("ba",), "b"))))}
    ebnf, matcher = write_ebnf(rules), Matcher(rules)
    texts = ["".join(text) for count in range(5) for text in product("ab<é", repeat=count)]
    assert {text for text in texts if ebnf_accepts(ebnf, text)} == {text for text in texts if matcher.accepts(text)}


def test_states_that_differ_in_few_characters_share_their_steps():
    after = seq(optional("x"), Ref("end"))
    root = seq("1", choice(seq(not_chars("<a"), after), seq("2", choice(seq(not_chars("<b"), after), "3"))))
    rules: Rules = {"root": root, "end": seq(chars("0-9"), optional("e"))}
    ebnf, matcher = write_ebnf(rules), Matcher(rules)
    texts = ["".join(text) for count in range(5) for text in product("123<abéx0e", repeat=count)]
    assert {text for text in texts if ebnf_accepts(ebnf, text)} == {text for text in texts if matcher.accepts(text)}


def test_long_counts():
    ebnf = write_ebnf({"root": repeat(chars("ab"), 2, 5000)})
    assert ebnf_accepts(ebnf, "a" * 5000)
    assert not ebnf_accepts(ebnf, "a" * 5001)


def test_refuses_a_grammar_without_a_sentence():
    with pytest.raises(GrammarError):
        Grammar({"root": NOTHING}).to("ebnf")


def test_no_class_admits_the_bytes_of_a_surrogate() -> None:
    """They are no UTF-8, but XGrammar takes them for a character; tokens of single bytes spell them."""
    vocabulary = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    info = xgrammar().TokenizerInfo(vocabulary, xgrammar().VocabType.RAW, stop_token_ids=[256])
    for schema in ({"type": "string"}, {"type": "string", "pattern": "^.$"}, {"type": "string", "maxLength": 3}):
        compiled = xgrammar().GrammarCompiler(info).compile_grammar(toolgram.schema_grammar(schema).to("ebnf"))
        for text, taken in ((b'"\xed\xa0\x80', False), (b'"\xed\xbf\xbf', False), (b'"\xed\x9f\xbf', True)):
            matcher = xgrammar().GrammarMatcher(compiled)
            assert all(map(matcher.accept_token, text)) is taken
