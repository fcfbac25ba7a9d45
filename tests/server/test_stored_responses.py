"""What `/v1/responses` keeps: requests go on from it, in the shapes of OpenAI's SDK, on recorded answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import openai
import pytest
from openai import OpenAI

from live_server import serving
from server.test_hostile import Counting, wait_for
from toolgram.api.openapi.document import document
from toolgram.engines.replay import Replay
from toolgram.server.recording.values import Recording
from toolgram.server.settings import Settings

ADD: Any = {
    "type": "function",
    "name": "add",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
}
NOTE: Any = {"type": "custom", "name": "note"}
THOUGHT = "<think>\nOne and two.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
NOTED = '<tool_call>\n{"name": "note", "arguments": {"input": "one\\ntwo"}}\n</tool_call>'
TURN = list(f"{THOUGHT}Let me see.\n{CALL}\n{NOTED}")
CALLED = (("function_call", "c1"), ("custom_tool_call", "c2"))
COMMON: Any = {"model": "recorded", "tools": [ADD, NOTE]}
NOBODY = f"resp_{'0' * 32}"


def texts(message: Any) -> list[str]:
    """The texts of a message's parts."""
    return [part.text for part in message.content]


@contextmanager
def running(*turns: str | Sequence[str], engine: Any = None, **settings: Any) -> Iterator[tuple[OpenAI, Any]]:
    engine = engine or Replay(*turns)
    with serving(engine, Settings(style="hermes", **settings)) as address:
        yield OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0), engine


def results(response: Any) -> list[Any]:
    """The results of the calls in a response."""
    kinds = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
    calls = [item for item in response.output if item.type in kinds]
    return [{"type": kinds[item.type], "call_id": item.call_id, "output": f"of {item.name}"} for item in calls]


def asked(client: OpenAI, how: str, **options: Any) -> Any:
    """The response, streamed or whole."""
    if how == "whole":
        return client.responses.create(**COMMON, **options)
    with client.responses.stream(**COMMON, **options) as stream:
        last = list(stream)[-1]
    return last.response  # type: ignore[union-attr]  # the last event has it


def refused(make: Callable[[], object], status: int = 404) -> Any:
    """The error that OpenAI's SDK raises."""
    with pytest.raises(openai.APIStatusError) as caught:
        make()
    assert caught.value.status_code == status
    return caught.value


def documented(client: OpenAI, method: str, path: str) -> None:
    """The answer is one of `/openapi.json`."""
    answer = httpx2.request(method.upper(), str(client.base_url).removesuffix("/v1/") + path)
    told = document()
    route = re.sub("resp_[0-9a-f]+", "{id}", path)
    schema = told["paths"][route][method]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema_rs.validator_for({**schema, "components": told["components"]}).validate(answer.json())
    assert answer.status_code == 200


@pytest.mark.parametrize("how", ["whole", "streamed"])
def test_a_tool_loop_by_previous_responses_is_the_one_by_whole_conversations(how: str) -> None:
    question = {"role": "user", "content": "1 + 2?"}
    with running(*([TURN, "It is 3.", "Still 3."] * 2)) as (client, engine):
        first = asked(client, how, input=[question])
        second = asked(client, how, input=results(first), previous_response_id=first.id)
        third = asked(client, how, input="Sure?", previous_response_id=second.id)
        said: list[Any] = [question]
        for given in (results, lambda _: [{"role": "user", "content": "Sure?"}], lambda _: []):
            response = client.responses.create(**COMMON, input=said, store=False)
            said += [item.model_dump(exclude_none=True) for item in response.output]
            said += given(response)
    prompts = [call.text for call in engine.calls]
    assert prompts[:3] == prompts[3:]
    assert all(told in prompts[2] for told in ("One and two.", "Let me see.", "of add", "of note", "It is 3."))
    assert (first.store, first.previous_response_id) == (True, None)
    assert (second.store, second.previous_response_id) == (True, first.id)
    assert (third.output_text, response.store) == ("Still 3.", False)


@pytest.mark.parametrize("how", ["whole", "streamed"])
def test_items_that_are_referred_to_are_those_that_were_given(how: str) -> None:
    question = {"role": "user", "content": "1 + 2?"}
    with running(TURN, "It is 3.", "It is 3.", "Yes.") as (client, engine):
        first = asked(client, how, input=[question])
        named: list[Any] = [{"type": "item_reference", "id": item.id} for item in first.output]
        del named[-1]["type"]  # which it may lack
        second = asked(client, how, input=[question, *named, *results(first)])
        asked(client, how, input=results(first), previous_response_id=first.id)
        sent = client.responses.input_items.list(second.id, order="asc").data
        assert [item.id for item in sent][1 : 1 + len(named)] == [item.id for item in first.output]
        asked(client, how, input=[{"type": "item_reference", "id": item.id} for item in sent])
    assert engine.calls[1].text == engine.calls[2].text == engine.calls[3].text


def test_reasoning_that_is_sent_back_empty_is_what_is_kept_of_it() -> None:
    question = {"role": "user", "content": "1 + 2?"}
    with running(TURN, "It is 3.", "It is 3.", "It is 3.") as (client, engine):
        first = asked(client, "streamed", input=[question])
        thought, *said = [item.model_dump(exclude_none=True) for item in first.output]
        empty = {"type": "reasoning", "id": thought["id"], "summary": [], "content": []}
        for sent in (thought, empty, {**empty, "id": f"rs_{'0' * 32}_0"}):
            asked(client, "whole", input=[question, sent, *said, *results(first)])
    told = [call.text for call in engine.calls[1:]]
    assert "One and two." in told[0]
    assert told[0] == told[1]
    assert "One and two." not in told[2]  # which nobody keeps


def test_instructions_do_not_carry_over_and_conversations_may_part() -> None:
    with running("One.", "Two.", "Three.") as (client, engine):
        first = client.responses.create(**COMMON, input="Hi.", instructions="Be brief.")
        client.responses.create(**COMMON, input="Left.", previous_response_id=first.id, instructions="Be loud.")
        client.responses.create(**COMMON, input="Right.", previous_response_id=first.id)
    assert "Be brief." in engine.calls[0].text
    assert "Be brief." not in engine.calls[1].text + engine.calls[2].text
    assert "Left." not in engine.calls[2].text
    assert "One." in engine.calls[2].text


def test_a_response_is_read_again_as_it_was_given_and_forgotten() -> None:
    with running(TURN, "Yes.") as (client, _):
        said = client.responses.create(**COMMON, input="Hi.", metadata={"a": "b"})
        assert client.responses.retrieve(said.id).model_dump() == said.model_dump()
        later = client.responses.create(**COMMON, input=results(said), previous_response_id=said.id)
        documented(client, "get", f"/v1/responses/{said.id}")
        assert refused(lambda: client.responses.retrieve(said.id, stream=True), 400).param == "stream"
        documented(client, "get", f"/v1/responses/{later.id}/input_items")
        documented(client, "delete", f"/v1/responses/{said.id}")
        for make in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
            error = refused(lambda make=make: make(said.id))
            assert error.code == "response_not_found"
        # What went on from it has it still.
        kinds = [item.type for item in client.responses.input_items.list(later.id, order="asc")]
    assert kinds[:2] == ["message", "reasoning"]
    assert kinds[-2:] == ["function_call_output", "custom_tool_call_output"]


def test_items_are_listed_with_their_parts_and_a_status_however_they_were_sent() -> None:
    # OpenAI's SDK for Go and openai-php take no text in the place of parts, and no item of these without a status.
    said = {"role": "assistant", "content": "Hello."}
    call = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}
    note = {"type": "custom_tool_call", "call_id": "c2", "name": "note", "input": "one"}
    outputs = [{"type": f"{kind}_output", "call_id": id_, "output": "x"} for kind, id_ in CALLED]
    with running("Yes.") as (client, _):
        sent: Any = [{"role": "user", "content": "Hi."}, said, call, note, *outputs, {**said, "status": "incomplete"}]
        response = client.responses.create(**COMMON, input=sent)
        items = [item.to_dict() for item in client.responses.input_items.list(response.id, order="asc")]
    assert items[0]["content"] == [{"type": "input_text", "text": "Hi."}]
    assert items[1]["content"] == [{"type": "output_text", "text": "Hello.", "annotations": [], "logprobs": []}]
    assert [item["status"] for item in items] == [*["completed"] * 6, "incomplete"]


def test_the_items_of_an_input_come_in_pages() -> None:
    with running("Yes.") as (client, _):
        items: list[Any] = [{"role": "user", "content": str(i)} for i in range(25)]
        said = client.responses.create(**COMMON, input=items)
        list_ = client.responses.input_items.list
        assert [texts(item) for item in list_(said.id, limit=7)] == [[str(i)] for i in reversed(range(25))]
        page = list_(said.id, limit=7, order="asc")
        assert ([texts(item) for item in page.data], page.has_more) == ([[str(i)] for i in range(7)], True)
        for options in ({"limit": 0}, {"limit": 101}, {"order": "up"}, {"after": "msg_1"}):
            error = refused(lambda options=options: list_(said.id, **options), 400)
            assert error.param == next(iter(options))


def test_another_key_can_neither_read_nor_forget_nor_go_on() -> None:
    with running("Hi.", "Yes.", api_keys=("one", "two")) as (client, _):
        mine, other = client.with_options(api_key="one"), client.with_options(api_key="two")
        said = mine.responses.create(**COMMON, input="Hi.")
        for make in (
            lambda: other.responses.retrieve(said.id),
            lambda: other.responses.delete(said.id),
            lambda: other.responses.input_items.list(said.id),
            lambda: other.responses.create(**COMMON, input="x", previous_response_id=said.id),
            lambda: other.responses.create(**COMMON, input=[{"type": "item_reference", "id": said.output[0].id}]),
        ):
            refused(make)
        refused(lambda: client.responses.retrieve(said.id), 401)
        assert mine.responses.retrieve(said.id).output_text == "Hi."


def test_who_floods_it_pushes_out_nothing_of_others() -> None:
    with running(*["Hi."] * 80, api_keys=("one", "two"), max_store=1 << 16) as (client, _):
        greedy, modest = client.with_options(api_key="one"), client.with_options(api_key="two")
        for _ in range(20):
            greedy.responses.create(**COMMON, input="x" * 4000)
        said = [modest.responses.create(**COMMON, input="Hi.").id for _ in range(5)]
        for _ in range(40):
            last = greedy.responses.create(**COMMON, input="x" * 4000)
        assert all(modest.responses.retrieve(id_).store for id_ in said)
        assert greedy.responses.retrieve(last.id)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "for an hour after they were last used, up to 64 MB together"),
        ({"max_store": 1000}, "up to 1000 bytes together"),
        ({"max_store": 0}, "`--max-store 0`"),
        ({"workers": 2}, "`--workers`"),
    ],
)
def test_what_is_not_kept_is_told_with_the_reason(settings: Any, why: str) -> None:
    with running("Hi.", **settings) as (client, _):
        create = client.responses.create
        said = create(**COMMON, input="Hi.", store=None if settings else False)
        assert said.store is False
        error = refused(lambda: create(**COMMON, input="x", previous_response_id=said.id))
        assert (error.code, error.param) == ("previous_response_not_found", "previous_response_id")
        assert why in error.message
        assert "give the whole conversation" in error.message
        named: Any = {"type": "item_reference", "id": said.output[0].id}
        error = refused(lambda: create(**COMMON, input=[{"role": "user", "content": "x"}, named]))
        assert (error.code, error.param) == ("item_not_found", "input[1].id")
        assert why in error.message
        assert "send the item itself" in error.message
        assert why in refused(lambda: client.responses.retrieve(said.id)).message


@pytest.mark.parametrize("id_", ["x", NOBODY, f"msg_{'0' * 32}_0", "msg_0_0", "", "ä" * 9000, "msg_\n"])
def test_odd_ids_are_those_of_nothing(id_: str) -> None:
    with running("Hi.", "Hi.") as (client, _):
        said = client.responses.create(**COMMON, input="Hi.")
        hexed = said.id.removeprefix("resp_")
        for odd in (id_, f"msg_{hexed}_1", f"rs_{hexed}_0", f"msg_{hexed}_in7", f"msg_{hexed}_999999", said.id):
            error = refused(lambda odd=odd: client.responses.create(**COMMON, input=[{"id": odd}]))  # type: ignore[list-item]  # odd
            assert error.code == "item_not_found"
            assert len(error.message) < 600
        if id_:
            refused(lambda: client.responses.create(**COMMON, input="x", previous_response_id=id_))
        else:  # as clients send it that have none
            client.responses.create(**COMMON, input="x", previous_response_id=id_)


def test_half_a_character_is_read_as_from_a_body() -> None:
    with running("a\ud800b", "Yes.") as (client, engine):
        first = client.responses.create(**COMMON, input="Hi.")
        second = client.responses.create(**COMMON, input=f"{2**70}", previous_response_id=first.id)
        said = client.responses.input_items.list(second.id, order="asc").data
    assert "a\ufffdb" in engine.calls[1].text
    assert said[1].content[0].text == "a\ufffdb"  # type: ignore[union-attr]  # a message


def test_an_incomplete_response_is_kept_and_a_failed_one_is_not() -> None:
    with running(list("Hello."), list("Yes.")) as (client, engine):
        cut = client.responses.create(**COMMON, input="Hi.", max_output_tokens=3)
        assert (cut.status, client.responses.retrieve(cut.id).status) == ("incomplete", "incomplete")
        client.responses.create(**COMMON, input="Go on.", previous_response_id=cut.id)
        assert "Hel<|im_end|>" in engine.calls[1].text
    with running(engine=Replay(list("abcdef"), fail_after=3)) as (client, _):
        stream = client.responses.create(**COMMON, input="Hi.", stream=True)
        begun = next(stream)
        with pytest.raises(openai.APIError, match="the engine failed"):
            list(stream)
        refused(lambda: client.responses.retrieve(begun.response.id))  # type: ignore[union-attr]  # the first event has it


def test_a_stream_whose_client_is_gone_is_not_kept() -> None:
    engine = Counting()
    with running(engine=engine, keep_alive=0.05) as (client, _):
        with client.responses.create(**COMMON, input="Hi.", stream=True) as stream:
            begun = next(iter(stream))
        wait_for(lambda: not engine.running)
        refused(lambda: client.responses.retrieve(begun.response.id))  # type: ignore[union-attr]  # the first event has it


def test_what_does_not_fit_is_not_kept_and_what_was_used_least_goes_first() -> None:
    with running(*["Hi."] * 40, max_store=1 << 16) as (client, _):
        first = client.responses.create(**COMMON, input="Hi.")
        large = client.responses.create(**COMMON, input="x" * 10_000)
        assert (first.store, large.store) == (True, False)
        refused(lambda: client.responses.retrieve(large.id))
        second = client.responses.create(**COMMON, input="Hi.")
        for _ in range(30):
            client.responses.create(**COMMON, input="x" * 2000)
            assert client.responses.retrieve(first.id)
        refused(lambda: client.responses.retrieve(second.id))


def test_a_conversation_may_be_no_larger_than_a_body() -> None:
    with running(*["Hi."] * 4, max_body=5000) as (client, _):
        first = client.responses.create(**COMMON, input="x" * 3000)
        second = client.responses.create(**COMMON, input="x" * 3000, previous_response_id=first.id)
        error = refused(lambda: client.responses.create(**COMMON, input="x", previous_response_id=second.id), 413)
        assert error.code == "body_too_large"
        named: Any = {"type": "item_reference", "id": f"msg_{first.id.removeprefix('resp_')}_in0"}
        refused(lambda: client.responses.create(**COMMON, input=[named] * 2), 413)
        assert client.responses.create(**COMMON, input=[named]).output_text == "Hi."


def test_the_tokens_of_what_goes_on_are_counted() -> None:
    with running("Hi.") as (client, _):
        first = client.responses.create(**COMMON, input="Hi.")
        count = client.responses.input_tokens.count
        refused(lambda: count(model="recorded", input="x", previous_response_id=NOBODY))
        error = refused(lambda: count(model="recorded", input="x", previous_response_id=first.id), 400)
    assert "does not count tokens" in error.message  # which is found out when all is read


def test_what_is_recorded_of_a_request_that_goes_on_stands_alone(tmp_path: Path) -> None:
    with running("Hello.", record=tmp_path) as (client, _):
        first = client.responses.create(**COMMON, input="Hi.")
        refused(lambda: client.responses.create(**COMMON, input="And?", previous_response_id=first.id), 502)
    (file,) = tmp_path.iterdir()
    body: Any = Recording.from_file(file).body
    assert body["previous_response_id"] is None
    assert [item["role"] for item in body["input"]] == ["user", "assistant", "user"]


def test_a_page_of_a_site_that_is_allowed_may_forget() -> None:
    with serving(Replay("Hi."), Settings(origins=("http://a.example",))) as address:
        asks = {"origin": "http://a.example", "access-control-request-method": "DELETE"}
        answer = httpx2.options(f"{address}/v1/responses/{NOBODY}", headers=asks)
    assert answer.status_code == 200
