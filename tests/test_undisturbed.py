"""Planning and writing grammars go on without searches for garbage, and leave the process as it was."""

from __future__ import annotations

import gc
import time
from collections.abc import Generator

import pytest

import toolgram
from toolgram import work
from toolgram.conversation.request import parse_request
from toolgram.errors import TooMuchWork
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Ref, choice, seq
from toolgram.planning.plan import plan_of
from toolgram.schema import schema_grammar

_FEW = 20  # searches begun and ended, before and behind: thousands without it


@pytest.fixture
def searches() -> Generator[list[str]]:
    """The searches for garbage that there were, where Python looks for it at every few objects."""
    found: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        found.append(f"{phase} {info['generation']}")

    before = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(5)
    yield found
    gc.set_threshold(*before)
    gc.callbacks.remove(note)


def test_nothing_is_searched_inside_and_all_is_as_before_behind(searches: list[str]):
    with work.undisturbed():
        searches.clear()
        kept = [[number] for number in range(1000)]
        assert not searches
    assert gc.isenabled()
    assert len(kept) == 1000


def test_what_fails_leaves_it_as_it_was():
    with pytest.raises(TooMuchWork), work.undisturbed(), work.in_all(1):
        work.charge(2)
    assert gc.isenabled()


def test_who_switched_it_off_finds_it_off():
    gc.disable()
    try:
        with work.undisturbed():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_server_says_for_itself_how_often():
    with work.on(work.Errand(time.monotonic() + 60)), work.undisturbed():
        assert gc.isenabled()


def test_grammars_are_written_so(searches: list[str]):
    rules = {f"rule-{number}": seq(f"{number} ", Ref(f"rule-{number + 1}")) for number in range(100)}
    grammar = Grammar({"root": choice(*map(Ref, rules)), **rules, "rule-100": seq("end")})
    for dialect in ("lark", "ebnf", "gbnf"):
        searches.clear()
        grammar.to(dialect)
        assert len(searches) < _FEW


def test_plans_are_made_so():
    template = toolgram.ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    found: list[bool] = []
    request = parse_request({"messages": [{"role": "user", "content": "Hi"}]})
    plan_of(request, template, fits=lambda _: found.append(gc.isenabled()))
    assert found == [False]
    assert gc.isenabled()


def test_grammars_of_schemas_are_made_so(searches: list[str]):
    schema = {"type": "object", "properties": {f"key-{number}": {"type": "string"} for number in range(100)}}
    searches.clear()
    schema_grammar(schema)
    assert len(searches) < _FEW


def test_a_resolver_may_take_long():
    found: list[bool] = []

    def resolve(_: str) -> object:
        found.append(gc.isenabled())
        return {"type": "string"}

    schema_grammar({"$ref": "http://example.com/any"}, resolver=resolve)
    assert found
    assert all(found)
