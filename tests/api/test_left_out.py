"""What of a body is shown to no model and has no effect: it is named, or refused where nothing is left without it."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import CHATML
from toolgram.api.chat.request import read_chat_request
from toolgram.api.messages.request import read_messages_request
from toolgram.api.responses.request import read_responses_request

USER: Any = {"role": "user", "content": "Hi."}
WEATHER: Any = {"name": "weather", "input_schema": {"type": "object"}}


def messages(*turns: Any, **body: Any) -> Any:
    return read_messages_request({"max_tokens": 9, "messages": [*(turns or (USER,))], **body})


def responses(*items: Any, **body: Any) -> Any:
    return read_responses_request({"input": [*(items or (USER,))], **body}).generation


def streamed(**options: bool) -> Any:
    return read_chat_request({"messages": [USER], "stream": True, "stream_options": options}).generation


@pytest.mark.parametrize(
    ("read", "ignored"),
    [
        (lambda: messages(thinking={"type": "adaptive", "display": "omitted"}), ("thinking.display",)),
        (lambda: messages(output_config={"effort": "low", "task_budget": {}}), ("output_config.task_budget",)),
        (lambda: responses(text={"verbosity": "low"}), ("text.verbosity",)),
        (
            lambda: responses(reasoning={"effort": "low", "summary": "auto", "context": "all_turns"}),
            ("reasoning.context",),
        ),
        (
            lambda: (
                read_chat_request({"messages": [USER], "verbosity": "low", "moderation": {"model": "m"}}).generation
            ),
            ("verbosity", "moderation"),
        ),
        (
            lambda: streamed(include_usage=True, include_obfuscation=False, continuous_usage_stats=True),
            ("stream_options.continuous_usage_stats",),
        ),
    ],
)
def test_options_without_effect_are_named_wherever_they_stand(read: Any, ignored: tuple[str, ...]) -> None:
    assert read().ignored == ignored


def test_an_image_that_openai_keeps_is_left_out_of_a_result_and_refused_elsewhere() -> None:
    image = {"type": "input_image", "file_id": "file_1", "detail": "auto"}
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    read = responses(USER, call, {"type": "function_call_output", "call_id": "a", "output": [image]})
    assert read.ignored == ("output.input_image",)
    assert read.request.messages[-1]["content"] == "[input_image: it cannot be shown here]"
    with pytest.raises(toolgram.InvalidRequest, match="'input_image' cannot be shown") as raised:
        responses({"role": "user", "content": [image]})
    assert raised.value.pointer == "/input/0/content/0/type"


def test_an_image_that_anthropic_keeps_is_left_out_of_a_result_and_refused_elsewhere() -> None:
    image = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "weather", "input": {}}]}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [image, {"type": "text", "text": "Rain."}]}
    read = messages(USER, call, {"role": "user", "content": [result]}, tools=[WEATHER])
    assert read.ignored == ("tool_result.image",)
    assert read.request.messages[-1]["content"] == "[image: it cannot be shown here]\nRain."
    with pytest.raises(toolgram.InvalidRequest, match="'image' cannot be shown") as raised:
        messages({"role": "user", "content": [image]})
    assert raised.value.pointer == "/messages/0/content/0/type"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"type": "text", "media_type": "text/plain", "data": "It rains."}, "It rains."),
        ({"type": "content", "content": "It rains."}, "It rains."),
        ({"type": "content", "content": [{"type": "text", "text": t} for t in ("It", "rains.")]}, "It\n\nrains."),
    ],
)
def test_a_document_of_text_is_shown_below_its_title_and_what_is_said_of_it(source: Any, text: str) -> None:
    document = {"type": "document", "source": source, "title": "Oslo", "context": "Of today."}
    read = messages({"role": "user", "content": [document]})
    assert read.request.messages[0]["content"] == f"Oslo\n\nOf today.\n\n{text}"
    assert (
        messages({"role": "user", "content": [{**document, "title": None, "context": None}]}).request.messages[0][
            "content"
        ]
        == text
    )


def test_a_document_with_more_than_text_is_refused() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/a.png"}}
    document = {"type": "document", "source": {"type": "content", "content": [image]}}
    with pytest.raises(toolgram.InvalidRequest, match="'document' cannot be shown"):
        messages({"role": "user", "content": [document]})


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "web_search"}])
def test_a_call_that_anthropic_would_have_to_run_is_refused_as_such(choice: Any) -> None:
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    with pytest.raises(toolgram.InvalidRequest, match="Anthropic runs these tools itself") as raised:
        messages(tools=[hosted], tool_choice=choice)
    assert raised.value.pointer == "/tool_choice"
    assert messages(tools=[hosted, WEATHER], tool_choice={"type": "any"}).plan(CHATML, "hermes_2_pro").constraint


@pytest.mark.parametrize("type_", [{}, {"type": None}, {"type": "item_reference"}])
def test_a_reference_needs_no_type_to_be_told_what_to_send(type_: Any) -> None:
    with pytest.raises(toolgram.InvalidRequest, match="send the item itself"):
        responses(USER, {"id": "rs_1", **type_})
    with pytest.raises(toolgram.InvalidRequest, match=r"^/input/0/role: is missing"):
        responses({"id": "msg_1", "content": "Hi."})


@pytest.mark.parametrize("name", ["response_format", "regex", "choice", "grammar", "guided_json", "structured_outputs"])
def test_a_constraint_by_a_name_of_another_api_is_refused(name: str) -> None:
    for read, known in ((messages, "output_config.format"), (responses, "text.format")):
        with pytest.raises(toolgram.InvalidRequest, match=f"is not known here: give {known}") as raised:
            read(**{name: {"type": "json_object"}})
        assert raised.value.pointer == f"/{name}"
        assert read(**{name: None}).ignored == ()
        assert read(response_format={"type": "text"}).ignored == ("response_format",)


@pytest.mark.parametrize("kind", ["program", "program_output", "web_search_call", "compaction"])
def test_what_openai_ran_in_the_course_of_a_conversation_is_left_out(kind: str) -> None:
    read = responses(USER, {"type": kind, "id": "x"}, USER)
    assert read.ignored == (f"input.{kind}",)
    assert len(read.request.messages) == 2


@pytest.mark.parametrize("kind", ["fallback", "mcp_tool_listing", "mcp_tool_use", "web_search_tool_result"])
def test_what_anthropic_ran_in_the_course_of_a_conversation_is_left_out(kind: str) -> None:
    said = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}, {"type": kind}]}
    read = messages(USER, said, USER)
    assert read.ignored == (f"messages.{kind}",)
    assert read.request.messages[1]["content"] == "Yes."
