"""What a format knows of itself, and how it is changed: whatever asks for a fact gets the same answer."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import CHATML, tool
from toolgram import Message, ToolStyle
from toolgram.chat import generate_sync
from toolgram.engines.base import Capabilities
from toolgram.engines.replay import Replay
from toolgram.styles.registry import all_styles
from toolgram.wire import format as wire
from toolgram.wire.allowed import read_reasoning_alone, ways_to_reason, without_reasoning
from toolgram.wire.encodings import JSON, PYTHON
from toolgram.wire.format import (
    NOTHING_WRITTEN,
    Alt,
    Arguments,
    Array,
    Break,
    Call,
    CallId,
    Chain,
    Content,
    Lenient,
    Lit,
    Many,
    Mark,
    Name,
    Object,
    Opt,
    Reasoning,
    Seq,
    WireFormat,
    as_written,
    rebuild,
    walk,
)

THINK = Seq(Mark("<think>", ("<thinking>",)), Reasoning(), Mark("</think>"))
CALL = Call(Seq(Mark("<call>"), Name(), Mark("#"), CallId(), Mark("|"), Arguments()))
FORMAT = WireFormat(
    Seq(Opt(THINK), Opt(Content()), Many(CALL), Lenient(NOTHING_WRITTEN, Mark("<over>"), Arguments(PYTHON)))
)
STYLES = {style.name: style.wire for style in all_styles()}
each_style = pytest.mark.parametrize("format_", STYLES.values(), ids=STYLES)
REQUEST: dict[str, Any] = {"messages": [{"role": "user", "content": "Rain?"}]}


def test_a_break_stands_between_an_answer_and_a_call_and_is_none_of_either() -> None:
    calls = Many(Call(Seq(Mark("<call>"), Name(), Mark("|"), Arguments())), min=1)
    style = ToolStyle("breaks", WireFormat(Seq(Opt(Content()), Opt(Seq(Break("\n"), calls)))), "")
    plan = toolgram.plan({**REQUEST, "tools": [tool("get", {})]}, CHATML, style)
    assert plan.constraint is not None
    call = "<call>get|{}"
    for content, text in {None: call, "Hm.": f"Hm.\n{call}", "Hm.\n": f"Hm.\n\n{call}"}.items():
        message = Message(content, None, (toolgram.ToolCall("get", "{}"),))
        assert plan.write(message) == text
        for end in range(len(text)):
            reader = plan.reader()
            assert (
                Message.from_events([*reader.feed(text[:end]), *reader.feed(text[end:]), *reader.finish()]) == message
            )
        assert plan.constraint.grammar.accepts(text)
    assert plan.constraint.grammar.accepts(f"Hm.{call}")
    assert plan.parse(f"Hm.{call}").content == "Hm."
    assert plan.parse("Hm.\n").content == "Hm.\n"
    forced = toolgram.plan({**REQUEST, "tools": [tool("get", {})], "tool_choice": "required"}, CHATML, style)
    assert forced.constraint is not None
    assert not forced.constraint.grammar.accepts(f"\n{call}")


def test_a_format_knows_its_facts() -> None:
    assert FORMAT.marks == ("<think>", "<thinking>", "</think>", "<call>", "#", "|", "<over>")
    assert FORMAT.call_id == CallId()
    assert FORMAT.reasoning
    assert FORMAT.encodings == (JSON,)  # the other is only read
    assert WireFormat(Opt(Content())).call_id is None


def test_facts_are_found_once() -> None:
    assert FORMAT.marks is FORMAT.marks
    assert WireFormat(FORMAT.turn) == FORMAT
    assert hash(FORMAT) == hash(WireFormat(FORMAT.turn))


def test_reasoning_that_is_only_read_has_no_place() -> None:
    assert not read_reasoning_alone(FORMAT).reasoning
    assert wire.holds(read_reasoning_alone(FORMAT).turn, Reasoning)


@each_style
def test_what_changes_nothing_leaves_the_format_as_it_is(format_: WireFormat) -> None:
    assert rebuild(format_.turn, lambda node: node) == format_.turn


@each_style
def test_nothing_is_left_of_what_is_taken_out(format_: WireFormat) -> None:
    assert not any(isinstance(node, Lenient) for node in walk(as_written(format_.turn)))
    assert not wire.holds(without_reasoning(format_.turn), Reasoning)


def gone(node: wire.Node) -> wire.Node | None:
    """The node without any name."""
    return None if isinstance(node, Name) else rebuild(node, gone)


@pytest.mark.parametrize(
    ("node", "left"),
    [
        (Seq(Lit("a"), Name()), None),
        (Alt(Name(), Lit("a")), Alt(Lit("a"))),
        (Alt(Name()), None),
        (Opt(Name()), NOTHING_WRITTEN),
        (Many(Name()), NOTHING_WRITTEN),
        (Many(Name(), min=1), None),
        (Many(Lit("a"), separator=Name()), NOTHING_WRITTEN),
        (Chain(Opt(Name()), Lit("a"), join=Lit("b")), Chain(Lit("a"), join=Lit("b"))),
        (Chain(Lit("a"), join=Name()), None),
        (Lenient(Name(), Lit("a")), None),
        (Lenient(Lit("a"), Name(), Lit("b")), Lenient(Lit("a"), Lit("b"))),
        (Call(Seq(Name())), None),
        (Array(Name()), None),
        (Object(("a", Name()), ("b", Arguments())), None),
        (Seq(Opt(Seq(Lit("a"), Name())), Content()), Seq(NOTHING_WRITTEN, Content())),
    ],
)
def test_what_cannot_be_without_a_part_goes_with_it(node: wire.Node, left: wire.Node | None) -> None:
    assert gone(node) == left


def test_reasoning_in_a_chain_can_always_be_there() -> None:
    chain = Chain(Opt(THINK), Opt(Content()), join=Lit("\n"))
    assert [each.turn for each in ways_to_reason(WireFormat(chain))] == [Chain(THINK, Opt(Content()), join=Lit("\n"))]
    assert read_reasoning_alone(WireFormat(chain)).turn == chain  # an empty segment would have a join beside it


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
ANSWERS = {
    "hermes": "",
    "harmony": "<|start|>assistant<|channel|>final<|message|>",
    "functionary_v3": ">>>all\n",
    "functionary_v2": "<|from|>assistant\n<|recipient|>all\n<|content|>",
}


@pytest.mark.parametrize("style", ANSWERS)
def test_an_answer_in_a_fence_is_read_wherever_an_answer_may_stand(style: str) -> None:
    answer = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
    plan = toolgram.plan(REQUEST | {"response_format": answer, "tools": [tool("f", None)]}, CHATML, style)
    assert plan.parse(ANSWERS[style] + '```json\n{"a": 1}\n```') == Message('{"a": 1}')


def cut(style: ToolStyle, *thought: str) -> Replay:
    """What is asked of the engine where a turn of the style is cut short in its reasoning."""
    plan = toolgram.plan(REQUEST | {"reasoning_max_tokens": 2}, CHATML, style)
    engine = Replay([*thought, "a", "b", "c"], "No.", capabilities=Capabilities())
    generate_sync(plan, engine)
    return engine


def test_a_mark_is_one_in_any_spelling_where_a_cut_turn_goes_on() -> None:
    style = ToolStyle("own", FORMAT, "", reasons=True)
    assert cut(style, "<thinking>").calls[1].prompt[-3:] == (("<thinking>", True), ("a", False), ("</think>", True))


def test_marks_are_those_of_the_turn_that_is_written() -> None:
    without = WireFormat(Seq(Opt(Seq(Mark("<muse>"), Reasoning(), Mark("</muse>"))), Opt(Content())))
    calls = WireFormat(Seq(Opt(Content()), Many(Call(Seq(Mark("<call>"), Name(), Arguments())))))
    style = ToolStyle("own", calls, "", announce=lambda _: "Call.", without_tools=without, reasons=True)
    assert cut(style, "<muse>").calls[1].prompt[-3:] == (("<muse>", True), ("a", False), ("</muse>", True))
