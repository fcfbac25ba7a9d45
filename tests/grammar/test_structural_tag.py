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
