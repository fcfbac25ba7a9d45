import time

import pytest
from hypothesis import assume, given

from small_languages import SOME, random_rules, sentences
from toolgram.errors import GrammarError
from toolgram.grammar.ir import (
    NOTHING,
    Choice,
    Expr,
    Ref,
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
from toolgram.grammar.simplify import simplify

STRING = seq('"', repeat(choice(not_chars('"\\', (0, 31)), seq("\\", chars('"\\/bfnrt')))), '"')


def many_tools(tools: int, parameters: int) -> dict[str, Expr]:
    """Rules as a request with many tools makes them."""
    kinds = (Ref("string"), Ref("integer"), choice('"red"', '"green"'), seq("[", optional(Ref("string")), "]"))
    rules: dict[str, Expr] = {
        "root": seq(Text(("<tool_call>",)), repeat(seq("<tool_call>\n", Ref("call"), "\n</tool_call>"))),
        "call": choice(*(Ref(f"tool_{tool}") for tool in range(tools))),
        "string": STRING,
        "integer": seq(optional("-"), choice("0", seq(chars((49, 57)), repeat(chars((48, 57)), 0, 18)))),
    }
    for tool in range(tools):
        for number in range(parameters):
            rules[f"tool_{tool}_{number}"] = kinds[number % len(kinds)]
        pairs = [seq(f'"p{number}": ', Ref(f"tool_{tool}_{number}")) for number in range(parameters)]
        listed = [seq(", ", pair) if number else pair for number, pair in enumerate(pairs)]
        rules[f"tool_{tool}"] = seq(f'{{"name": "get_{tool}", "arguments": {{', *listed, "}}")
    return rules


@given(random_rules())
@SOME
def test_keeps_the_language(rules: Rules):
    assume(Matcher(rules).viable(""))
    simple = simplify(rules)
    assert next(iter(simple)) == "root"
    assert sentences(simple) == sentences(rules)
    Matcher(simple)


@given(random_rules())
@SOME
def test_is_done_in_one_go(rules: Rules):
    assume(Matcher(rules).viable(""))
    simple = simplify(rules)
    assert set(simplify(simple)) <= set(simple)


def test_keeps_the_language_of_real_rules():
    rules = many_tools(12, 4)
    simple = Matcher(simplify(rules))
    whole = Matcher(rules)
    for seed in range(100):
        assert simple.accepts(whole.sample(seed))
        assert whole.accepts(simple.sample(seed))


def test_factors_names_character_by_character():
    assert simplify({"root": choice("get_a", "get_b", "set", "get")}) == {
        "root": choice(seq("get", choice(seq("_", choice("a", "b")), "")), "set")
    }


def test_factors_equal_beginnings_of_any_kind():
    rules = {"root": choice(seq(Token("<t>", 3), "x"), seq(Token("<t>", 3), "y"), Token("<u>", 4))}
    assert simplify(rules) == {"root": choice(seq(Token("<t>", 3), choice("x", "y")), Token("<u>", 4))}


def test_the_empty_alternative_comes_last():
    simple = simplify({"root": choice("", "ab", "ac")})
    assert simple == {"root": choice(seq("a", choice("b", "c")), "")}


def test_inlines_what_is_small_and_names_what_is_big():
    rules: dict[str, Expr] = {
        "root": seq(Ref("open"), Ref("string"), Ref("comma"), Ref("once"), Ref("comma"), Ref("string")),
        "open": seq("["),
        "comma": seq(", "),
        "once": choice("true", "false"),
        "string": STRING,
    }
    assert simplify(rules) == {
        "root": seq("[", Ref("string"), ", ", choice("true", "false"), ", ", Ref("string")),
        "string": STRING,
    }


def test_drops_what_is_never_used_or_matches_nothing():
    rules: dict[str, Expr] = {
        "unused": STRING,
        "root": Choice((seq("a", optional(Ref("never"))), seq("b", Ref("never")))),
        "never": seq("x", Ref("never")),
    }
    assert simplify(rules) == {"root": seq("a")}


def test_recursion_stays():
    rules = {"root": seq(Ref("list")), "list": seq("[", optional(Ref("list")), "]")}
    assert Matcher(simplify(rules)).accepts("[[[]]]")


def test_order_is_that_of_first_use():
    big = repeat(choice(*(seq(chars(letter), STRING) for letter in "abcdefgh")), 1, 9)
    rules: dict[str, Expr] = {
        "z": big,
        "root": seq(Ref("y"), Ref("z")),
        "y": seq("y", big, Ref("x")),
        "x": seq(big, "!"),
    }
    assert list(simplify(rules)) == ["root", "y", "x", "z"]


def test_refuses_a_grammar_without_a_sentence():
    with pytest.raises(GrammarError):
        simplify({"root": NOTHING})


def test_thirty_tools_take_milliseconds():
    rules = many_tools(30, 5)
    simplify(rules)
    times: list[float] = []
    for _ in range(5):
        begin = time.perf_counter()
        simplify(rules)
        times.append(time.perf_counter() - begin)
    # A tenth of a second leaves room for a slow and busy machine.
    assert min(times) < 0.1
