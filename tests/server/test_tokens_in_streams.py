"""`stream_options.include_tokens`: the raw tokens of a stream, and which of them the grammar forced."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx2

from live_server import serving
from toolgram.engines.base import Chunk, Logprob, Prompt, Sampling, SupportsGrammar, TokenLogprobs, TracePoint, Usage
from toolgram.engines.replay import Replay

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}], "stream": True}
TOKENS = {**BODY, "stream_options": {"include_tokens": True}}


class Likely(Replay):
    """A chosen token, and a forced one after it that ends in half a character."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """One chunk, and the end."""
        self.sampling = sampling
        pieces = (Logprob(5, b"Oh", -1.0), Logprob(6, b"\xc3", 0.0))
        likely = () if sampling.logprobs is None else tuple(TokenLogprobs(piece, ()) for piece in pieces)
        yield Chunk("Oh", (5, 6), 1, logprobs=likely)
        yield Chunk("", finish="stop", usage=Usage(completion_tokens=2))


def chunks(address: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    lines = httpx2.post(address + CHAT, json=body).text.split("\n\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def tokens(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [token for chunk in told for choice in chunk["choices"] for token in choice.get("tokens", ())]


def test_tokens_are_told_where_they_are_asked_for() -> None:
    with serving(Likely()) as address:
        told = chunks(address, TOKENS)
        assert tokens(told) == [
            {"text": "Oh", "bytes": [79, 104], "logprob": -1.0, "forced": False},
            {"text": "\ufffd", "bytes": [0xC3], "logprob": 0.0, "forced": True},
        ]
        assert all(choice["logprobs"] is None for chunk in told for choice in chunk["choices"])
        both = chunks(address, {**TOKENS, "logprobs": True})
        assert len(tokens(both)) == 2
        likely = [choice["logprobs"] for chunk in both for choice in chunk["choices"] if choice["logprobs"]]
        assert [one["token"] for one in likely[0]["content"]] == ["Oh", "\ufffd"]


def test_nobody_else_is_told() -> None:
    engine = Likely()
    with serving(engine) as address:
        assert all("tokens" not in choice for chunk in chunks(address, BODY) for choice in chunk["choices"])
    assert engine.sampling.logprobs is None


def test_an_engine_that_does_not_tell_tokens_apart_tells_its_pieces() -> None:
    with serving(Replay(["Hel", "lo."])) as address:
        assert tokens(chunks(address, TOKENS)) == [
            {"text": "Hel", "forced": False},
            {"text": "lo.", "forced": False},
        ]


class Traced(Replay):
    """Two tokens, of which the second was not what the model wanted; the trace comes with the end."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        pieces = (Logprob(5, b"Oh", -1.0), Logprob(6, b".", 0.0))
        yield Chunk("Oh.", (5, 6), logprobs=tuple(TokenLogprobs(piece, ()) for piece in pieces))
        points = (TracePoint(0, 5, 5, b"Oh", 0.9), TracePoint(1, 6, 7, b"!", 0.61234, 2))
        yield Chunk("", finish="stop", usage=Usage(completion_tokens=2), trace=points)


def test_a_stream_of_tokens_tells_where_the_model_wanted_another() -> None:
    with serving(Traced()) as address:
        told = [choice for chunk in chunks(address, TOKENS) for choice in chunk["choices"]]
        assert [choice["trace"] for choice in told if "trace" in choice] == [
            [{"position": 1, "preferred": "!", "removed": 0.6123}]
        ]
        assert not any("trace" in choice for chunk in chunks(address, BODY) for choice in chunk["choices"])


def test_tokens_are_for_streams() -> None:
    with serving(Replay("Oh.")) as address:
        whole = httpx2.post(address + CHAT, json={**TOKENS, "stream": False}).raise_for_status()
        assert whole.headers["x-toolgram-ignored"] == "stream_options"
        assert "tokens" not in whole.json()["choices"][0]
        body = {**BODY, "stream_options": {"include_tokens": 1}}
        assert httpx2.post(address + CHAT, json=body).status_code == 400
