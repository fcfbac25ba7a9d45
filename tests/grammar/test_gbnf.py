import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from llama_oracle import gbnf_accepted, gbnf_accepts
from small_languages import SOME, random_rules, sentences, strings
from toolgram.errors import GrammarError
from toolgram.grammar.dialects.gbnf import read_gbnf, write_gbnf
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import (
    EMPTY,
    NOTHING,
    CharSet,
    Choice,
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
def test_what_is_written_reads_back_to_the_same_language(rules: Rules):
    assume(Matcher(rules).viable(""))
    assert sentences(read_gbnf(write_gbnf(tidy(rules)))) == sentences(rules)
    assert sentences(read_gbnf(Grammar(rules).to("gbnf"))) == sentences(rules)


@given(random_rules())
@SOME
def test_llama_cpp_reads_the_same_language(rules: Rules):
    assume(Matcher(rules).viable(""))
    assert gbnf_accepted(write_gbnf(tidy(rules)), strings(4)) == sentences(rules, 4)


@given(st.text(st.characters(exclude_categories=["Cs"])))
@SOME
def test_every_literal_is_escaped(text: str):
    gbnf = write_gbnf({"root": Literal(text)})
    assert read_gbnf(gbnf) == {"root": Literal(text)}
    assert gbnf_accepts(gbnf, text)
    assert len(gbnf.split("\n")) == 2


@given(CHAR_SETS)
@SOME
def test_every_class_is_escaped(charset: CharSet):
    gbnf = write_gbnf({"root": charset})
    assert read_gbnf(gbnf) == {"root": charset}
    borders = {code for low, high in charset.ranges for code in (low - 1, low, high, high + 1)}
    for char in (chr(code) for code in borders if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF):
        # A null is the end of the text to llama.cpp.
        assert char == "\0" or gbnf_accepts(gbnf, char) == (char in charset)


@pytest.mark.parametrize(
    ("expr", "written"),
    [
        (EMPTY, '""'),
        (seq("a", choice("b", "c")), '"a" ("b" | "c")'),
        (optional("a"), '"a" | ""'),
        (Choice((EMPTY, Literal("a"))), '"a" | ""'),
        (seq(optional("a"), "b"), '"a"? "b"'),
        (seq(Choice((EMPTY, Literal("a"), Literal("b"))), "c"), '("a" | "b")? "c"'),
        (repeat("ab"), '"ab"*'),
        (repeat(seq("ab", chars("cd"))), '("ab" [cd])*'),
        (repeat(Repeat(chars("xy"), 1, None), 2, 3), "([xy]+){2,3}"),
        (repeat(seq("a", optional("b")), 1), '("a" "b"?)+'),
        (repeat("a", 0, 1), '"a"?'),
        (repeat("a", 3), '"a"{3,}'),
        (repeat("a", 3, 3), '"a"{3}'),
        (not_chars(), "."),
        (not_chars('"\\\n', (0, 8)), '[^\\x00-\\x08\\n"\\\\]'),
        (chars("]^-["), "[\\x2D\\x5B\\]\\x5E]"),
        (Token("<t>", 12), "<[12]>"),
        (Token("<t>"), '"<t>"'),
        (Literal("\x1b é\u2028▁｜😀\U000e0001"), '"\\x1B é\\u2028▁｜😀\\U000E0001"'),
    ],
)
def test_spelling(expr: Expr, written: str):
    assert write_gbnf({"root": expr}) == f"root ::= {written}\n"


def test_root_is_first_and_names_are_made_legal():
    rules: dict[str, Expr] = {
        "a_b": seq("x", Ref("a-b")),
        "root": seq(Ref("a_b"), Ref("a-b"), Ref("2"), Ref("é")),
        "a-b": seq("y"),
        "2": seq("z"),
        "é": seq("é"),
    }
    assert write_gbnf(rules) == (
        'root ::= a-b a-b-2 r-2 rule\na-b ::= "x" a-b-2\na-b-2 ::= "y"\nr-2 ::= "z"\nrule ::= "é"\n'
    )


def test_free_text_becomes_rules():
    rules: dict[str, Expr] = {"root": seq(Text(("<a",)), Ref("text-0"), Text(("<a",))), "text-0": seq("!")}
    assert write_gbnf(rules) == (
        "root ::= text2-0 text-0 text2-0\n"
        'text2-0 ::= [^<] text2-0 | "<" text2-1 | ""\n'
        'text2-1 ::= [^<a] text2-0 | "<" text2-1 | ""\n'
        'text-0 ::= "!"\n'
    )


@pytest.mark.parametrize(
    ("low", "high"), [(2000, 2000), (2001, 2001), (5003, 5003), (0, 2001), (0, 4000), (2500, 7001), (3001, None)]
)
@pytest.mark.parametrize("item", [chars("ab"), choice("a", "b")])
def test_long_repetitions_are_split(low: int, high: int | None, item: Expr):
    gbnf = write_gbnf({"root": seq(Repeat(item, low, high), "!")})
    again = Matcher(read_gbnf(gbnf))
    most = low + 2500 if high is None else high
    for count in {0, 1, max(low - 1, 0), low, low + 1, 999, 1000, 1001, 1999, 2000, 2001, most - 1, most, most + 1}:
        expected = count >= low and (high is None or count <= high)
        assert again.accepts("a" * count + "!") == expected, count
    assert gbnf_accepts(gbnf, "a" * low + "!")
    assert gbnf_accepts(gbnf, "a" * most + "!")
    assert low == 0 or not gbnf_accepts(gbnf, "a" * (low - 1) + "!")
    assert high is None or not gbnf_accepts(gbnf, "a" * (most + 1) + "!")


@pytest.mark.parametrize(
    "expr",
    [
        repeat(choice(chars("ab"), seq("\\", chars("ab"))), 0, 1500),
        repeat(seq("(", repeat(chars("ab"), 0, 80), ")"), 0, 80),
        optional(seq(repeat(chars("ab"), 0, 1500), "!", repeat(chars("ab"), 0, 1500))),
        repeat(optional(seq(repeat(chars("ab"), 0, 1500), "!", repeat(chars("ab"), 0, 1500), ";"))),
    ],
)
def test_repetitions_of_what_is_large_itself_are_named(expr: Expr):
    gbnf = write_gbnf(tidy({"root": seq("<", expr, ">")}))
    assert gbnf_accepts(gbnf, "<>")
    for text in (Matcher({"root": expr}).sample(seed) for seed in range(3)):
        assert gbnf_accepts(gbnf, f"<{text}>")
        assert not gbnf_accepts(gbnf, f"<{text}")


def test_very_long_repetitions_are_split_twice():
    again = Matcher(read_gbnf(write_gbnf({"root": Repeat(Literal("a"), 2_000_100, None)})))
    assert again.viable("aaa")


@pytest.mark.parametrize(
    "rules",
    [
        {"root": NOTHING},
        {"root": Ref("gone")},
        {"other": EMPTY},
        {"root": choice(seq(optional("a"), Ref("root")), "b")},
    ],
    ids=["no sentence", "not defined", "no root", "left recursion"],
)
def test_writer_refuses(rules: dict[str, Expr]):
    with pytest.raises(GrammarError):
        Grammar(rules).to("gbnf")


def test_reads_all_there_is():
    rules = read_gbnf(
        """
        # a comment
        root ::= (item # one
                  | "b" |
                  "c")+ <[12]> <tool>  # more

        item ::=
            [^a-c\\x41\\u00e9\\U0001F600\\]-] . "\\n\\r\\t\\"\\\\"{ 2 , } ""|
            [-x]? item{2}
        """.replace("item{2}", '"y"{2}').replace("        ", "")
    )
    assert rules == {
        "root": seq(Repeat(choice(Ref("item"), "b", "c"), 1, None), Token("<[12]>", 12), Token("<tool>")),
        "item": choice(
            seq(not_chars("abcAé😀]-"), not_chars(), Repeat(Literal('\n\r\t"\\'), 2, None)),
            seq(Repeat(chars("-x"), 0, 1), Repeat(Literal("y"), 2, 2)),
        ),
    }


@pytest.mark.parametrize(
    ("gbnf", "position", "reason"),
    [
        ("", 0, "no rule root"),
        ('x ::= "a"', 0, "no rule root"),
        ('root = "a"', 5, "::="),
        ('root ::= "a', 9, "not closed"),
        ("root ::= [a", 9, "not closed"),
        ('root ::= ("a"', 9, "not closed"),
        ('root ::= "a")', 12, "end of the line"),
        ('root ::= "a" ::= "b"', 13, "expected"),
        ("root ::= [z-a]", 10, "upside down"),
        ("root ::= []", 9, "empty"),
        ('root ::= "\\q"', 10, "escape"),
        ('root ::= "\\xZZ"', 10, "escape"),
        ('root ::= "\\ud800"', 10, "surrogate"),
        ('root ::= "\\U00110000"', 10, "code point"),
        ('root ::= "a"{5,2}', 12, "below"),
        ('root ::= "a"{,2}', 12, "{m}"),
        ('root ::= "a"{2', 12, "{m}"),
        ('root ::= "a"{2001}', 12, "above"),
        ("root ::= *", 9, "nothing to repeat"),
        ("root ::= gone", 9, "not defined"),
        ('root ::= a_b\na ::= "x"', 9, "not defined"),
        ('root ::= "a"\n | "b"', 14, "a rule's name"),
        ('root ::= "a"\nroot ::= "b"', 13, "twice"),
        ('root ::= x\nx ::= "a"? x', 11, "left recursion"),
        ("root ::= <[x]", 9, "token"),
        ("root ::= !<[5]>", 9, "expected"),
    ],
)
def test_reader_says_where_it_fails(gbnf: str, position: int, reason: str):
    with pytest.raises(GrammarError, match=reason.replace("{", r"\{")) as caught:
        read_gbnf(gbnf)
    assert caught.value.position == position


@given(st.text('root:=|()[]{}"\\^-.*+?,<>#01xabu \n'))
@SOME
def test_reader_never_fails_otherwise(text: str):
    for gbnf in (text, f"root ::= {text}"):
        try:
            rules = read_gbnf(gbnf)
        except GrammarError as error:
            assert error.position is not None  # noqa: PT017 - not failing is fine too
        else:
            Matcher(rules)
