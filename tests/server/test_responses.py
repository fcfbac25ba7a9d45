"""`/v1/responses` through OpenAI's own SDK, on recorded answers."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner
from pydantic import BaseModel

from live_server import serving
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

ADD: Any = {
    "type": "function",
    "name": "add",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}
NOTE: Any = {"type": "custom", "name": "note", "description": "Takes a note."}
CALL = '<tool_call>\n{{"name": "add", "arguments": {{"a": {}, "b": {}}}}}\n</tool_call>'
NOTED = '<tool_call>\n{"name": "note", "arguments": {"input": "one\\n\\"two\\""}}\n</tool_call>'
COMMON: Any = {"model": "recorded", "extra_body": {"style": "hermes_2_pro"}}


def client(address: str) -> OpenAI:
    return OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0)


def plain(response: Any) -> list[Any]:
    """The output without ids, which differ."""
    return [
        item.model_dump(exclude={"id", "call_id", "parsed_arguments"}, exclude_none=True) for item in response.output
    ]


def test_text() -> None:
    with serving(Replay(list("Hello."))) as address:
        said = client(address).responses.create(input="Hi.", instructions="Be brief.", **COMMON)
    assert said.output_text == "Hello."
    assert (said.status, said.temperature, said.tool_choice, said.tools) == ("completed", 0.7, "auto", [])
    assert said.usage
    assert said.usage.output_tokens == 6


def test_what_was_given_of_the_text_stands_beside_its_format() -> None:
    with serving(Replay("Hello.")) as address:
        said = client(address).responses.create(input="Hi.", text={"verbosity": "low"}, **COMMON)
    assert said.text
    assert said.text.to_dict() == {"format": {"type": "text"}, "verbosity": "low"}


def test_no_answer_is_made_in_the_background() -> None:
    with serving(Replay()) as address, pytest.raises(openai.BadRequestError, match="leave it out, or stream") as caught:
        client(address).responses.create(input="Hi.", background=True, **COMMON)
    assert caught.value.param == "background"


def test_a_stream_is_the_whole_and_its_events_are_numbered() -> None:
    text = f"Let me see. {CALL.format(1, 2)}\n{CALL.format(3, 4)}\n{NOTED}"
    options: Any = {**COMMON, "input": "Hi.", "tools": [ADD, NOTE]}
    with serving(Replay(list(text), list(text))) as address:
        whole = client(address).responses.create(**options)
        with client(address).responses.stream(**options) as stream:
            events = list(stream)
            streamed = stream.get_final_response()
    assert plain(whole) == plain(streamed)
    assert [item.type for item in whole.output] == ["message", "function_call", "function_call", "custom_tool_call"]
    assert whole.output[3].model_dump()["input"] == 'one\n"two"'
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 4
    assert kinds.count("response.function_call_arguments.done") == 2
    deltas: dict[int, str] = {}
    for event in events:
        if event.type == "response.function_call_arguments.delta":
            deltas[event.output_index] = deltas.get(event.output_index, "") + event.delta
    assert {index: json.loads(arguments) for index, arguments in deltas.items()} == {
        1: {"a": 1, "b": 2},
        2: {"a": 3, "b": 4},
    }


def test_a_tool_loop_to_a_final_answer() -> None:
    engine = Replay(CALL.format(1, 2), "The sum is 3.")
    with serving(engine) as address:
        create = client(address).responses.create
        said: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "1 + 2?"}]}]
        first = create(input=said, tools=[ADD], tool_choice={"type": "function", "name": "add"}, **COMMON)
        said += [item.model_dump(exclude_none=True) for item in first.output]
        said.append({"type": "function_call_output", "call_id": said[-1]["call_id"], "output": "3"})
        second = create(input=said, tools=[ADD], **COMMON)
    assert second.output_text == "The sum is 3."
    assert '"a": 1' in engine.calls[1].text


class Person(BaseModel):
    name: str
    age: int


def test_structured_output_by_parse() -> None:
    with serving(Replay('{"name": "Ada", "age": 36}')) as address:
        said = client(address).responses.parse(model="recorded", input="Who?", text_format=Person)
    assert said.output_parsed == Person(name="Ada", age=36)


def test_an_answer_that_is_cut_off_is_incomplete() -> None:
    with serving(Replay(list("Hello."))) as address:
        said = client(address).responses.create(input="Hi.", max_output_tokens=3, **COMMON)
    assert (said.status, said.output_text) == ("incomplete", "Hel")
    assert said.incomplete_details
    assert said.incomplete_details.reason == "max_output_tokens"


def test_the_fault_of_an_engine_comes_behind_what_was_said_and_is_raised() -> None:
    said = ""
    with serving(Replay(list("abcdef"), fail_after=3)) as address:
        stream = client(address).responses.create(input="Hi.", stream=True, **COMMON)
        with pytest.raises(openai.APIError, match="the engine failed") as caught:  # noqa: PT012  # said holds what came
            for event in stream:
                said += event.delta if event.type == "response.output_text.delta" else ""
    assert said == "abc"
    assert (caught.value.code, caught.value.type) == ("engine_error", "server_error")


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"input": []}, "input"),
        ({"store": "no"}, "store"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": "3"}]}, "input[0]"),
        ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice"),
        ({"tools": [{**ADD, "parameters": {"type": "objekt"}}]}, "tools[0].parameters"),
        ({"tools": [ADD], "tool_choice": {"type": "function", "name": "g"}}, "tool_choice.name"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": 1}}}}, "text.format.schema"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"reasoning": {"effort": "enormous"}}, "reasoning.effort"),
    ],
)
def test_errors_have_their_place_in_the_body(options: Any, param: str) -> None:
    with serving(Replay("x")) as address, pytest.raises(openai.BadRequestError) as caught:
        client(address).responses.create(**{**COMMON, "input": "Hi.", **options})
    assert caught.value.param == param


def test_reasoning_comes_back_by_what_is_encrypted_of_it() -> None:
    thought = "<think>\nOne and two.\n</think>\n\n" + CALL.format(1, 2)
    options: Any = {"tools": [ADD], "include": ["reasoning.encrypted_content"], "model": "recorded"}
    engine = Replay(thought, thought, "Three.")
    with serving(engine, Settings(style="hermes")) as address:
        whole = client(address).responses.create(input="1 + 2?", **options)
        with client(address).responses.stream(input="1 + 2?", **options) as stream:
            done = [event.item for event in stream if event.type == "response.output_item.done"]
        reasoning, call = whole.output
        assert reasoning.type == done[0].type == "reasoning"
        assert reasoning.encrypted_content == done[0].encrypted_content
        assert call.type == "function_call"
        kept = {
            "type": "reasoning",
            "id": reasoning.id,
            "summary": [],
            "encrypted_content": reasoning.encrypted_content,
        }
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "3"}
        said: Any = [{"role": "user", "content": "1 + 2?"}, kept, call.model_dump(exclude_none=True), result]
        client(address).responses.create(input=said, **options)
    assert "One and two." in str(engine.calls[2])


@pytest.mark.parametrize("how", [{}, {"stream": True}, {"stream": True, "eager": True}])
@pytest.mark.parametrize("more", [{}, {"reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]}])
def test_the_sdks_runner_of_tools_takes_each_item_for_its_own_and_sends_it_back(how: Any, more: Any) -> None:
    thought = "<think>\nOne and two.\n</think>\n\n"
    engine = Replay(list(f"{thought}Let me see.\n{CALL.format(1, 2)}\n{CALL.format(3, 4)}"), list(f"{thought}3 and 7."))
    add = RegisteredFunction(ADD, lambda given: str(given["a"] + given["b"]))
    with serving(engine, Settings(style="hermes")) as address:
        asked: Any = {"model": "recorded", "input": [{"role": "user", "content": "1 + 2? 3 + 4?"}], **more}
        said = ResponsesToolRunner(functions=[add]).run(client(address), asked, **how)
    assert said.output_text == "3 and 7."
    for told in ("Let me see.", "3", "7"):
        assert told in engine.calls[1].text


def test_an_event_is_one_line_wherever_a_client_ends_lines() -> None:
    text = "a\u2028b\u2029c\x85d"
    with serving(Replay(text)) as address:
        body = {"input": "Hi.", "stream": True}
        lines = httpx2.post(f"{address}/v1/responses", json=body).text.splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert all(line.startswith(("data: ", "event: ")) or not line for line in lines)
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == text


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("responses", {"input": "Hi.", "max_output_tokens": 9}, "max_output_tokens"),
        ("chat/completions", {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 9}, "max_tokens"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": "Hi."}], "max_completion_tokens": 9},
            "max_completion_tokens",
        ),
    ],
)
def test_a_limit_of_the_servers_is_told_at_the_bodys_own_field(path: str, body: Any, param: str) -> None:
    with serving(Replay("x"), Settings(max_tokens=8)) as address:
        answer = httpx2.post(f"{address}/v1/{path}", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
