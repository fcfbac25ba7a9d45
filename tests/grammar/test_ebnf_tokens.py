"""Optional tokens in EBNF, and that XGrammar's masks are right for one grammar after another of the same model."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from oracles import TokenOracles
from situations import CHATML, WEATHER, tool
from toolgram.grammar.dialects.ebnf import write_ebnf
from toolgram.grammar.ir import Literal, Rules, Token, choice, optional, repeat, seq
from toolgram.styles.native import NATIVE

ONE, TWO = Token("<1>", 256), Token("<2>", 257)


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        ({"root": seq(" ", optional(ONE), "json")}, ['root ::= " " (Token(256) "json" | "json")']),
        ({"root": seq("a", optional(choice(ONE, TWO)))}, ['root ::= "a" (Token(256) | Token(257)) | "a"']),
        (
            {"root": seq(ONE, optional("\n"), optional(TWO))},
            ['root ::= Token(256) ("\\n" Token(257) | "\\n" | Token(257))?'],
        ),
        ({"root": seq(optional(ONE), repeat(Literal("a"), 2, 3))}, ['root ::= Token(256)? "a"{2,3}']),
    ],
)
def test_an_optional_token_stands_with_the_text_beside_it(rules: Rules, lines: list[str]) -> None:
    assert write_ebnf(rules).splitlines() == lines


def requests() -> list[dict[str, Any]]:
    some = [tool(name, WEATHER) for name in ("get", "look_up")]
    schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": WEATHER}}
    bodies: list[dict[str, Any]] = [{"tools": some[:1]}, {"tools": some}, {"tools": some, "tool_choice": "required"}]
    bodies += [{"tools": some, "parallel_tool_calls": False}, {"tools": some, "response_format": schema}]
    return [{"messages": [{"role": "user", "content": "Hi."}], **body} for body in bodies]


@pytest.mark.parametrize("style", [style.name for style in NATIVE])
def test_masks_have_the_tokens_that_may_come(style: str) -> None:
    plans = [toolgram.plan(request, CHATML, style) for request in requests()]
    constraints = [plan.constraint for plan in plans if plan.constraint is not None]
    every = dict.fromkeys(marker for each in constraints for marker in each.markers)
    oracles = TokenOracles(tuple([marker for marker in every if marker[0] in "<["]))  # JSON and fences are no tokens
    for constraint in constraints:
        bound = constraint.bind(oracles.ids).grammar
        ebnf = bound.to("ebnf")
        for seed in range(6):
            wrong = oracles.wrong_masks(ebnf, oracles.tokenized(bound.sample(seed)))
            assert wrong == [], f"{wrong}\n{ebnf}"
