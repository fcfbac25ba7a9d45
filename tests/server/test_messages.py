"""`/v1/messages` through Anthropic's own SDK, on recorded answers."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import Anthropic

from live_server import serving
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate

HI: Any = {"role": "user", "content": "Hi."}
ADD: Any = {
    "name": "add",
    "description": "Adds.",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}
NOW: Any = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
CALL = '<tool_call>\n{{"name": "add", "arguments": {{"a": {}, "b": {}}}}}\n</tool_call>'
EMPTY = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
COMMON: Any = {"model": "recorded", "max_tokens": 500, "extra_body": {"style": "hermes_2_pro"}}
REASONING = ChatTemplate(
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}"
    "{% if message.reasoning_content %}{{ '<think>\n' + message.reasoning_content + '\n</think>\n\n' }}{% endif %}"
    "{{ message.content | trim + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    bos_token="",
    eos_token="<|im_end|>",  # noqa: S106 - not a password
)


def client(address: str, key: str = "any") -> Anthropic:
    return Anthropic(base_url=address, api_key=key, max_retries=0)


def test_text() -> None:
    with serving(Replay(list("Hello."))) as address:
        said = client(address).messages.create(messages=[HI], system="Be brief.", **COMMON)
    assert [block.model_dump()["text"] for block in said.content] == ["Hello."]
    assert (said.stop_reason, said.usage.output_tokens) == ("end_turn", 6)


def test_a_stream_is_the_whole_with_events_in_their_order() -> None:
    text = f"Let me see. {CALL.format(1, 2)}\n{EMPTY}"
    with serving(Replay(list(text), list(text))) as address:
        options = {**COMMON, "messages": [HI], "tools": [ADD, NOW]}
        whole = client(address).messages.create(**options)
        with client(address).messages.stream(**options) as stream:
            kinds = [event.type for event in stream]
            streamed = stream.get_final_message()
    one, other = ([block.model_dump(exclude={"id"}) for block in said.content] for said in (whole, streamed))
    assert [block["type"] for block in one] == ["text", "tool_use", "tool_use"]
    assert [block["input"] for block in one[1:]] == [{"a": 1, "b": 2}, {}]
    assert [{k: v for k, v in block.items() if v is not None} for block in one] == [
        {k: v for k, v in block.items() if v is not None} for block in other
    ]
    assert (whole.stop_reason, streamed.stop_reason) == ("tool_use", "tool_use")
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 3


def test_a_tool_loop_to_a_final_answer() -> None:
    engine = Replay(f"{CALL.format(1, 2)}", "The sum is 3.")
    with serving(engine) as address:
        create = client(address).messages.create
        first = create(messages=[HI], tools=[ADD], tool_choice={"type": "tool", "name": "add"}, **COMMON)
        (call,) = first.content
        result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "3"}]}  # type: ignore[union-attr] - a call
        turns: Any = [HI, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second = create(messages=turns, tools=[ADD], **COMMON)
    assert second.content[0].model_dump()["text"] == "The sum is 3."
    assert '"a": 1' in engine.calls[1].text


def test_turns_of_one_role_that_follow_each_other_are_one() -> None:
    def turn(role: str, *blocks: Any) -> Any:
        return {"role": role, "content": list(blocks)}

    def use(id_: str) -> Any:
        return {"type": "tool_use", "id": id_, "name": "add", "input": {"a": 1, "b": 2}}

    def result(id_: str) -> Any:
        return {"type": "tool_result", "tool_use_id": id_, "content": f"of {id_}"}

    text: Any = {"type": "text", "text": "So."}
    conversations = [
        [HI, turn("assistant", use("a")), turn("assistant", use("b")), turn("user", result("a"), result("b"))],
        [HI, turn("assistant", use("a")), turn("assistant", text), turn("user", result("a"))],
        [HI, turn("assistant", use("a"), use("b")), turn("user", result("a"), text), turn("user", result("b"))],
        [HI, turn("assistant", use("a")), turn("user", text), turn("user", result("a"))],
        [HI, turn("assistant", text), {"role": "assistant", "content": " I"}],
    ]
    engine = Replay(*[" say."] * len(conversations))
    with serving(engine) as address:
        for turns in conversations:
            client(address).messages.create(messages=turns, tools=[ADD], **COMMON)
    prompts = [call.text.split("Hi.<|im_end|>")[1] for call in engine.calls]
    assert [prompt.count("<|im_start|>assistant") for prompt in prompts] == [2, 2, 2, 2, 1]
    assert [(prompt.count("<tool_call>"), prompt.count("of ")) for prompt in prompts] == [
        (2, 2),
        (1, 1),
        (2, 2),
        (1, 1),
        (0, 0),
    ]
    assert [prompt.find("So.") > prompt.find("of ") for prompt in prompts] == [False, False, True, True, True]
    assert prompts[-1].endswith("So. I")


def test_results_come_before_a_system_message_that_stands_between_them_and_their_calls() -> None:
    uses = [{"type": "tool_use", "id": id_, "name": "add", "input": {"a": 1, "b": 2}} for id_ in ("a", "b")]
    one, other = ({"type": "tool_result", "tool_use_id": id_, "content": f"of {id_}"} for id_ in ("a", "b"))
    calls: Any = {"role": "assistant", "content": uses}
    late: Any = {"role": "system", "content": "Be brief."}
    first, second = (
        {"role": "user", "content": [one, {"type": "text", "text": "So."}]},
        {"role": "user", "content": [other]},
    )
    for turns in ([calls, late, first, second], [calls, first, late, second], [calls, first, second, late]):
        engine = Replay(" say.")
        with serving(engine) as address:
            client(address).messages.create(messages=[HI, *turns], tools=[ADD], **COMMON)
        prompt = engine.calls[0].text.split("Hi.<|im_end|>")[1]
        assert re.findall("of a|of b|So|Be brief", prompt) == ["of a", "of b", "So", "Be brief"]


def test_an_answer_that_is_begun_is_not_repeated() -> None:
    engine = Replay(" 42.", " 42.")
    turns: Any = [HI, {"role": "assistant", "content": "The answer is"}]
    with serving(engine) as address:
        said = client(address).messages.create(messages=turns, **COMMON)
        with client(address).messages.stream(messages=turns, **COMMON) as stream:
            assert stream.get_final_text() == " 42."
    assert said.content[0].model_dump()["text"] == " 42."
    assert engine.calls[0].text.endswith("The answer is")


def whole_and_streamed(engine: Replay, **options: Any) -> list[list[Any]]:
    """The content of the same answer, asked for twice, without its ids."""
    with serving(engine, template=REASONING) as address:
        options = {**COMMON, "extra_body": {}, **options}
        whole = client(address).messages.create(**options)
        with client(address).messages.stream(**options) as stream:
            streamed = stream.get_final_message()
    return [[block.model_dump(exclude={"id"}, exclude_none=True) for block in one.content] for one in (whole, streamed)]


def test_what_a_template_trims_of_a_beginning_is_not_repeated() -> None:
    begun: Any = {"role": "assistant", "content": [{"type": "text", "text": "\n\nHe"}]}
    one, other = whole_and_streamed(Replay("llo there.", "llo there."), messages=[HI, begun])
    assert one == other == [{"type": "text", "text": "llo there."}]


def test_reasoning_that_is_begun_is_not_repeated() -> None:
    begun: Any = [{"type": "thinking", "thinking": "Hm.", "signature": "any"}, {"type": "text", "text": "He"}]
    turns: Any = [HI, {"role": "assistant", "content": begun}]
    one, other = whole_and_streamed(Replay("llo.", "llo."), messages=turns)
    assert one == other == [{"type": "text", "text": "llo."}]


def test_reasoning_is_signed_and_its_signature_is_taken_back() -> None:
    said = "<think>\nHm.\n</think>\n\nYes."
    one, other = whole_and_streamed(Replay(said, said), messages=[HI], extra_body={"style": "deepseek_r1"})
    assert one == other
    assert [block["type"] for block in one] == ["thinking", "text"]
    assert one[0]["signature"]
    with serving(Replay("Yes."), template=REASONING) as address:
        turns: Any = [HI, {"role": "assistant", "content": one}, HI]
        client(address).messages.create(messages=turns, model="recorded", max_tokens=9)


def test_the_tokens_of_reasoning_are_told() -> None:
    said = [*"<think>\nHm.\n</think>", "\n\nYes."]
    options: Any = {**COMMON, "messages": [HI], "max_tokens": 99, "extra_body": {"style": "deepseek_r1"}}
    with serving(Replay(said, said)) as address:
        whole = client(address).messages.create(**options)
        with client(address).messages.stream(**options) as stream:
            streamed = stream.get_final_message()
    for usage in (whole.usage, streamed.usage):
        assert usage.output_tokens_details
        assert 3 <= usage.output_tokens_details.thinking_tokens < usage.output_tokens == len(said)


def test_blocks_are_in_the_order_in_which_they_were_written() -> None:
    text = 'One.<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>Two.'
    engine = Replay(text, text, capabilities=Capabilities(unenforced=True))
    one, other = whole_and_streamed(engine, messages=[HI], tools=[NOW], extra_body={"style": "hermes_2_pro"})
    assert one == other
    assert [block["type"] for block in one] == ["text", "tool_use", "text"]


def test_a_stop_sequence_is_told() -> None:
    with serving(Replay("one, two", "one, two")) as address:
        said = client(address).messages.create(messages=[HI], stop_sequences=["x", ", "], **COMMON)
        with client(address).messages.stream(messages=[HI], stop_sequences=["x", ", "], **COMMON) as stream:
            streamed = stream.get_final_message()
    for one in (said, streamed):
        assert (one.content[0].model_dump()["text"], one.stop_reason, one.stop_sequence) == (
            "one",
            "stop_sequence",
            ", ",
        )


def test_a_stop_sequence_in_a_call_leaves_nothing_to_run() -> None:
    options: Any = {**COMMON, "messages": [HI], "tools": [ADD], "tool_choice": {"type": "any"}, "stop_sequences": ["b"]}
    text = list(CALL.format(1, 2))
    with serving(Replay(text, text)) as address:
        said = client(address).messages.create(**options)
        with client(address).messages.stream(**options) as stream:
            streamed = stream.get_final_message()
    for one in (said, streamed):
        assert (one.stop_reason, one.stop_sequence) == ("stop_sequence", "b")
    assert said.content[0].model_dump()["incomplete"] is True


class Small(Replay):
    """One whose context has room for three tokens of an answer."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The beginning of the recorded answer."""
        async with aclosing(super().generate(prompt, constraint, replace(sampling, max_tokens=3))) as chunks:
            async for chunk in chunks:
                yield chunk


@pytest.mark.parametrize(("most", "told"), [(4, "model_context_window_exceeded"), (3, "max_tokens")])
def test_the_end_of_the_context_is_told_apart_from_max_tokens(most: int, told: str) -> None:
    with serving(Small(list("abcdef"), list("abcdef"))) as address:
        said = client(address).messages.create(messages=[HI], **{**COMMON, "max_tokens": most})
        with client(address).messages.stream(messages=[HI], **{**COMMON, "max_tokens": most}) as stream:
            streamed = stream.get_final_message()
    assert (said.stop_reason, streamed.stop_reason) == (told, told)


def test_structured_output() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    body = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    engine = Replay('{"a": 1}')
    with serving(engine) as address:
        client(address).messages.create(model="recorded", max_tokens=50, messages=[HI], extra_body=body)
    assert engine.calls[0].constraint is not None


ORPHAN: Any = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "3"}]}
BAD: Any = {"name": "f", "input_schema": {"type": "objekt"}}
STRICT: Any = {"name": "f", "strict": True, "input_schema": {"properties": {"a": {"uniqueItems": True}}}}


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        ({"model": "other"}, anthropic.NotFoundError, "/model|no model"),
        ({"messages": []}, anthropic.BadRequestError, "/messages"),
        ({"messages": [ORPHAN]}, anthropic.BadRequestError, "/messages/0/content/0/tool_use_id"),
        ({"messages": [{"role": "robot", "content": "x"}]}, anthropic.BadRequestError, "/messages/0/role"),
        (
            {"messages": [HI, {"role": "user", "content": [{"type": "video"}]}]},
            anthropic.BadRequestError,
            "/messages/1",
        ),
        ({"tools": [BAD]}, anthropic.BadRequestError, "/tools/0/input_schema: type"),
        ({"tools": [STRICT]}, anthropic.BadRequestError, "/tools/0/input_schema/properties/a: uniqueItems"),
        (
            {"tools": [{"type": "bash_20250124"}], "tool_choice": {"type": "any"}},
            anthropic.BadRequestError,
            "/tool_choice",
        ),
        (
            {"tool_choice": {"type": "tool", "name": "g"}, "tools": [ADD]},
            anthropic.BadRequestError,
            "/tool_choice/name",
        ),
        ({"max_tokens": 0}, anthropic.BadRequestError, "/max_tokens"),
    ],
)
def test_errors_are_the_sdks_exceptions(options: Any, kind: type[anthropic.APIStatusError], told: str) -> None:
    with serving(Replay("x")) as address, pytest.raises(kind, match=told):
        client(address).messages.create(**{**COMMON, "messages": [HI], **options})


def test_keys_and_faults() -> None:
    with serving(Replay(list("abcdef"), fail_after=3), Settings(api_keys=("right",))) as address:
        with pytest.raises(anthropic.AuthenticationError):
            client(address).messages.create(messages=[HI], **COMMON)
        with client(address, "right").messages.stream(messages=[HI], **COMMON) as stream:
            said: list[str] = []
            with pytest.raises(anthropic.APIError, match="after 3 pieces"):
                said.extend(stream.text_stream)
    assert "".join(said) == "abc"


def test_models_have_their_shape() -> None:
    with serving(Replay()) as address:
        assert [model.id for model in client(address).models.list()] == ["recorded"]


def test_a_model_that_there_is_not_is_an_error_of_anthropics() -> None:
    with serving(Replay()) as address:
        with pytest.raises(anthropic.NotFoundError) as caught:
            client(address).models.retrieve("nope")
        other = httpx2.get(f"{address}/v1/models/nope").json()
    assert caught.value.body["type"] == "error"  # type: ignore[index] - the body of an error
    assert other["error"]["code"]


def test_an_engine_that_does_not_count() -> None:
    with serving(Replay()) as address, pytest.raises(anthropic.BadRequestError, match="does not count"):
        client(address).messages.count_tokens(model="recorded", messages=[HI])
