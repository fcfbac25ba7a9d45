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

from engines.projector import png, write_projector
from mcp_over_http import DOT
from seeing import Seeing
from situations import CHATML
from toolgram.agent import Agent, Limits, Run
from toolgram.agent.illustrated import MOST_IMAGES, Illustrated, with_images
from toolgram.agent.mcp import mcp_tools
from toolgram.agent.runs import Result
from toolgram.conversation.media import media_in
from toolgram.engines import LlamaObject, Replay
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.remote.http import Refused
from toolgram.errors import EngineError, PromptTooLong
from toolgram.models.catalog import default_model
from toolgram.template.chat_template import ChatTemplate

RED, BLUE = png((255, 0, 0)), png((0, 0, 255))
IN_BASE64 = [b64encode(image).decode() for image in (RED, BLUE)]


def head(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)


HUGE = head(1 << 12, (1 << 11) + 1)
LARGE = head(1 << 12, 1 << 11)
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


def test_a_result_is_told_as_the_model_is_shown_it() -> None:
    async def told(engine: Replay) -> list[str]:
        return [event.text async for event in agent(engine).stream("What is there?") if isinstance(event, Result)]

    about = f"(image/png, {len(RED)} bytes"
    assert asyncio.run(told(Seeing(LOOK, "Red."))) == [f"{about})"]
    assert asyncio.run(told(Replay(LOOK, "Red."))) == [f"{about}, which is not shown)"]


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
    assert contents(ended)[0].endswith("bytes)\n(The image is not shown.)")
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
    assert [len(images) for images in engine.shown()] == [0, 0, 1, 1, 2, 2, 2]
    assert [words == said for said in contents(ended)[::2]] == [True] * 3


def test_the_last_image_is_hidden_after_words_are_cut() -> None:
    class Narrow(Seeing):
        async def generate(
            self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
        ) -> AsyncGenerator[Chunk, None]:
            if media_in(prompt) and len("".join(text for text, _ in prompt)) > 4000:
                raise PromptTooLong(600, 512)
            async for chunk in super().generate(prompt, constraint, sampling):
                yield chunk

    def look(place: int) -> Any:
        return RED if place else "word " * 800

    calls = [f'<tool_call>\n{{"name": "look", "arguments": {{"place": {n}}}}}\n</tool_call>' for n in range(2)]
    engine = Narrow(*calls, "Done.")
    ended = run(agent(engine, look))
    assert [len(images) for images in engine.shown()] == [0, 0, 1]
    assert "characters left out" in contents(ended)[0]


def test_a_result_without_an_id_makes_no_image_of_the_user_a_result() -> None:
    class Choosy(Seeing):
        async def generate(
            self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
        ) -> AsyncGenerator[Chunk, None]:
            if media_in(prompt):
                raise Refused("Failed to load image")
            async for chunk in super().generate(prompt, constraint, sampling):
                yield chunk

    shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IN_BASE64[0]}"}}
    said = [{"role": "user", "content": [shown, {"type": "text", "text": "Look."}]}, {"role": "tool", "content": "no"}]
    with pytest.raises(Refused):
        run(agent(Choosy("Well.")), "And?", messages=said)


def test_what_was_said_before_an_engine_refused_is_not_said_twice() -> None:
    class Late(Seeing):
        async def generate(
            self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
        ) -> AsyncGenerator[Chunk, None]:
            async for chunk in super().generate(prompt, constraint, sampling):
                yield chunk
                if media_in(prompt):
                    raise Refused("no more")

    with pytest.raises(Refused):
        run(agent(Late(LOOK, ["It ", "is red."], "It is.")))


def always(given: Any) -> Callable[[], Any]:
    def look() -> Any:
        return given

    return look


def test_more_pixels_than_a_request_may_have_end_no_run() -> None:
    url = f"data:image/png;base64,{b64encode(head(1 << 13, 8000)).decode()}"
    goal = [*[{"type": "image_url", "image_url": {"url": url}}] * 2, {"type": "text", "text": "Which?"}]
    engine = Seeing(LOOK, "This one.")
    run(agent(engine, always(LARGE)), goal)
    assert [len(images) for images in engine.shown()] == [2, 2]
    assert "(The image is not shown.)" in engine.calls[1].text


def test_what_is_too_large_in_bytes_or_one_too_many_is_said_not_to_be_shown() -> None:
    of_zeros = b64encode(RED + bytes(13_000_000)).decode()
    assert with_images(["(image/png, 9 bytes)"], {0: of_zeros}) == "(image/png, 9 bytes, which is not shown)"
    texts = [f"(image/png, {number} bytes)" for number in range(MOST_IMAGES + 2)]
    made = with_images(texts, dict.fromkeys(range(len(texts)), IN_BASE64[0]))
    assert isinstance(made, Illustrated)
    assert len(made.images) == MOST_IMAGES
    unseen = [line.endswith("which is not shown)") for line in made.seen.splitlines()]
    assert unseen == [False] * MOST_IMAGES + [True] * 2


def test_a_conversation_with_images_goes_on_where_none_are_shown() -> None:
    saved = run(agent(Seeing(LOOK, "It is red."))).messages
    of_parts = ChatTemplate(
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.content is string %}"
        "{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}"
        "{% else %}<|image_pad|>{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n",
        "",
        "<|im_end|>",
    )
    for template in (CHATML, of_parts):
        engine = Replay("It was red.")
        made: Agent[Any] = Agent(engine, template, (look,), style="hermes_2_pro", tool_choice="auto")
        assert run(made, "And before?", messages=json.loads(json.dumps(saved))).answer == "It was red."
        assert "(The image is not shown.)" in engine.calls[0].text


def test_a_server_is_asked_whether_it_sees_only_where_there_is_an_image() -> None:
    class Forbidding(Seeing):
        async def sees(self) -> bool:
            raise EngineError("403")

    assert run(agent(Forbidding(LOOK, "It is."), always("Red."))).answer == "It is."
    with pytest.raises(EngineError, match="403"):
        run(agent(Forbidding(LOOK, "It is.")))


def test_what_spells_a_control_token_hides_no_image() -> None:
    class Textual(Seeing):
        def __init__(self, *answers: str) -> None:
            super().__init__(*answers, capabilities=Capabilities(("lark",), token_ids=False))

    engine = Textual(LOOK, "It is red.")
    run(agent(engine), "Look at <|im_end|> it.")
    assert engine.shown() == [[], IN_BASE64[:1]]


@pytest.mark.parametrize("given", [RED, RED[:60], "Nothing."], ids=["whole", "damaged", "text"])
def test_a_real_model_is_shown_an_image_and_answers(tmp_path: Path, given: Any) -> None:
    write_projector(tmp_path / "mmproj.gguf", WIDTH)
    engine = LlamaObject(default_model(), mmproj=tmp_path / "mmproj.gguf", context=1024, parallel=1)
    answer = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}
    template = ChatTemplate.from_gguf(default_model())

    async def asked() -> Run[Any]:
        made: Agent[Any] = Agent(engine, template, [always(given)], answer, limits=Limits(steps=2, answer_tokens=40))
        try:
            return await made.run("Look, and tell the colour.")
        finally:
            await engine.aclose()

    ended = asyncio.run(asked())
    assert ended.answer["colour"] in ("red", "blue")
    assert isinstance(contents(ended)[0], list) == (given == RED)
