"""The input of `/v1/responses` as messages: what the assistant did in a row is a turn, and results follow calls."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import CHATML
from toolgram.api.responses.body import ENCRYPTED, LOGPROBS
from toolgram.api.responses.input import Earlier
from toolgram.api.responses.request import read_responses_request, sent_body
from toolgram.api.responses.sealed import sealed

USER = {"role": "user", "content": "Go."}
WAIT = {"role": "user", "content": "Wait."}


def call(id_: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id_, "name": "f", "arguments": "{}"}


def output(id_: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id_, "output": f"of {id_}"}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def thought(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def messages(*items: Any) -> list[Any]:
    """Each message in short: its text, or its reasoning, text and the ids of its calls."""
    request = read_responses_request({"input": list(items)}).generation.request
    short: list[Any] = []
    for message in request.messages:
        if message["role"] == "assistant":
            calls = [each["id"] for each in message.get("tool_calls", ())]
            short.append((message.get("reasoning_content"), message["content"], calls))
        else:
            short.append(message["content"])
    return short


@pytest.mark.parametrize(
    ("items", "turns"),
    [
        ([call("a"), WAIT, output("a")], [(None, None, ["a"]), "of a", "Wait."]),
        ([call("a"), said("I do."), output("a")], [(None, "I do.", ["a"]), "of a"]),
        ([said("I do."), call("a"), said("Done."), output("a")], [(None, "I do.\n\nDone.", ["a"]), "of a"]),
        (
            [thought("One."), call("a"), thought("Two."), call("b"), output("a"), output("b")],
            [("One.\nTwo.", None, ["a", "b"]), "of a", "of b"],
        ),
        (
            [call("a"), call("b"), output("a"), said("Half."), output("b")],
            [(None, None, ["a", "b"]), "of a", "of b", (None, "Half.", [])],
        ),
        (
            [call("a"), WAIT, call("b"), output("b"), output("a")],
            [(None, None, ["a"]), "of a", "Wait.", (None, None, ["b"]), "of b"],
        ),
        (
            [call("a"), output("a"), thought("More."), call("a"), output("a")],
            [(None, None, ["a"]), "of a", ("More.", None, ["a"]), "of a"],
        ),
    ],
)
def test_results_stand_behind_the_turn_of_their_call(items: list[Any], turns: list[Any]) -> None:
    assert messages(USER, *items) == ["Go.", *turns]


def test_a_result_that_came_later_is_in_the_prompt() -> None:
    body = {"input": [USER, call("a"), WAIT, output("a")], "tools": [{"type": "function", "name": "f"}]}
    prompt = read_responses_request(body).generation.plan(CHATML, "hermes_2_pro").prompt
    assert prompt.index('"name": "f", "arguments"') < prompt.index("of a") < prompt.index("Wait.")


@pytest.mark.parametrize("arguments", ["[]", "null", "", '"{}"'])
def test_arguments_of_earlier_calls_are_what_the_client_means(arguments: str) -> None:
    """PHP reads an object as a list, and writes one without members as an empty one."""
    body = {"input": [USER, {**call("a"), "arguments": arguments}, output("a")]}
    prompt = read_responses_request(body).generation.plan(CHATML, "hermes_2_pro").prompt
    assert '{"name": "f", "arguments": {}}' in prompt


@pytest.mark.parametrize(
    ("items", "pointer"),
    [
        ([output("a")], "/input/1"),
        ([call("a"), output("b")], "/input/2/call_id"),
        ([output("a"), call("a")], "/input/1"),
        ([{**call("a"), "arguments": "[1]"}], "/input/1/arguments"),
        (
            [call("a"), {"role": "assistant", "content": [{"type": "input_image", "image_url": "x"}]}],
            "/input/2/content/0",
        ),
    ],
)
def test_errors_have_their_place(items: list[Any], pointer: str) -> None:
    with pytest.raises(toolgram.InvalidRequest) as raised:
        read_responses_request({"input": [USER, *items]}).generation.plan(CHATML, "hermes_2_pro")
    assert raised.value.pointer == pointer


def test_reasoning_is_read_from_what_was_encrypted_here_and_is_nothing_where_it_was_elsewhere() -> None:
    ours = {"type": "reasoning", "summary": [], "encrypted_content": sealed("Hm, ünd\u2028so.")}
    assert "Hm" not in ours["encrypted_content"]
    assert messages(USER, ours, call("a"), output("a"))[1] == ("Hm, ünd\u2028so.", None, ["a"])
    for foreign in ("gAAA", "gAAAAB==", "ä", "", None):
        assert messages(USER, {**ours, "encrypted_content": foreign}, said("Yes."))[1] == (None, "Yes.", [])
    assert messages(USER, {**ours, **thought("As it is.")}, said("Yes."))[1] == ("As it is.", "Yes.", [])


def test_what_cannot_be_included_is_named() -> None:
    read = read_responses_request({"input": "Go.", "include": [ENCRYPTED, LOGPROBS, "file_search_call.results"]})
    assert read.encrypts
    assert read.generation.sampling.logprobs == 0
    assert read.generation.ignored == ("include.file_search_call.results",)
    assert not read_responses_request({"input": "Go."}).encrypts


def test_a_reference_to_an_item_is_told_what_to_send() -> None:
    with pytest.raises(toolgram.InvalidRequest, match="send the item itself") as raised:
        read_responses_request({"input": [USER, {"type": "item_reference", "id": "rs_1"}]})
    assert raised.value.pointer == "/input/1/id"


@pytest.mark.parametrize("new", ["Now.", [{"role": "user", "content": "Now."}]])
def test_what_is_wrong_has_its_place_in_the_body_that_was_sent(new: Any) -> None:
    earlier = Earlier([USER, said("Yes."), {"type": "additional_tools", "tools": [{"type": "web_search"}]}])
    sent = sent_body({"input": new, "previous_response_id": "resp_1"})
    assert sent.goes_on
    request = sent.checked({}, earlier).request().generation
    assert [message["content"] for message in request.request.messages] == ["Go.", "Yes.", "Now."]
    assert request.request.places["/messages/0"] == "/previous_response_id"
    assert request.request.places["/messages/2"] == ("/input" if isinstance(new, str) else "/input/0")
    assert request.ignored == ("tools.web_search",)
    with pytest.raises(toolgram.InvalidRequest, match="answers no call") as raised:
        sent_body({"input": [output("a")], "previous_response_id": "resp_1"}).checked({}, earlier).request()
    assert raised.value.pointer == "/input/0"


def test_a_conversation_has_no_more_items_than_a_body() -> None:
    sent = sent_body({"input": [USER] * 9000, "previous_response_id": "resp_1"})
    with pytest.raises(toolgram.InvalidRequest, match="at most 16384 items, not 18000"):
        sent.checked({}, Earlier([USER] * 9000))
