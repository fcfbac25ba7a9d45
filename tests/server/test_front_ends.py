"""What chat front ends and automation tools send, and how they write a server's address.

The shapes are those of their sources and of threads, which each test names; the texts are ours.
"""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from live_server import serving
from situations import CHATML
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
ASKED: Any = {"role": "user", "content": "What is there?"}
COMMON: Any = {"model": "recorded", "style": "hermes_2_pro"}

STRICT = ChatTemplate(  # as Qwen 3.5's, to which clients with a late system message are refused elsewhere
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content or '' }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "",
    "<|im_end|>",
)
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {**COMMON, "messages": [ASKED]},
    COMPLETIONS: {"model": "recorded", "prompt": "There is"},
    RESPONSES: {**COMMON, "input": [ASKED]},
}


def answer_to(path: str, **more: Any) -> Any:
    with serving(Replay("A cat.")) as address:
        return httpx2.post(address + path, json={**BODIES[path], **more})


# Fields -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("stream", [{}, {"stream": None}, {"stream": False}])
def test_options_of_a_stream_without_one_are_told(path: str, stream: Any) -> None:
    """LiteLLM sends them, and pr-agent by it (https://github.com/BerriAI/litellm/issues/29431)."""
    answer = answer_to(path, **stream, stream_options={"include_usage": True}).raise_for_status()
    assert answer.headers["x-toolgram-ignored"] == "stream_options"
    assert answer.json()["usage"]["total_tokens"] >= 0


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_options_of_a_stream_are_not_told_where_there_is_one(path: str) -> None:
    answer = answer_to(path, stream=True, stream_options={"include_usage": True}).raise_for_status()
    assert "x-toolgram-ignored" not in answer.headers
    assert "total_tokens" in answer.text


# Addresses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["/v1/", "//v1", "/v1/v1", "", "/"])
def test_an_address_may_have_a_slash_too_many_and_its_version_twice_or_not_at_all(before: str) -> None:
    """https://github.com/open-webui/open-webui/issues/16749, https://github.com/dbeaver/dbeaver/issues/42156,
    https://github.com/FerroxLabs/wayland/issues/1178, and Jan
    (https://github.com/janhq/jan/blob/main/web-app/src/services/providers/tauri.ts).
    """
    with serving(Replay("A cat."), Settings(api_keys=("right",))) as address, httpx2.Client() as client:
        models, chat = f"{address}{before}/models", f"{address}{before}/chat/completions"
        assert client.get(models).status_code == 401
        client.headers["authorization"] = "Bearer right"
        for url in (models, f"{models}/"):
            assert client.get(url).raise_for_status().json()["data"][0]["id"] == "recorded"
        assert client.head(models).status_code == 200
        answer = client.post(chat, json=BODIES[CHAT]).raise_for_status()
        assert answer.json()["choices"][0]["message"]["content"] == "A cat."
        assert client.post(models).status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/", "/v1/chat", "/v2/models", "/v1/v1/v1/models", "/api/v1/models", "/v1/modelss"],
)
def test_no_other_path_is_meant(path: str) -> None:
    with serving(Replay()) as address:
        assert httpx2.get(address + path).status_code == 404


def test_a_path_is_counted_as_the_one_that_is_meant() -> None:
    with serving(Replay("A cat.")) as address:
        httpx2.post(f"{address}/v1//chat/completions", json=BODIES[CHAT]).raise_for_status()
        told = httpx2.get(f"{address}//metrics").raise_for_status().text
    assert 'path="/v1/chat/completions"' in told
    assert 'path="other"' not in told


def test_a_name_may_hold_slashes() -> None:
    with serving(Replay(), aliases=["org//model/"]) as address:
        assert httpx2.get(f"{address}/v1/models/org//model/").raise_for_status().json()["id"] == "recorded"


# Names --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
def test_an_empty_name_is_none(path: str) -> None:
    """LibreChat and SillyTavern send it where no model is chosen
    (https://github.com/danny-avila/LibreChat/blob/main/packages/api/src/endpoints/openai/llm.ts).
    """
    assert answer_to(path, model="").raise_for_status().json()["model"] == "recorded"
    assert answer_to(path, model=" ").status_code == 404


# Sampling -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
def test_a_temperature_may_be_as_high_as_engines_take_it(path: str) -> None:
    """SillyTavern's go up to 5 (https://github.com/SillyTavern/SillyTavern/blob/release/public/index.html)."""
    engine = Replay("A cat.")
    with serving(engine) as address:
        httpx2.post(address + path, json={**BODIES[path], "temperature": 4.5}).raise_for_status()
    assert engine.calls[0].sampling.temperature == 4.5
    assert answer_to(path, temperature=101).status_code == 400


def test_sillytavern_stops_at_all_names_and_marks() -> None:
    """https://github.com/SillyTavern/SillyTavern/blob/release/public/scripts/instruct-mode.js, and what it sends to
    vLLM (…/public/scripts/textgen-settings.js).
    """
    names = [f"\nCat {at}:" for at in range(30)]
    sampling: Any = {"temperature": 1, "top_p": 1, "top_k": -1, "min_p": 0.05, "repetition_penalty": 1.1}
    sent: Any = {**sampling, "frequency_penalty": 0, "logprobs": 10, "n": 2, "best_of": 2, "min_tokens": 0}
    with serving(Replay("A cat.\nCat 7: Mew.", "A cat.")) as address:
        answer = httpx2.post(
            address + COMPLETIONS, json={**BODIES[COMPLETIONS], **sent, "stop": names}
        ).raise_for_status()
    assert [choice["text"] for choice in answer.json()["choices"]] == ["A cat.", "A cat."]
    assert answer.headers["x-toolgram-ignored"] == "min_tokens"


# Results ------------------------------------------------------------------------------------------------------------

CALL: Any = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
LOOK: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALLED: Any = {"role": "assistant", "content": "None", "tool_calls": [CALL]}


@pytest.mark.parametrize("style", ["hermes_2_pro", "long"])
def test_what_a_tool_answered_may_be_an_object(style: str) -> None:
    """Home Assistant's Local LLMs send it so, where they are told to
    (https://github.com/acon96/home-llm/blob/develop/custom_components/llama_conversation/utils.py).
    """
    seen: Any = {"name": "look", "response": {"result": "Zoë"}}
    prompts: list[str] = []
    for content in (seen, json.dumps(seen, ensure_ascii=False)):
        result = {"role": "tool", "tool_call_id": "c", "content": content}
        body = {"model": "recorded", "style": style, "tools": [LOOK], "messages": [ASKED, CALLED, result]}
        engine = Replay("A cat.")
        with serving(engine) as address:
            httpx2.post(address + CHAT, json=body).raise_for_status()
        prompts.append(engine.calls[0].text)
    assert prompts[0] == prompts[1]
    assert "Zoë" in prompts[0]


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_nobody_else_says_an_object(role: str) -> None:
    answer = answer_to(CHAT, messages=[ASKED, {"role": role, "content": {"text": "Hi."}}])
    error = answer.json()["error"]
    assert (answer.status_code, error["pointer"]) == (400, "/messages/1/content")
    assert "must be a string or a list of parts" in error["message"]


# Conversations ------------------------------------------------------------------------------------------------------

CALLS: Any = {**CALLED, "content": ""}
RESULT: Any = {"role": "tool", "tool_call_id": "c", "content": "A cat."}
IMAGE: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
SHOWN: Any = {"type": "text", "text": "These images are what the tools above answered. Please look at them."}
HEARD: Any = {"role": "assistant", "content": "There is"}

TAKEN: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    # Open WebUI: https://github.com/open-webui/open-webui/blob/main/backend/open_webui/utils/misc.py
    "open-webui, images of tools": (
        CHAT,
        {"messages": [ASKED, CALLS, RESULT, {"role": "user", "content": [SHOWN, IMAGE]}], "tools": [LOOK]},
        ["messages[3].content[1]"],
    ),
    "open-webui, a summary and sources": (
        CHAT,
        {"messages": [*({"role": "system", "content": text} for text in ("Be kind.", "[So far] Cats.")), ASKED]},
        [],
    ),
    "open-webui, calls in a chat without tools": (CHAT, {"messages": [ASKED, CALLS, RESULT, HEARD, ASKED]}, []),
    # …/backend/open_webui/routers/openai.py
    "open-webui, continue": (
        CHAT,
        {"messages": [ASKED, HEARD], "continue_final_message": True, "add_generation_prompt": False},
        [],
    ),
    "open-webui, a user of a pipeline": (CHAT, {"user": {"name": "Ada", "id": "1", "role": "admin"}}, []),
    "open-webui, responses": (
        RESPONSES,
        {
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."}]},
                {"type": "reasoning", "id": "r", "summary": [], "content": []},
                {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}", "id": "f"},
                {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "A cat."}]},
            ],
            "instructions": "Be kind.",
            "tools": [{"type": "function", **LOOK["function"], "strict": False}],
        },
        [],
    ),
    # n8n: https://www.npmjs.com/package/@n8n/n8n-nodes-langchain, vendors/OpenAi and llms/LMChatOpenAi
    "n8n, a model's answer": (
        RESPONSES,
        {
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "Look."}]}],
            "parallel_tool_calls": True,
            "store": True,
            "background": False,
            "truncation": "auto",
            "max_tool_calls": 3,
            "top_logprobs": 0,
            "service_tier": "auto",
            "metadata": {"flow": "cats"},
            "reasoning": {"effort": "low"},
            "text": {"verbosity": "low", "format": {"type": "text"}},
        },
        ["text.verbosity"],
    ),
    "n8n, tools of OpenAI's": (
        RESPONSES,
        {
            "tools": [
                {"type": "web_search", "search_context_size": "medium"},
                {"type": "code_interpreter", "container": {"type": "auto"}},
                {"type": "function", **LOOK["function"], "strict": False},
            ]
        },
        ["tools.web_search", "tools.code_interpreter"],
    ),
    # Home Assistant: https://github.com/jekalmin/extended_openai_conversation, conversation.py
    "extended openai conversation, functions": (
        CHAT,
        {
            "messages": [ASKED, {"role": "function", "name": "look", "content": "A cat."}],
            "functions": [LOOK["function"]],
            "function_call": "auto",
        },
        [],
    ),
    "extended openai conversation, tools": (
        CHAT,
        {
            "messages": [ASKED, {**CALLS, "refusal": None, "reasoning_content": "I look."}, {**RESULT, "name": "look"}],
            "tools": [LOOK],
            "tool_choice": "none",
        },
        ["messages[1].reasoning_content"],
    ),
    # AnythingLLM: https://github.com/Mintplex-Labs/anything-llm/blob/master/server/utils/agents/aibitat/providers/helpers/tooled.js
    "anythingllm, a result of no call": (
        CHAT,
        {"messages": [ASKED, {**CALLED, "content": None, "reasoning_content": ""}, RESULT], "tools": [LOOK]},
        [],
    ),
    # SWE-agent: https://github.com/SWE-agent/SWE-agent/blob/main/sweagent/tools/commands.py, and LM Studio refuses it
    # (https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2203)
    "swe-agent, a tool without parameters": (
        CHAT,
        {"tools": [{"type": "function", "function": {"name": "submit", "parameters": {"type": "object"}}}]},
        [],
    ),
    # SillyTavern: https://github.com/SillyTavern/SillyTavern/blob/release/public/scripts/openai.js
    "sillytavern, examples and a greeting": (
        CHAT,
        {
            "messages": [
                {"role": "system", "content": "Mew.", "name": "example_assistant"},
                {"role": "assistant", "content": "Hello!"},
                {**ASKED, "name": "Ada"},
                {"role": "system", "content": "Write the next reply."},
            ],
            "logit_bias": {},
            "top_k": 0,
            "n": 2,
            "seed": 0,
            "logprobs": True,
            "top_logprobs": 5,
        },
        [],
    ),
}


@pytest.mark.parametrize("template", ["chatml", "strict"])
@pytest.mark.parametrize("shape", TAKEN)
def test_what_front_ends_send_is_answered(shape: str, template: str) -> None:
    path, more, ignored = TAKEN[shape]
    with serving(Replay("A cat.", "A cat."), template={"chatml": CHATML, "strict": STRICT}[template]) as address:
        answer = httpx2.post(address + path, json={**BODIES[path], **more}).raise_for_status()
    assert answer.headers.get("x-toolgram-ignored", "") == ", ".join(ignored)
    assert "A cat." in answer.text
