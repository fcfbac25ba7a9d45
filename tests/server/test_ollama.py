"""Ollama's API on recorded answers: a stream adds up to the whole, and requests are those of the other APIs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx2
import pytest

from live_server import serving
from situations import CHATML
from toolgram.api.chat.request import read_chat_request as read_chat_completions
from toolgram.api.generation import Generation
from toolgram.api.ollama.request import Load, read_chat_request, read_generate_request
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.remote.http import Http
from toolgram.engines.remote.identify import identify
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate

CHAT, GENERATE = "/api/chat", "/api/generate"
HI: Any = {"role": "user", "content": "Hi."}
NUMBERS: Any = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
ADD: Any = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": NUMBERS}}
NOW: Any = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
EMPTY = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
HERMES = Settings(style="hermes_2_pro")
UNENFORCED = Capabilities(unenforced=True)
CHANGING = {"created_at", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration"}
REASONING = ChatTemplate(
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}"
    "{% if message.reasoning_content %}{{ '<think>\n' + message.reasoning_content + '\n</think>\n\n' }}{% endif %}"
    "{{ message.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    "{% if enable_thinking is defined %}{{ 'think: ' ~ enable_thinking ~ ' ' ~ reasoning_effort }}{% endif %}",
    bos_token="",
    eos_token="<|im_end|>",  # noqa: S106 - not a password
)


def lasting(answer: Any) -> Any:
    """An object without what differs from time to time."""
    if isinstance(answer, dict):
        return {
            key: lasting(value)
            for key, value in answer.items()
            if key not in CHANGING and not (key == "id" and "function" in answer)
        }
    return [lasting(each) for each in answer] if isinstance(answer, list) else answer


def lines_of(answer: httpx2.Response) -> list[Any]:
    """The objects of a stream; Python's clients end lines where Unicode does."""
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def added_up(objects: list[Any]) -> Any:
    """What a client makes of a stream."""
    said: dict[str, Any] = {}
    logprobs: list[Any] = []
    for each in objects:
        for key, value in each.get("message", each).items():
            if key in ("content", "response", "thinking", "tool_calls"):
                said[key] = said[key] + value if key in said else value
        logprobs += each.get("logprobs", [])
        assert each["done"] is (each is objects[-1])
    told = {"message": {"role": "assistant", **said}} if "message" in objects[-1] else said
    return {**objects[-1], **told, **({"logprobs": logprobs} if logprobs else {})}


def answered(
    path: str, body: dict[str, Any], text: Any, settings: Settings = HERMES, template: ChatTemplate = CHATML
) -> tuple[Any, list[Any]]:
    """The whole answer, and the objects of the streamed one; they are told to be the same."""
    with serving(Replay(text, text), settings, template) as address:
        whole = httpx2.post(address + path, json={**body, "stream": False})
        streamed = httpx2.post(address + path, json=body)
    assert (whole.status_code, streamed.status_code) == (200, 200), whole.text
    assert whole.headers["content-type"] == "application/json"
    objects = lines_of(streamed)
    assert lasting(added_up(objects)) == lasting(whole.json())
    return whole.json(), objects


def test_an_answer_with_calls() -> None:
    whole, objects = answered(CHAT, {"messages": [HI], "tools": [ADD, NOW]}, ["Let me", " see. ", CALL, "\n", EMPTY])
    one = {"function": {"index": 0, "name": "add", "arguments": {"a": 1, "b": 2}}}
    other = {"function": {"index": 1, "name": "now", "arguments": {}}}
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 0, "eval_count": 5}
    assert lasting(whole) == {
        "model": "recorded:latest",
        "message": {"role": "assistant", "content": "Let me see. ", "tool_calls": [one, other]},
        **end,
    }
    assert [lasting(each["message"]) for each in objects] == [
        {"role": "assistant", "content": "Let me"},
        {"role": "assistant", "content": " see. "},
        {"role": "assistant", "content": "", "tool_calls": [one]},
        {"role": "assistant", "content": "", "tool_calls": [other]},
        {"role": "assistant", "content": ""},
    ]
    assert all(whole[name] > 0 for name in CHANGING - {"created_at"})  # clients divide by them
    assert whole["created_at"].endswith("Z")
    ids = [call["id"] for each in objects for call in each["message"].get("tool_calls", ())]
    assert len({*ids}) == 2


def test_reasoning_is_told_as_thinking() -> None:
    whole, objects = answered(
        CHAT, {"messages": [HI]}, ["<think>\nHm", ".\n</think>\n\n", "Yes."], Settings(), REASONING
    )
    assert whole["message"] == {"role": "assistant", "content": "Yes.", "thinking": "Hm."}
    assert objects[0]["message"] == {"role": "assistant", "content": "", "thinking": "Hm"}
    whole, _ = answered(GENERATE, {"prompt": "Hi."}, ["<think>\nHm.\n</think>\n\nYes."], Settings(), REASONING)
    assert (whole["response"], whole["thinking"]) == ("Yes.", "Hm.")


def test_a_call_that_was_cut_off_is_not_told_since_clients_would_run_it() -> None:
    body = {"messages": [HI], "tools": [ADD], "options": {"num_predict": 40}}
    whole, _ = answered(CHAT, body, list(CALL))
    assert whole["message"] == {"role": "assistant", "content": ""}
    assert (whole["done_reason"], whole["dropped_tool_calls"], whole["eval_count"]) == ("length", 1, 40)


def test_arguments_stand_on_the_line_of_their_object_however_they_are_written() -> None:
    call = '<tool_call>\n{"name": "say", "arguments": {\n  "text":\r\n"a\\nb\u2028c\x85"}}\n</tool_call>'
    say = {"type": "function", "function": {"name": "say", "parameters": {"properties": {"text": {"type": "string"}}}}}
    with serving(Replay(call, capabilities=UNENFORCED), HERMES) as address:
        answer = httpx2.post(address + CHAT, json={"messages": [HI], "tools": [say]})
    (called,) = lines_of(answer)[0]["message"]["tool_calls"]
    assert called["function"]["arguments"] == {"text": "a\nb\u2028c\x85"}


@pytest.mark.parametrize(("written", "told"), [("[1]", 1), ("5", 1), ('"a"', 0), ("{a: 1}", 0)])
def test_arguments_that_are_no_object_where_nothing_is_enforced_are_left_out(written: str, told: int) -> None:
    call = f'<tool_call>\n{{"name": "add", "arguments": {written}}}\n</tool_call>'
    with serving(Replay(call, capabilities=UNENFORCED), HERMES) as address:
        answer = httpx2.post(address + CHAT, json={"messages": [HI], "tools": [ADD], "stream": False}).json()
    calls = answer["message"].get("tool_calls", [])
    assert [each["function"]["arguments"] for each in calls] == [{}] * told
    assert answer["valid"] is False
    assert answer.get("dropped_tool_calls", 0) == 1 - told


def test_a_prompt_is_answered_or_gone_on_with() -> None:
    body = {"prompt": "Hi.", "system": "Be brief.", "options": {"num_predict": 3}}
    whole, objects = answered(GENERATE, body, list("Hello."))
    assert lasting(whole) == {
        "model": "recorded:latest",
        "response": "Hel",
        "done": True,
        "done_reason": "length",
        "prompt_eval_count": 0,
        "eval_count": 3,
    }
    assert [each["response"] for each in objects] == ["H", "e", "l", ""]
    engine = Replay(["a ", "time."], "x")
    with serving(engine) as address:
        raw = httpx2.post(address + GENERATE, json={"prompt": "Once upon ", "raw": True})
        httpx2.post(address + GENERATE, json=body)
    assert added_up(lines_of(raw))["response"] == "a time."
    assert engine.calls[0].text == "Once upon "
    assert "system\nBe brief.<|im_end|>\n<|im_start|>user\nHi." in engine.calls[1].text


def test_how_likely_tokens_were_is_told() -> None:
    from sampled_engine import Sampled

    body = {"messages": [HI], "format": {"enum": ["abcabc"]}, "logprobs": True, "top_logprobs": 1}
    with serving(Sampled()) as address:
        whole = httpx2.post(address + CHAT, json={**body, "stream": False}).json()
        objects = lines_of(httpx2.post(address + CHAT, json=body))
        raw = {"prompt": "a", "raw": True, "format": "json", "stream": False, "logprobs": True}
        assert httpx2.post(address + GENERATE, json=raw).json()["logprobs"]
    for answer in (whole, added_up(objects)):
        assert "".join(each["token"] for each in answer["logprobs"]) == '"abcabc"'
        assert answer["logprobs"][0].keys() == {"token", "logprob", "bytes", "top_logprobs"}


# What is asked for ---------------------------------------------------------------------------------------------------


def asked(**body: Any) -> Generation:
    read = read_chat_request({"messages": [HI], **body})
    assert isinstance(read, Generation)
    return read


def called(name: str, **arguments: Any) -> Any:
    return {"function": {"name": name, "arguments": arguments}}


def test_a_conversation_is_prompted_as_in_chat_completions() -> None:
    calls = [called("add", a=1, b=2), called("now")]
    messages = [
        {"role": "system", "content": "Be brief."},
        HI,
        {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": calls},
        {"role": "tool", "content": "noon", "tool_name": "now"},
        {"role": "tool", "content": "3", "tool_name": "add"},
    ]
    whole = [{"id": f"call_{at}", "type": "function", **call} for at, call in enumerate(calls)]
    chat = [
        *messages[:2],
        {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": whole},
        {"role": "tool", "content": "noon", "tool_call_id": "call_1"},
        {"role": "tool", "content": "3", "tool_call_id": "call_0"},
    ]
    one = asked(messages=messages, tools=[ADD, NOW]).plan(CHATML, "hermes_2_pro")
    other = read_chat_completions({"messages": chat, "tools": [ADD, NOW]}).generation.plan(CHATML, "hermes_2_pro")
    assert one.prompt == other.prompt
    assert one.constraint is not None
    assert other.constraint is not None
    assert one.constraint.grammar.to("lark") == other.constraint.grammar.to("lark")


def test_results_without_names_answer_calls_in_order_and_such_without_calls_are_shown() -> None:
    """Home Assistant sends no names, and cuts off the beginning of its history."""
    calls = {"role": "assistant", "tool_calls": [called("add", a=1, b=2), called("now")]}
    results = [{"role": "tool", "content": text} for text in ("three", "noon")]
    prompt = asked(messages=[HI, calls, *results], tools=[ADD, NOW]).plan(CHATML, "hermes_2_pro").prompt
    assert prompt.index("three") < prompt.index("noon")
    assert "late" in asked(messages=[{"role": "tool", "content": "late"}, HI]).plan(CHATML).prompt


def test_an_answer_that_is_begun_goes_on() -> None:
    plan = asked(messages=[HI, {"role": "assistant", "content": "The answer is"}]).plan(CHATML)
    assert plan.prompt.endswith("The answer is")


@pytest.mark.parametrize(
    ("format_", "schema"),
    [(None, None), ("", None), ("json", {"type": "object"}), (NUMBERS, NUMBERS), ({}, {})],
)
def test_the_form_of_an_answer(format_: Any, schema: Any) -> None:
    for read in (asked(format=format_), read_generate_request({"prompt": "Hi.", "format": format_})):
        assert isinstance(read, Generation)
        form = read.request.response_format
        assert (form and form.schema) == schema
        assert form is None or (form.strict, form.pointer) == (False, "/format")


def test_an_answer_in_a_schema_beside_tools() -> None:
    whole, _ = answered(CHAT, {"messages": [HI], "tools": [NOW], "format": NUMBERS}, ['{"a": 1,', ' "b": 2}'])
    assert json.loads(whole["message"]["content"]) == {"a": 1, "b": 2}
    whole, _ = answered(CHAT, {"messages": [HI], "tools": [NOW], "format": NUMBERS}, EMPTY)
    assert whole["message"]["tool_calls"][0]["function"]["name"] == "now"


@pytest.mark.parametrize(
    ("think", "told"),
    [(None, ""), (True, "think: True "), (False, "think: False "), ("low", "think: True low"), ("max", "max")],
)
def test_whether_to_think_is_what_the_template_is_told(think: Any, told: str) -> None:
    assert asked(think=think).plan(REASONING).prompt.rpartition("assistant\n")[2].strip().endswith(told.strip())


def test_options_are_those_of_sampling() -> None:
    options = {
        "temperature": 0.5,
        "top_k": 20,
        "top_p": 0.9,
        "min_p": 0.1,
        "num_predict": 9,
        "stop": ["a"],
        "seed": 3,
        "repeat_penalty": 1.1,
        "presence_penalty": 0.2,
        "frequency_penalty": 0.3,
    }
    read = asked(options=options)
    assert read.sampling == Sampling(
        temperature=0.5,
        top_k=20,
        top_p=0.9,
        min_p=0.1,
        max_tokens=9,
        stop=("a",),
        seed=3,
        repetition_penalty=1.1,
        presence_penalty=0.2,
        frequency_penalty=0.3,
    )
    assert not read.unsaid
    assert asked(options={"repeat_penalty": 1.0}).unsaid == asked().unsaid - {"repetition_penalty"}


@pytest.mark.parametrize("most", [-2, -1, 0, None])
def test_an_answer_without_a_limit(most: int | None) -> None:
    assert asked(options={"num_predict": most, "seed": -1}).sampling == asked().sampling


def test_what_is_ignored_is_named() -> None:
    body = {"messages": [HI], "options": {"num_ctx": 4096, "num_gpu": 1, "mirostat": None}, "keep_alive": "5m"}
    with serving(Replay("a", "a")) as address:
        answer = httpx2.post(address + CHAT, json={**body, "truncate": True, "odd": None})
        assert answer.headers["x-toolgram-ignored"] == "truncate, options.num_ctx, options.num_gpu"
        raw = {"prompt": "a", "raw": True, "context": [1], "think": False}
        answer = httpx2.post(address + GENERATE, json=raw)
        assert answer.headers["x-toolgram-ignored"] == "context, think"


def test_a_tool_may_be_chosen_and_what_is_not_enforced_is_told() -> None:
    unique = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    read = asked(tools=[ADD, NOW], tool_choice={"type": "function", "function": {"name": "add"}})
    assert (read.request.tool_choice.mode, read.request.tool_choice.only) == ("required", ("add",))
    assert asked(tools=[ADD], tool_choice="none", parallel_tool_calls=False).request.parallel_tool_calls is False
    with serving(Replay("{}")) as address:
        answer = httpx2.post(address + CHAT, json={"messages": [HI], "format": unique})
    assert json.loads(answer.headers["x-toolgram-relaxations"])[0]["pointer"] == "/format/properties/a"


@pytest.mark.parametrize(("kept", "ends"), [(None, False), ("5m", False), (-1, False), (0, True), ("0s", True)])
def test_a_body_that_says_nothing_loads_the_model(kept: Any, ends: bool) -> None:
    bodies: list[Any] = [{"messages": []}, {"messages": None}, {}]
    assert {read_chat_request({**body, "keep_alive": kept}) for body in bodies} == {Load(None, ends)}
    assert read_generate_request({"prompt": "", "keep_alive": kept}) == Load(None, ends)
    with serving(Replay()) as address:
        chat, generated = (httpx2.post(address + path, json={"keep_alive": kept}).json() for path in (CHAT, GENERATE))
    end = {"model": "recorded:latest", "done": True, "done_reason": "unload" if ends else "load"}
    assert lasting(chat) == {**end, "message": {"role": "assistant", "content": ""}}
    assert lasting(generated) == {**end, "response": ""}


# What is refused -----------------------------------------------------------------------------------------------------

IMAGE: Any = {**HI, "images": ["aGk="]}


@pytest.mark.parametrize(
    ("path", "body", "status", "told"),
    [
        (CHAT, {"messages": [HI], "model": "other"}, 404, "there is no model 'other'; there are: 'recorded'"),
        (CHAT, {"messages": [{"role": "robot"}]}, 400, "/messages/0/role: must be"),
        (
            CHAT,
            {"tools": [{"function": {"name": "f", "parameters": "a"}}]},
            400,
            "/tools/0/function/parameters: a schem",
        ),
        (CHAT, {"messages": [HI, IMAGE]}, 400, "/messages/1/images/0: an image"),
        (CHAT, {"messages": [HI], "format": "yaml"}, 400, '/format: must be "json" or a JSON Schema'),
        (CHAT, {"messages": [HI], "format": {"type": "objekt"}}, 400, "/format: type"),
        (CHAT, {"messages": [HI], "response_format": {"type": "json_object"}}, 400, "/response_format: is not known"),
        (CHAT, {"messages": [HI], "think": "much"}, 400, '/think: must be true, false, "low"'),
        (CHAT, {"messages": [HI], "options": {"num_predict": -3}}, 400, "/options/num_predict: must be at least -2"),
        (CHAT, {"messages": [HI], "tools": [ADD, ADD]}, 400, "/tools/1/function/name: two tools"),
        (CHAT, {"messages": [HI], "tool_choice": "required"}, 400, "/tool_choice: a call is required"),
        (CHAT, {"messages": [HI], "keep_alive": True}, 400, "/keep_alive: must be a duration"),
        (CHAT, {"messages": [HI], "options": {"num_predict": 99}}, 400, "an answer may have at most 50 tokens"),
        (GENERATE, {"prompt": "a", "suffix": "b"}, 400, "/suffix: no engine here fills in the middle"),
        (GENERATE, {"prompt": "a", "template": "{{ .Prompt }}"}, 400, "/template: the model's own"),
        (GENERATE, {"prompt": "a", "images": ["aGk="]}, 400, "/images/0: an image"),
        (GENERATE, {"prompt": "a", "system": "s", "images": ["aGk="]}, 400, "/images/0: an image"),
        (GENERATE, {"prompt": "a", "system": "s", "raw": True}, 400, "/system: does not go with raw"),
        ("/api/show", {"model": "other"}, 404, "there is no model 'other'"),
        ("/api/show", {}, 400, "/model: is missing"),
        ("/api/embed", {"input": "a"}, 400, "no model here makes embeddings"),
        ("/api/pull", {"model": "a"}, 400, "this server runs the models that it was started with"),
        ("/api/blobs/x", {}, 404, "Not Found; there are /api/chat"),
        ("/api/tags", {}, 405, "Method Not Allowed"),
    ],
)
def test_errors_are_ollamas(path: str, body: Any, status: int, told: str) -> None:
    with serving(Replay("x"), Settings(max_tokens=50)) as address:
        answer = httpx2.post(address + path, json=body)
    assert answer.status_code == status
    assert answer.json().keys() == {"error"}
    assert told in answer.json()["error"]


def test_an_image_that_a_tool_answers_with_becomes_a_text() -> None:
    calls = {"role": "assistant", "tool_calls": [called("now")]}
    result = {"role": "tool", "content": "Seen.", "images": ["aGk="]}
    engine = Replay("a")
    with serving(engine, HERMES) as address:
        answer = httpx2.post(address + CHAT, json={"messages": [HI, calls, result], "tools": [NOW]})
    assert answer.headers["x-toolgram-ignored"] == "messages[2].images[0]"
    assert "Seen." in engine.calls[0].text
    assert "cannot be shown to this model" in engine.calls[0].text


def test_an_engine_that_fails_is_told_in_the_stream_or_by_the_status() -> None:
    for path, body in ((CHAT, {"messages": [HI]}), (GENERATE, {"prompt": "a", "raw": True})):
        with serving(Replay(list("abc"), list("abc"), fail_after=2)) as address:
            lines = httpx2.post(address + path, json=body).text.splitlines()
            whole = httpx2.post(address + path, json={**body, "stream": False})
            early = httpx2.post(address + path, json=body)  # no answer is left
        assert json.loads(lines[-1]) == {"error": "the engine failed: failed after 2 pieces, as asked"}
        assert len(lines) == 3
        assert (whole.status_code, early.status_code) == (502, 502)
        assert "failed after 2" in whole.json()["error"]


def test_keys() -> None:
    with serving(Replay("a"), Settings(api_keys=("right",))) as address:
        for path in ("/api/tags", "/api/version"):
            assert httpx2.get(address + path).json().keys() == {"error"}
            assert httpx2.get(address + path, headers={"authorization": "Bearer right"}).status_code == 200
        assert httpx2.post(address + CHAT, json={"messages": [HI]}).status_code == 401


class Silent(Replay):
    """Says nothing for a while."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The answer, later."""
        await asyncio.sleep(0.3)
        async with aclosing(super().generate(prompt, constraint, sampling)) as chunks:
            async for chunk in chunks:
                yield chunk


def test_a_silence_is_an_object_that_says_nothing() -> None:
    """Ollama's client in Python reads each line as JSON, an empty one too."""
    with serving(Silent("Hello."), Settings(keep_alive=0.05)) as address:
        objects = lines_of(httpx2.post(address + CHAT, json={"messages": [HI]}))
    assert [lasting(each) for each in objects[:2]] == [
        {"model": "recorded:latest", "message": {"role": "assistant", "content": ""}, "done": False}
    ] * 2
    assert added_up(objects)["message"]["content"] == "Hello."


# Models --------------------------------------------------------------------------------------------------------------


def test_models_go_by_their_names_with_and_without_a_tag() -> None:
    with serving(Replay(*"abcdef"), aliases=["llama3.2", "qwen3:8b"]) as address:
        listed = httpx2.get(address + "/api/tags").json()["models"]
        (loaded,) = httpx2.get(address + "/api/ps").json()["models"]
        names = [each["model"] for each in listed]
        assert names == [each["name"] for each in listed] == ["recorded:latest", "llama3.2:latest", "qwen3:8b"]
        assert loaded["name"] == "recorded:latest"
        for name in (*names, "recorded", "llama3.2"):
            assert httpx2.post(address + "/api/show", json={"model": name}).status_code == 200
            assert httpx2.post(address + "/api/show", json={"name": name}).status_code == 200
        for name in ("qwen3", "recorded:8b", "latest"):
            assert httpx2.post(address + "/api/show", json={"model": name}).status_code == 404
        for name in names:  # Copilot Chat goes on so
            body = {"messages": [HI], "model": name}
            assert httpx2.post(address + "/v1/chat/completions", json=body).status_code == 200
        assert httpx2.post(address + "/v1" + CHAT, json={"messages": [HI]}).status_code == 200
    with serving(Replay("a"), Settings(any_model_name=True)) as address:
        answer = httpx2.post(address + CHAT, json={"messages": [HI], "model": "gpt-oss:20b", "stream": False}).json()
    assert answer["model"] == "recorded:latest"


class Small(Replay):
    """One that knows its context, and of which architecture it is."""

    context = 4096
    architecture = "llama"

    def count_tokens(self, prompt: Prompt) -> int:
        """One."""
        return 1


def test_a_model_is_shown_with_its_context_and_what_it_can_do() -> None:
    with serving(Small(), template=REASONING) as address:
        shown = httpx2.post(address + "/api/show", json={"model": "recorded"}).json()
        loaded = httpx2.get(address + "/api/ps").json()["models"][0]
    assert shown["capabilities"] == ["completion", "tools", "thinking"]
    assert shown["model_info"] == {
        "general.architecture": "llama",
        "general.basename": "recorded",
        "llama.context_length": 4096,
    }
    assert (shown["parameters"], shown["template"]) == ("num_ctx 4096", REASONING.source)
    assert (shown["details"]["family"], shown["details"]["format"]) == ("llama", "gguf")
    assert loaded["context_length"] == 4096
    with serving(Replay()) as address:
        shown = httpx2.post(address + "/api/show", json={"model": "recorded"}).json()
    assert shown["capabilities"] == ["completion", "tools"]
    assert "unknown.context_length" not in shown["model_info"]


def test_the_version_is_recent_enough_and_the_server_is_still_known_for_what_it_is() -> None:
    with serving(Replay()) as address:
        version = httpx2.get(address + "/api/version").json()["version"]
        found = asyncio.run(identified(address))
        probes = [httpx2.head(address + path).status_code for path in ("/", "/api/tags", "/api/version")]
    assert [int(part) for part in version.split(".")] > [0, 13, 4]
    assert found == "toolgram"
    assert probes == [200, 200, 200]


async def identified(address: str) -> str:
    async with aclosing(Http(address)) as http:
        return (await identify(http)).kind
