"""A plan and an engine together, on recorded text."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from situations import CHATML, WEATHER, tool
from toolgram.chat import Reply, generate, generate_sync, stream
from toolgram.conversation.events import ArgumentsDelta, ContentDelta, Event, Finish, ToolCallEnd, ToolCallStart
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.replay import Replay
from toolgram.grammar.constraint import Constraint
from toolgram.grammar.ir import Choice, Expr, Repeat, Sequence, Token
from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Call, CallId, Content, Lit, Many, Mark, Name, Opt, Seq, WireFormat

QUESTION = {"messages": [{"role": "user", "content": "Will it rain?"}], "tools": [tool("get_weather", WEATHER)]}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
LATE_ID = ToolStyle(
    "late_id",
    WireFormat(
        Seq(
            Opt(Content()),
            Many(Call(Seq(Mark("[CALL]"), Name(), Lit(" "), Arguments(), Mark("[ID]"), CallId(), Mark("[END]")))),
        )
    ),
    "ids come last",
    announce=lambda about: f"{len(about.tools)} tools",
)


def planned(**more: Any) -> toolgram.Plan:
    return toolgram.plan({**QUESTION, **more}, CHATML, "long")


def numbered() -> Iterator[str]:
    return (f"call_{n}" for n in itertools.count(1))


def collected(plan: toolgram.Plan, engine: Replay, sampling: Sampling | None = None) -> list[Chunk | Event | Reply]:
    ids = numbered()

    async def collect() -> list[Chunk | Event | Reply]:
        return [item async for item in stream(plan, engine, sampling, new_id=lambda: next(ids))]

    return asyncio.run(collect())


def test_a_call_is_read_as_it_comes() -> None:
    items = collected(planned(), Replay(["Let me see.", CALL[:40], CALL[40:]]))
    events = [item for item in items if not isinstance(item, Chunk | Reply)]
    assert events[0] == ContentDelta("Let me see.")
    assert events[1] == ToolCallStart(0, "get_weather", "call_1")
    assert "".join(event.text for event in events if isinstance(event, ArgumentsDelta)) == '{"city": "Paris"}'
    assert events[-2:] == [ToolCallEnd(0), Finish("tool_calls")]
    assert [item.text for item in items if isinstance(item, Chunk)] == ["Let me see.", CALL[:40], CALL[40:], ""]


def test_the_reply_holds_message_text_reason_and_cost() -> None:
    reply = generate_sync(planned(), Replay(["Yes", "."]))
    assert reply.message == toolgram.Message("Yes.")
    assert (reply.text, reply.finish_reason, reply.usage.completion_tokens) == ("Yes.", "stop", 2)


@given(st.sets(st.integers(1, 2 * len(CALL))))
def test_the_message_does_not_depend_on_the_cuts(cuts: set[int]) -> None:
    text = f"{CALL}\n{CALL}"
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    ids = numbered()
    engine = Replay([text[a:b] for a, b in itertools.pairwise(edges)])
    reply = generate_sync(planned(), engine, new_id=lambda: next(ids))
    call = toolgram.ToolCall("get_weather", '{"city": "Paris"}')
    expected = [toolgram.ToolCall(call.name, call.arguments, id_) for id_ in ("call_1", "call_2")]
    assert reply.message == toolgram.Message(tool_calls=tuple(expected))
    assert reply.finish_reason == "tool_calls"


def ids_of(plan: toolgram.Plan, text: str, seed: int | None = None) -> list[str | None]:
    return [call.id for call in generate_sync(plan, Replay(text), Sampling(seed=seed)).message.tool_calls]


def test_ids_are_openais_and_new() -> None:
    one, other = ids_of(planned(), f"{CALL}\n{CALL}")
    assert one != other
    for id_ in (one, other):
        assert re.fullmatch("call_[0-9a-f]{24}", id_ or "")


def test_a_seed_gives_the_same_ids_for_the_same_prompt() -> None:
    assert ids_of(planned(), CALL, seed=7) == ids_of(planned(), CALL, seed=7) != ids_of(planned(), CALL, seed=8)
    other = planned(messages=[{"role": "user", "content": "And tomorrow?"}])
    assert ids_of(other, CALL, seed=7) != ids_of(planned(), CALL, seed=7)


def test_ids_have_the_form_of_the_family() -> None:
    """Mistral's templates refuse others; Kimi's count over the conversation; here the model left them out."""
    earlier = [
        *QUESTION["messages"],
        {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "get_weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "x", "content": "Rain."},
    ]
    nemo = toolgram.plan(QUESTION, CHATML, "mistral_nemo")
    (id_,) = ids_of(nemo, '[TOOL_CALLS][{"name": "get_weather", "arguments": {}}]')
    assert re.fullmatch("[a-zA-Z0-9]{9}", id_ or "")
    kimi = toolgram.plan({**QUESTION, "messages": earlier}, CHATML, "kimi_k2").call_ids()
    assert [kimi("get_weather", 0), kimi("get", 1)] == ["functions.get_weather:1", "functions.get:2"]


def test_no_two_calls_have_one_id() -> None:
    """Models copy ids, their own of the same turn and those of earlier ones; clients tell calls by them."""

    def nemo(*ids: str) -> str:
        calls = (f'{{"name": "get_weather", "arguments": {{"city": "Oslo"}}, "id": "{id_}"}}' for id_ in ids)
        return f"[TOOL_CALLS][{', '.join(calls)}]"

    earlier = [
        *QUESTION["messages"],
        {"role": "assistant", "tool_calls": [{"id": "aaaaaaaaa", "function": {"name": "now", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "aaaaaaaaa", "content": "Noon."},
    ]
    plan = toolgram.plan({**QUESTION, "messages": earlier}, CHATML, "mistral_nemo")
    ids = ids_of(plan, nemo("aaaaaaaaa", "bbbbbbbbb", "bbbbbbbbb"))
    assert ids[1] == "bbbbbbbbb"
    assert len({*ids, "aaaaaaaaa"}) == 4
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", id_ or "") for id_ in ids)
    section = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
    call = "<|tool_call_begin|>functions.get_weather:{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    text = section.format("".join(map(call.format, (0, 0, 1, 2))))
    counted = ids_of(toolgram.plan(QUESTION, CHATML, "kimi_k2"), text)
    assert counted == [f"functions.get_weather:{at}" for at in range(4)]
    function = {"name": "get_weather", "arguments": "{}"}
    called = [
        {"role": "assistant", "tool_calls": [{"id": f"functions.get_weather:{at}", "function": function}]}
        for at in range(2)
    ]
    again = toolgram.plan({**QUESTION, "messages": [*called, *QUESTION["messages"]]}, CHATML, "kimi_k2")
    counted = ids_of(again, section.format(call.format(0) + call.format(1) + call.format(7)))
    assert counted == [f"functions.get_weather:{at}" for at in (2, 3, 7)]


def test_ids_are_short_where_the_template_takes_no_others() -> None:
    strict = toolgram.ChatTemplate(
        "{% for m in messages %}[{{ m.role }}]{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "{% if (c.id or '')|length != 9 %}{{ raise_exception('ids have 9 characters') }}{% endif %}"
        "[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
        "{% if tools %}{{ tools | tojson }}{% endif %}"
    )
    assert strict.capabilities.requires_short_ids
    (id_,) = ids_of(toolgram.plan(QUESTION, strict, "ministral"), '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}')
    assert re.fullmatch("[a-zA-Z0-9]{9}", id_ or "")


def test_an_id_of_the_wire_stays() -> None:
    plan = toolgram.plan(QUESTION, CHATML, LATE_ID)
    items = collected(plan, Replay('[CALL]get_weather {"city": "Rome"}[ID]abcdef123[END]'))
    assert ToolCallStart(0, "get_weather", None) in items
    assert ToolCallEnd(0, "abcdef123") in items
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert reply.message.tool_calls == (toolgram.ToolCall("get_weather", '{"city": "Rome"}', "abcdef123"),)


def test_a_call_cut_off_before_its_id_gets_one() -> None:
    plan = toolgram.plan(QUESTION, CHATML, LATE_ID)
    reply = collected(plan, Replay(['[CALL]get_weather {"city', "never"]), Sampling(max_tokens=1))[-1]
    assert isinstance(reply, Reply)
    assert reply.message.tool_calls == (toolgram.ToolCall("get_weather", '{"city', "call_1", incomplete=True),)
    assert reply.finish_reason == "length"


def test_stops_of_plan_and_caller_both_hold() -> None:
    engine = Replay("It will.\n<|im_end|>junk")
    reply = generate_sync(planned(), engine, Sampling(stop=("\n", "<|im_end|>")))
    assert reply.text == "It will."
    assert engine.calls[0].sampling.stop == ("\n", "<|im_end|>")
    assert engine.calls[0].sampling.ends == ("<|im_end|>",)


@pytest.mark.parametrize("capabilities", [None, Capabilities(unenforced=True)])
@pytest.mark.parametrize(
    ("stop", "arguments", "dropped"),
    [("ris", '{"city": "Pa', 0), ('"}}', '{"city": "Paris', 0), ("\n", None, 1), ("nam", None, 1)],
)
def test_a_stop_string_in_a_call_cuts_it(
    stop: str, arguments: str | None, dropped: int, capabilities: Capabilities | None
) -> None:
    engine = Replay(list(CALL)) if capabilities is None else Replay(list(CALL), capabilities=capabilities)
    reply = generate_sync(planned(), engine, Sampling(stop=(stop,)))
    assert (reply.finish_reason, reply.stopped_by, reply.dropped_calls) == ("stop", stop, dropped)
    assert [(call.arguments, call.incomplete) for call in reply.message.tool_calls] == (
        [] if arguments is None else [(arguments, True)]
    )
    assert reply.message.content is None


def test_a_stop_string_behind_a_call_leaves_it_to_be_run() -> None:
    reply = generate_sync(planned(), Replay(list(f"{CALL}\n\n")), Sampling(stop=("\n\n",)))
    assert (reply.finish_reason, [call.incomplete for call in reply.message.tool_calls]) == ("tool_calls", [False])


def test_without_a_grammar_a_spelled_end_of_turn_stops_too() -> None:
    engine = Replay("It will.<|im_end|>junk")
    plan = toolgram.plan({"messages": QUESTION["messages"]}, CHATML)
    assert generate_sync(plan, engine).text == "It will."
    assert engine.calls[0].sampling.stop == ("<|im_end|>",)


def test_the_engine_is_given_parts_and_a_bound_constraint() -> None:
    class WithTokens(Replay):
        vocabulary: Mapping[str, int] = {"<tool_call>": 7}

    engine, plan = WithTokens(CALL), planned(tool_choice="required")
    generate_sync(plan, engine)
    call = engine.calls[0]
    assert call.prompt == plan.prompt_parts
    assert plan.constraint is not None
    assert isinstance(call.constraint, Constraint)
    assert call.constraint == plan.constraint.bind(engine.vocabulary)
    assert Token("<tool_call>", 7) in tokens(call.constraint.grammar.rules.values())


def test_an_engine_without_special_tokens_gets_the_constraint_as_it_is() -> None:
    engine = Replay(CALL, capabilities=Capabilities(dialects=("gbnf",)))
    plan = planned()
    generate_sync(plan, engine)
    assert engine.calls[0].constraint is plan.constraint


def test_no_constraint_where_nothing_is_to_be_constrained() -> None:
    engine = Replay("Hello.", capabilities=Capabilities())
    plan = toolgram.plan({"messages": QUESTION["messages"]}, CHATML)
    assert generate_sync(plan, engine).message.content == "Hello."
    assert engine.calls[0].constraint is None


def test_an_engine_that_cannot_constrain_is_refused() -> None:
    with pytest.raises(toolgram.EngineError, match="cannot constrain"):
        generate_sync(planned(), Replay(CALL, capabilities=Capabilities()))


def test_a_failure_of_the_engine_comes_through() -> None:
    with pytest.raises(toolgram.EngineError, match="failed after 1"):
        generate_sync(planned(), Replay(["one", "two"], fail_after=1))


def test_an_engine_stopped_by_another_hand_is_an_error() -> None:
    class Closed(Replay):
        async def generate(
            self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
        ) -> AsyncGenerator[Chunk, None]:
            yield Chunk("half", finish="cancelled")

    with pytest.raises(toolgram.EngineError, match="before the answer was complete"):
        asyncio.run(generate(planned(), Closed()))


def test_closing_the_stream_closes_the_engine() -> None:
    class Watched(Replay):
        ended = False

        async def generate(
            self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
        ) -> AsyncGenerator[Chunk, None]:
            try:
                async for chunk in super().generate(prompt, constraint, sampling):
                    yield chunk
            finally:
                self.ended = True

    async def leave_early(engine: Watched) -> None:
        async with aclosing(stream(planned(), engine)) as items:
            async for _ in items:
                return

    engine = Watched(["one", "two", "three"])
    asyncio.run(leave_early(engine))
    assert engine.ended


def tokens(exprs: Iterable[Expr]) -> Iterator[Token]:
    """All tokens in these expressions."""
    for expr in exprs:
        match expr:
            case Token():
                yield expr
            case Sequence(inside) | Choice(inside):
                yield from tokens(inside)
            case Repeat(item):
                yield from tokens([item])
            case _:
                pass


FREE = Capabilities(unenforced=True)
WRONG = '{"name": "get_weather", "arguments": {"days": 99, "city": "Rome"}}'
RIGHT = '```json\n{"name": "get_weather", "arguments": {"days": 3, "city": "Rome"}}\n```'


@pytest.mark.parametrize("style", ["long", "hermes", "kimi_k2", "thoughtful_steps"])
def test_an_engine_that_enforces_nothing_is_checked_and_says_so(style: str) -> None:
    plan = toolgram.plan({**QUESTION, "tool_choice": "required"}, CHATML, style)
    for text, calls, valid in ((RIGHT, 1, True), ("No.", 0, False), ('{"name": "get_weather", "argum', None, False)):
        engine = Replay(text, capabilities=FREE)
        reply = generate_sync(plan, engine)
        assert reply.valid is valid
        assert calls is None or len(reply.message.tool_calls) == calls
        assert reply.relaxations[0].keyword == "grammar"
        assert engine.calls[0].constraint is None
    assert not generate_sync(plan, Replay(WRONG, capabilities=FREE)).valid


def test_what_is_not_valid_is_asked_for_again() -> None:
    engine = Replay(WRONG, "No.", RIGHT, "never", capabilities=FREE)
    plan = planned(tool_choice="required")
    reply = generate_sync(plan, engine, Sampling(seed=4), retries=5)
    assert reply.valid
    assert [(call.sampling.seed, call.sampling.temperature) for call in engine.calls] == [(4, 0.0), (5, 0.7), (6, 0.7)]
    reply = generate_sync(plan, Replay(WRONG, WRONG, capabilities=FREE), retries=1)
    assert not reply.valid
    with pytest.raises(toolgram.EngineError, match="at least 0"):
        generate_sync(plan, Replay(WRONG), retries=-1)


def test_an_engine_that_enforces_adds_no_relaxation() -> None:
    plan = planned()
    reply = generate_sync(plan, Replay(CALL))
    assert (reply.valid, reply.relaxations) == (True, plan.relaxations)
