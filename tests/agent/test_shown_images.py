"""Images that tools give: a model that sees is shown them, any other is told of them."""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.mcp_demo import DOT
from agent.seeing import Seeing
from engines.projector import png, write_projector
from situations import CHATML
from toolgram.agent import Agent, Limits, Run
from toolgram.agent.mcp import mcp_tools
from toolgram.agent.results import MOST_IMAGES
from toolgram.conversation.media import media_in
from toolgram.engines import LlamaObject, Replay
from toolgram.engines.base import Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.errors import PromptTooLong
from toolgram.models.catalog import default_model
from toolgram.template.chat_template import ChatTemplate

RED, BLUE = png((255, 0, 0)), png((0, 0, 255))
IN_BASE64 = [b64encode(image).decode() for image in (RED, BLUE)]
HUGE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1 << 13, 1 << 12)
LOOK = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
WIDTH = 576  # of SmolLM2's embeddings


def look() -> bytes:
    return RED


def agent(engine: Replay, *tools: Callable[..., Any], **options: Any) -> Agent[Any]:
    return Agent(engine, CHATML, tools or (look,), style="hermes_2_pro", **options)


def run(made: Agent[Any], goal: Any = "What is there?", **options: Any) -> Run[Any]:
    return asyncio.run(made.run(goal, **options))


def contents(ended: Run[Any]) -> list[Any]:
    return [message["content"] for message in ended.messages if message["role"] == "tool"]


def test_a_model_that_sees_is_shown_what_a_tool_gives() -> None:
    engine = Seeing(LOOK, "It is red.")
    ended = run(agent(engine))
    assert engine.shown() == [[], IN_BASE64[:1]]
    assert f"(image/png, {len(RED)} bytes)" in engine.calls[1].text
    assert json.loads(json.dumps(contents(ended))) == contents(ended)


def test_any_other_is_told_of_it() -> None:
    engine = Replay(LOOK, "It is there.")
    assert contents(run(agent(engine))) == [f"(image/png, {len(RED)} bytes, which is not shown)"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "(16 bytes of binary data)"),
        (HUGE, f"({len(HUGE)} bytes of binary data)"),
        (b"GIF", "GIF"),
    ],
)
def test_what_cannot_be_shown_is_as_it_was(given: bytes, said: str) -> None:
    def look() -> bytes:
        return given

    assert contents(run(agent(Seeing(LOOK, "Well."), look))) == [said]


def test_images_of_mcp_servers_are_shown() -> None:
    call = '<tool_call>\n{"name": "demo_picture", "arguments": {}}\n</tool_call>'
    engine = Seeing(call, "A dot.")
    server = {"command": sys.executable, "args": [str(Path(__file__).with_name("mcp_demo.py"))]}

    async def asked() -> Run[Any]:
        async with mcp_tools({"mcpServers": {"demo": server}}) as tools:
            made: Agent[Any] = Agent(engine, CHATML, tools, ask="never", style="hermes_2_pro")
            return await made.run("Go.")

    asyncio.run(asked())
    assert engine.shown() == [[], [DOT]]
    assert "a dot\n(image/gif, 42 bytes)\n(image/png, 6 bytes, which is not shown)" in engine.calls[1].text


def test_the_goal_may_have_images() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IN_BASE64[1]}"}},
        {"type": "text", "text": "Is it of that colour?"},
    ]
    engine = Seeing(LOOK, "No.")
    run(agent(engine), parts)
    assert engine.shown() == [IN_BASE64[1:], IN_BASE64[::-1]]


def test_the_last_images_are_shown_where_there_are_many() -> None:
    images = iter(png((number, 0, 0)) for number in range(100))

    def look(place: int) -> bytes:
        del place
        return next(images)

    calls = [
        f'<tool_call>\n{{"name": "look", "arguments": {{"place": {number}}}}}\n</tool_call>'
        for number in range(MOST_IMAGES + 2)
    ]
    engine = Seeing(*calls, "Done.")
    ended = run(agent(engine, look, limits=Limits(steps=len(calls) + 1)))
    half = MOST_IMAGES // 2
    assert [len(images) for images in engine.shown()] == [*range(MOST_IMAGES + 1), half, half + 1]
    assert contents(ended)[0].endswith("bytes)\n(The image is no longer shown.)")
    assert isinstance(contents(ended)[-1], list)


class Small(Seeing):
    """One whose context has room for two images."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        if len(media_in(prompt)) > 2:
            raise PromptTooLong(600, 512)
        async for chunk in super().generate(prompt, constraint, sampling):
            yield chunk


def test_images_make_room_before_words() -> None:
    words = "word " * 200

    def look(place: int) -> Any:
        return RED if place % 2 else words

    calls = [f'<tool_call>\n{{"name": "look", "arguments": {{"place": {n}}}}}\n</tool_call>' for n in range(6)]
    engine = Small(*calls, "Done.")
    ended = run(agent(engine, look))
    assert [len(images) for images in engine.shown()] == [0, 0, 1, 1, 2, 2, 1]
    assert [words == said for said in contents(ended)[::2]] == [True] * 3


@pytest.mark.parametrize("with_image", [True, False])
def test_a_real_model_is_shown_an_image_and_answers(tmp_path: Path, with_image: bool) -> None:
    write_projector(tmp_path / "mmproj.gguf", WIDTH)
    engine = LlamaObject(default_model(), mmproj=tmp_path / "mmproj.gguf", context=1024, parallel=1)
    answer = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}
    template = ChatTemplate.from_gguf(default_model())

    def look() -> Any:
        return RED if with_image else "Nothing."

    async def asked() -> Run[Any]:
        made: Agent[Any] = Agent(engine, template, [look], answer, limits=Limits(steps=2, answer_tokens=40))
        try:
            return await made.run("Look, and tell the colour.")
        finally:
            await engine.aclose()

    ended = asyncio.run(asked())
    assert ended.answer["colour"] in ("red", "blue")
    assert isinstance(contents(ended)[0], list) == with_image
