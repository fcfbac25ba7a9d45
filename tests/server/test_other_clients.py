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


# Pictures that tools answered with ------------------------------------------------------------------------------------

AFTER_RESULTS = {
    # https://github.com/cline/cline/blob/main/sdk/packages/llms/src/providers/middleware/split-tool-images.ts
    "cline": ([called("c"), result("c"), by_user(IMAGE)], ["messages[3].content[0]"]),
    # https://github.com/block/goose/blob/main/crates/goose/src/providers/formats/openai.rs
    "goose": (
        [called("c", "d"), result("c"), by_user(IMAGE), by_user(IMAGE), result("d"), by_user(IMAGE)],
        ["messages[3].content[0]", "messages[4].content[0]", "messages[6].content[0]"],
    ),
    # https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/providers/openai-completions.ts
    "pi": (
        [called("c"), result("c"), by_user(said("Image of the tool's result:"), IMAGE, IMAGE)],
        ["messages[3].content[1]", "messages[3].content[2]"],
    ),
}


@pytest.mark.parametrize("client", AFTER_RESULTS)
def test_a_picture_that_stands_behind_a_result_is_told_in_words(client: str) -> None:
    turns, places = AFTER_RESULTS[client]
    engine = Replay("A cat.")
    with serving(engine) as address:
        answer = httpx2.post(address + CHAT, json=body(*turns)).raise_for_status()
    assert answer.headers["x-toolgram-ignored"].split(", ") == places
    assert engine.calls[0].text.count(TOLD) == len(places)


@pytest.mark.parametrize(
    ("turns", "place"),
    [
        ([by_user(IMAGE)], "/messages/1/content/0"),
        ([called("c"), result("c"), {"role": "assistant", "content": "Ok."}, by_user(IMAGE)], "/messages/4/content/0"),
        ([called("c"), result("c"), by_user(said("And this one?"), IMAGE)], "/messages/3/content/1"),
        ([called("c"), result("c"), by_user(said("See the tool. " * 20), IMAGE)], "/messages/3/content/1"),
        ([called("c"), result("c"), by_user(said("Tool:"), said("Mine:"), IMAGE)], "/messages/3/content/2"),
        ([called("c"), result("c"), by_user({"type": "input_audio", "input_audio": {}})], "/messages/3/content/0"),
    ],
)
def test_a_picture_of_the_users_is_refused_as_before(turns: list[Any], place: str) -> None:
    with serving(Replay("A cat.")) as address:
        answer = httpx2.post(address + CHAT, json=body(*turns))
    assert (answer.status_code, answer.json()["error"]["pointer"]) == (400, place)


def test_words_of_the_users_between_results_are_refused_as_before() -> None:
    with serving(Replay("A cat.")) as address:
        answer = httpx2.post(address + CHAT, json=body(called("c", "d"), result("c"), ASKED, result("d")))
    assert (answer.status_code, answer.json()["error"]["pointer"]) == (400, "/messages/4")


# Copilot Chat -------------------------------------------------------------------------------------------------------


def test_copilot_chat_asks_for_chat_completions() -> None:
    """https://github.com/microsoft/vscode-copilot-chat/blob/main/src/platform/networking/common/openai.ts"""
    kept: Any = {"cot_id": "x", "cot_summary": "I look.", "copilot_cache_control": {"type": "ephemeral"}}
    turn = {**called("c"), "content": "", **kept}
    more: Any = {"temperature": 0, "top_p": 1, "n": 1, "stream": True, "stream_options": {"include_usage": True}}
    with serving(Replay(LOOKS)) as address:
        answer = httpx2.post(address + CHAT, json=body(turn, result("c"), ASKED, **more)).raise_for_status()
    chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    assert isinstance(chunks[-1]["usage"]["total_tokens"], int)
    calls = [call for chunk in chunks for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())]
    assert (calls[0]["function"]["name"], bool(calls[0]["id"])) == ("look", True)
    assert all("id" not in call for call in calls[1:])  # a call with another id is another one to it


def test_copilot_chat_asks_for_responses() -> None:
    """Its own past turns all have one id, and an image follows the result
    (https://github.com/microsoft/vscode-copilot-chat/blob/main/src/platform/endpoint/node/responsesApi.ts).
    """

    def turn(text: str) -> Any:
        content: Any = [{"type": "output_text", "text": text, "annotations": []}]
        return {"type": "message", "role": "assistant", "id": "msg_123", "status": "completed", "content": content}

    def call(id_: str) -> Any:
        return {"type": "function_call", "call_id": id_, "name": "look", "arguments": '{"path": "a.png"}'}

    image = {"type": "input_image", "detail": "auto", "image_url": URL}
    given: Any = [
        {"role": "system", "content": [{"type": "input_text", "text": "You see."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Look."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "of another server"},
        turn("I look."),
        call("c"),
        {"type": "function_call_output", "call_id": "c", "output": "taken"},
        {"role": "user", "content": [{"type": "input_text", "text": "Picture of the tool call above:"}, image]},
        turn("And again."),
        call("d"),
        {"type": "function_call_output", "call_id": "d", "output": "taken"},
    ]
    asked: Any = {
        "model": "recorded",
        "style": "hermes_2_pro",
        "input": given,
        "tools": [{"type": "function", **LOOK["function"], "strict": False}],
        "stream": True,
        "store": True,
        "truncation": "disabled",
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "medium", "summary": "detailed"},
        "text": {"verbosity": "low"},
        "prompt_cache_key": "k",
        "context_management": [{"type": "compaction", "compact_threshold": 50000}],
    }
    engine = Replay("A cat.")
    with serving(engine) as address:
        answer = httpx2.post(address + RESPONSES, json=asked).raise_for_status()
    assert "response.completed" in answer.text
    assert answer.headers["x-toolgram-ignored"].split(", ")[-1] == "input[6].content[1]"
    assert engine.calls[0].text.count(TOLD) == 1


# Others -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_minus_one_token_is_no_limit(name: str) -> None:
    """So llama.cpp has it, and clients of local servers write it (https://github.com/abetlen/llama-cpp-python/pull/111,
    https://github.com/Arize-ai/phoenix/issues/3964).
    """
    with serving(Replay("A cat is there.", "A cat is there.")) as address:
        answers = [httpx2.post(address + CHAT, json=body(**{name: most})) for most in (-1, None, -2)]
    assert [answer.status_code for answer in answers] == [200, 200, 400]
    assert [answer.json()["choices"][0]["finish_reason"] for answer in answers[:2]] == ["stop", "stop"]


def test_dify_asks_for_thoughts_in_every_way_that_servers_know() -> None:
    """https://github.com/langgenius/dify-official-plugins/blob/main/models/openai_api_compatible/models/llm/llm.py"""
    ways = {
        "chat_template_kwargs": {"enable_thinking": True, "thinking": True, "reasoning_effort": "low"},
        "thinking": {"type": "enabled"},
        "enable_thinking": True,
        "reasoning_effort": "low",
        "reasoning_format": "deepseek",
    }
    with serving(Replay("<think>\nIt is a cat.\n</think>\n\nA cat."), template=THINKS) as address:
        answer = httpx2.post(address + CHAT, json=body(style="hermes", **ways)).raise_for_status()
    message = answer.json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("It is a cat.", "A cat.")


def test_roo_code_makes_each_of_its_tools_strict() -> None:
    """https://github.com/RooCodeInc/Roo-Code/blob/main/src/api/providers/base-provider.ts"""
    lines = {"type": "object", "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}}}
    closed = {**lines, "required": ["from", "to"], "additionalProperties": False}
    parameters = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "array", "items": closed, "minItems": 1}},
        "required": ["path", "lines"],
        "additionalProperties": False,
    }
    tool = {"type": "function", "function": {"name": "read", "strict": True, "parameters": parameters}}
    turns = [{**called("c"), "content": ""}, result("c", "(empty)"), by_user(said("<environment_details>x</…>"))]
    with serving(Replay(LOOKS)) as address:
        asked = body(*turns, tools=[LOOK, tool], tool_choice="auto", parallel_tool_calls=True)
        assert httpx2.post(address + CHAT, json=asked).status_code == 200
