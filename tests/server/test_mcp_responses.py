"""Tools of MCP servers in `/v1/responses`: real servers, the model's turns recorded, by the shapes of OpenAI's SDK."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from live_server import serving
from mcp_over_http import DOT, free_port, over_http
from seeing import Seeing
from toolgram.agent import Limits
from toolgram.api.openapi.document import document
from toolgram.conversation.media import media_in
from toolgram.engines.base import Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.remote.http import Refused
from toolgram.engines.replay import Replay
from toolgram.errors import PromptTooLong
from toolgram.server.settings import Settings

AGENT = Path(__file__).parents[1] / "agent"
STDIO: Any = {"mcpServers": {"demo": {"command": sys.executable, "args": [str(AGENT / "mcp_demo.py")]}}}
DEMO: Any = {"mcpServers": {}}  # one server for most of the tests, over HTTP: a process for each takes a second
HOSTILE: Any = {"mcpServers": {"hostile": {"command": sys.executable, "args": [str(AGENT / "hostile_mcp.py")]}}}
TOOL: Any = {"type": "mcp", "server_label": "demo", "allowed_tools": ["add", "fail"], "require_approval": "never"}
STORE: Any = {"type": "function", "name": "store", "parameters": {"type": "object", "properties": {}}}
RESULT = "<|im_start|>tool\n{}<|im_end|>"
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
DOCUMENTED: Any = jsonschema_rs.validator_for(
    {"$ref": "#/components/schemas/ResponseEvent", "components": document()["components"]}
)


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


@contextmanager
def running(
    *turns: str | Sequence[str], mcp: Any = DEMO, kind: type[Replay] = Replay, **settings: Any
) -> Iterator[tuple[OpenAI, Replay]]:
    engine = kind(*turns)
    with serving(engine, Settings(mcp=mcp, style="hermes_2_pro", **settings)) as address:
        yield OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0), engine


@pytest.fixture(scope="module", autouse=True)
def web() -> Iterator[str]:
    """The address of the server over HTTP."""
    with over_http() as url:
        DEMO["mcpServers"]["demo"] = {"url": url}
        yield url


def body(**options: Any) -> Any:
    return {"model": "recorded", "input": "What is 1 + 2?", "tools": [TOOL], **options}


def told(client: OpenAI, **options: Any) -> list[Any]:
    """The events of a stream, each held against the SDK's own models: nothing is missing, nothing has another name."""
    with httpx2.stream("POST", f"{client.base_url}responses", json=body(stream=True, **options), timeout=120) as answer:
        assert answer.status_code == 200, answer.read()
        lines = [line.removeprefix(b"data: ") for line in answer.read().split(b"\n") if line.startswith(b"data: ")]
    events = [EVENT.validate_python(json.loads(line), strict=True) for line in lines]
    for line, event in zip(lines, events, strict=True):
        DOCUMENTED.validate(json.loads(line))
        assert not event.model_extra, event
        if (item := getattr(event, "item", None)) is not None and item.type.startswith("mcp"):
            assert not item.model_extra, item
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events


def plain(response: Response) -> list[Any]:
    """The output without ids, which differ."""
    return [item.model_dump(exclude={"id", "call_id"}) for item in response.output]


ANSWERED = (call("demo_add", a=1, b=2), list("It is 3."))


@pytest.mark.parametrize("given", [DEMO, STDIO], ids=["HTTP", "stdio"])
def test_a_call_is_run_and_the_model_goes_on(given: Any) -> None:
    with running(*ANSWERED, mcp=given) as (client, engine):
        said = client.responses.create(**body())
    listed, called, message = said.output
    assert (listed.type, listed.server_label) == ("mcp_list_tools", "demo")
    assert [(tool.name, tool.description) for tool in listed.tools] == [("add", "Add two numbers."), ("fail", "Fail.")]
    assert (called.type, called.status, called.name, called.server_label) == ("mcp_call", "completed", "add", "demo")
    assert (json.loads(called.arguments), called.output, called.error) == ({"a": 1, "b": 2}, "3", None)
    assert message.type == "message"
    assert said.output_text == "It is 3."
    assert said.usage
    assert said.usage.output_tokens == 1 + len("It is 3.")
    assert RESULT.format(3) in engine.calls[1].text


PICTURE: Any = {"type": "mcp", "server_label": "demo", "allowed_tools": ["picture"], "require_approval": "never"}


@pytest.mark.parametrize("kind", [Seeing, Replay])
def test_a_model_that_sees_is_shown_what_a_server_gives(kind: type[Replay]) -> None:
    with running(call("demo_picture"), "A dot.", kind=kind) as (client, engine):
        said = client.responses.create(**body(tools=[PICTURE]))
    shown = [each.data for each in media_in(engine.calls[1].prompt)]
    assert shown == ([DOT] if kind is Seeing else [])
    gif = "(image/gif, 42 bytes)" if kind is Seeing else "(image/gif, 42 bytes, which is not shown)"
    told = ("a dot", gif, "(image/png, 6 bytes, which is not shown)")
    assert said.output[1].output == "\n".join(told)
    assert said.output_text == "A dot."


class Small(Seeing):
    """One whose context has no room for an image, which it tells only when it is to answer."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        if media_in(prompt):
            raise PromptTooLong(600, 512)
        async for chunk in super().generate(prompt, constraint, sampling):
            yield chunk


class Choosy(Seeing):
    """One that finds each image damaged."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        if media_in(prompt):
            raise Refused("Failed to load image or audio file")
        async for chunk in super().generate(prompt, constraint, sampling):
            yield chunk


@pytest.mark.parametrize("kind", [Small, Choosy])
def test_an_image_that_the_engine_does_not_take_is_told_in_words(kind: type[Replay]) -> None:
    with running(call("demo_picture"), "A dot.", kind=kind) as (client, engine):
        assert client.responses.create(**body(tools=[PICTURE])).output_text == "A dot."
        shown = {"type": "input_image", "image_url": f"data:image/gif;base64,{DOT}"}
        own = [{"role": "user", "content": [shown, {"type": "input_text", "text": "What is it?"}]}]
        with pytest.raises(openai.BadRequestError):
            client.responses.create(**body(input=own))
    assert "a dot" in engine.calls[1].text
    assert "(The image is not shown.)" in engine.calls[1].text


def test_the_images_of_a_client_stay() -> None:
    shown = {"type": "input_image", "image_url": f"data:image/gif;base64,{DOT}"}
    given: list[Any] = [{"role": "user", "content": "Look."}]
    for number in range(9):
        look = {"type": "function_call", "call_id": f"c{number}", "name": "look", "arguments": "{}"}
        given += [look, {"type": "function_call_output", "call_id": f"c{number}", "output": [shown]}]
    with running(call("demo_picture"), "Ten dots.", kind=Seeing) as (client, engine):
        client.responses.create(**body(tools=[PICTURE], input=given))
    assert [len(media_in(call.prompt)) for call in engine.calls] == [9, 10]


def test_what_a_server_gives_after_a_yes_is_shown() -> None:
    asking = {**PICTURE, "require_approval": "always"}
    with running(call("demo_picture"), "A dot.", kind=Seeing) as (client, engine):
        asked = client.responses.create(**body(tools=[asking]))
        yes = {"type": "mcp_approval_response", "approval_request_id": asked.output[1].id, "approve": True}
        client.responses.create(**body(tools=[asking], previous_response_id=asked.id, input=[yes]))
    assert [each.data for each in media_in(engine.calls[1].prompt)] == [DOT]


def test_a_stream_is_the_whole_in_the_shapes_of_the_sdk() -> None:
    turns = (list(ANSWERED[0]), ANSWERED[1])
    with running(*turns, *turns) as (client, _):
        whole = client.responses.create(**body())
        events = told(client)
    assert plain(events[-1].response) == plain(whole)
    kinds = [event.type for event in events]
    assert kinds[:7] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.mcp_list_tools.in_progress",
        "response.mcp_list_tools.completed",
        "response.output_item.done",
        "response.output_item.added",
    ]
    of_call = [event for event in events if getattr(event, "output_index", None) == 1]
    kinds = [event.type for event in of_call]
    deltas = kinds.count("response.mcp_call_arguments.delta")
    assert deltas > 1
    assert kinds == [
        "response.output_item.added",
        "response.mcp_call.in_progress",
        *["response.mcp_call_arguments.delta"] * deltas,
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
        "response.output_item.done",
    ]
    assert "".join(event.delta for event in of_call[2 : 2 + deltas]) == of_call[-3].arguments
    assert len({event.item_id for event in of_call[1:-1]} | {of_call[0].item.id, of_call[-1].item.id}) == 1
    assert of_call[0].item.arguments == ""
    assert of_call[-1].item.output == "3"


def test_the_real_client_drives_a_stream() -> None:
    with running(*ANSWERED) as (client, _), client.responses.stream(**body()) as stream:
        kinds = [event.type for event in stream]
        said = stream.get_final_response()
    assert "response.mcp_call.completed" in kinds
    assert said.output_text == "It is 3."


def test_what_fails_is_an_item_and_a_result() -> None:
    with running(call("demo_fail"), "It failed.") as (client, engine):
        events = told(client)
    failed = events[-1].response.output[1]
    assert (failed.status, failed.output) == ("failed", None)
    assert failed.error.type == "mcp_tool_execution_error"
    assert "Error executing tool fail" in failed.error.content[0]["text"]
    assert "response.mcp_call.failed" in [event.type for event in events]
    assert "Error executing tool fail" in engine.calls[1].text


def test_calls_of_one_turn_are_run_together_and_keep_their_order() -> None:
    turn = call("demo_add", a=1, b=2) + "\n" + call("demo_fail") + "\n" + call("demo_add", a=3, b=4)
    with running(turn, "Done.") as (client, engine):
        output = told(client)[-1].response.output
    assert [(item.name, item.output) for item in output[1:4]] == [("add", "3"), ("fail", None), ("add", "7")]
    results = engine.calls[1].text.split("<|im_start|>tool\n")[1:]
    assert [result[:5].strip("<|im") for result in results] == ["3", "Error", "7"]


def test_a_function_of_the_clients_ends_the_turn() -> None:
    with running(call("demo_add", a=1, b=2) + "\n" + call("store"), "Stored.") as (client, engine):
        first = client.responses.create(**body(tools=[STORE, TOOL]))
        assert [item.type for item in first.output] == ["mcp_list_tools", "mcp_call", "function_call"]
        asked = [{"role": "user", "content": "What is 1 + 2?"}, *(item.model_dump() for item in first.output)]
        asked.append({"type": "function_call_output", "call_id": asked[-1]["call_id"], "output": "stored"})
        second = client.responses.create(**body(tools=[STORE, TOOL], input=asked))
    assert [item.type for item in second.output] == ["message"]  # what was listed is not listed again
    assert RESULT.format(3) in engine.calls[1].text
    assert RESULT.format("stored") in engine.calls[1].text


def test_names_do_not_meet_those_of_the_clients_functions() -> None:
    own = {**STORE, "name": "demo_add"}
    with running(call("demo_add"), "x") as (client, _):
        said = client.responses.create(**body(tools=[own, TOOL]))
    assert said.output[-1].type == "function_call"
    with running(call("demo_add_", a=1, b=2), "3") as (client, _):
        said = client.responses.create(**body(tools=[TOOL, own]))
    assert [item.type for item in said.output] == ["mcp_list_tools", "mcp_call", "message"]


class Sum(BaseModel):
    value: int


def test_an_answer_in_a_schema_comes_after_the_calls() -> None:
    with running(ANSWERED[0], '{"value": 3}') as (client, _):
        said = client.responses.parse(**body(), text_format=Sum)
    assert said.output_parsed == Sum(value=3)


# Approvals ----------------------------------------------------------------------------------------------------------


def approval(client: OpenAI, **options: Any) -> list[Any]:
    """A conversation in which a call waits."""
    said = client.responses.create(**body(tools=[{**TOOL, "require_approval": "always"}], **options))
    return [{"role": "user", "content": "What is 1 + 2?"}, *(item.model_dump() for item in said.output)]


@pytest.mark.parametrize("streamed", [False, True])
def test_an_approved_call_is_run_and_the_model_goes_on(streamed: bool) -> None:
    with running(*ANSWERED) as (client, engine):
        asked = approval(client)
        waiting = asked[-1]
        assert (waiting["type"], waiting["name"], waiting["server_label"]) == ("mcp_approval_request", "add", "demo")
        assert json.loads(waiting["arguments"]) == {"a": 1, "b": 2}
        asked.append({"type": "mcp_approval_response", "approval_request_id": waiting["id"], "approve": True})
        options = {"input": asked, "tools": [{**TOOL, "require_approval": "always"}]}
        said = told(client, **options)[-1].response if streamed else client.responses.create(**body(**options))
        assert [item.type for item in said.output] == ["mcp_call", "message"]
        assert said.output[0].approval_request_id == waiting["id"]
        assert said.output[0].output == "3"
        assert engine.calls[1].text.count(RESULT.format(3)) == 1
        # A third request brings the call with what came of it, and it is not run again.
        engine._answers.append(("Indeed.",))
        asked += [item.model_dump(mode="json") for item in said.output]
        again = client.responses.create(
            **body(**{**options, "input": [*asked, {"role": "user", "content": "Really?"}]})
        )
    assert [item.type for item in again.output] == ["message"]
    assert engine.calls[2].text.count(RESULT.format(3)) == 1


@pytest.mark.parametrize("named", [False, True])
def test_an_approval_may_name_what_is_kept(*, named: bool) -> None:
    tool = {**TOOL, "require_approval": "always"}
    with running(*ANSWERED, "Yes, 3.") as (client, engine):
        first = client.responses.create(**body(tools=[tool]))
        waiting = first.output[-1]
        answer = {"type": "mcp_approval_response", "approval_request_id": waiting.id, "approve": True}
        items = [{"role": "user", "content": "1 + 2?"}, *({"type": "item_reference", "id": i.id} for i in first.output)]
        on = {"input": [*items, answer]} if named else {"input": [answer], "previous_response_id": first.id}
        said = client.responses.create(**body(tools=[tool], **on))
        assert [item.type for item in said.output] == ["mcp_call", "message"]  # the tools are not listed again
        assert (said.output[0].output, said.output[0].approval_request_id) == ("3", waiting.id)
        last = client.responses.create(**body(tools=[tool], input="Sure?", previous_response_id=said.id))
        assert [item.type for item in last.output] == ["message"]
    assert RESULT.format(3) in engine.calls[1].text
    assert RESULT.format(3) in engine.calls[2].text


def test_an_approval_asked_is_streamed_when_it_is_whole() -> None:
    with running(list(ANSWERED[0])) as (client, _):
        events = told(client, tools=[{**TOOL, "require_approval": None}])
    of_call = [event for event in events if getattr(event, "output_index", None) == 1]
    assert [event.type for event in of_call] == ["response.output_item.added", "response.output_item.done"]
    assert of_call[0].item == of_call[1].item == events[-1].response.output[1]
    assert events[-1].type == "response.completed"


def test_a_call_that_is_not_allowed_is_not_run() -> None:
    with running(ANSWERED[0], "Then not.") as (client, engine):
        asked = approval(client)
        answer = {"type": "mcp_approval_response", "approval_request_id": asked[-1]["id"], "approve": False}
        said = client.responses.create(**body(input=[*asked, {**answer, "reason": "Too dear."}]))
    assert [item.type for item in said.output] == ["message"]
    assert "The user did not allow this call. Too dear." in engine.calls[1].text


def test_an_approval_that_is_not_answered_is_none() -> None:
    with running(ANSWERED[0], "Well.") as (client, engine):
        asked = approval(client)
        said = client.responses.create(**body(input=[*asked, {"role": "user", "content": "Never mind."}]))
    assert said.output_text == "Well."
    assert "it was not run" in engine.calls[1].text


def test_an_approval_of_what_is_no_longer_offered_runs_nothing() -> None:
    with running(ANSWERED[0], "Well.") as (client, engine):
        asked = approval(client)
        asked.append({"type": "mcp_approval_response", "approval_request_id": asked[-1]["id"], "approve": True})
        client.responses.create(**body(input=asked, tools=[{**TOOL, "allowed_tools": ["fail"]}]))
    assert "no longer offered" in engine.calls[1].text


@pytest.mark.parametrize(
    ("required", "asks"),
    [
        (None, {"add", "fail"}),
        ("always", {"add", "fail"}),
        ("never", set[str]()),
        ({"never": {"tool_names": ["add"]}}, {"fail"}),
        ({"always": {"tool_names": ["fail"]}}, {"add", "fail"}),
        ({"always": {"tool_names": ["fail"]}, "never": {"tool_names": ["add", "fail"]}}, {"fail"}),
        ({"never": {"read_only": True}}, {"fail"}),
        ({"always": {"read_only": False}, "never": {"read_only": True}}, {"fail"}),
    ],
)
def test_approvals_are_asked_as_required(required: Any, asks: set[str]) -> None:
    with running(call("demo_add", a=1, b=2) + "\n" + call("demo_fail"), "Done.") as (client, _):
        said = client.responses.create(**body(tools=[{**TOOL, "require_approval": required}]))
    assert {item.name for item in said.output if item.type == "mcp_approval_request"} == asks
    assert {item.name for item in said.output if item.type == "mcp_call"} == {"add", "fail"} - asks


@pytest.mark.parametrize(
    ("allowed", "names"),
    [
        (["add"], ["add"]),
        ({"tool_names": ["add", "fail"]}, ["add", "fail"]),
        ({"read_only": True}, ["add"]),
        ({"tool_names": ["add", "fail"], "read_only": False}, ["fail"]),
        ([], []),
    ],
)
def test_only_allowed_tools_are_offered(allowed: Any, names: list[str]) -> None:
    with running("Hm.") as (client, _):
        said = client.responses.create(**body(tools=[{**TOOL, "allowed_tools": allowed}]))
    assert [tool.name for tool in said.output[0].tools] == names


# Servers ------------------------------------------------------------------------------------------------------------


def test_a_server_that_dies_fails_a_call_and_is_started_again() -> None:
    tool = {**TOOL, "allowed_tools": ["die", "add"]}
    with running(call("demo_die"), call("demo_add", a=1, b=2), "3", mcp=STDIO) as (client, engine):
        output = told(client, tools=[tool])[-1].response.output
    assert [(item.type, getattr(item, "status", None)) for item in output[1:3]] == [
        ("mcp_call", "failed"),
        ("mcp_call", "completed"),
    ]
    assert "ended before it gave a result" in engine.calls[1].text


def test_a_server_that_does_not_start_is_a_failed_list() -> None:
    gone: Any = {"mcpServers": {**DEMO["mcpServers"], "gone": {"command": "there-is-none"}}}
    with running(*ANSWERED, mcp=gone) as (client, _):
        events = told(client, tools=[{"type": "mcp", "server_label": "gone"}, TOOL])
        failed, listed, called, message = events[-1].response.output
        assert failed.tools == []
        assert "'gone' does not start" in failed.error
        assert "response.mcp_list_tools.failed" in [event.type for event in events]
        assert (len(listed.tools), called.output, message.type) == (2, "3", "message")
        options: Any = {"tools": [{"type": "mcp", "server_label": "gone"}], "tool_choice": "required"}
        with pytest.raises(openai.InternalServerError, match="a call is required, but the MCP server 'gone'") as raised:
            client.responses.create(**body(**options))
    assert (raised.value.status_code, raised.value.param) == (503, "tools[0]")


def test_a_server_over_http_may_be_killed_and_come_back() -> None:
    port = free_port()
    given: Any = {"mcpServers": {"demo": {"url": f"http://127.0.0.1:{port}/mcp"}}}
    turns = (*ANSWERED, ANSWERED[0], "It is gone.", *ANSWERED)
    with running(*turns, mcp=given) as (client, _):
        with over_http(port):
            first = client.responses.create(**body())
        asked: Any = [{"role": "user", "content": "Again."}, *(item.model_dump(mode="json") for item in first.output)]
        asked.append({"role": "user", "content": "Again."})
        second = client.responses.create(**body(input=asked))
        with over_http(port):
            third = client.responses.create(**body(input=asked))
    assert [item.type for item in second.output] == ["mcp_call", "message"]
    assert [item.status for item in (first.output[1], second.output[0], third.output[0])] == [
        "completed",
        "failed",
        "completed",
    ]


def test_a_server_is_found_by_its_address_which_is_never_dialled_else(web: str) -> None:
    given: Any = {"mcpServers": {"web": {"url": web}}}
    with running(call("web_add", a=1, b=2), "3", mcp=given) as (client, _):
        said = client.responses.create(**body(tools=[{**TOOL, "server_label": "sums", "server_url": web}]))
        assert [(item.server_label, item.name) for item in said.output if item.type == "mcp_call"] == [("sums", "add")]
        with pytest.raises(openai.BadRequestError, match=r"there is no MCP server 'x' in .* has 'web'") as raised:
            client.responses.create(**body(tools=[{**TOOL, "server_label": "x", "server_url": "http://127.0.0.1:9/"}]))
    assert raised.value.param == "tools[0].server_label"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": [{"type": "mcp"}]}, "tools[0].server_label"),
        ({"tools": [TOOL, TOOL]}, "tools[1].server_label"),
        ({"tools": [{**TOOL, "require_approval": "sometimes"}]}, "tools[0].require_approval"),
        ({"tools": [{**TOOL, "allowed_tools": 3}]}, "tools[0].allowed_tools"),
        ({"tool_choice": {"type": "mcp", "server_label": "other"}}, "tool_choice"),
        ({"tools": [TOOL, {**STORE, "parameters": {"type": 3}}]}, "tools[1].parameters"),
        (
            {"input": [{"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}]},
            "input[0].approval_request_id",
        ),
    ],
)
def test_errors_have_their_place_in_the_body(options: Any, param: str) -> None:
    with running("x") as (client, _), pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(**body(**options))
    assert raised.value.param == param


def test_without_servers_such_tools_are_left_out_and_named() -> None:
    with running("Hello.", mcp=None) as (client, engine):
        answer = client.responses.with_raw_response.create(**body())
        assert answer.headers["x-toolgram-ignored"] == "tools.mcp"
        assert answer.parse().output_text == "Hello."
        with pytest.raises(openai.BadRequestError) as raised:
            client.responses.create(**body(tool_choice={"type": "mcp", "server_label": "demo"}))
    assert raised.value.param == "tool_choice"
    assert len(engine.calls) == 1


def test_without_servers_what_they_did_is_left_out_and_named() -> None:
    with running(*ANSWERED) as (client, _):
        items: Any = [item.model_dump(mode="json") for item in client.responses.create(**body()).output]
    with running("Hello.", mcp=None) as (client, _):
        answer = client.responses.with_raw_response.create(**body(input=items, tools=[]))
    assert answer.headers["x-toolgram-ignored"] == "input.mcp_list_tools, input.mcp_call"


def test_what_a_client_would_tell_the_server_is_not_told_and_named() -> None:
    with running("Hello.") as (client, _):
        answer = client.responses.with_raw_response.create(**body(tools=[{**TOOL, "authorization": "secret"}]))
    assert answer.headers["x-toolgram-ignored"] == "tools.mcp.authorization"


# Choices and limits -------------------------------------------------------------------------------------------------


def test_a_choice_of_a_server_is_one_of_its_tools_and_only_of_the_first_turn() -> None:
    choice: Any = {"type": "mcp", "server_label": "demo", "name": "add"}
    with running(*ANSWERED) as (client, engine):
        said = client.responses.create(**body(tools=[STORE, TOOL], tool_choice=choice))
    first, second = (each.constraint for each in engine.calls)
    assert first
    assert second
    assert not first.grammar.accepts("Hello.")
    assert first.grammar.accepts(ANSWERED[0])
    assert not first.grammar.accepts(call("demo_fail"))
    assert second.grammar.accepts("Hello.")
    assert said.output_text == "It is 3."


def test_allowed_tools_may_be_those_of_a_server() -> None:
    allowed = [{"type": "mcp", "server_label": "demo", "name": "add"}, {"type": "function", "name": "store"}]
    choice: Any = {"type": "allowed_tools", "mode": "auto", "tools": allowed}
    with running(*ANSWERED) as (client, engine):
        client.responses.create(**body(tools=[STORE, TOOL], tool_choice=choice))
    for asked in engine.calls:
        assert asked.constraint
        grammar = asked.constraint.grammar
        assert grammar.accepts(ANSWERED[0])
        assert grammar.accepts(call("store"))
        assert not grammar.accepts(call("demo_fail"))


def test_the_last_turn_calls_no_server() -> None:
    turns = [call("demo_add", a=number, b=1) for number in range(9)]
    with running(*turns, "Enough.") as (client, engine):
        said = client.responses.create(**body(tools=[TOOL]))
    assert said.output_text == "Enough."
    assert len(said.output) == 1 + 9 + 1
    assert engine.calls[8].constraint.grammar.accepts(turns[0])  # type: ignore[union-attr] - it has tools
    assert not engine.calls[9].constraint.grammar.accepts(turns[0])  # type: ignore[union-attr] - they are in its history


def test_a_call_that_is_repeated_again_and_again_is_the_last() -> None:
    with running(*[ANSWERED[0]] * 3, "Enough.") as (client, _):
        said = client.responses.create(**body())
    assert said.output_text == "Enough."


def test_in_the_last_turn_the_clients_functions_may_be_called() -> None:
    with running(ANSWERED[0], call("store")) as (client, engine):
        said = client.responses.create(**body(tools=[STORE, TOOL], max_tool_calls=1))
    assert [item.type for item in said.output] == ["mcp_list_tools", "mcp_call", "function_call"]
    assert said.max_tool_calls == 1
    last = engine.calls[1].constraint
    assert last
    assert not last.grammar.accepts(ANSWERED[0])
    assert last.grammar.accepts(call("store"))


def test_no_more_calls_are_run_than_the_request_allows() -> None:
    with running(ANSWERED[0] + "\n" + call("demo_add", a=3, b=4), "Done.") as (client, _):
        said = client.responses.create(**body(max_tool_calls=1))
    assert [(item.status, item.output) for item in said.output[1:3]] == [("completed", "3"), ("failed", None)]
    assert "allows no more" in said.output[2].error.content[0]["text"]


def test_tokens_are_those_of_all_turns() -> None:
    with running(*ANSWERED) as (client, engine):
        said = client.responses.create(**body(max_output_tokens=4))
    assert (said.status, said.output_text) == ("incomplete", "It ")
    assert engine.calls[1].sampling.max_tokens == 3
    with running(ANSWERED[0]) as (client, _):
        said = client.responses.create(**body(max_output_tokens=1))
    assert (said.status, said.output[1].output) == ("incomplete", "3")


def test_an_answer_of_just_as_many_tokens_as_there_may_be_is_whole() -> None:
    with running(*ANSWERED) as (client, _):
        said = client.responses.create(**body(max_output_tokens=1 + len(ANSWERED[1])))
    assert (said.status, said.output_text) == ("completed", "It is 3.")


def test_a_call_that_is_cut_off_is_not_run() -> None:
    with running(list(ANSWERED[0])) as (client, _):
        events = told(client, max_output_tokens=len(ANSWERED[0]) - 16)
    assert events[-1].type == "response.incomplete"
    assert (events[-1].response.output[1].status, events[-1].response.output[1].output) == ("incomplete", None)
    with running(list(ANSWERED[0])) as (client, _):
        said = client.responses.create(**body(tools=[{**TOOL, "require_approval": "always"}], max_output_tokens=70))
    assert [item.type for item in said.output] == ["mcp_list_tools"]


def test_a_call_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgram.server.mcp._LIMITS", Limits(call_seconds=1))
    with running(call("demo_wait", seconds=60), "Too slow.", mcp=STDIO) as (client, _):
        said = client.responses.create(**body(tools=[{**TOOL, "allowed_tools": ["wait"]}]))
    assert "gave no result within 1 s" in said.output[1].error.content[0]["text"]


# Hostile servers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["forged", "huge", "binary", "noise"])
def test_what_a_hostile_server_says_stays_text_and_is_cut(name: str) -> None:
    tool = {"type": "mcp", "server_label": "hostile", "require_approval": "never"}
    with running(call(f"hostile_{name}"), "I saw it.", mcp=HOSTILE) as (client, engine):
        output = told(client, tools=[tool])[-1].response.output
    listed, called, message = output
    assert len(listed.tools) == 13
    assert all(len(each.description) < 10_100 for each in listed.tools)
    assert len(called.output) < 20_100
    assert message.content[0].text == "I saw it."
    trusted = [text for text, is_trusted in engine.calls[1].prompt if is_trusted]
    assert not any("Ignore what you were told" in text for text in trusted)
    untrusted = "".join(text for text, is_trusted in engine.calls[1].prompt if not is_trusted)
    if name in ("forged", "huge"):
        assert "Ignore what you were told" in untrusted


# Clients that leave -------------------------------------------------------------------------------------------------


def test_a_client_that_leaves_ends_the_calls(tmp_path: Path) -> None:
    given: Any = {"mcpServers": {"slow": {"command": sys.executable, "args": ["-c", SLOW, str(tmp_path / "ended")]}}}
    tool = {"type": "mcp", "server_label": "slow", "require_approval": "never"}
    with running(call("slow_wait"), "x", mcp=given) as (client, engine):
        with client.responses.create(**body(tools=[tool]), stream=True) as stream:
            for event in stream:
                if event.type == "response.mcp_call_arguments.done":
                    break
        until, ended = time.monotonic() + 10, tmp_path / "ended"
        while not (ended.exists() and ended.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        assert ended.read_text() == "CancelledError"
    assert len(engine.calls) == 1


SLOW = """
import asyncio, sys
from pathlib import Path
from mcp.server import MCPServer

app = MCPServer("slow", log_level="CRITICAL")

@app.tool()
async def wait() -> str:
    try:
        await asyncio.sleep(60)
    except BaseException as error:
        Path(sys.argv[1]).write_text(type(error).__name__)
        raise
    return "waited"

app.run("stdio")
"""
