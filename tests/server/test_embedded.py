"""The server on the embedded model, by OpenAI's SDK: what it says is not known, that it is in the schema is."""

# A fault is planted in what must not be seen from outside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel, Field

from live_server import listening
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.guide import Guide, Guides
from toolgram.engines.llama_cpp.sampling import Sampler
from toolgram.engines.llama_cpp.vocabulary import Vocabulary
from toolgram.errors import GrammarRefused
from toolgram.models.catalog import default_model
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.template.chat_template import ChatTemplate

ASK: Any = {"role": "user", "content": "What is the weather in Paris?"}
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["C", "F"]}},
            "required": ["city", "unit"],
        },
    },
}


@pytest.fixture(scope="module")
def client() -> Iterator[OpenAI]:
    path = default_model()
    served = Served("smollm2", ChatTemplate.from_gguf(path), LlamaCpp(path, context=2048))
    with listening(create_app([served])) as address:
        yield OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0)


def test_what_has_no_room_is_counted_all_the_same(client: OpenAI) -> None:
    """By the number a client finds out what to leave out."""
    long = "word " * 3000
    assert client.responses.input_tokens.count(model="smollm2", input=long).input_tokens > 3000
    headers = {"anthropic-version": "2023-06-01"}
    body = {"model": "smollm2", "messages": [{"role": "user", "content": long}]}
    counted = httpx2.post(f"{client.base_url}messages/count_tokens", json=body, headers=headers, timeout=60)
    assert counted.json()["input_tokens"] > 3000


def test_a_tool_loop_to_a_final_answer(client: OpenAI) -> None:
    messages: list[Any] = [ASK]
    options: Any = {"model": "smollm2", "tools": [WEATHER], "temperature": 0, "max_tokens": 120}
    first = client.chat.completions.create(messages=messages, tool_choice="required", **options)
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    assert first.usage
    assert first.usage.prompt_tokens > 20
    for call in choice.message.tool_calls:
        arguments = json.loads(call.function.arguments)
        assert set(arguments) == {"city", "unit"}
        assert arguments["unit"] in ("C", "F")
    messages.append(choice.message.model_dump(exclude_none=True))
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "Sunny."} for call in choice.message.tool_calls]
    second = client.chat.completions.create(messages=messages, tool_choice="none", **options)
    assert second.choices[0].message.content
    assert not second.choices[0].message.tool_calls


def test_a_client_of_ollamas_finds_the_model_and_has_it_call(client: OpenAI) -> None:
    address = str(client.base_url).removesuffix("/v1/")
    shown = httpx2.post(f"{address}/api/show", json={"model": "smollm2"}).json()
    assert shown["model_info"]["llama.context_length"] == 2048
    body: Any = {"messages": [ASK], "tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False}
    body |= {"options": {"temperature": 0.7, "seed": 5, "num_predict": 120}}
    whole = httpx2.post(f"{address}/api/chat", json={**body, "stream": False}, timeout=60).json()
    lines = httpx2.post(f"{address}/api/chat", json=body, timeout=60).text.splitlines()
    streamed = [call for line in lines for call in json.loads(line)["message"].get("tool_calls", ())]
    assert streamed == whole["message"]["tool_calls"]
    assert set(streamed[0]["function"]["arguments"]) == {"city", "unit"}
    assert min(whole["prompt_eval_count"], whole["eval_count"]) > 9


def test_a_stream_is_the_whole(client: OpenAI) -> None:
    options: Any = {"messages": [ASK], "tools": [WEATHER], "tool_choice": "required", "model": "smollm2"}
    options |= {"temperature": 0.7, "seed": 5, "max_tokens": 120, "parallel_tool_calls": False}
    whole = client.chat.completions.create(**options).choices[0].message
    with client.chat.completions.stream(**options) as stream:
        streamed = stream.get_final_completion().choices[0].message
    assert whole.tool_calls
    assert streamed.tool_calls
    told = [
        [(call.id, call.function.name, call.function.arguments) for call in m.tool_calls] for m in (whole, streamed)
    ]
    assert told[0] == told[1]


class City(BaseModel):
    name: str = Field(max_length=20)
    people: int = Field(ge=0, le=50_000_000)


def test_structured_output_by_parse(client: OpenAI) -> None:
    options: Any = {"model": "smollm2", "temperature": 0, "max_tokens": 120}
    answer = client.chat.completions.parse(messages=[ASK], response_format=City, **options)
    assert isinstance(answer.choices[0].message.parsed, City)


def test_many_at_once(client: OpenAI) -> None:
    def ask(seed: int) -> str:
        body = {"choice": ["sunny", "rainy"]}
        said = client.chat.completions.create(model="smollm2", messages=[ASK], seed=seed, extra_body=body)
        return said.choices[0].message.content or ""

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) <= {"sunny", "rainy"}


def test_how_likely_tokens_were(client: OpenAI) -> None:
    options: Any = {"model": "smollm2", "messages": [ASK], "temperature": 0, "max_tokens": 6}
    options |= {"logprobs": True, "top_logprobs": 3, "presence_penalty": 0.5, "logit_bias": {"5": -100}}
    choice = client.chat.completions.create(**options).choices[0]
    assert choice.logprobs
    whole = choice.logprobs.content or []
    assert "".join(token.token for token in whole) == choice.message.content
    assert all(len(token.top_logprobs) == 3 and token.logprob <= 0 for token in whole)
    streamed: list[Any] = []
    for chunk in client.chat.completions.create(**options, stream=True):
        streamed += (chunk.choices[0].logprobs and chunk.choices[0].logprobs.content) or []
    assert [token.token for token in streamed] == [token.token for token in whole]


def test_how_likely_tokens_of_a_raw_text_were(client: OpenAI) -> None:
    options: Any = {"model": "smollm2", "prompt": "Repeat: 日本🎉é. 日本", "max_tokens": 12, "seed": 3, "logprobs": 2}
    whole = client.completions.create(**options).choices[0]
    told = whole.logprobs
    assert told is not None
    assert told.tokens is not None
    assert told.text_offset is not None
    assert len(told.tokens) == len(told.token_logprobs or ()) == len(told.top_logprobs or ()) == 12
    ends = [*told.text_offset[1:], len(whole.text)]
    pieces = [whole.text[at:end] for at, end in zip(told.text_offset, ends, strict=True)]
    assert all(piece == token or "\ufffd" in token for piece, token in zip(pieces, told.tokens, strict=True))
    for likely, tops in zip(told.token_logprobs or (), told.top_logprobs or (), strict=True):
        assert 1 <= len(tops) <= 2
        assert likely <= max(tops.values()) <= 0
    streamed = [chunk.choices[0].logprobs for chunk in client.completions.create(**options, stream=True)]
    for name in ("tokens", "token_logprobs", "text_offset"):
        assert [one for part in streamed if part for one in getattr(part, name)] == getattr(told, name)


def test_tokens(client: OpenAI) -> None:
    def post(path: str, **body: Any) -> Any:
        return client.post(f"{str(client.base_url).removesuffix('/v1/')}{path}", body=body, cast_to=object)

    told = post("/tokenize", content="Hello, wörld.")
    assert told["count"] == len(told["tokens"]) > 2
    assert post("/detokenize", tokens=told["tokens"])["content"] == "Hello, wörld."
    asked = post("/tokenize", messages=[ASK])
    assert "<|im_start|>user" in post("/detokenize", tokens=asked["tokens"])["prompt"]
    with pytest.raises(openai.BadRequestError, match="no token 99999999"):
        post("/detokenize", tokens=[99999999])
    ids = client.completions.create(model="smollm2", prompt=told["tokens"], max_tokens=2, echo=True)
    assert ids.choices[0].text.startswith("Hello, wörld.")


def test_a_prompt_that_is_too_long_is_told_with_its_counts(client: OpenAI) -> None:
    long: Any = [{"role": "user", "content": "word " * 3000}]
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError, match=r"\d{4} tokens > 2048 maximum.*length is 2048") as caught:
            client.chat.completions.create(model="smollm2", messages=long, stream=stream)
        assert caught.value.code == "context_length_exceeded"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("repetition_penalty", value) for value in (0, 1e-300, 1e300, -1)),
        *((field, value) for field in ("presence_penalty", "frequency_penalty") for value in (1e300, -2.1)),
        *((field, value) for field in ("temperature", "top_p", "min_p") for value in (1e300, -1e-300)),
        ("logit_bias", {"5": 1e300}),
        ("logit_bias", {"9" * 5000: 1}),
    ],
)
def test_what_cannot_be_computed_is_refused_with_its_place(client: OpenAI, field: str, value: Any) -> None:
    body = {field: value}
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="smollm2", messages=[ASK], max_tokens=4, extra_body=body)
    assert str(caught.value.param).startswith(field)


def test_a_request_that_fails_leaves_those_beside_it_alone(client: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = Sampler.choose

    def planted(sampler: Sampler, logits: Any) -> int:
        if sampler._sampling.seed == 13:
            raise IndexError("planted")
        return choose(sampler, logits)

    def ask(seed: int) -> Any:
        try:
            return client.chat.completions.create(
                model="smollm2", messages=[ASK], seed=seed, temperature=0, max_tokens=12
            )
        except openai.InternalServerError as error:
            return error

    told = ask(1).choices[0].message.content
    monkeypatch.setattr(Sampler, "choose", planted)
    with ThreadPoolExecutor(7) as pool:
        failed, *others = pool.map(ask, (13, 1, 2, 3, 4, 5, 6))
    assert isinstance(failed, openai.InternalServerError)
    assert [other.choices[0].message.content for other in others] == [told] * 6
    assert ask(1).usage.prompt_tokens_details.cached_tokens > 20


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["chat/completions", "completions"])
def test_a_grammar_that_llguidance_refuses_is_told_in_one_line(client: OpenAI, path: str, *, stream: bool) -> None:
    classes = " ".join(f"[a-{chr(0x4E00 + i)}]" for i in range(9000))
    body: dict[str, Any] = {"grammar": f'root ::= "y" {classes}', "max_tokens": 9, "stream": stream}
    asked = {"prompt": "Hi"} if path == "completions" else {"messages": [ASK]}
    answer = httpx2.post(f"{client.base_url}{path}", json={**body, **asked}, timeout=60)
    error = answer.json()["error"]
    assert (answer.status_code, error["pointer"]) == (400, "/grammar")
    assert "llguidance refuses the grammar: initial lexer configuration (grammar) too big" in error["message"]
    assert "\n" not in error["message"]


def test_others_are_served_while_a_grammar_is_compiled(client: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    compiling, free = threading.Event(), threading.Event()
    start = Guides.start

    def slowly(guides: Guides, *asked: Any) -> Guide:
        compiling.set()
        assert free.wait(20)
        return start(guides, *asked)

    monkeypatch.setattr(Guides, "start", slowly)
    body: dict[str, Any] = {"prompt": "Hi", "max_tokens": 2, "temperature": 0}
    with ThreadPoolExecutor() as pool:
        grammar = {"grammar": 'root ::= "yes"'}
        constrained = pool.submit(httpx2.post, f"{client.base_url}completions", json={**body, **grammar}, timeout=60)
        assert compiling.wait(20)
        assert httpx2.post(f"{client.base_url}completions", json=body, timeout=20).status_code == 200
        assert not constrained.done()
        free.set()
        assert constrained.result().json()["choices"][0]["text"].startswith("y")


def test_others_are_served_while_a_long_text_is_tokenized(client: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizing, free = threading.Event(), threading.Event()
    asked = Vocabulary._asked

    def slowly(vocabulary: Vocabulary, text: str) -> list[int]:
        if text.startswith("Slow"):
            tokenizing.set()
            assert free.wait(20)
        return asked(vocabulary, text)

    monkeypatch.setattr(Vocabulary, "_asked", slowly)
    server = str(client.base_url).removesuffix("/v1/")
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(httpx2.post, f"{server}/tokenize", json={"content": "Slow"}, timeout=60)
        assert tokenizing.wait(20)
        body: dict[str, Any] = {"prompt": "Quick", "max_tokens": 2, "temperature": 0}
        for stream in (False, True):
            answer = httpx2.post(f"{server}/v1/completions", json={**body, "stream": stream}, timeout=20)
            assert answer.status_code == 200
        assert not slow.done()
        free.set()
        assert slow.result().status_code == 200


@pytest.mark.parametrize("text", ["word " * 3_000_000, "dense: 1,2.3;4" * 20_000])
def test_a_text_that_is_far_too_long_is_refused_without_being_tokenized(
    client: OpenAI, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    asked, lengths = Vocabulary._asked, list[int]()

    def noted(vocabulary: Vocabulary, text: str) -> list[int]:
        lengths.append(len(text))
        return asked(vocabulary, text)

    monkeypatch.setattr(Vocabulary, "_asked", noted)
    server = str(client.base_url).removesuffix("/v1/")
    bodies: dict[str, Any] = {
        "/tokenize": {"content": text},
        "/v1/completions": {"prompt": text},
        "/v1/chat/completions": {"messages": [{"role": "user", "content": text}]},
    }
    for path, body in bodies.items():
        error = httpx2.post(server + path, json=body, timeout=60).json()["error"]
        assert error["code"] == "context_length_exceeded"
        assert "characters, and the context holds 2048 tokens" in error["message"]
    assert sum(lengths) < len(text)


def test_the_tool_is_named_whose_grammar_cannot_be_used(client: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Guides.start

    def refusing(guides: Guides, lark: str, ends: tuple[str, ...] = ()) -> Guide:
        if "large" in lark:
            raise GrammarRefused("llguidance refuses the grammar: too big")
        return start(guides, lark, ends)

    monkeypatch.setattr(Guides, "start", refusing)
    many = {"type": "object", "properties": {"a": {"type": "string"}}}
    large = {"type": "function", "function": {"name": "large", "parameters": many}}
    chat: dict[str, Any] = {"messages": [ASK], "tools": [WEATHER, large], "max_tokens": 2}
    responses = {"input": "Hi.", "tools": [{"type": "function", "name": "large", "parameters": many, "strict": False}]}
    bodies = {
        "chat/completions": (chat, "/tools/1/function/parameters"),
        "responses": (responses, "/tools/0/parameters"),
    }
    for path, (body, pointer) in bodies.items():
        answer = httpx2.post(f"{client.base_url}{path}", json=body, timeout=60)
        assert (answer.status_code, answer.json()["error"]["pointer"]) == (400, pointer)
        assert "too big" in answer.json()["error"]["message"]
