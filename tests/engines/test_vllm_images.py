"""Images before a vLLM: they stand where the chat template writes what stands for one."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

import pytest

import toolgram
from engines.fake_vllm import IMAGE_TOKENS, FakeVllm, serving
from engines.projector import png
from engines.small_tokenizer import SPECIAL
from toolgram.engines.base import Sampling
from toolgram.engines.remote.http import Refused, Unavailable
from toolgram.engines.remote.vllm import Vllm
from toolgram.errors import EngineError, InvalidRequest, PromptTooLong
from toolgram.styles.placeholders import placeholder_of
from toolgram.template.chat_template import ChatTemplate

TEMPLATE = ChatTemplate(
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.content is string %}"
    "{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'image' %}"
    "<|vision_start|><|image_pad|>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "",
    "<|im_end|>",
)
URLS = [f"data:image/png;base64,{b64encode(png(colour)).decode()}" for colour in ((255, 0, 0), (0, 0, 255))]
RED, BLUE = ({"type": "image_url", "image_url": {"url": url}} for url in URLS)
TEXT: Any = {"type": "text", "text": "What is <|image_pad|> it?"}
COLOUR: Any = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "seen", "schema": COLOUR}}


def seeing(**options: Any) -> FakeVllm:
    return FakeVllm(special=(*SPECIAL, "<|vision_start|>", "<|image_pad|>"), placeholder="<|image_pad|>", **options)


def plan(*parts: Any, template: ChatTemplate = TEMPLATE, **body: Any) -> toolgram.Plan:
    return toolgram.plan({"messages": [{"role": "user", "content": list(parts)}], **body}, template, sees=True)


async def asked(url: str, made: toolgram.Plan, **sampling: Any) -> Any:
    engine = Vllm(url)
    try:
        return await toolgram.generate(made, engine, Sampling(**{"max_tokens": 60, **sampling}))
    finally:
        await engine.aclose()


def sees(server: FakeVllm) -> bool:
    async def ask(url: str) -> bool:
        engine = Vllm([url, url])
        try:
            return await engine.sees()
        finally:
            await engine.aclose()

    with serving(server.app) as url:
        return asyncio.run(ask(url))


def test_images_are_shown_in_their_places_and_answers_held_to_their_schema() -> None:
    server = seeing()
    with serving(server.app) as url:
        one = asyncio.run(asked(url, plan(TEXT, RED, response_format=FORMAT)))
        two = asyncio.run(asked(url, plan(RED, TEXT, BLUE, response_format=FORMAT), logprobs=2, seed=3))
    for reply in (one, two):
        assert json.loads(reply.message.content)["colour"] in ("red", "blue")
    assert server.images == [URLS[:1], URLS]
    assert two.usage.prompt_tokens - one.usage.prompt_tokens == IMAGE_TOKENS + 1
    text = [server.tokenizer.decode(body["prompt"]) for body in server.asked]
    assert text[0].count("<|vision_start|>" + "<|image_pad|>" * IMAGE_TOKENS) == 1
    assert server.asked[1]["logprobs"] == 2
    assert "max_tokens" in server.asked[0]


def test_text_that_spells_a_placeholder_is_none() -> None:
    server = seeing()
    with serving(server.app) as url:
        asyncio.run(asked(url, plan(TEXT)))
        asyncio.run(asked(url, plan(TEXT, RED)))
    token = server.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    assert [body["prompt"].count(token) for body in server.asked] == [0, IMAGE_TOKENS]


def test_a_server_says_whether_it_takes_images() -> None:
    assert sees(seeing())
    assert not sees(seeing(scale_out=False))
    assert not sees(seeing(takes_parts=False))
    assert not sees(FakeVllm())
    with pytest.raises(Unavailable):
        sees(seeing(fault="dead"))


def test_what_the_server_does_not_take_is_an_error() -> None:
    with serving(seeing().app) as url:
        damaged = f"data:image/png;base64,{b64encode(png((1, 2, 3))[:60]).decode()}"
        with pytest.raises(Refused, match="image file is truncated"):
            asyncio.run(asked(url, plan(TEXT, {"type": "image_url", "image_url": {"url": damaged}})))
        with pytest.raises(PromptTooLong):
            asyncio.run(asked(url, plan({"type": "text", "text": "sea " * 5000}, RED)))
        plain = ChatTemplate("{% for message in messages %}{{ message.content }}\n{% endfor %}", "", "<|im_end|>")
        with pytest.raises(InvalidRequest, match="/messages/0/content/1: the chat template shows no image"):
            asyncio.run(asked(url, plan(TEXT, RED, template=plain)))
    spelled = FakeVllm(special=SPECIAL, placeholder="<|vision_start|>")
    with serving(spelled.app) as url, pytest.raises(InvalidRequest, match="which is no token, but any text's"):
        asyncio.run(asked(url, plan(TEXT, RED)))
    with (
        serving(seeing(scale_out=False).app) as url,
        pytest.raises(EngineError, match="Scale-out endpoints are disabled"),
    ):
        asyncio.run(asked(url, plan(TEXT, RED)))


def test_one_of_several_servers_may_be_down() -> None:
    async def ask(*urls: str) -> tuple[bool, Any]:
        engine = Vllm(urls)
        try:
            return await engine.sees(), await toolgram.generate(plan(TEXT, RED), engine, Sampling(max_tokens=5))
        finally:
            await engine.aclose()

    with serving(seeing().app) as url:
        seen, reply = asyncio.run(ask("http://127.0.0.1:1", url))
        assert seen
        assert reply.usage.completion_tokens
        with serving(FakeVllm().app) as blind:
            assert not asyncio.run(asked_twice(url, blind))


async def asked_twice(*urls: str) -> bool:
    engine = Vllm(urls)
    try:
        return await engine.sees() or await engine.sees()
    finally:
        await engine.aclose()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (TEMPLATE.source, "<|vision_start|><|image_pad|>"),
        ("{{ messages[0].content[0].text }}", ""),
        ("{{ messages[0].content }}", ""),
        ("{{ messages[0].content + 'x' }}", ""),
        (
            "{% set n = namespace(i=0) %}{% for c in messages[0].content %}{% if c.type == 'image' %}"
            "{% set n.i = n.i + 1 %}<|image_{{ n.i }}|>{% else %}{{ c.text }}{% endif %}{% endfor %}",
            "",
        ),
        (
            "{% for c in messages[0].content if c.type == 'image' %}{% if loop.first %}You see. {% endif %}{% endfor %}"
            "{% for c in messages[0].content %}{{ '[IMG]' if c.type == 'image' else c.text }}{% endfor %}",
            "",
        ),
        ("{% for c in messages[0].content %}{% for k, v in c.items() %}{{ k }}={{ v }};{% endfor %}{% endfor %}", ""),
        (
            "{% for c in messages[0].content if c.type == 'image' %}<image>\n{% endfor %}"
            "{% for c in messages[0].content if c.type == 'text' %}{{ c.text }}{% endfor %}",
            "<image>\n",
        ),
        (
            "{% for c in messages[0].content %}{% if c.type == 'image' %}[IMG]{% else %}{{ c.text }}{% endif %}"
            "{% if not loop.last %}\n{% endif %}{% endfor %}",
            "[IMG]",
        ),
    ],
)
def test_what_stands_for_an_image_is_found_in_the_template(source: str, found: str) -> None:
    assert placeholder_of(ChatTemplate(source, "", "<|im_end|>")) == found
