"""Markers that are one token of the model: the bound grammar takes the token, and not its letters."""

from __future__ import annotations

from functools import cache

import pytest

from oracles import TokenOracles
from situations import WEATHER, callable_tools
from toolgram import Message, ToolCall
from toolgram.grammar.constraint import Constraint
from toolgram.grammar.dialects.gbnf import read_gbnf
from toolgram.grammar.ir import Expr, Token, children
from toolgram.planning.readable_names import some_id
from toolgram.planning.turn import CompiledTurn, compile_turn
from toolgram.planning.turn_spec import TurnSpec
from toolgram.styles.native import NATIVE

STYLES = {style.name: style for style in NATIVE}
# Markers that are no tokens of any model: they go on with a name, or are plain words.
PLAIN = {"functools", ">>>", "<function=", '<｜DSML｜invoke name="'}


@cache
def turn(style: str) -> CompiledTurn:
    """A turn that must call the tool."""
    tools = callable_tools({"look": WEATHER})
    wire = STYLES[style].format(with_tools=True, tools=("look",))
    return compile_turn(TurnSpec(wire, tools, "only", parallel=True, answer=None, stops=()))


def markers(constraint: Constraint) -> list[str]:
    """The markers of a constraint, in the order of their first use."""

    def parts(expr: Expr) -> list[str]:
        own = [expr.text] if isinstance(expr, Token) else []
        return own + [text for child in children(expr) for text in parts(child)]

    found = [text for expr in constraint.grammar.rules.values() for text in parts(expr)]
    return [text for text in dict.fromkeys(found) if text not in PLAIN]


@pytest.mark.parametrize("style", STYLES)
def test_the_token_is_taken_and_its_letters_are_not(style: str) -> None:
    constraint = Constraint(turn(style).grammar)
    oracles = TokenOracles(tuple(markers(constraint)))
    bound = constraint.bind(oracles.ids)
    lark, ebnf, tag = bound.grammar.to("lark"), bound.grammar.to("ebnf"), bound.structural_tag()
    call = ToolCall("look", '{"city": "Paris", "days": 3}', some_id("look", STYLES[style].wire))
    text = turn(style).write(Message(None, None, (call,)))
    assert text is not None
    assert bound.grammar.accepts(text)
    tokens, letters = oracles.tokenized(text), list(text.encode())
    for accepts in (
        lambda tokens: oracles.lark_accepts(lark, tokens),
        lambda tokens: oracles.ebnf_accepts(ebnf, tokens),
        lambda tokens: oracles.structural_tag_accepts(tag, tokens),
    ):
        assert accepts(tokens)
        assert accepts(letters) == (tokens == letters)


@pytest.mark.parametrize("style", STYLES)
def test_llama_cpp_is_told_the_ids(style: str) -> None:
    constraint = Constraint(turn(style).grammar)
    ids = {text: 1000 + i for i, text in enumerate(markers(constraint))}
    read = read_gbnf(constraint.bind(ids).grammar.to("gbnf"))
    written = {part.id for expr in read.values() for part in tokens_in(expr)}
    assert written == set(ids.values())


def tokens_in(expr: Expr) -> list[Token]:
    return ([expr] if isinstance(expr, Token) else []) + [token for part in children(expr) for token in tokens_in(part)]


def test_a_token_that_the_vocabulary_lacks_stays_text() -> None:
    constraint = Constraint(turn("hermes").grammar)
    assert constraint.bind({"<tool_response>": 5}).grammar.to("gbnf") == constraint.grammar.to("gbnf")
    half = constraint.bind({"<tool_call>": 5}).grammar.to("gbnf")
    assert "<[5]>" in half
    assert '"</tool_call>"' in half


def test_values_are_never_tokens() -> None:
    """What a tool is given as text is text to the model, even where it spells a marker."""
    schema = {"type": "object", "properties": {"tag": {"const": "<tool_call>"}}, "required": ["tag"]}
    tools = callable_tools({"f": schema})
    for style in ("hermes", "qwen_xml"):
        spec = TurnSpec(STYLES[style].wire, tools, "only", parallel=False, answer=None, stops=())
        gbnf = Constraint(compile_turn(spec).grammar).bind({"<tool_call>": 5, "</tool_call>": 6}).grammar.to("gbnf")
        assert gbnf.count("<[5]>") == 1
        assert "<tool_call>" in gbnf
