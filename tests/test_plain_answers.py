"""`response_format` of type regex and choice: the answer is a text, and no other."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepts
from oracles import ebnf_accepts, lark_accepts, structural_tag_accepts
from situations import CHATML, WEATHER, tool
from toolgram import InvalidRequest, Message, ToolCall
from toolgram.styles.registry import style_names

DATE = {"type": "regex", "regex": r"\d{4}-(0[1-9]|1[0-2])-[0-3]\d|never"}
MOOD = {"type": "choice", "choice": ["good", "bad", "so-so <ok>", '"quoted"\n']}
TEXTS = ["2024-05-17", "never", "2024-13-17", "nevermore", "good", "so-so <ok>", '"quoted"\n', "goodbad", ""]


def planned(answer: dict[str, Any], style: str = "hermes", **more: Any) -> toolgram.Plan:
    request = {"messages": [{"role": "user", "content": "When?"}], "response_format": answer}
    return toolgram.plan(request | more, CHATML, style)


def test_the_rules_of_a_regex_may_refer_to_one_another() -> None:
    plan = planned({"type": "regex", "regex": r"((\w)*x|(\w)*xb)"})
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    for text in ("x", "ax", "axb", "xx", "xbx", "ab", "b", ""):
        expected = re.fullmatch(r"\w*xb?", text) is not None
        assert grammar.accepts(text) == expected
        assert gbnf_accepts(grammar.to("gbnf"), text) == expected
        assert lark_accepts(grammar.to("lark"), text) == expected


@pytest.mark.parametrize("answer", [DATE, MOOD], ids=["regex", "choice"])
def test_only_such_texts_are_admitted(answer: dict[str, Any]) -> None:
    plan = planned(answer)
    assert plan.constraint is not None
    grammar, tag = plan.constraint.grammar, plan.constraint.structural_tag()
    for text in TEXTS:
        expected = text in answer["choice"] if "choice" in answer else bool(re.fullmatch(answer["regex"], text))
        assert grammar.accepts(text) == expected, text
        assert lark_accepts(grammar.to("lark"), text) == expected
        assert ebnf_accepts(grammar.to("ebnf"), text) == expected
        assert gbnf_accepts(grammar.to("gbnf"), text) == expected
        assert structural_tag_accepts(tag, text) == expected
        assert plan.writable(Message(text or None)) == expected
        if expected:
            assert plan.parse(text) == Message(text)


@pytest.mark.parametrize("style", style_names())
@pytest.mark.parametrize("answer", [DATE, MOOD], ids=["regex", "choice"])
def test_beside_tools_it_is_a_call_or_an_answer(answer: dict[str, Any], style: str) -> None:
    plan = planned(answer, style, tools=[tool("look", WEATHER)])
    assert plan.constraint is not None
    contents: set[str] = set()
    for seed in range(40):
        message = plan.parse(plan.constraint.grammar.sample(seed))
        assert bool(message.tool_calls) != bool(message.content)
        assert {call.name for call in message.tool_calls} <= {"look"}
        contents.add(message.content or "never")
    known = answer.get("choice")
    assert all(text in (*known, "never") if known else re.fullmatch(answer["regex"], text) for text in contents)
    assert len(contents) > 1


def test_chunks_do_not_matter() -> None:
    plan = planned(MOOD, tools=[tool("look", WEATHER)])
    rng = random.Random(1)
    for text in MOOD["choice"]:
        cuts = sorted(rng.sample(range(1, len(text)), 2))
        pieces = [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]
        reader = plan.reader()
        events = [event for piece in pieces for event in reader.feed(piece)] + reader.finish()
        assert Message.from_events(events) == Message(text)


def test_a_call_can_be_written_beside_it() -> None:
    plan = planned(DATE, tools=[tool("look", WEATHER)])
    assert plan.writable(Message(None, None, (ToolCall("look", '{"city": "Oslo"}'),)))
    assert not plan.writable(Message("soon"))


def test_the_model_is_told() -> None:
    assert (planned(DATE).format_prompt or "").endswith("that matches the regular expression " + DATE["regex"])
    assert (planned(MOOD).format_prompt or "").endswith(
        '"good","bad","so-so <ok>","\\"quoted\\"\\n"'.replace(",", ", ")
    )


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        ({"type": "regex", "regex": "(a"}, "/response_format/regex: a group that is not closed at offset 0"),
        ({"type": "regex", "regex": "a[b"}, "/response_format/regex: a class that is not closed at offset 1"),
        ({"type": "regex", "regex": "a**"}, "/response_format/regex: nothing to repeat at offset 2"),
        (
            {"type": "regex", "regex": r"[)]\)a)|(b"},
            "/response_format/regex: a group is closed that is not open, at offset 6",
        ),
        ({"type": "regex", "regex": r"(a)\1"}, "/response_format/regex: the backreference"),
        ({"type": "regex", "regex": "<tool_call>"}, "/response_format/regex: no text matches, or only such"),
        ({"type": "choice", "choice": []}, "/response_format: must be"),
        ({"type": "choice", "choice": ["a", ""]}, "/response_format: must be"),
        ({"type": "choice", "choice": "a"}, "/response_format: must be"),
        ({"type": "regex"}, "/response_format: must be"),
    ],
)
def test_what_cannot_be_is_refused(answer: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        planned(answer)
    assert where in str(caught.value)


@pytest.mark.parametrize("style", style_names())
@pytest.mark.parametrize("tools", [[], [tool("look", WEATHER)]], ids=["alone", "beside tools"])
def test_white_space_after_an_answer_is_none_of_it(style: str, tools: list[Any]) -> None:
    """A model that breaks the line before its end must not be led from "yes" to "yes, sure"."""
    plan = planned({"type": "choice", "choice": ["yes", "yes, sure"]}, style, **({"tools": tools} if tools else {}))
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    for answer in ("yes", "yes, sure"):
        written = plan.write(Message(answer))
        assert written is not None
        for space in ("", "\n", "\n\n"):
            text = written + space
            assert grammar.accepts(text)
            assert lark_accepts(grammar.to("lark"), text)
            reader = plan.reader()
            events = [event for char in text for event in reader.feed(char)] + reader.finish()
            assert plan.parse(text) == Message.from_events(events) == Message(answer)
    assert not grammar.accepts((plan.write(Message("yes")) or "") + "\n, sure")


def test_white_space_that_is_of_the_answer_stays() -> None:
    for answer in ({"type": "choice", "choice": ["a", "a\n"]}, {"type": "regex", "regex": r"a\s?"}):
        plan = planned(answer)
        assert plan.constraint is not None
        assert plan.constraint.grammar.accepts("a\n")
        assert not plan.constraint.grammar.accepts("a\n\n")
        assert plan.parse("a\n") == Message("a\n")


def test_white_space_within_an_answer_comes_with_what_follows() -> None:
    reader = planned({"type": "choice", "choice": ["so  so"]}).reader()
    assert [Message.from_events(reader.feed(piece)).content for piece in ("so", "  ", "s", "o", "\n")] == [
        "so",
        None,
        "  s",
        "o",
        None,
    ]
    assert not Message.from_events(reader.finish()).content
