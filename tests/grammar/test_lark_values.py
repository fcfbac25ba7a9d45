"""Values in brackets that the Lark writer does not look into, since no lexeme of them can be in another's way."""

from __future__ import annotations

import re
from importlib import import_module
from unittest.mock import patch

import pytest

from oracles import lark_accepts
from toolgram.grammar.dialects.lark.lexing import crowds
from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.lexing.values import safe_values
from toolgram.grammar.dialects.lark.tree import lexemes
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Expr, Ref, Text, chars, choice, less, optional, repeat, seq
from toolgram.grammar.matcher import Matcher
from toolgram.schema import schema_grammar

VALUE = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}, "b": {"type": "object"}}}
RULES = dict(schema_grammar(VALUE).rules)
LONGEST = 200  # characters that an engine is asked about
JSON: dict[str, Expr] = {**RULES, "value": RULES["root"]}
QUOTE = '<|"|>'
LETTER = chars("_", (ord("a"), ord("z")))
BARE: dict[str, Expr] = {
    "string": seq(QUOTE, Text((QUOTE,)), QUOTE),
    "kind": choice(*(f"{QUOTE}{word}{QUOTE}" for word in ("a", "list", "x:{y:"))),
    "other": seq(choice(seq("k", less(LETTER, "i"), repeat(LETTER)), seq(less(LETTER, "k"), repeat(LETTER))), ":"),
    "any": choice(Ref("string"), Ref("value"), Ref("list"), "true", "false"),
    "list": seq("[", optional(seq(Ref("any"), repeat(seq(",", Ref("any"))))), "]"),
    "value": seq("{kind:", Ref("kind"), ",in:{k:", Ref("any"), "}", repeat(seq(",", Ref("other"), Ref("any"))), "}"),
}
"""Objects whose keys have no quotes, with strings between a format's own, which hold anything."""


def _found(grammar: Grammar) -> dict[str, str]:
    lowered = import_module("toolgram.grammar.dialects.lark.lower").lower(grammar._short)
    return safe_values(lowered.tree, Lexicon(lexemes(lowered.tree), lowered.words, inside=True))


def _turn(root: Expr, **more: Expr) -> Grammar:
    return Grammar({**JSON, **more, "root": root})


def test_objects_and_arrays_of_json_are_safe() -> None:
    found = _found(_turn(seq("<call>", Ref("value"), "</call>", Text(("<call>",)))))
    assert found["value"] == found["json-object"] == "{"
    assert found["json-array"] == "["


def test_keys_without_quotes_and_strings_between_own_quotes_are_whole() -> None:
    root = seq("<call>", Ref("value"), "</call>", Text(("<call>",)))
    assert _found(Grammar({**BARE, "root": root})).keys() == {"value", "list"}
    lark = Grammar({**BARE, "root": root}).to("lark")
    kinds = " | ".join(rf'"<|\"|>{word}<|\"|>"' for word in ("a", "list", "x:{y:"))
    assert f'"{{" "kind:" ({kinds}) "," "in:" "{{" "k:" any "}}" ("," other any)* "}}"' in lark
    assert re.search(r"^KEY: /.*:/$", lark, re.MULTILINE)


def test_what_holds_text_or_leaves_a_bracket_open_is_not() -> None:
    root = seq("<call>", choice(seq("a", Ref("held")), seq("b", Ref("open"), "}")), "</call>", Text(("<call>",)))
    parts = {"held": seq("{", Ref("json-value"), Text(("}",)), "}"), "open": seq("{", Ref("json-value"), optional("}"))}
    assert _found(_turn(root, **parts)).keys().isdisjoint(parts)


@pytest.mark.parametrize(
    "root",
    [
        seq("<call>", Ref("value"), "</call>", Text(("<call>",))),
        seq(Text(("<call>",)), "<call>", repeat(seq(Ref("value"), "\n"), 1), "{}", Text(("</call>",)), "</call>"),
        choice(seq(Ref("value"), "!", Text(("<",))), seq('{"a": no}', Text(("<",)))),
        choice(seq(Text(("{",)), Ref("value")), seq("{x", Text(("}",)))),
    ],
)
@pytest.mark.parametrize("rules", [JSON, BARE], ids=["json", "bare"])
def test_the_lexer_cuts_no_text_in_the_wrong_place(root: Expr, rules: dict[str, Expr]) -> None:
    grammar = Grammar({**rules, "root": root})
    lark, matcher = grammar.to("lark"), Matcher(grammar.rules)
    for text in filter(lambda text: len(text) < LONGEST, map(matcher.sample, range(40))):
        for near in (text, text[:-1], text[1:], text.replace("}", "", 1), text + "}"):
            assert lark_accepts(lark, near) == grammar.accepts(near), near


def test_the_text_is_the_same_as_when_all_is_looked_into() -> None:
    roots = [seq("<call>", Ref("value"), "</call>", Text(("<call>",))), seq(Text(("{",)), Ref("value"), "}")]
    texts = [_turn(root).to("lark") for root in roots]
    with patch.object(crowds, "safe_values", lambda *_: {}):
        assert [_turn(root).to("lark") for root in roots] == texts


@pytest.mark.parametrize("few", [0, 10_000])
def test_the_text_is_the_same_however_much_is_looked_at_once(few: int) -> None:
    """With long stacks at first, or with short ones, which find more: then with long ones."""
    calls = choice(*(seq(f"{name}<arg>", Ref("value"), "</arg>") for name in ("a", "ab", "b")))
    roots = [
        seq(Text(("</t>", "<call>a<arg>")), choice("</t>", ""), "<call>", calls, repeat(seq("<call>", calls))),
        seq(Text(("{",)), Ref("value"), optional(seq("\n", Ref("value"))), choice("}", "\n")),
    ]
    texts = [_turn(root).to("lark") for root in roots]
    with patch.object(crowds, "_FEW_CROWDS", few):
        assert [_turn(root).to("lark") for root in roots] == texts
