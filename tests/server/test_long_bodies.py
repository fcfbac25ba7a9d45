"""Bodies with much in them: refused by a bound before much is done, and the others are served."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import AsyncGenerator
from typing import Any
from unittest.mock import patch

import httpx2
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from live_server import serving
from toolgram.api.chat.body import ChatCompletionBody as ChatBody
from toolgram.api.completions import CompletionBody
from toolgram.api.messages.body import MessagesBody
from toolgram.api.responses.body import ResponsesBody
from toolgram.api.tokens import TokensBody
from toolgram.conversation.fields import Fields
from toolgram.engines.base import Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.replay import Replay
from toolgram.server import bodies
from toolgram.server.bodies import MAX_PARTS, parsed

CHAT = "/v1/chat/completions"
MESSAGE: dict[str, Any] = {"role": "user", "content": "Hi."}
HI: dict[str, Any] = {"messages": [MESSAGE]}
LARGE: dict[str, tuple[str, Any, int, str | None, str]] = {
    "ids": ("/detokenize", {"tokens": [1] * 600_000}, 413, None, "at most 524288 values"),
    "ids to go on from": ("/v1/completions", {"prompt": [1] * 600_000}, 413, None, "at most 524288 values"),
    "members": (
        CHAT,
        {**HI, "tools": [{"a": 1, "b": 2}] * 70_000},
        413,
        None,
        "objects, lists and members",
    ),
    "tools of nothing": (CHAT, {**HI, "tools": [{}] * 140_000}, 413, None, "at most 131072 objects"),
    "labels": (CHAT, {**HI, "metadata": {str(i): 1 for i in range(2000)}}, 400, "/metadata", "at most 1024, not 2000"),
    "biases": (CHAT, {**HI, "logit_bias": {str(i): 0 for i in range(17_000)}}, 400, "/logit_bias", "at most 16384"),
    "messages": (CHAT, {"messages": [MESSAGE] * 17_000}, 400, "/messages", "at most 16384, not 17000"),
    "turns": ("/v1/messages", {"max_tokens": 9, "messages": [MESSAGE] * 17_000}, 400, None, "at most 16384, not 17000"),
    "items": ("/v1/responses", {"input": [MESSAGE] * 17_000}, 400, "/input", "at most 16384, not 17000"),
    "a digit for each character of a key": (
        CHAT,
        {**HI, "logit_bias": {"1" * 5000: 1}},
        400,
        "/logit_bias/" + "1" * 5000,
        "pattern",
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_much_of_anything_is_refused_with_its_place(name: str) -> None:
    path, body, status, pointer, says = LARGE[name]
    with serving(Replay("Hello.")) as address:
        answer = httpx2.post(address + path, json=body, timeout=60)
        assert answer.status_code == status
        error = answer.json()["error"]
        assert says in error["message"]
        assert error.get("pointer") == pointer
        assert httpx2.post(address + CHAT, json=HI).status_code == 200


def test_what_stands_in_texts_is_not_counted() -> None:
    text = 'a, b: "c", \\ \\",: é,' * 50_000
    assert min(text.count(","), text.count(":")) > MAX_PARTS // 3
    assert parsed(bytearray(orjson.dumps([text] * 9))) == [text] * 9


def _values(value: Any) -> int:
    """How many commas, colons and brackets that open its JSON has."""
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    of_this = isinstance(value, dict | list) + len(inside) * isinstance(value, dict)
    return max(0, len(inside) - 1) + of_this + sum(map(_values, inside))


@given(st.recursive(st.text('",:\\aé\n') | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text('",\\'), x)))
def test_values_are_counted_however_a_body_is_cut(value: Any) -> None:
    for ascii_only in (True, False):
        body = bytearray(json.dumps(value, ensure_ascii=ascii_only).encode())
        for size in (1, 2, 7, 1 << 16):
            with patch.object(bodies, "_PIECE", size):
                assert sum(bodies._counted(body)) == _values(value)


MANY: list[tuple[type[Fields], Any]] = [
    (ChatBody, {**HI, "tools": [{}] * 99}),
    (ChatBody, {**HI, "functions": [1] * 99}),
    (ChatBody, {"messages": [{}] * 99}),
    (ChatBody, {"messages": [{"role": "user", "content": [{}] * 99}]}),
    (ChatBody, {"messages": [{"role": "assistant", "tool_calls": [{}] * 99}]}),
    (ChatBody, {**HI, "modalities": [1] * 99}),
    (MessagesBody, {**HI, "max_tokens": 9, "tools": [1] * 99}),
    (MessagesBody, {**HI, "max_tokens": 9, "system": [{}] * 99}),
    (MessagesBody, {"max_tokens": 9, "messages": [{"role": "user", "content": [{}] * 99}]}),
    (ResponsesBody, {"input": [{}] * 99}),
    (ResponsesBody, {"input": "Hi.", "tools": [{}] * 99}),
    (CompletionBody, {"prompt": [{}] * 99}),
    (CompletionBody, {"prompt": ["a"] * 9 + [{}] * 90}),
    (TokensBody, {"tokens": ["a"] * 99}),
]


@pytest.mark.parametrize(("body", "of"), MANY)
def test_only_what_is_wrong_first_is_looked_for(body: type[Fields], of: Any) -> None:
    with pytest.raises(ValidationError) as raised:
        body.model_validate(of)
    assert raised.value.error_count() <= 2  # of the first one


class Bounded(Replay):
    """Knows how long a prompt may be, and remembers what it was to count."""

    context = 100
    most_characters = 1000

    def __init__(self) -> None:
        super().__init__("Hello.")
        self.counted: list[int] = []

    def count_tokens(self, prompt: Prompt) -> int:
        self.counted.append(sum(len(text) for text, _ in prompt))
        return 10


def test_a_text_that_no_context_holds_is_refused_before_a_prompt_is_made_of_it() -> None:
    engine = Bounded()
    with serving(engine) as address:
        long = "word " * 100_000
        parts = [{"type": "text", "text": long}]
        for content in (long, parts):
            for stream in (False, True):
                body = {"messages": [{"role": "user", "content": content}], "stream": stream}
                answer = httpx2.post(address + CHAT, json=body)
                error = answer.json()["error"]
                assert (answer.status_code, error["code"], error["param"]) == (
                    400,
                    "context_length_exceeded",
                    "messages",
                )
                assert "it has 500000 characters" in error["message"]
        assert not engine.counted
        assert httpx2.post(address + CHAT, json=HI).status_code == 200
        assert engine.counted


class Full(Bounded):
    """Has no room for any prompt."""

    def count_tokens(self, prompt: Prompt) -> int:
        return super().count_tokens(prompt) + self.context


def test_of_tools_that_no_context_holds_no_grammar_is_made() -> None:
    pattern = {"type": "string", "pattern": "^(a|b)\\1$"}
    function = {"name": "f", "strict": True, "parameters": {"type": "object", "properties": {"a": pattern}}}
    body = {**HI, "tools": [{"type": "function", "function": function}]}
    for engine, says in ((Bounded(), "unsupported_schema"), (Full(), "context_length_exceeded")):
        with serving(engine) as address:
            answer = httpx2.post(address + CHAT, json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, says)
            assert len(engine.counted) == 1


class Forgetful(Replay):
    """Remembers nothing of what it is asked."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """A letter."""
        yield Chunk("a", finish="stop", usage=Usage())


def test_long_descriptions_are_not_kept() -> None:
    def described(i: int) -> dict[str, Any]:
        function = {"name": "f", "description": f"{i}" + "d" * 2_000_000, "parameters": {"type": "object"}}
        return {**HI, "tools": [{"type": "function", "function": function}], "tool_choice": "none"}

    with serving(Forgetful()) as address, httpx2.Client(timeout=60) as client:
        for i in range(2):  # whatever is set up once
            assert client.post(address + CHAT, json=described(i)).status_code == 200
        tracemalloc.start()
        try:
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            for i in range(60):
                assert client.post(address + CHAT, json=described(100 + i)).status_code == 200
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert after - before < 80_000_000  # they have 120 MB, and as much again as a prompt
