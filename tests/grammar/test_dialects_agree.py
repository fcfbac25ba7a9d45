"""Our matcher, llguidance on our Lark, and XGrammar on our EBNF give the same verdicts."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oracles import ebnf_accepts, lark_accepts
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import (
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    Token,
    chars,
    not_chars,
)

ALPHABET = "ab<"


def verdicts(grammar: Grammar, text: str) -> dict[str, bool]:
    """What each recogniser says of the text."""
    return {
        "matcher": grammar.accepts(text),
        "lark": lark_accepts(grammar.to("lark"), text),
        "ebnf": ebnf_accepts(grammar.to("ebnf"), text),
    }


def assert_agree(grammar: Grammar, text: str) -> None:
    """All recognisers must say the same."""
    found = verdicts(grammar, text)
    assert len(set(found.values())) == 1, (found, text, grammar.rules, grammar.to("lark"), grammar.to("ebnf"))


def mutations(text: str, alphabet: str, seed: int, count: int) -> list[str]:
    """The text with one character left out, put in, or changed."""
    rng = random.Random(seed)
    found: list[str] = []
    for _ in range(count):
        at = rng.randrange(len(text) + 1)
        char = rng.choice(alphabet)
        found.append(rng.choice((text[:at] + text[at + 1 :], text[:at] + char + text[at:], text[:at] + char + text[at + 1 :])))
    return found


_markers = st.text(ALPHABET, min_size=1, max_size=3)
_leaves: st.SearchStrategy[Expr] = st.one_of(
    st.text(ALPHABET, max_size=3).map(Literal),
    st.sampled_from([chars("a"), chars("ab"), not_chars("a"), not_chars("<"), chars("b<")]),
    st.lists(_markers, min_size=1, max_size=2).map(lambda markers: Text(tuple(markers))),
    st.text("ab", min_size=1, max_size=2).map(Token),
)


def _nested(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    bounds = st.sampled_from([(0, None), (0, 1), (1, None), (2, None), (0, 3), (1, 2), (2, 2)])
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda items: Sequence(tuple(items))),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: Choice(tuple(options))),
        st.tuples(inner, bounds).map(lambda drawn: Repeat(drawn[0], *drawn[1])),
    )


_plain = st.recursive(_leaves, _nested, max_leaves=6)


def _recursive(name: str) -> st.SearchStrategy[Expr]:
    """Rules that may call themselves or the next one, never on the left."""
    calls = st.sampled_from([Ref("one"), Ref("two"), Ref(name)])
    guarded = st.tuples(st.text(ALPHABET, min_size=1, max_size=2).map(Literal), calls, _plain).map(Sequence)
    return st.one_of(_plain, st.tuples(_plain, guarded).map(Choice), st.tuples(guarded, _plain).map(Choice))


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    """A small grammar without left recursion."""
    inner = {name: draw(_recursive(name)) for name in ("one", "two")}
    parts = draw(st.lists(st.one_of(_leaves, _plain, st.sampled_from([Ref("one"), Ref("two")])), min_size=1, max_size=4))
    return {"root": Sequence(tuple(parts)), **inner}


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(rules(), st.lists(st.text(ALPHABET, max_size=8), max_size=8), st.integers(0, 1000))
def test_small_grammars(drawn: Rules, texts: list[str], seed: int) -> None:
    grammar = Grammar(drawn)
    sampled = [grammar.sample(seed + n) for n in range(3)]
    near = [other for text in sampled for other in mutations(text, ALPHABET, seed, 4)]
    for text in [*texts, *sampled, *near]:
        assert_agree(grammar, text)
