"""Images shown by the embedded engine: llama.cpp's own server with a projector, in this process."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolgram
from engines.projector import TOKENS_OF_IMAGE, png, write_projector
from toolgram.engines import llama_cpp
from toolgram.engines.base import Sampling
from toolgram.engines.llama_cpp.bundled_server import LlamaObject
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.errors import EngineError, InvalidRequest, ModelError
from toolgram.models.catalog import default_model

WIDTH = 576  # of SmolLM2's embeddings
URL = f"data:image/png;base64,{base64.b64encode(png((255, 0, 0))).decode()}"
TEXT: Any = {"type": "text", "text": "What colour is it?"}
IMAGE: Any = {"type": "image_url", "image_url": {"url": URL}}
COLOUR: Any = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "seen", "schema": COLOUR}}
GREEDY = Sampling(max_tokens=60)


@pytest.fixture(scope="module")
def projector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("projector") / "mmproj.gguf"
    write_projector(path, WIDTH)
    return path


@pytest.fixture(scope="module")
def engine(projector: Path) -> Iterator[LlamaObject]:
    made = llama_cpp.load(default_model(), pytest.fail, context=1024, parallel=64, mmproj=projector)
    assert isinstance(made, LlamaObject)
    yield made
    made.close()


def plan(*parts: Any, sees: bool = True, **body: Any) -> toolgram.Plan:
    template = toolgram.ChatTemplate.from_gguf(default_model())
    return toolgram.plan({"messages": [{"role": "user", "content": list(parts)}], **body}, template, sees=sees)


def test_an_image_is_shown_and_its_answer_held_to_a_schema(engine: LlamaObject) -> None:
    replies = [
        asyncio.run(toolgram.generate(plan(*parts, response_format=FORMAT), engine, GREEDY))
        for parts in ((IMAGE, TEXT), (TEXT,))
    ]
    for reply in replies:
        assert json.loads(reply.message.content)["colour"] in ("red", "blue")
    seen, unseen = (reply.usage.prompt_tokens for reply in replies)
    assert seen - unseen == TOKENS_OF_IMAGE


def test_what_there_is_to_know_of_the_model_is_told(engine: LlamaObject) -> None:
    assert asyncio.run(engine.sees())
    assert engine.memory.startswith("context of 1024 tokens (trained for 8192)")
    assert engine.memory.endswith("for 4 at once")
    assert (engine.context_length, engine.architecture) == (1024, "llama")
    assert asyncio.run(engine.count_tokens((("<|im_start|>", True),))) == 1


def test_a_plan_with_images_is_for_an_engine_that_shows_them(engine: LlamaObject) -> None:
    with pytest.raises(InvalidRequest, match=r"/messages/0/content/0: .* shows no part of type 'image_url'"):
        asyncio.run(toolgram.generate(plan(IMAGE, TEXT, sees=False), engine, GREEDY))
    blind = LlamaCpp(default_model(), context=512)
    with pytest.raises(EngineError, match="shows its model no images"):
        asyncio.run(toolgram.generate(plan(IMAGE, TEXT), blind, GREEDY))
    blind.close()


def test_a_projector_of_something_else_is_an_error(projector: Path, tmp_path: Path) -> None:
    other, text = tmp_path / "other.gguf", tmp_path / "text.gguf"
    write_projector(other, WIDTH + 1)
    text.write_bytes(b"GGUF")
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(projector.read_bytes()[:-4096])
    for file, reason in (
        (other, r"cannot be loaded with .*other\.gguf, which may be of another model"),
        (damaged, r"cannot be loaded with .*damaged\.gguf"),
        (text, r"text\.gguf cannot be loaded"),
        (default_model(), "is no projector for images"),
        (tmp_path / "none.gguf", "No such file"),
    ):
        with pytest.raises(ModelError, match=reason):
            LlamaObject(default_model(), mmproj=file, context=512)


def test_answers_with_images_are_not_made_deterministic(projector: Path) -> None:
    with pytest.raises(EngineError, match="where images are shown"):
        llama_cpp.load(default_model(), pytest.fail, deterministic=True, mmproj=projector)
