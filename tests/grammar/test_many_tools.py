"""Sets of tools beyond all measure: what they take is in proportion to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import toolgram
from situations import CHATML
from toolgram.grammar.dialects.lark import growth, repair


def tools(count: int, properties: int) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(properties)}}
    return [{"type": "function", "function": {"name": f"f{i}", "parameters": schema}} for i in range(count)]


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[None]:
    calls, function = list[None](), getattr(module, name)

    def called(*given: Any) -> Any:
        calls.append(None)
        return function(*given)

    monkeypatch.setattr(module, name, called)
    return calls


@pytest.mark.parametrize("made", [lambda: tools(1100, 2), lambda: tools(1, 150)], ids=["tools", "properties"])
def test_many_lexemes_grow_in_one_pass(monkeypatch: pytest.MonkeyPatch, made: Callable[[], Any]) -> None:
    searches = counted(monkeypatch, growth, "_reachable")
    looks = counted(monkeypatch, repair, "conflicts")
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], "tools": made()}, CHATML)
    assert plan.constraint is not None
    assert plan.constraint.grammar.to("lark")
    assert len(looks) == 1
    assert len(searches) == 1  # what a rule leads to is not looked for at each call of it
