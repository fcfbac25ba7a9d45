"""`reasoning_max_tokens`: the thoughts are closed where they are too long, and the required call still comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

import toolgram
from situations import CHATML, WEATHER, tool
from toolgram import ChatTemplate, InvalidRequest, Message, ToolCall
from toolgram.chat import Reply, generate_sync
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.replay import Replay
from toolgram.models.catalog import default_model
from toolgram.planning.readable_names import some_id
from toolgram.styles.native import NATIVE
from toolgram.wire import format as wire

OPENED = ChatTemplate(CHATML.source + "{% if add_generation_prompt %}<think>\n{% endif %}")
CALL = '<tool_call>\n{"name": "look", "arguments": {"city": "Oslo"}}\n</tool_call>'
THOUGHT = ["Well", ", ", "let ", "me ", "see", " ..."]
REASONING = [style for style in NATIVE if wire.holds(style.wire.turn, wire.Reasoning)]


def planned(template: ChatTemplate = OPENED, style: str = "hermes", **more: Any) -> toolgram.Plan:
    request = {
        "messages": [{"role": "user", "content": "Rain?"}],
        "tools": [tool("look", WEATHER)],
        "tool_choice": "required",
        "reasoning_max_tokens": 3,
    }
    return toolgram.plan(request | more, template, style)


def test_thoughts_are_closed_and_the_call_follows() -> None:
    engine = Replay(THOUGHT, CALL)
    reply = generate_sync(planned(), engine)
    assert reply.message.reasoning == "Well, let "
    assert [call.arguments for call in reply.message.tool_calls] == ['{"city": "Oslo"}']
    assert reply.text == "Well, let \n</think>" + CALL
    assert reply.usage.completion_tokens == 4
    first, second = engine.calls
    assert second.prompt == (*first.prompt, ("Well, let \n", False), ("</think>", True))
    assert second.constraint is not None
    assert not second.constraint.grammar.accepts("So on.\n</think>\n\n" + CALL)  # type: ignore[attr-defined]
    assert second.constraint.grammar.accepts("\n\n" + CALL)  # type: ignore[attr-defined]


def test_thoughts_that_end_in_time_are_left_alone() -> None:
    engine = Replay(["Oslo.", "\n</think>\n\n", CALL])
    assert generate_sync(planned(), engine).message.reasoning == "Oslo."
    assert len(engine.calls) == 1


def test_a_closer_that_has_begun_is_completed() -> None:
    reply = generate_sync(planned(), Replay(["a", "b", "c\n</th", "ink"], "\n\n" + CALL))
    assert reply.text == "abc\n</think>\n\n" + CALL
    assert reply.message.reasoning == "abc"


def test_no_thoughts_at_all() -> None:
    engine = Replay("\n\n" + CALL)
    reply = generate_sync(planned(reasoning_max_tokens=0), engine)
    assert (reply.message.reasoning, len(reply.message.tool_calls), len(engine.calls)) == (None, 1, 1)
    assert engine.calls[0].text.endswith("<think>\n\n</think>")


def test_thoughts_that_the_model_opens_count_too() -> None:
    reply = generate_sync(planned(CHATML), Replay(["<think>", "\n", *THOUGHT], "\n\n" + CALL))
    assert reply.message.reasoning == "Well, "
    assert reply.message.tool_calls


def test_without_a_grammar_thoughts_are_closed_too() -> None:
    engine = Replay(THOUGHT, "\n\nNo.", capabilities=Capabilities())
    reply = generate_sync(planned(tools=[], tool_choice="none"), engine)
    assert reply.message == Message("No.", "Well, let ")


def test_max_tokens_count_what_was_written_before() -> None:
    engine = Replay(THOUGHT, CALL)
    generate_sync(planned(), engine, Sampling(max_tokens=200))
    assert [call.sampling.max_tokens for call in engine.calls] == [200, 197]


@pytest.mark.parametrize("style", REASONING, ids=lambda style: style.name)
def test_every_style_that_reasons_can_be_cut(style: toolgram.ToolStyle) -> None:
    plan = planned(CHATML, style.name)
    call = ToolCall("look", '{"city": "Oslo"}', some_id("look", style.wire))
    written = plan.write(Message(None, "zqthought", (call,)))
    assert written is not None
    begin = written[: written.index("zqthought")]
    engine = Replay([begin, *THOUGHT], "")
    chunks = [begin, *THOUGHT]
    try:
        generate_sync(plan, engine)
    except toolgram.EngineError as error:
        pytest.fail(str(error))
    closed = "".join(text for text, _ in engine.calls[1].prompt[len(plan.prompt_parts) :])
    assert closed.startswith(begin + chunks[1])
    constraint = engine.calls[1].constraint
    assert constraint is not None
    for seed in range(5):
        message = plan.parse(closed + constraint.grammar.sample(seed))  # type: ignore[attr-defined]
        assert (message.reasoning or "").strip() in "Well, let me"
        assert {call.name for call in message.tool_calls} == {"look"}


@pytest.mark.parametrize("value", [-1, 1.5, True, "3"])
def test_what_is_no_number_of_tokens_is_refused(value: Any) -> None:
    with pytest.raises(
        InvalidRequest, match=r"/reasoning_max_tokens: must be (a whole number|a number|at least 0), not"
    ):
        planned(reasoning_max_tokens=value)


def test_thoughts_that_cannot_be_told_or_closed_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="/reasoning_max_tokens: with reasoning_format"):
        planned(reasoning_format="none")


def test_thoughts_in_json_are_closed_too() -> None:
    begin = '{"thought_about_next_step_only": "'
    rest = ', "next_step": {"tool_calls": [{"name": "look", "arguments": {"city": "Oslo"}}]}}'
    plan = planned(CHATML, "thoughtful_steps")
    for thought, said in ((["a", "b", "never"], "ab"), (["a", "b\\", "nc", "never"], "ab\nc")):
        engine = Replay([begin, *thought], rest)
        reply = generate_sync(plan, engine)
        assert reply.message.reasoning == said
        assert [call.name for call in reply.message.tool_calls] == ["look"]
        assert len(engine.calls) == 2
        assert reply.usage.reasoning_closed


def test_max_tokens_leave_room_for_what_must_follow() -> None:
    endless = ["word "] * 200
    plan = planned(reasoning_max_tokens=None)
    assert plan.after_reasoning is not None
    engine = Replay(endless, "\n\n" + CALL)
    reply = generate_sync(plan, engine, Sampling(max_tokens=plan.after_reasoning + 20))
    assert reply.message.reasoning == "word " * 20
    assert [call.name for call in reply.message.tool_calls] == ["look"]
    assert reply.usage.reasoning_tokens == 20
    assert reply.usage.reasoning_closed
    # A call that need not follow reserves nothing; nor does a model that does not reason.
    assert planned(reasoning_max_tokens=None, tool_choice="auto").after_reasoning is None
    assert planned(CHATML, reasoning_max_tokens=None).after_reasoning is None


def test_a_small_model_that_goes_on_and_on_calls_the_tool() -> None:
    template = ChatTemplate.from_gguf(default_model())
    template = ChatTemplate(template.source + "{% if add_generation_prompt %}<think>\n{% endif %}", "", "<|im_end|>")
    engine = LlamaCpp(default_model())
    try:
        plan = planned(template, reasoning_max_tokens=12, parallel_tool_calls=False)
        reply: Reply = generate_sync(plan, engine, Sampling(max_tokens=120))
        prompt_tokens = engine.count_tokens(plan.prompt_parts)
    finally:
        engine.close()
    assert reply.message.reasoning
    assert len(reply.message.reasoning.split()) <= 12
    assert [call.name for call in reply.message.tool_calls] == ["look"]
    # It costs what the prompt and the answer have, though the model was asked twice; nothing was there before.
    assert reply.usage.prompt_tokens == prompt_tokens
    assert reply.usage.cached_tokens == 0


class Counting(Replay):
    """Tells how many characters the prompt has, at the end alone: it takes no breaking off."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        async for chunk in super().generate(prompt, constraint, sampling):
            size = sum(len(text) for text, _ in prompt)
            yield chunk if chunk.usage is None else replace(chunk, usage=replace(chunk.usage, prompt_tokens=size))


def test_what_was_thought_is_no_part_of_the_prompt() -> None:
    plan = planned()
    usage = generate_sync(plan, Counting(["a", "b", "c", "d"], CALL)).usage
    assert usage.prompt_tokens == len(plan.prompt) + len("\n</think>")  # which nobody has counted
    assert usage.completion_tokens == 4
