import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given

from small_languages import LONGEST, SOME, random_rules, sentences, strings
from toolgram.errors import GrammarError
from toolgram.grammar import matcher as matching
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import (
    NOTHING,
    Except,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Sequence,
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
from toolgram.grammar.shape import beginnings, shortest
from toolgram.grammar.tidy import tidy
from toolgram.grammar.walk import uses

BRACKETS: dict[str, Expr] = {"root": choice(seq("[", Ref("root"), "]"), "")}
MARKED: dict[str, Expr] = {
    "root": seq(Text(("<call>",)), optional(seq(Token("<call>", 7), repeat(chars("ab"), 1, 3), "</call>")))
}


@given(random_rules())
@SOME
def test_accepts_exactly_the_sentences(rules: Rules):
    matcher, expected = Matcher(rules), sentences(rules)
    assert {text for text in strings() if matcher.accepts(text)} == expected
    assert all(matcher.viable(text[:end]) for text in expected for end in range(len(text) + 1))


@given(random_rules())
@SOME
def test_after_is_the_derivative(rules: Rules):
    matcher, expected = Matcher(rules), sentences(rules)
    for begin in strings(2):
        follow = {text.removeprefix(begin) for text in expected if text.startswith(begin)}
        if matcher.viable(begin):
            rest = matcher.after(begin)
            assert sentences(rest, LONGEST - len(begin)) == follow
            assert next(iter(rest)) == "root"
            Matcher(rest)
        else:
            assert not follow
            with pytest.raises(GrammarError):
                matcher.after(begin)


@given(random_rules())
@SOME
def test_samples_are_sentences(rules: Rules):
    matcher = Matcher(rules)
    if not matcher.viable(""):
        with pytest.raises(GrammarError):
            matcher.sample(0)
        return
    for seed in range(10):
        text = matcher.sample(seed)
        # Random rules may be ambiguous beyond all measure, and then long texts take long.
        assert matcher.accepts(text) if len(text) <= 40 else matcher.viable(text[:40]), text
        assert text == matcher.sample(seed)
        assert not any("\ud800" <= char <= "\udfff" for char in text)


@given(random_rules())
@SOME
def test_viable_promises_a_sentence(rules: Rules):
    matcher = Matcher(rules)
    for begin in strings(3):
        if matcher.viable(begin):
            rest = Matcher(matcher.after(begin)).sample(1)
            assert matcher.accepts(begin + rest) if len(rest) <= 40 else matcher.viable(begin + rest[:40])


@pytest.mark.parametrize(
    "rules",
    [
        {"root": seq(Ref("root"), "a")},
        {"root": choice("a", Ref("more")), "more": seq(Ref("root"), "b")},
        {"root": seq(optional("a"), Ref("root"), "b")},
        {"root": seq(Ref("may"), Ref("root")), "may": repeat("x")},
        {"root": repeat(Ref("root"))},
        {"root": seq(Text(("<",)), Ref("root"))},
        {"root": "a", "unused": seq(Ref("unused"), "b")},
    ],
    ids=["direct", "through another", "behind an option", "behind a rule", "repeated", "behind a text", "unused"],
)
def test_refuses_left_recursion(rules: dict[str, Expr]):
    with pytest.raises(GrammarError, match="left recursion"):
        Matcher({name: seq(expr) for name, expr in rules.items()})


def test_right_recursion_and_a_rule_twice_in_a_row_are_fine():
    assert Matcher({"root": seq(Ref("a"), Ref("a")), "a": optional(seq("a", Ref("a")))}).accepts("aaa")


@pytest.mark.parametrize("rules", [{}, {"other": seq("a")}, {"root": Ref("gone")}])
def test_refuses_what_is_not_defined(rules: dict[str, Expr]):
    with pytest.raises(GrammarError):
        Matcher(rules)


def test_the_empty_language():
    matcher = Matcher({"root": seq("a", Ref("never")), "never": Sequence((NOTHING,))})
    assert not matcher.accepts("")
    assert not matcher.viable("a")
    with pytest.raises(GrammarError):
        matcher.sample(0)


def test_what_a_text_may_begin_with():
    assert beginnings(seq(optional("a"), "b", Ref("c"))) == ("a", "b")
    assert beginnings(choice("a", seq(choice("bc", "d"), Ref("c")))) == ("a", "bc", "d")
    assert beginnings(seq(optional("a"), optional("b"))) == ("a", "b", "")
    assert beginnings(NOTHING) == ()
    assert beginnings(choice("a", Ref("b"))) is beginnings(Text(())) is beginnings(choice(*"abcdefghi")) is None


def test_long_and_deep_texts():
    size = 20_000
    matcher = Matcher(BRACKETS)
    assert matcher.accepts("[" * size + "]" * size)
    assert not matcher.accepts("[" * size + "]" * (size - 1))
    assert matcher.accepts("")
    rest = Matcher(matcher.after("[" * size))
    assert rest.accepts("]" * size)
    assert Matcher({"root": Text(("<call>",))}).accepts("<cal" * size)


@pytest.mark.parametrize(
    "root",
    [
        repeat(seq("a", Ref("root"))),
        choice(seq("a", Ref("root"), "b"), seq("a", Ref("root"), "c"), ""),
        repeat(choice("a", "aa", "aaa", "b")),
        choice(seq("a", Ref("root"), Ref("root")), "a", "b"),
    ],
    ids=["repeated recursion", "same beginnings", "overlapping items", "trees"],
)
def test_ambiguity_does_not_multiply(root: Expr):
    matcher = Matcher({"root": root})
    assert matcher.viable("a" * 400)
    assert Matcher(matcher.after("a" * 20)).viable("aaa")


def test_counts():
    matcher = Matcher({"root": repeat(chars("ab"), 3, 5000)})
    assert matcher.accepts("a" * 5000)
    assert not matcher.accepts("a" * 5001)
    assert not matcher.accepts("ab")


def test_a_token_matches_its_text_with_and_without_an_id():
    assert Matcher(MARKED).accepts("x <cal <call>ab</call>")
    assert not Matcher(MARKED).accepts("<call></call>")
    assert Matcher(Matcher(MARKED).after("<call>aba")).accepts("</call>")


def test_after_keeps_what_a_text_has_seen():
    rest = Matcher(Matcher({"root": Text(("<call>",))}).after("so <ca"))
    assert rest.accepts("ll")
    assert not rest.accepts("ll>")


def test_stacks_that_lie_too_deep_to_be_merged_are_kept():
    """Two at the same place, of which the second was lost when a third was merged with them."""
    first, last = choice("bab", "ababc", "b", "aaccb"), choice(chars("a"), "", "bca")
    again = choice(seq("b", Ref("root")), "c", "", seq("c", Ref("root")))
    rules = {"root": repeat(seq(first, again, last), 1)}
    assert Matcher(rules).accepts("bcababccababcbbabcaaaa")
    assert Matcher(Matcher(rules).after("bcababccababcbbab")).accepts("caaaa")


def test_what_is_forgotten_leaves_the_start_as_it_is(monkeypatch: pytest.MonkeyPatch):
    made = Matcher(BRACKETS)
    monkeypatch.setattr(matching, "_MOST_REMEMBERED", 5)
    assert made.accepts("[[[]]]")
    assert made.after("") is BRACKETS


@pytest.mark.parametrize("code", [0xD800, 0xD802, 0xDFFF])
def test_a_surrogate_is_no_text(code: int):
    char = chr(code)
    for marker in ("x", f"{char}x"):
        assert not Matcher({"root": Text((marker,))}).viable(char)


@pytest.mark.parametrize("ahead", [1, 64])
def test_what_is_ahead_leaves_out_only_what_begins_otherwise(monkeypatch: pytest.MonkeyPatch, ahead: int):
    """An option may begin with what may be left out, or in another rule, or be shorter than what is ahead."""
    monkeypatch.setattr(matching, "_AHEAD", ahead)
    may_begin = seq(optional("<a>"), optional("-"), "<b>", Ref("end"))
    rules = {"root": seq(choice(Ref("other"), may_begin, "<", seq(), "<b><b>"), Ref("end")), "end": repeat("b>!")}
    made = Matcher(
        {**rules, "other": choice(Ref("others"), "<c>"), "others": choice(*map(str, range(9)), Text(("!",)))}
    )
    for text in ("<a><b>", "<b>", "<b><b>", "<", "b>!b>!", "<c>b>!", "7", f"{'so ' * 60}b>!"):
        for end in range(len(text) + 1):
            assert Matcher(made.after(text[:end])).accepts(text[end:]), (text[:end], text[end:])


def test_after_renames_a_root_that_is_still_used():
    rules = Matcher(BRACKETS).after("[")
    assert next(iter(rules)) == "root"
    assert Matcher(rules).accepts("[]]")


def test_what_is_left_of_rules_that_were_begun_is_written_once():
    calls = {f"call-{name}": seq("<", "call>", repeat(chars(name), 40, 50), "!") for name in "ab"}
    one = choice(*map(Ref, calls))
    rules = Matcher({"root": seq(one, repeat(seq(",", one))), **calls}).after("<call>")
    written = repr(rules)
    assert {written.count(f"ranges=(({ord(name)}, {ord(name)}),)") for name in "ab"} == {1}
    for text, is_one in ((f"{'a' * 40}!,<call>{'b' * 50}!", True), (f"{'a' * 40}!,{'b' * 40}!", False), ("a!", False)):
        assert Matcher(rules).accepts(text) is is_one, text


def test_samples_look_for_trouble():
    string = seq('"', repeat(choice(not_chars('"\\'), seq("\\", chars('"\\')))), '"')
    matcher = Matcher({"root": seq(Text(("<call>",)), "<call>", string)})
    texts = [matcher.sample(seed) for seed in range(300)]
    for trouble in ("<<", "<cal", "call>", "\n", "\\\\", '\\"', "\u2028", "é"):
        assert any(trouble in text.replace("<call>", "", 1) for text in texts), trouble
    assert any(ord(char) > 0xFFFF for text in texts for char in text)
    assert any(len(text) > 100 for text in texts)


def test_samples_of_branching_recursion_end():
    tree = choice(seq("(", Ref("root"), Ref("root"), Ref("root"), ")"), "leaf")
    assert all(len(Matcher({"root": tree}).sample(seed)) < 20_000 for seed in range(50))


def test_samples_reach_every_option():
    matcher = Matcher({"root": choice(*"abcde")})
    assert {matcher.sample(seed) for seed in range(200)} == set("abcde")


@pytest.mark.parametrize("remembered", [50_000, 20])
def test_threads_share_a_matcher(monkeypatch: pytest.MonkeyPatch, remembered: int):
    monkeypatch.setattr("toolgram.grammar.matcher._MOST_REMEMBERED", remembered)
    matcher = Matcher(MARKED)
    texts = [matcher.sample(seed) for seed in range(200)]
    shared = Matcher(MARKED)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(shared.accepts, texts * 5))


def test_tables_do_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolgram.grammar.matcher._MOST_REMEMBERED", 100)
    rules: dict[str, Expr] = {"root": choice(seq(not_chars(), Ref("root"), not_chars()), "")}
    matcher, before = Matcher(rules), _frames()
    for code in range(300):
        assert matcher.accepts(chr(0x4E00 + code) * 20)
        assert not matcher.accepts(chr(0x4E00 + code) * 21)
    assert _frames() - before < 500


def _frames() -> int:
    gc.collect()
    return sum(type(found).__name__ == "_Frame" for found in gc.get_objects())


@given(random_rules())
@SOME
def test_what_is_forgotten_is_found_again(rules: Rules):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolgram.grammar.matcher._MOST_REMEMBERED", 3)
        matcher, expected = Matcher(rules), sentences(rules)
        assert {text for text in strings() if matcher.accepts(text)} == expected


def test_tidy_leaves_what_is_tidy_as_it_is():
    rules: dict[str, Expr] = {"root": seq("a", optional(Ref("one")), repeat(Ref("one"), 1)), "one": repeat("b", 2, 3)}
    assert all(tidy(rules)[name] is expr for name, expr in rules.items())


def test_tidy_makes_twins_of_what_may_be_empty():
    rules: dict[str, Expr] = {"root": Repeat(Ref("words"), 1, None), "words": repeat(chars("ab"))}
    assert tidy(rules) == {"root": repeat(Ref("words-nonempty")), "words-nonempty": Repeat(chars("ab"), 1, None)}


@given(random_rules())
@SOME
def test_tidy_keeps_the_language(rules: Rules):
    expected = sentences(rules)
    if Matcher(rules).viable(""):
        assert sentences(tidy(rules)) == expected
    else:
        with pytest.raises(GrammarError):
            tidy(rules)


def test_what_is_none_of_some_strings_stays_so_before_a_text_comes_to_it():
    other = Except(not_chars('"', "\\"), not_chars('"', "\\"), Literal("\\n"), ("a", "ab"))
    rules = {"root": seq("x", Ref("rest")), "rest": seq("y", other)}
    assert Matcher(rules).after("x")["rest"] == rules["rest"]
    inside = Matcher(Matcher(rules).after('xy"a'))
    assert [rest for rest in ('bc"', 'b"', '"') if inside.accepts(rest)] == ['bc"']


@given(random_rules())
@SOME
def test_what_follows_is_written_the_same_whatever_is_known_of_it(rules: Rules):
    grammar, matcher = Grammar(rules), Matcher(rules)
    for begin in sorted({sentence[:1] for sentence in sentences(rules)}):
        after = matcher.after(begin)
        assert matcher.known_of(after).items() <= shortest(after, uses(after)).items()
        assert grammar.after(begin).to("gbnf") == Grammar(after).to("gbnf")
