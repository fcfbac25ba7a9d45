"""Text that several marks end which begin alike, and which hold that character in their midst, is cut there exactly."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import lark_accepts
from toolgram.grammar.dialects.lark.growth import Growth
from toolgram.grammar.dialects.lark.openings import opening_of
from toolgram.grammar.dialects.lark.tree import Fork, Lexeme, Tree, row
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import START, Expr, Literal, Ref, Text, chars, choice, repeat, seq

MARKS = st.builds("<{}".format, st.text("ab<", min_size=1, max_size=4))
OTHERS = st.lists(st.builds("b{}".format, st.text("ab<", max_size=3)), max_size=1)
CALLS = st.lists(st.text("ab<", min_size=1, max_size=5), min_size=1, max_size=3, unique=True)


@given(st.lists(MARKS, min_size=2, max_size=3, unique=True), OTHERS, CALLS, st.booleans())
@settings(max_examples=max(150, settings().max_examples // 4))
def test_thoughts_that_quote_what_calls_begin_with(
    marks: list[str], others: list[str], calls: list[str], may_end: bool
) -> None:
    """As the grammars of reasoning that a call may close, made small: a name, or any text that begins with none."""
    closer, opener = marks[:2]
    without = (*marks, *others)
    quoting = Text((*without, *(START + call for call in calls)), START)
    closed = choice(seq(closer, "a"), "") if may_end else seq(closer, "a")
    called = choice(*(seq(call, "ab") for call in calls))
    rules: dict[str, Expr] = {
        "root": seq(Text(without), Ref("rest")),
        "rest": choice(closed, seq(opener, choice(called, seq(quoting, Ref("rest"))))),
    }
    grammar = Grammar(rules)
    lark = grammar.to("lark")
    for seed in range(8):
        text = grammar.sample(seed)
        for near in (text, text[1:], text[:-1], text.replace("a", "b", 1), text.replace("<", "", 1), text + "ab"):
            assert lark_accepts(lark, near) == grammar.accepts(near), near
    for begun, call, end in product(("", "a", "<", "b"), (*calls, "", "a<", "b<a"), ("ab", closer + "a", "<")):
        text = begun + opener + call + end
        assert lark_accepts(lark, text) == grammar.accepts(text), text


def test_a_tag_that_follows_a_name_at_once_costs_no_more_than_the_names() -> None:
    """Each text was once written as long as all its markers, in each place, or character by character."""

    def size(after: str) -> int:
        names = [f"look_up_the_{each}" for each in ("weather", "time", "price", "news", "traffic", "tide")]
        quoting = Text(("</think>", "<call>", *(f"{START}{name}{after}" for name in names)), START)
        called = choice(*(seq(name, after, "x</call>") for name in names))
        rules: dict[str, Expr] = {
            "root": seq(Text(("</think>", "<call>")), Ref("rest")),
            "rest": choice("</think>", seq("<call>", choice(called, seq(quoting, Ref("rest"))))),
        }
        return len(Grammar(rules).to("lark"))

    assert size("<key>") < size("\n") + 1_200


def test_where_a_mark_is_told_too_late_the_text_is_not_cut_in_it() -> None:
    def opened(*marks: str, others: tuple[str, ...] = ()) -> bool:
        ahead = Fork(tuple(row(Lexeme(Literal(mark)), Lexeme(Literal("x"))) for mark in marks))
        return opening_of(Text((*marks, *others)), ahead, {}) is not None

    assert opened("<a>", "<b>")
    assert opened("<a>\n<b=", "<c>")
    assert opened("<a>\n<c>", "<c>")
    assert not opened("<a>\n<c><d>", "<c>")
    assert not opened("<a<a", "<b")
    assert not opened("<a>\n<b=", "<c>", others=("\n<",))
    assert not opened("<a>\n<b=", "<c>", others=(">\n",))


def test_rules_that_would_be_made_without_end_are_made_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word runs on over free text, and over the rule that it stands in itself: each rest of that was a rule more."""
    made: list[int] = []
    grow = Growth.tree

    def counted(growth: Growth) -> Tree:
        try:
            return grow(growth)
        finally:
            made.append(len(growth.rules))

    monkeypatch.setattr(Growth, "tree", counted)
    word = repeat(chars((97, 122)), 0, None)
    rules = {"root": Ref("v"), "v": seq("{", word, Ref("any")), "any": choice(Text(("–x",)), Ref("v"))}
    grammar = Grammar(rules)
    lark = grammar.to("lark")
    assert max(made) < 1_000  # there were 13,000, in 33 seconds and 1.5 GB
    for text in ("{", "{a", "{a{b–", "{–x", "a", "{a{{ –", "{A–y{", ""):
        assert lark_accepts(lark, text) == grammar.accepts(text), text
