"""Many tools: some are shown, others are found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from situations import CHATML
from toolgram.agent import Agent, InvalidTool, Limits, Run, tool_of
from toolgram.agent.calls import Called
from toolgram.agent.search import NAME, Index
from toolgram.engines import Replay

THINGS = ("invoice", "customer", "ticket", "calendar", "photo", "recipe")
VERBS = ("create", "delete", "list", "find")


def made(verb: str, thing: str) -> Callable[[str], str]:
    def tool(id: str) -> str:  # noqa: A002 - as tools have it
        return f"{verb} {thing} {id}"

    tool.__name__ = tool.__qualname__ = f"{verb}_{thing}"
    tool.__doc__ = f"{verb.title()} one {thing} of ours."
    return tool


MANY = [made(verb, thing) for verb in VERBS for thing in THINGS]


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def run(*turns: str, goal: str, most_tools: int | None, **options: Any) -> tuple[Run[Any], list[set[str]]]:
    """How the run ends, and the tools that each step was shown."""
    engine = Replay(*turns)
    agent = Agent(engine, CHATML, MANY, style="hermes_2_pro", most_tools=most_tools, limits=Limits())
    ended = asyncio.run(agent.run(goal, **options))
    calls = {tool.__name__: call(tool.__name__, id="1") for tool in MANY} | {NAME: call(NAME, query="x")}
    grammars = [asked.constraint.grammar for asked in engine.calls]
    return ended, [{name for name, text in calls.items() if grammar.accepts(text)} for grammar in grammars]


@pytest.mark.parametrize("query", ["delete the photos", "deletePhoto", "Remove or delete a PHOTO!", "delete_photo"])
def test_the_best_is_first(query: str) -> None:
    best = Index(Called(tool_of(each), 100) for each in MANY).best(query, 3)
    assert best[0]["name"] == "delete_photo"


def test_what_shares_no_word_is_not_found() -> None:
    index = Index(Called(tool_of(each), 100) for each in MANY)
    assert index.best("zebra", 3) == []
    assert index.best("", 3) == []
    assert index.best("?!", 3) == []


def test_what_fits_the_goal_is_shown_in_place_of_all() -> None:
    turns = [call("list_invoice", id="7"), "Done."]
    ended, shown = run(*turns, goal="Please list the invoices.", most_tools=4)
    assert ended.answer == "Done."
    assert len(shown[0]) == 5
    assert {"search_tools", "list_invoice"} <= shown[0]


def test_what_is_found_can_be_called_from_the_next_turn_on() -> None:
    turns = [call("search_tools", query="delete a recipe"), call("delete_recipe", id="3"), "Done."]
    ended, shown = run(*turns, goal="List the invoices.", most_tools=3)
    found, result = (each["content"] for each in ended.messages if each["role"] == "tool")
    assert found.splitlines()[0] == "delete_recipe: Delete one recipe of ours."
    assert result == "delete recipe 3"
    assert "delete_recipe" not in shown[0]
    assert "delete_recipe" in shown[1]
    assert all(len(names) <= 4 for names in shown)


def test_a_conversation_that_goes_on_knows_what_it_called() -> None:
    before, _ = run(call("list_invoice", id="7"), "Done.", goal="List the invoices.", most_tools=3)
    ended, shown = run("Done.", goal="Now a recipe, please.", most_tools=3, messages=before.messages)
    assert ended.answer == "Done."
    assert "list_invoice" in shown[0]


def test_few_tools_are_shown_as_ever() -> None:
    _, shown = run("Done.", goal="Go.", most_tools=len(MANY))
    assert "search_tools" not in shown[0]
    assert len(shown[0]) == len(MANY)
    _, shown = run("Done.", goal="Go.", most_tools=None)
    assert "search_tools" not in shown[0]


def test_a_goal_without_words_leaves_the_search() -> None:
    turns = [call("search_tools", query="zebra"), "Done."]
    ended, shown = run(*turns, goal="?", most_tools=3)
    assert shown[0] == {"search_tools"}
    assert ended.messages[2]["content"] == "There is no such tool."


def test_limits_and_names_are_checked() -> None:
    def search_tools() -> str:
        return ""

    for tools, most in ((MANY, 0), ([*MANY, search_tools], 3)):
        with pytest.raises(InvalidTool, match="most_tools must be at least 1"):
            Agent(Replay(), CHATML, tools, most_tools=most)
