"""Random grammars over a tiny alphabet, and their sentences by brute force: what the real code is compared with."""

from __future__ import annotations

from itertools import product

from hypothesis import settings
from hypothesis import strategies as st

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
    Sequence,
    Text,
    Token,
    chars,
    not_chars,
)

ALPHABET = "ab"
LONGEST = 4
SOME = settings(max_examples=60, deadline=None)
"""For properties whose oracle is slow."""
NAMES = ("root", "one_rule", "one-rule", "2nd")


def strings(longest: int = LONGEST, alphabet: str = ALPHABET) -> list[str]:
    """All strings over the alphabet up to this length."""
    return ["".join(letters) for length in range(longest + 1) for letters in product(alphabet, repeat=length)]


def sentences(rules: Rules, longest: int = LONGEST) -> set[str]:
    """The sentences over the alphabet up to this length: the least fixed point of the rules as equations."""
    found: dict[str, set[str]] = {name: set() for name in rules}
    while True:
        more = {name: _language(expr, found, longest) for name, expr in rules.items()}
        if more == found:
            return found["root"]
        found = more


def _language(expr: Expr, found: dict[str, set[str]], longest: int) -> set[str]:
    match expr:
        case Literal(text) | Token(text):
            return {text} if len(text) <= longest else set()
        case CharSet():
            return {char for char in ALPHABET if char in expr} if longest else set()
        case Ref(name):
            return found[name]
        case Text(without, seen):
            return {text for text in strings(longest) if not any(marker in seen + text for marker in without)}
        case Choice(options):
            return set().union(*(_language(option, found, longest) for option in options))
        case Sequence(items):
            out = {""}
            for item in items:
                out = _joined(out, _language(item, found, longest), longest)
            return out
        case Repeat(item, low, high):
            one = _language(item, found, longest)
            out: set[str] = set()
            power = {""}
            # After that many rounds nothing new comes: what is longer is cut, what is empty repeats.
            for count in range((low + longest if high is None else high) + 1):
                out |= power if count >= low else set()
                power = _joined(power, one, longest)
            return out


def _joined(left: set[str], right: set[str], longest: int) -> set[str]:
    return {a + b for a in left for b in right if len(a) + len(b) <= longest}


MARKERS = st.lists(st.text(ALPHABET, min_size=1, max_size=3), max_size=3).map(tuple)
TEXTS = MARKERS.flatmap(
    lambda without: st.builds(
        Text,
        st.just(without),
        st.text(ALPHABET, max_size=2).filter(lambda seen: not any(marker in seen for marker in without)),
    )
)
LEAVES: st.SearchStrategy[Expr] = st.one_of(
    st.text(ALPHABET, max_size=3).map(Literal),
    st.sampled_from([chars("a"), chars("ab"), not_chars("a"), not_chars(), CharSet(()), EMPTY, NOTHING]),
    st.sampled_from([Token("ab"), Token("a")]),
    TEXTS,
)


def _expressions(leaves: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: Sequence(tuple(items))),
            st.lists(inner, max_size=4).map(lambda options: Choice(tuple(options))),
            st.builds(Repeat, inner, st.integers(0, 2), st.none() | st.integers(0, 3)),
        ),
        max_leaves=6,
    )


@st.composite
def random_rules(draw: st.DrawFn) -> dict[str, Expr]:
    """Rules that are not left-recursive: each uses later ones anywhere, and all of them behind a character."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    guarded: st.SearchStrategy[Expr] = st.builds(
        lambda char, name: Sequence((Literal(char), Ref(name))), st.sampled_from(ALPHABET), st.sampled_from(names)
    )
    out: dict[str, Expr] = {}
    for number, name in enumerate(names):
        later = [st.sampled_from(names[number + 1 :]).map(Ref)] if number + 1 < len(names) else []
        out[name] = draw(_expressions(st.one_of(LEAVES, guarded, *later)))
    return out
