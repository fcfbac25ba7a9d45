from hypothesis import assume, given

from oracles import structural_tag_accepts
from small_languages import SOME, random_rules, sentences, strings
from toolgram.grammar.dialects.structural_tag import write_structural_tag
from toolgram.grammar.ir import Literal, Ref, Rules, Text, Token, choice, repeat, seq
from toolgram.grammar.matcher import Matcher


def accepted(rules: Rules, texts: list[str]) -> set[str]:
    tag = {"type": "structural_tag", "format": write_structural_tag(rules)}
    return {text for text in texts if structural_tag_accepts(tag, text)}


@given(random_rules())
@SOME
def test_xgrammar_reads_the_same_language(rules: Rules):
    assume(Matcher(rules).viable(""))
    assert accepted(rules, strings(4)) == sentences(rules, 4)


def test_rules_that_refer_to_themselves_stay_a_grammar():
    rules: Rules = {"root": seq(Token("<"), Ref("list"), Token(">")), "list": choice(seq(Token("<"), Ref("list")), "a")}
    assert accepted(rules, ["<a>", "<<a>", "<>", "<a"]) == {"<a>", "<<a>"}


def test_a_root_that_refers_to_itself_is_one_grammar():
    rules: Rules = {"root": choice(seq(Token("<"), Ref("root")), "a")}
    assert write_structural_tag(rules)["type"] == "grammar"
    assert accepted(rules, ["a", "<<a", "<"]) == {"a", "<<a"}


def test_rules_that_are_used_very_often_are_not_written_out_each_time():
    doubling: Rules = {
        "root": Ref("r0"),
        **{f"r{i}": seq(Ref(f"r{i + 1}"), Ref(f"r{i + 1}")) for i in range(12)},
        "r12": Token("x"),
    }
    assert len(str(write_structural_tag(doubling))) < 10_000
    assert accepted(doubling, ["x" * 2**12, "x" * 9]) == {"x" * 2**12}


def test_text_before_a_counted_tag():
    rules: Rules = {"root": seq(Text(("<a>",)), repeat(seq(Token("<a>"), Literal("b"), Token("</a>")), 1, 2))}
    good = ["<a>b</a>", "x<<a>b</a><a>b</a>"]
    assert accepted(rules, [*good, "x", "<a>b</a><a>b</a><a>b</a>", "<a>b</a>x"]) == set(good)


def test_text_that_may_hold_what_follows_it_does_not_end_there_first():
    """A tag of XGrammar would."""
    assert accepted({"root": seq(Text(()), Token("ab"))}, ["ab", "abab", "ababa"]) == {"ab", "abab"}
    aba: Rules = {"root": seq(Text(("aba",)), Token("aba"))}
    assert accepted(aba, ["aba", "xaba", "ababa", "abaaba"]) == {"aba", "xaba", "ababa"}


def test_rules_in_a_row_may_be_thousands():
    """Optional parameters, each with a tag, of which one follows another."""
    rules: Rules = {"root": seq(Token("<call>"), Ref("p0"), Token("</call>"))}
    for number in range(2_000):
        here = seq(Token(f"<p{number}>"), Text(("</p>",)), Token("</p>"), choice(Ref(f"p{number + 1}"), ""))
        rules[f"p{number}"] = choice(here, Ref(f"p{number + 1}"))
    rules["p2000"] = seq(Token("<last>"))
    good = ["<call><p0>x</p></call>", "<call><p1></p><p1999>y</p><last></call>"]
    assert accepted(rules, [*good, "<call></call>", "<call><p1></p><p0></p></call>"]) == set(good)
