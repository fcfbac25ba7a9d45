"""`/v1/chat/completions` through OpenAI's own SDK, on recorded answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from live_server import serving
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

USER: Any = {"role": "user", "content": "Hi."}
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        },
    }
]
CALL = '<tool_call>\n{{"name": "add", "arguments": {{"a": {}, "b": {}}}}}\n</tool_call>'
ONE, TWO = CALL.format(1, 2), CALL.format(3, 4)
STYLE = {"style": "hermes_2_pro"}


def client(address: str) -> OpenAI:
    return OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0)


def test_text() -> None:
    with serving(Replay(list("Hello there.")), aliases=["gpt-x"]) as address:
        answer = client(address).chat.completions.create(model="gpt-x", messages=[USER])
    assert answer.choices[0].message.content == "Hello there."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "recorded"
    assert answer.usage
    assert answer.usage.completion_tokens == len("Hello there.")


def test_a_stream_tells_its_usage() -> None:
    with serving(Replay(list("Hello."))) as address:
        chunks = list(
            client(address).chat.completions.create(
                model="recorded", messages=[USER], stream=True, stream_options={"include_usage": True}
            )
        )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Hello."
    assert chunks[-1].choices == []
    assert chunks[-1].usage
    assert chunks[-1].usage.completion_tokens == 6
    assert len({chunk.id for chunk in chunks}) == 1


def test_parallel_calls_by_the_stream_helper() -> None:
    with serving(Replay(list(f"{ONE}\n{TWO}"))) as address:
        options: Any = {"model": "recorded", "messages": [USER], "tools": TOOLS, "extra_body": STYLE}
        with client(address).chat.completions.stream(**options) as stream:
            events = [event.type for event in stream]
            message = stream.get_final_completion().choices[0].message
    assert "tool_calls.function.arguments.delta" in events
    assert events.count("tool_calls.function.arguments.done") == 2
    assert message.tool_calls
    assert [json.loads(call.function.arguments) for call in message.tool_calls] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert len({call.id for call in message.tool_calls}) == 2


def test_a_tool_loop_to_a_final_answer() -> None:
    engine = Replay(ONE, "The sum is 3.")
    with serving(engine) as address:
        create = client(address).chat.completions.create
        messages: list[Any] = [USER]
        first = create(
            model="recorded", messages=messages, tools=TOOLS, tool_choice="required", extra_body=STYLE
        ).choices[0]
        assert first.finish_reason == "tool_calls"
        assert first.message.tool_calls
        messages += [first.message.model_dump(exclude_none=True)]
        messages += [{"role": "tool", "tool_call_id": first.message.tool_calls[0].id, "content": "3"}]
        second = create(model="recorded", messages=messages, tools=TOOLS, extra_body=STYLE).choices[0]
    assert second.message.content == "The sum is 3."
    assert '"a": 1' in engine.calls[1].text


class Person(BaseModel):
    name: str
    age: int


def test_structured_output_by_parse() -> None:
    with serving(Replay('{"name": "Ada", "age": 36}')) as address:
        answer = client(address).chat.completions.parse(model="recorded", messages=[USER], response_format=Person)
    assert answer.choices[0].message.parsed == Person(name="Ada", age=36)


def test_a_tool_by_parse() -> None:
    with serving(
        Replay('<tool_call>\n{"name": "Person", "arguments": {"name": "Ada", "age": 36}}\n</tool_call>')
    ) as at:
        tool: Any = openai.pydantic_function_tool(Person)
        answer = client(at).chat.completions.parse(model="recorded", messages=[USER], tools=[tool], extra_body=STYLE)
    assert answer.choices[0].message.tool_calls
    assert answer.choices[0].message.tool_calls[0].function.parsed_arguments == Person(name="Ada", age=36)


def test_a_named_choice_is_a_call() -> None:
    choice: Any = {"type": "function", "function": {"name": "add"}}
    with serving(Replay(ONE)) as address:
        answer = client(address).chat.completions.create(
            model="recorded", messages=[USER], tools=TOOLS, tool_choice=choice, extra_body=STYLE
        )
    assert answer.choices[0].finish_reason == "tool_calls"


def test_several_choices() -> None:
    with serving(Replay("one", "two", "three", "four")) as address:
        create = client(address).chat.completions.create
        answer = create(model="recorded", messages=[USER], n=2)
        assert sorted(choice.message.content or "" for choice in answer.choices) == ["one", "two"]
        said = {0: "", 1: ""}
        for chunk in create(model="recorded", messages=[USER], n=2, stream=True):
            said[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert sorted(said.values()) == ["four", "three"]


class Late(Replay):
    """The first answer comes behind the second one."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The recorded answer."""
        first = not self.calls
        async for chunk in super().generate(prompt, constraint, sampling):
            if first:
                await asyncio.sleep(0.1)
            yield chunk


def test_choices_begin_in_their_order_whichever_speaks_first() -> None:
    with (
        serving(Late("one", "two")) as address,
        client(address).chat.completions.stream(model="recorded", messages=[USER], n=2) as stream,
    ):
        chunks = [event.chunk for event in stream if event.type == "chunk"]
        final = stream.get_final_completion()
    assert [chunk.choices[0].index for chunk in chunks][:3] == [0, 1, 1]
    assert sorted(choice.message.content or "" for choice in final.choices) == ["one", "two"]


def test_functions_of_old() -> None:
    with serving(Replay(ONE)) as address:
        functions: Any = [TOOLS[0]["function"]]
        answer = client(address).chat.completions.create(
            model="recorded", messages=[USER], functions=functions, extra_body=STYLE
        )
    assert answer.choices[0].finish_reason == "function_call"
    assert answer.choices[0].message.function_call
    assert json.loads(answer.choices[0].message.function_call.arguments) == {"a": 1, "b": 2}


def test_the_fault_of_an_engine_in_a_stream_comes_behind_what_was_said() -> None:
    said: list[str] = []
    with serving(Replay(list("Hello."), fail_after=3)) as address:
        stream = client(address).chat.completions.create(model="recorded", messages=[USER], stream=True)
        with pytest.raises(openai.APIError, match="failed after 3 pieces"):
            said.extend(chunk.choices[0].delta.content or "" for chunk in stream)
    assert "".join(said) == "Hel"


def test_the_fault_of_an_engine_has_a_status_while_nothing_was_said() -> None:
    with serving(Replay()) as address:
        for stream in (False, True):
            with pytest.raises(openai.InternalServerError) as caught:
                client(address).chat.completions.create(model="recorded", messages=[USER], stream=stream)
            assert caught.value.status_code == 502


STRICT: Any = {
    "type": "json_schema",
    "json_schema": {"name": "x", "strict": True, "schema": {"type": "array", "uniqueItems": True, "items": {}}},
}


@pytest.mark.parametrize(
    ("options", "kind", "param"),
    [
        ({"model": "other"}, openai.NotFoundError, "model"),
        ({"temperature": 101}, openai.BadRequestError, "temperature"),
        ({"messages": [{"role": "robot", "content": "x"}]}, openai.BadRequestError, "messages[0].role"),
        ({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}, openai.BadRequestError, "messages[0]"),
        ({"response_format": STRICT}, openai.BadRequestError, "response_format.json_schema.schema"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, openai.BadRequestError, "tools[0].function.name"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]}]},
            openai.BadRequestError,
            "messages[0].content[0]",
        ),
    ],
)
def test_errors_are_the_sdks_exceptions(options: Any, kind: type[openai.APIStatusError], param: str) -> None:
    with serving(Replay("x")) as address, pytest.raises(kind) as caught:
        client(address).chat.completions.create(**{"model": "recorded", "messages": [USER], **options})
    assert caught.value.param == param  # type: ignore[attr-defined] - of an APIError


def test_relaxations_are_told_in_a_header() -> None:
    schema = {
        "type": "object",
        "properties": {"ä": {"type": "array", "uniqueItems": True, "items": {"type": "string"}}},
    }
    tools: Any = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    with serving(Replay("Hm.")) as address:
        answer = client(address).chat.completions.with_raw_response.create(
            model="recorded", messages=[USER], tools=tools, extra_body={"cache_prompt": True}
        )
    (told,) = json.loads(answer.headers["x-toolgram-relaxations"])
    assert told["keyword"] == "uniqueItems"
    assert told["pointer"].startswith("/tools/0/function/parameters/properties/ä")
    assert answer.headers["x-toolgram-ignored"] == "cache_prompt"
    assert answer.headers["x-request-id"]


def test_raw_completions() -> None:
    with serving(Replay("b", ["c", "d"], "yes")) as address:
        create = client(address).completions.create
        assert create(model="recorded", prompt="a", echo=True).choices[0].text == "ab"
        chunks = list(create(model="recorded", prompt="a", stream=True))
        assert [chunk.choices[0].text for chunk in chunks] == ["c", "d", ""]
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert create(model="recorded", prompt="a", extra_body={"grammar": 'root ::= "yes"'}).choices[0].text == "yes"
        for wrong in ({"prompt": []}, {"prompt": ""}, {"prompt": [1]}, {"suffix": "x"}, {"best_of": 2}):
            with pytest.raises(openai.BadRequestError):
                create(**{"model": "recorded", "prompt": "a", **wrong})


def test_an_engine_that_cannot_constrain_is_told() -> None:
    with serving(Replay("x", capabilities=Capabilities())) as address, pytest.raises(openai.APIStatusError) as caught:
        client(address).chat.completions.create(model="recorded", messages=[USER], tools=TOOLS)
    assert "cannot constrain" in caught.value.message


def test_one_model_answers_to_any_name_where_asked_to() -> None:
    with serving(Replay("Hello."), Settings(any_model_name=True)) as address:
        answer = client(address).chat.completions.create(model="some-agents-own", messages=[USER])
    assert answer.model == "recorded"
