"""Values that remember what was found of them: that stays in the process, where the hashes of texts are the same."""

from __future__ import annotations

import pickle

import pytest

from toolgram.grammar.ir import Expr, Literal, chars, choice, optional, repeat, seq
from toolgram.grammar.walk import kinds_in, names_in, size
from toolgram.styles.base import ToolStyle
from toolgram.styles.registry import all_styles

EXPRESSIONS = (seq("a", chars("bc")), choice("a", seq("b", optional(chars("c")))), repeat(Literal("a"), 1, 3))


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=repr)
def test_what_was_found_of_an_expression_is_not_pickled(expr: Expr) -> None:
    new = pickle.dumps(expr)
    hash(expr), kinds_in(expr), names_in(expr), size(expr)
    assert pickle.dumps(expr) == new
    assert pickle.loads(new) == expr  # noqa: S301 - our own


@pytest.mark.parametrize("style", all_styles(), ids=lambda style: style.name)
def test_what_was_found_of_a_format_is_not_pickled(style: ToolStyle) -> None:
    again = pickle.loads(pickle.dumps(style.wire))  # noqa: S301 - our own
    assert hash(style.wire) == hash(again)
    assert again == style.wire
    new = pickle.dumps(again)
    hash(again), again.marks
    assert pickle.dumps(again) == new
