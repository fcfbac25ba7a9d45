"""Members in any order: what the definition says of each order is what every dialect takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import (
    NOTHING,
    Expr,
    Literal,
    Members,
    Ref,
    Repeat,
    Text,
    chars,
    choice,
    members,
    optional,
    repeat,
    seq,
)
from toolgram.grammar.matcher import Matcher

_DIGITS = Repeat(chars((48, 57)), 1, None)
_MOST_ORDERS = 2_000


def _is_right(occurs: str, order: Sequence[int]) -> bool:
    """What the docstring of `Members` says, word for word."""
    counts = [order.count(index) for index in range(len(occurs))]
    as_often = all(
        count == 1 if times in "1!" else count <= 1 if times == "?" else True
        for count, times in zip(counts, occurs, strict=True)
    )
    needed = [index for index, times in enumerate(occurs) if times == "1"]
    behind = all(
        order.index(before) < order.index(after) for before in needed for after in order if after > before
    ) if as_often else False  # fmt: skip
    return bool(order) and as_often and behind


def _orders(count: int) -> Iterator[tuple[int, ...]]:
    every = itertools.chain.from_iterable(
        itertools.product(range(count), repeat=length) for length in range(1, count + 2)
    )
    return itertools.islice(every, _MOST_ORDERS)


def _agree(occurs: str, between: str, items: list[Expr], written: list[str]) -> None:
    grammar = Grammar({"root": seq("{", members(items, occurs, between), "}"), "value": _DIGITS})
    texts = {
        "{" + between.join(written[index] for index in order) + "}": _is_right(occurs, order)
        for order in _orders(len(occurs))
    }
    right = {text for text, valid in texts.items() if valid}
    assert right
    assert {text for text in texts if grammar.accepts(text)} == right
    assert {text for text in texts if lark_accepts(grammar.to("lark"), text)} == right
    assert {text for text in texts if ebnf_accepts(grammar.to("ebnf"), text)} == right
    assert gbnf_accepted(grammar.to("gbnf"), set(texts)) == right
    assert all(grammar.accepts(grammar.sample(seed)) for seed in range(20))
    assert min(map(len, right)) == grammar.shortest


@pytest.mark.parametrize("between", [", ", ""])
@pytest.mark.parametrize("occurs", ["".join(each) for n in (1, 2, 3) for each in itertools.product("1!?*", repeat=n)])
def test_every_dialect_takes_what_the_definition_says(occurs: str, between: str) -> None:
    names = "abc"[: len(occurs)]
    items = [seq(f'"{name}": ', Ref("value")) if between else seq(f"<{name}>", Ref("value"), ";") for name in names]
    _agree(occurs, between, items, [f'"{name}": 1' if between else f"<{name}>1;" for name in names])


@settings(max_examples=20)
@given(st.text("1!?*", min_size=4, max_size=5), st.sampled_from([", ", ""]))
def test_the_same_of_more_members(occurs: str, between: str) -> None:
    names = "abcde"[: len(occurs)]
    _agree(occurs, between, [Literal(f"{name}!") for name in names], [f"{name}!" for name in names])


@pytest.mark.parametrize("count", [6, 7, 60, 61])
def test_there_is_an_end_to_orders(count: int) -> None:
    names = [f"k{number:02}" for number in range(count)]
    grammar = Grammar({"root": members([Literal(f"{name};") for name in names], "?" * count, "")})
    text, turned = "".join(f"{name};" for name in names), "".join(f"{name};" for name in reversed(names))
    assert grammar.accepts(text)
    assert grammar.accepts(turned) == (count <= 60)
    assert not grammar.accepts(turned + names[0])
    for dialect, most, accepts in (("lark", 60, lark_accepts), ("ebnf", 6, ebnf_accepts)):
        written = grammar.to(dialect)
        assert accepts(written, text)
        assert accepts(written, turned) == (count <= most)
        assert len(written) < 25_000
    assert gbnf_accepted(grammar.to("gbnf"), {text, turned}) == ({text, turned} if count <= 6 else {text})
    assert all(ebnf_accepts(grammar.to("ebnf"), grammar.sample(seed)) for seed in range(20))


@pytest.mark.parametrize(
    ("occurs", "any_order"),
    [
        ("??????", True),
        ("?1?1?1?1?1?1", True),
        ("??????1111", False),
        ("?" + "1" * 250, False),
        ("1" * 250 + "?", True),
    ],
)
def test_required_members_behind_others_are_not_written_too_often(occurs: str, any_order: bool) -> None:
    """In GBNF and EBNF, where each set of members that may be left has a rule."""
    names = [f"k{number:03};" for number in range(len(occurs))]
    grammar = Grammar({"root": members(list(map(Literal, names)), occurs, "")})
    optional_last = [
        *(name for name, times in zip(names, occurs, strict=True) if times == "1"),
        names[occurs.index("?")],
    ]
    late = "".join(optional_last)
    gbnf, ebnf = grammar.to("gbnf"), grammar.to("ebnf")
    assert grammar.accepts(late) == (len(occurs) <= 60 or any_order)
    assert gbnf_accepted(gbnf, {late, "".join(names)}) == ({late, "".join(names)} if any_order else {"".join(names)})
    assert ebnf_accepts(ebnf, late) == any_order
    assert lark_accepts(grammar.to("lark"), late) == grammar.accepts(late)
    assert len(gbnf) < 40_000


def _objects(count: int, members_each: int) -> Grammar:
    """Objects with optional members, one behind the other."""
    each = [
        seq("{", members([Literal(f"k{at}-{number};") for number in range(members_each)], "?" * members_each, ""), "}")
        for at in range(count)
    ]
    return Grammar({"root": seq(*each)})


@pytest.mark.parametrize("count", [1, 9, 10, 26, 400])
def test_orders_of_many_objects_take_as_much_as_these(count: int) -> None:
    """In GBNF and EBNF, whose rules for all orders of six members are twenty times these: all objects have fewer."""
    most = {1: 6, 9: 6, 10: 5, 26: 4, 400: 2}[count]
    for size in (2, most, 6):
        grammar = _objects(count, size)
        turned = "".join(f"{{{''.join(f'k{at}-{n};' for n in reversed(range(size)))}}}" for at in range(count))
        gbnf, ebnf = grammar.to("gbnf"), grammar.to("ebnf")
        assert grammar.accepts(turned)
        assert gbnf_accepted(gbnf, {turned}) == ({turned} if size <= most else set())
        assert ebnf_accepts(ebnf, turned) == (size <= most)
        assert len(gbnf) < 150_000 + 40 * count * size
        samples = [grammar.sample(seed) for seed in range(5)]
        assert gbnf_accepted(gbnf, samples) == set(samples)
        assert all(ebnf_accepts(ebnf, text) for text in samples)


def test_objects_with_other_numbers_of_members_than_most_keep_their_orders() -> None:
    rules = {**_objects(40, 6).rules, "few": seq("{", members(list(map(Literal, "abc")), "???", ""), "}")}
    grammar = Grammar({**rules, "root": seq(rules["root"], Ref("few"))})
    text = "".join(f"{{k{at}-0;k{at}-1;}}" for at in range(40))
    assert ebnf_accepts(grammar.to("ebnf"), f"{text}{{cba}}")
    assert gbnf_accepted(grammar.to("gbnf"), {f"{text}{{cab}}", f"{text}{{aab}}"}) == {f"{text}{{cab}}"}


def test_many_members_that_nothing_stands_between_are_a_row() -> None:
    """Were each of them followed by those behind it, llguidance would have as many ways on, and lexemes to split."""
    items = [seq(f"<k{number}>", Text(("</k>",)), "</k>") for number in range(200)]
    grammar = Grammar({"root": seq("<call>", optional(members(items, "?" * 200, "")), "</call>")})
    lark = grammar.to("lark")
    assert len(lark) < 15_000
    for text in ("", "<k1>x</k>", "<k0></k><k199>y</k>", "<k2></k><k1></k>"):
        whole = f"<call>{text}</call>"
        assert grammar.accepts(whole) == lark_accepts(lark, whole) == ebnf_accepts(grammar.to("ebnf"), whole)


def test_thousands_of_members_are_followed_in_order() -> None:
    """What may come first after each member would be thousands of members, each with thousands that are left."""
    grammar = Grammar({"root": members([Literal(f"k{number:04};") for number in range(2_000)], "?" * 2_000, "")})
    assert grammar.accepts("k0000;k0002;k1999;")
    assert not grammar.accepts("k0002;k0000;")
    assert grammar.after("k0000;").accepts("k0001;")


def test_what_has_one_order_is_a_sequence() -> None:
    a, b = Literal("a"), Literal("b")
    assert members([], "", ",") == NOTHING
    assert members([a], "?", ",") == members([a], "1", ",") == a
    assert members([a, b], "11", ",") == Literal("a,b")
    assert members([a, b], "1?", ",") == seq("a", optional(",b"))
    assert members([a, NOTHING], "1?", ",") == a
    assert members([a, NOTHING], "?1", ",") == members([NOTHING, a], "1?", ",") == NOTHING
    assert members([a, b], "?1", "") == Members((a, b), "?1", "")


def test_parts_of_a_member_that_no_text_has() -> None:
    rules = {"never": seq("x", Ref("never")), "root": members([Ref("never"), Literal("a"), Literal("b")], "???", ",")}
    grammar = Grammar(rules)
    assert grammar.accepts("b,a")
    assert lark_accepts(grammar.to("lark"), "b,a")
    assert ebnf_accepts(grammar.to("ebnf"), "b,a")
    assert Grammar({"root": Repeat(members([Literal("a"), optional("b")], "??", ""), 1, 2)}).accepts("bab")


def test_a_matcher_does_not_grow_with_the_orders_that_it_has_seen() -> None:
    names = [f"k{number};" for number in range(20)]
    matcher: Any = Matcher({"root": members(list(map(Literal, names)), "?" * 20, "")})
    sizes: list[int] = []
    for seed in range(40):
        Random(seed).shuffle(names)
        assert matcher.accepts("".join(names))
        sizes.append(len(matcher._nodes))
    assert sizes[-1] == sizes[0]


def test_what_may_follow_some_of_them() -> None:
    grammar = Grammar({"root": seq("{", members([Literal(each) for each in "abc"], "?1?", ","), "}")})
    rest = grammar.after("{b,c")
    assert rest.accepts(",a}")
    assert rest.accepts("}")
    assert not rest.accepts(",c}")
    assert grammar.after("{a,b").accepts(",c}")
    assert lark_accepts(rest.to("lark"), ",a}")


def test_members_of_something_else_that_lexemes_run_on_into() -> None:
    """What members have been made into, once a lexeme grew by them, does not become a part of what stands before."""
    before = members([seq("<a>", chars("0123"), "</a>"), seq("<1>", Text(("<",)), "b</1>")], "**", "")
    after = members([seq("<a>", repeat("1"), "</a>"), seq("<1>b</1>"), seq("<c>", repeat("<", 1), "/c>")], "*??", ";")
    grammar = Grammar({"root": seq(_DIGITS, optional(before), Text(("<b",)), after)})
    lark = grammar.to("lark")
    for text in ("1<a>1</a>x<1>b</1>", "1x<1>b</1>;<a></a>", "11<1>x</1>"):
        assert lark_accepts(lark, text) == grammar.accepts(text), text


def test_members_inside_of_the_same_members() -> None:
    """llguidance stumbles over members that it comes to while it reads them, where calls begin with them as well."""
    inside = members([seq("a:", Ref("value")), seq("b:", Ref("object")), seq("c:[", Ref("object"), "]")], "???", ",")
    rules = {
        "root": seq(Text(("<",)), optional(seq("<", choice(Ref("one"), Ref("other"))))),
        "one": seq("one=", Ref("object")),
        "other": seq("other=", Ref("pair")),
        "pair": seq("{", members([seq("a:", Ref("object")), seq("b:", Ref("value"))], "??", ","), "}"),
        "object": seq("{", optional(inside), "}"),
        "value": _DIGITS,
    }
    grammar = Grammar(rules)
    lark = grammar.to("lark")
    for text in ("<one={b:{c:[{}],a:3}}", "<one={b:{},b:{}}", "x<other={b:1,a:{b:{a:1},a:2}}", "<one={b:{a:1,a:1}}"):
        assert lark_accepts(lark, text) == grammar.accepts(text), text
    assert all(lark_accepts(lark, grammar.sample(seed)) for seed in range(20))


@pytest.mark.parametrize(
    ("rules", "letters"),
    [
        ({"root": members([seq("a", optional(Ref("root"))), Literal("b")], "??", "")}, "ab"),
        ({"root": members([seq("a", choice(Ref("root"), "x")), Literal("b")], "??", ",")}, "abx,"),
        ({"root": seq(members([seq("a", Ref("more")), Literal("b")], "?1", ""), ";"),
          "more": optional(seq(members([seq("b", Ref("less")), Literal("c")], "?!", ""), Repeat(Literal("x"), 0, 1))),
          "less": choice(members([seq("a", Ref("more")), Literal("b")], "?1", ""), "")}, "abc;"),
        ({"root": seq(members([seq("(", optional(Ref("root")), ")"), Literal("b")], "??", ""), ";")}, "()b;"),
    ],
)  # fmt: skip
def test_members_that_end_with_the_same_members(rules: dict[str, Expr], letters: str) -> None:
    """llguidance takes what follows those inside for what follows those outside: "abbb" has one of three b twice."""
    grammar = Grammar(rules)
    texts = ["".join(text) for length in range(7) for text in itertools.product(letters, repeat=length)]
    accepted = {text for text in texts if grammar.accepts(text)}
    assert accepted
    assert {text for text in texts if lark_accepts(grammar.to("lark"), text)} == accepted
    assert gbnf_accepted(grammar.to("gbnf"), set(texts)) == accepted
