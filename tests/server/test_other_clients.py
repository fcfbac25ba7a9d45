"""What editors and tools send that are pointed at a server of one's own, and what they need of its answer.

The shapes are those of their sources, which each test names; the texts are ours.
"""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from live_server import serving
from toolgram.engines.replay import Replay
from toolgram.template.chat_template import ChatTemplate

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
URL = "data:image/png;base64,AA"
IMAGE: Any = {"type": "image_url", "image_url": {"url": URL, "detail": "auto"}}
PATH: Any = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
LOOK: Any = {"type": "function", "function": {"name": "look", "description": "Takes a picture.", "parameters": PATH}}
LOOKS = '<tool_call>\n{"name": "look", "arguments": {"path": "a.png"}}\n</tool_call>'
ASKED: Any = {"role": "user", "content": "What do you see?"}
TOLD = "[image_url: it cannot be shown to this model]"
THINKS = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n"
    "</think>\n\n{% endif %}{{ m.content or '' }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "",
    "<|im_end|>",
)


def called(*ids: str) -> Any:
    function = {"name": "look", "arguments": '{"path": "a.png"}'}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": i, "function": function} for i in ids]}


def result(id_: str, content: Any = "taken") -> Any:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def said(text: str) -> Any:
    return {"type": "text", "text": text}


def by_user(*parts: Any) -> Any:
    return {"role": "user", "content": list(parts)}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "recorded", "style": "hermes_2_pro", "tools": [LOOK], "messages": [ASKED, *messages], **more}


# Thoughts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_are_told_under_one_name(stream: bool) -> None:
    """Of two names for one field Goose stopped (https://github.com/aaif-goose/goose/pull/8715), and Kimi Code shows
    each thought twice (https://github.com/MoonshotAI/kimi-code/issues/3928).
    """
    asked = {"model": "recorded", "style": "hermes", "messages": [ASKED], "stream": stream}
    text = "<think>\nIt is a cat.\n</think>\n\nA cat."
    with serving(Replay(text), template=THINKS) as address:
        answer = httpx2.post(address + CHAT, json=asked).raise_for_status()
    if not stream:
        (message,) = [choice["message"] for choice in answer.json()["choices"]]
        assert (message["content"], message["reasoning_content"]) == ("A cat.", "It is a cat.")
        assert "reasoning" not in message
        return
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "It is a cat."
    assert not any("reasoning" in delta for delta in deltas)
