"""Errors as values: what they have stays with them."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest

import toolgram
from situations import CHATML
from toolgram.chat import generate_sync
from toolgram.engines.replay import Replay
from toolgram.errors import MissingPackage, PromptTooLong

ERRORS = [
    toolgram.ToolgramError("no"),
    toolgram.InvalidRequest("/messages", "must not be empty"),
    toolgram.InvalidSchema("/items", "type", "5 is no type"),
    toolgram.UnsupportedSchema("/items", "uniqueItems", "for these"),
    toolgram.InvalidOutput(("/a", "too small"), ("/b", "too long")),
    toolgram.GrammarError("no such rule", 5),
    toolgram.ProfileError("is of another model"),
    MissingPackage("an agent", "anyio", "agent"),
    PromptTooLong(9, 8),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_from_another_process_whole(error: toolgram.ToolgramError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own
        assert (type(again), str(again), again.args) == (type(error), str(error), error.args)
        assert vars(again) == vars(error)


def test_where_a_loop_runs_a_reply_is_awaited() -> None:
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi."}]}, CHATML)

    async def in_a_notebook() -> None:
        generate_sync(plan, Replay("Yes."))

    with pytest.raises(toolgram.EngineError, match=r"await toolgram\.generate"):
        asyncio.run(in_a_notebook())
