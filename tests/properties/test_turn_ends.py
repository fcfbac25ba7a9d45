"""A turn is admitted as templates write it, and its end is the model's: what it may write between its last call and its
end promises nothing.

A line break after a call, which the model writes before it ends as well as before another call, is admitted before the
end too; so taking the last of several calls away never makes a turn inadmissible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from made_up import IN_THE_MANNER_OF, MADE_UP
from oracles import ebnf_accepts, lark_accepts
from properties.test_native_styles import CASES, Case
from situations import WEATHER as PLACE
from situations import Situation, situations, tool
from toolgram import ChatTemplate, Message, ToolCall
from toolgram.styles.detect import tail

SHARED = Path(__file__).resolve().parents[3] / "shared" / "templates"
REAL = {path.name: path for path in sorted(SHARED.glob("*.jinja"))}
FAMILIES = MADE_UP | IN_THE_MANNER_OF
BREAKS = ("\n", "\n\n")
GET, WEATHER = ToolCall("get", "{}"), ToolCall("get_weather", '{"city": "Oslo"}')
CALLING = [case for case in CASES if case.mode != "none"]


def calls(case: Case, *made: ToolCall) -> Message:
    """A turn of nothing but these calls, with ids where the format has them."""
    form = case.call_id
    if form is None:
        return Message(tool_calls=made)
    number = "0" * form.length
    return Message(tool_calls=tuple(replace(call, id=form.form.format(name=call.name, id=number)) for call in made))


@pytest.mark.parametrize("case", CALLING, ids=str)
def test_a_line_break_before_the_end_is_admitted_and_none_of_the_message(case: Case) -> None:
    grammar, message = case.turn.grammar, calls(case, WEATHER)
    text = case.written(message)
    assert text is not None
    texts = {text + end for end in ("", *BREAKS)}
    assert all(grammar.accepts(each) for each in texts)
    assert not grammar.accepts(text + "\n\n\n")
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    assert all(lark_accepts(lark, each) and ebnf_accepts(ebnf, each) for each in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    assert {Message.from_events(case.read(each)) for each in texts} == {Message.from_events(case.read(text))}


@pytest.mark.parametrize("case", [case for case in CALLING if case.most_calls > 1], ids=str)
def test_without_its_last_call_a_turn_is_still_admitted(case: Case) -> None:
    """As it was written, up to the white space after which the last call stood."""
    one, two = (case.written(calls(case, *made)) for made in ((WEATHER,), (WEATHER, GET)))
    assert one is not None
    assert two is not None
    end = next(at for at in range(len(two)) if at == len(one) or one[at] != two[at])
    rest = two[end:]
    space = rest[: len(rest) - len(rest.lstrip())]
    assert case.turn.grammar.accepts(one[:end] + space + one[end:])


@pytest.mark.parametrize("situation", [each for each in situations() if each.choice != "none"], ids=str)
def test_so_it_is_in_generic_styles_and_after_an_answer(situation: Situation) -> None:
    plan = situation.plan
    messages = [Message(tool_calls=(WEATHER,)), *([Message('{"answer": "x"}')] if situation.answer else ())]
    for message in messages:
        text = plan.write(message)
        if text is not None:  # where the request wants a call there is no answer
            for end in BREAKS:
                assert plan.constraint.grammar.accepts(text + end)
                assert plan.parse(text + end) == plan.parse(text)


def test_white_space_after_an_answer_in_a_schema_is_none_of_it() -> None:
    template = toolgram.ChatTemplate("{% for message in messages %}{{ message.content }}{% endfor %}")
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}
    plan = toolgram.plan({"messages": [{"role": "user", "content": "?"}], "response_format": schema}, template)
    assert plan.constraint is not None
    for text in ("12", "12\n", "12\n\n"):
        assert plan.constraint.grammar.accepts(text)
        assert plan.parse(text).content == "12"
        reader = plan.reader()
        events = [event for char in text for event in reader.feed(char)] + reader.finish()
        assert Message.from_events(events).content == "12"
    # What follows is told, with the space before it.
    assert plan.parse("12\n or so").content == "12\n or so"


@pytest.mark.parametrize("name", [*REAL, *FAMILIES])
def test_what_the_template_writes_before_the_end_is_admitted(name: str) -> None:
    template = toolgram.ChatTemplate.from_file(REAL[name]) if name in REAL else FAMILIES[name].template
    request = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("get", None)]}
    for choice in ("auto", "required"):
        for parallel in (True, False):
            plan = toolgram.plan(request | {"tool_choice": choice, "parallel_tool_calls": parallel}, template)
            assert plan.constraint is not None
            ids = ["functions.get:0", "a1b2c3d4e", "0", None]
            written = (plan.write(Message(tool_calls=(ToolCall("get", "{}", each),))) for each in ids)
            text = next(each for each in written if each is not None)
            for end in ("", tail(template), *BREAKS):
                assert plan.constraint.grammar.accepts(text + end), end
                assert [call.name for call in plan.parse(text + end).tool_calls] == ["get"]


SAID = (
    Message(reasoning="zqthought"),
    Message("zqanswer", "zqthought"),
    Message(reasoning="zqthought", tool_calls=(WEATHER,)),
    Message(tool_calls=(WEATHER,)),
    Message("zqanswer", tool_calls=(WEATHER,)),
)
THINKS: tuple[dict[str, bool], ...] = ({}, {"enable_thinking": True}, {"enable_thinking": False})


@pytest.mark.parametrize("name", REAL)
def test_a_turn_is_admitted_as_the_template_itself_writes_it(name: str) -> None:
    """Wherever the turn, as it stands in a history, goes on from the prompt, and shows all that was said, in order."""
    template = toolgram.ChatTemplate.from_file(REAL[name])
    for said, more in asked_of(template):
        plan, whole = written_by(template, said, more)
        assert plan.constraint is not None
        assert not whole or any(map(plan.constraint.grammar.accepts, whole)), whole[0]


def asked_of(template: ChatTemplate) -> Iterator[tuple[Message, dict[str, Any]]]:
    """Each turn that a template can show, and the requests to which it may be the answer."""
    can = template.capabilities
    for said in SAID:
        if (said.reasoning and not can.supports_reasoning) or (said.tool_calls and not can.supports_tool_calls):
            continue
        for choice in ("auto", "required") if said.tool_calls and not said.content else ("auto",):
            for thinks in THINKS:
                yield said, {"tool_choice": choice, "chat_template_kwargs": thinks}


def written_by(template: ChatTemplate, said: Message, more: dict[str, Any]) -> tuple[toolgram.Plan, list[str]]:
    """The plan, and the turn that follows its prompt, up to each place where it ends and is read as what was said."""
    question = {"role": "user", "content": "Rain?"}
    calls = replace(said, tool_calls=tuple(replace(call, id="a1b2c3d4e") for call in said.tool_calls))
    result = {"role": "tool", "tool_call_id": "a1b2c3d4e", "content": "zqresult"}
    history = [question, calls.to_openai(), *([result] if said.tool_calls else [])]
    body = {"messages": [question], "tools": [tool("get_weather", PLACE)]} | more
    plan = toolgram.plan(body, template)
    text = toolgram.plan(body | {"messages": history, "add_generation_prompt": False}, template).prompt
    turn = text[len(plan.prompt) :].partition("zqresult")[0]
    if not text.startswith(plan.prompt) or re.search("get_weather.*zqanswer", turn, re.DOTALL):
        return plan, []
    texts = (each[:end] for each in without_ids(turn) for end in ends(each))
    return plan, [text for text in texts if same(plan.parse(text), said)]


def without_ids(turn: str) -> Iterator[str]:
    """The turn, and the same without ids: some templates add them to calls, which the models do not write."""
    yield turn
    yield re.sub(', "id": "[^"]*"', "", turn)


def ends(turn: str) -> list[int]:
    """Where a turn may end: at any mark."""
    return sorted({len(turn), *(found.start() for found in re.finditer(r"[<\[]", turn))})


def same(read: Message, said: Message) -> bool:
    """Whether a message says the same, white space around its texts aside."""
    texts = [[(text or "").strip() for text in (each.content, each.reasoning)] for each in (read, said)]
    return texts[0] == texts[1] and [call.name for call in read.tool_calls] == [call.name for call in said.tool_calls]
