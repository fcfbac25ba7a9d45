"""Strings that are none of some: what the texts say, the matcher, the tree and each dialect take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oracles import ebnf_accepts, lark_accepts
from toolgram.grammar.dialects.gbnf import read_gbnf
from toolgram.grammar.excepts import in_trees
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Except, Expr, Ref, chars, choice, not_chars, repeat, seq
from toolgram.grammar.matcher import Matcher

RAW = not_chars('"\\', (0, 31))
STRING: dict[str, Expr] = {
    "string": seq('"', repeat(Ref("char")), '"'),
    "char": choice(RAW, Ref("escape")),
    "escape": seq("\\", chars('"\\n')),
}
_TEXTS = st.lists(st.text("ab é", max_size=4), min_size=1, max_size=5, unique=True).map(tuple)


SINGLE = not_chars("'\\", (0, 31))
BETWEEN_OTHERS: dict[str, Expr] = {
    "other-char": choice(SINGLE, Ref("other-escape")),
    "other-escape": seq("\\", chars("'n")),
}


def _but(*texts: str) -> Except:
    return Except(Ref("char"), RAW, Ref("escape"), texts)


def _single_but(*texts: str) -> Except:
    return Except(Ref("other-char"), SINGLE, Ref("other-escape"), texts, "'")


@given(_TEXTS, _TEXTS)
def test_all_take_the_same(texts: tuple[str, ...], more: tuple[str, ...]) -> None:
    member = seq(_but(*texts), ": ", choice(Ref("string"), _but(*more)))
    grammar = Grammar({"root": seq("{", member, repeat(seq(", ", member)), "}"), **STRING})
    lark, ebnf, gbnf = (grammar.to(dialect) for dialect in ("lark", "ebnf", "gbnf"))
    again = Matcher(read_gbnf(gbnf))
    for key in {*texts, *more, "", "a", "abab", "é", "\\n", '\\"', "b\\", 'b"'}:
        text = f'{{"{key}": "{key}"}}'
        expected = not key.endswith(("b\\", 'b"')) and key not in texts
        assert grammar.accepts(text) == expected, text
        assert lark_accepts(lark, text) == expected, (text, lark)
        assert ebnf_accepts(ebnf, text) == expected, (text, ebnf)
        assert again.accepts(text) == expected, (text, gbnf)


@given(_TEXTS)
def test_so_do_they_between_other_quotes(texts: tuple[str, ...]) -> None:
    root = seq("{", choice(_but(*texts), _single_but(*texts)), ": ", choice(_single_but("a"), _but("b")), "}")
    grammar = Grammar({"root": root, **STRING, **BETWEEN_OTHERS})
    lark, ebnf, gbnf = (grammar.to(dialect) for dialect in ("lark", "ebnf", "gbnf"))
    again = Matcher(read_gbnf(gbnf))
    assert all(grammar.accepts(grammar.sample(seed)) for seed in range(4))
    for key in {*texts, "", "a", "abab", "é", "\\n", '\\"', "\\'", 'b"', "b'"}:
        for quote, other in ("\"'", "'\""):
            text = f"{{{quote}{key}{quote}: {other}x{other}}}"
            expected = quote not in key.replace("\\" + quote, "") and key not in texts and "\\" + other not in key
            assert grammar.accepts(text) == expected, text
            assert lark_accepts(lark, text) == expected, (text, lark)
            assert ebnf_accepts(ebnf, text) == expected, (text, ebnf)
            assert again.accepts(text) == expected, (text, gbnf)
    for text, expected in (("{'x': 'a'}", False), ("{'x': \"a\"}", True), ("{'x': 'b'}", True), ("{'x': 'b\"}", False)):
        assert (grammar.accepts(text), lark_accepts(lark, text), ebnf_accepts(ebnf, text)) == (
            expected and "x" not in texts,
        ) * 3


def test_the_second_may_be_left_out_too() -> None:
    grammar = Grammar({"root": seq(_but("a"), ",", _but("", "b")), **STRING})
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    for text, expected in (('"","a"', True), ('"a","a"', False), ('"b","b"', False), ('"b",""', False)):
        assert (grammar.accepts(text), lark_accepts(lark, text), ebnf_accepts(ebnf, text)) == (expected,) * 3


def test_a_long_text_is_no_deep_expression() -> None:
    long = "ab" * 1_000
    matcher = Matcher({"root": _but(long), **STRING})
    assert not matcher.accepts(f'"{long}"')
    assert matcher.accepts(f'"{long}a"')
    assert matcher.accepts(f'"{long[:-1]}"')
    assert "root-key" in in_trees({"root": _but(long), **STRING})


def test_one_beside_what_lexemes_run_over_is_taken_apart() -> None:
    """Where strings are not whole lexemes, Lark reads the tree."""
    grammar = Grammar({"root": seq(repeat(chars('"ab ')), _but("a", "ab")), **STRING})
    lark = grammar.to("lark")
    for text in ('"a"', '"b"', 'ab"a"', ' "ab"', '"a"b"', '"', '""', '"ab"ab"'):
        assert lark_accepts(lark, text) == grammar.accepts(text), (text, lark)


def test_trees_are_the_same_wherever_their_names_are_free() -> None:
    """One that is known from another grammar is not put over a rule that has its name."""
    long = _but("abcdefghijklmnop", "abc")
    rules = {"root": seq("{", long, "}"), **STRING}
    first, again = in_trees(rules), in_trees(rules)
    other = in_trees({**rules, "root-key-2": chars("x"), "more": Ref("root-key-2")})
    assert first == again
    assert (other["root-key-2"], "root-key-3" in other) == (chars("x"), True)
    taken = {"abc": False, "abcdefghijklmnop": False, "abcd": True, "ab": True, "": True, 'abcd"x': False}
    for text, expected in taken.items():
        assert Matcher(first).accepts(f'{{"{text}"}}') is Matcher(other).accepts(f'{{"{text}"}}') is expected, text


def test_samples_are_sentences() -> None:
    grammar = Grammar({"root": _but("", "a"), **STRING})
    assert all(grammar.accepts(grammar.sample(seed)) for seed in range(50))
