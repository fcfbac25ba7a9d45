r"""Backslashes that begin no escape are meant as backslashes: `\d` in JSON is never led to `\b`."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

import toolgram
from toolgram.chat import Reply
from toolgram.engines.base import Sampling
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.escapes import Escapes
from toolgram.models.catalog import default_model

PIECES = [
    b"",
    b"\\",
    b"\\\\",
    b"d",
    b"b",
    b"\\d",
    b"\\n",
    b" \\(",
    b" \\\\",
    b"users",
    b"u00e9",
    b'"',
    b"\n",
    b"a",
    b"'",
    b"x1b",
]
ESCAPES = Escapes.of(
    {piece: token for token, piece in enumerate(PIECES) if piece}, np.array([*b"\0\\\\db\\\\  uu\"\na'x"], np.uint8)
)
IN_A_STRING = [b"\\", b"\\\\", b"d", b"b", b"\\n", b" \\\\", b"users", b"u00e9", b'"', b"a", b"'"]
AFTER_A_BACKSLASH = [b"\\", b"b", b"u00e9", b'"']


def likeliest(wanted: bytes, allowed: list[bytes], *, opened: bool = False, next_best: bytes = b"b") -> bytes:
    """What is written where the model wants a certain token, and another one next."""
    logits = np.zeros(len(PIECES), np.float32)
    logits[PIECES.index(next_best)] = 5
    logits[PIECES.index(wanted)] = 9
    mask = np.array([piece in allowed for piece in PIECES])
    return PIECES[int(np.where(mask, ESCAPES.meant(logits, mask, opened=opened), -np.inf).argmax())]


@pytest.mark.parametrize("wanted", [b"d", b"users", b"\n", b"a", b"'"])
def test_after_a_backslash_what_is_no_escape_makes_it_two(wanted: bytes) -> None:
    assert likeliest(wanted, AFTER_A_BACKSLASH, opened=True) == b"\\"


@pytest.mark.parametrize("wanted", [b"d", b"users", b"\n", b"a"])
def test_so_it_does_where_python_has_more_escapes(wanted: bytes) -> None:
    of_python = [*AFTER_A_BACKSLASH, b"'", b"x1b"]
    assert likeliest(wanted, of_python, opened=True) == b"\\"
    assert [likeliest(piece, of_python, opened=True) for piece in (b"'", b"x1b")] == [b"'", b"x1b"]


@pytest.mark.parametrize("wanted", [b"b", b"u00e9", b'"', b"\\"])
def test_an_escape_stays_one(wanted: bytes) -> None:
    assert likeliest(wanted, AFTER_A_BACKSLASH, opened=True) == wanted


def test_the_end_of_a_turn_makes_no_backslash() -> None:
    assert likeliest(b"", AFTER_A_BACKSLASH, opened=True) == b"b"


@pytest.mark.parametrize(("wanted", "written"), [(b"\\d", b"\\\\"), (b" \\(", b" \\\\"), (b"\\n", b"\\n")])
def test_a_token_with_a_backslash_of_its_own_has_two(wanted: bytes, written: bytes) -> None:
    assert likeliest(wanted, IN_A_STRING) == written


def test_where_a_backslash_stands_for_itself_nothing_is_changed() -> None:
    """In raw text any token may follow one."""
    for wanted in PIECES[1:]:
        assert likeliest(wanted, PIECES[1:], opened=True) == wanted


def test_where_there_may_be_no_backslash_none_is_written() -> None:
    assert likeliest(b"d", [b"b", b'"'], opened=True) == b"b"
    assert likeliest(b"\\d", [b"d", b"b", b'"']) == b"b"


def test_what_is_meant_by_many_tokens_adds_up() -> None:
    """Each of them is less likely than an escape, and together they are more."""
    logits = np.full(len(PIECES), -9, np.float32)
    logits[[PIECES.index(piece) for piece in (b"d", b"a", b"users")]] = 0
    logits[PIECES.index(b"b")] = 1
    mask = np.array([piece in AFTER_A_BACKSLASH for piece in PIECES])
    meant = ESCAPES.meant(logits, mask, opened=True)
    assert meant[PIECES.index(b"\\")] == pytest.approx(np.log(3), abs=1e-3)


def test_a_regular_expression_is_what_the_model_means() -> None:
    """Without this it is `.*` and a backspace."""
    tool = {
        "type": "function",
        "function": {
            "name": "grep",
            "description": "Search file contents with a regular expression.",
            "parameters": {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]},
        },
    }
    asked = r"Search the log files for IP addresses such as 10.0.0.1 with the regex \d+\.\d+\.\d+\.\d+ in /var/log."
    request = {"messages": [{"role": "user", "content": asked}], "tools": [tool], "tool_choice": "required"}
    plan = toolgram.plan(request, toolgram.ChatTemplate.from_gguf(default_model()))

    async def run() -> Reply:
        async with LlamaCpp(default_model(), context=1024) as engine:
            return await toolgram.generate(plan, engine, Sampling(max_tokens=48, trace=True))

    reply = asyncio.run(run())
    assert r"\\d" in reply.text
    assert r"\b" not in reply.text
    assert not reply.divergences
    for call in reply.message.tool_calls:
        assert call.incomplete or json.loads(call.arguments)
