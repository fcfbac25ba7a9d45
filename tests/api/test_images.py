"""Images before a template that has a place for them: no engine is given one, so that none is taken in silence."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from toolgram.api.chat.request import read_chat_request
from toolgram.api.messages.request import read_messages_request
from toolgram.api.responses.request import read_responses_request
from toolgram.chat import generate_sync
from toolgram.engines.replay import Replay

SEEING = toolgram.ChatTemplate(
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% elif part.type == 'image_url' %}[IMG]{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "",
    "<|im_end|>",
)
URL = "data:image/png;base64,AA"
IMAGE: Any = {"type": "image_url", "image_url": {"url": URL}}
BLOCK: Any = {"type": "image", "source": {"type": "url", "url": URL}}
ASKED: Any = {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGE]}]}


@pytest.mark.parametrize(
    ("read", "pointer"),
    [
        (lambda: read_chat_request(ASKED).generation, "/messages/0/content/1"),
        (
            lambda: read_messages_request({"max_tokens": 9, "messages": [{"role": "user", "content": [BLOCK]}]}),
            "/messages/0/content/0",
        ),
        (
            lambda: (
                read_responses_request(
                    {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": URL}]}]}
                ).generation
            ),
            "/input/0/content/0",
        ),
    ],
)
def test_an_image_is_refused_at_its_place(read: Any, pointer: str) -> None:
    with pytest.raises(
        toolgram.InvalidRequest, match="an image cannot be given to the model: send text alone"
    ) as raised:
        read().plan(SEEING)
    assert raised.value.pointer == pointer


def test_a_plan_of_the_librarys_has_the_place_and_no_engine_of_ours_is_given_it() -> None:
    plan = toolgram.plan(ASKED, SEEING)
    assert "What is it?[IMG]" in plan.prompt
    with pytest.raises(toolgram.InvalidRequest) as raised:
        generate_sync(plan, Replay("A cat."))
    assert raised.value.pointer == "/messages/0/content/1"


def test_an_image_that_a_tool_answers_with_is_told_in_words() -> None:
    turn = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    result = {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a"}, IMAGE]}
    body = {"messages": [{"role": "user", "content": "Look."}, turn, result]}
    plan = read_chat_request(body).generation.plan(SEEING, "short")
    assert plan.left_out == ("/messages/2/content/1",)
    assert "a[image_url: it cannot be shown to this model]" in plan.prompt
    assert generate_sync(plan, Replay("A cat.")).message.content == "A cat."
