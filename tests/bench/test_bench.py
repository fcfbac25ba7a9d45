"""The questions with known calls: that they can be answered rightly, what counts as right, and what is told of it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest
from typer.testing import CliRunner

import toolgram
from situations import CHATML
from toolgram import Message, ToolCall
from toolgram.bench.asking import Answer, ask
from toolgram.bench.compare import fault, right_tools
from toolgram.bench.page import page
from toolgram.bench.questions import KINDS, Expected, Question, questions
from toolgram.bench.runs import Run, beside, calibration, common
from toolgram.bench.tables import as_json, interval, rows, table, wrong
from toolgram.cli.app import app
from toolgram.engines.base import Engine, Sampling
from toolgram.engines.replay import Replay

ALL = [question for kind in KINDS for question in questions(kind)]
OSLO = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def first_right(expected: Any) -> Any:
    """A value that is right: the first of several, and all that may be left out."""
    if isinstance(expected, dict):
        if "any" in expected:
            return first_right(expected["any"][0])
        return {name.removesuffix("?"): first_right(value) for name, value in expected.items()}
    return [first_right(item) for item in expected] if isinstance(expected, list) else expected


def right_message(question: Question) -> Message:
    if question.schema is not None:
        return Message(json.dumps(first_right(question.answer)))
    calls = (ToolCall(call.name, json.dumps(first_right(call.arguments))) for call in question.calls)
    return Message(None if question.calls else "Hm.", None, tuple(calls))


def test_there_are_enough_of_each_kind() -> None:
    assert len(ALL) >= 200
    assert all(len(questions(kind)) >= 20 for kind in KINDS)
    assert len({question.ask for question in ALL}) == len({question.id for question in ALL}) == len(ALL)
    assert all(bool(question.calls) != (question.kind in ("none", "schema")) for question in ALL)


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.id)
def test_a_right_answer_is_valid_can_be_written_and_is_right(question: Question) -> None:
    message = right_message(question)
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in question.tools}
    for call in message.tool_calls:
        assert jsonschema_rs.is_valid(schemas[call.name], json.loads(call.arguments))
    if question.schema is not None:
        assert jsonschema_rs.is_valid(question.schema, json.loads(message.content or ""))
    assert toolgram.plan(question.body("auto"), CHATML, "long").writable(message)
    assert fault(question, message) == ""
    assert fault(question, Message("Hm.")) == "" if question.kind == "none" else fault(question, Message("Hm."))


def put(*calls: tuple[str, dict[str, Any]]) -> Question:
    return Question("1", "simple", "?", (), tuple(Expected(*call) for call in calls))


def said(*calls: tuple[str, str]) -> Message:
    return Message(None, None, tuple(ToolCall(*call) for call in calls))


@pytest.mark.parametrize(
    ("expected", "given", "reason"),
    [
        ({"a": 1}, '{"a": 1.0}', ""),
        ({"a": 1}, '{"a": 2}', "f.a is 2, not 1"),
        ({"a": 1}, '{"a": true}', "f.a is true, not 1"),
        ({"a": True}, '{"a": true}', ""),
        ({"a": "New York"}, '{"a": " new  york."}', ""),
        ({"a": "Paris"}, '{"a": "Rome"}', 'f.a is "Rome", not "Paris"'),
        ({"a": {"any": ["km", "miles"]}}, '{"a": "miles"}', ""),
        ({"a": {"any": ["km", "miles"]}}, '{"a": "feet"}', 'f.a is "feet", not "km"'),
        ({"a?": 1}, "{}", ""),
        ({"a?": 1}, '{"a": 2}', "f.a is 2, not 1"),
        ({"a": 1}, "{}", "f.a is missing"),
        ({}, '{"a": 1}', "f.a is there"),
        ({"a": [1, 2]}, '{"a": [1, 2]}', ""),
        ({"a": [1, 2]}, '{"a": [2, 1]}', "f.a is 2, not 1"),
        ({"a": [1, 2]}, '{"a": [1]}', "f.a is [1]"),
        ({"a": {"b": 1}}, '{"a": {"b": 1, "c": 2}}', "f.a.c is there"),
        ({"a": {"b": 1}}, '{"a": 1}', "f.a is 1"),
        ({"a": 1}, '{"a":', "the arguments of f are no JSON"),
    ],
)
def test_what_is_right(expected: dict[str, Any], given: str, reason: str) -> None:
    assert fault(put(("f", expected)), said(("f", given))) == reason


def test_calls_may_come_in_any_order_but_all_of_them() -> None:
    two = put(("f", {"a": 1}), ("f", {"a": 2}))
    assert fault(two, said(("f", '{"a": 2}'), ("f", '{"a": 1}'))) == ""
    assert fault(two, said(("f", '{"a": 2}'), ("f", '{"a": 2}')))
    assert fault(two, said(("f", '{"a": 2}'))) == "1 calls, not 2"
    assert fault(two, said(("f", "{}"), ("g", "{}"))) == "calls of f, g"
    assert right_tools(two, said(("f", "{}"), ("f", "{}")))
    assert not right_tools(two, said(("f", "{}"), ("g", "{}")))


def asked(engine: Engine, put: list[Question], **more: Any) -> list[Answer]:
    async def run() -> list[Answer]:
        return [answer async for answer in ask(put, CHATML, engine, Sampling(), style="long", **more)]

    return asyncio.run(run())


def test_answers_are_counted_by_kind() -> None:
    weather = next(question for question in ALL if question.ask == "Is it going to rain in Bergen?")
    none = questions("none")[0]
    found = asked(Replay(OSLO, OSLO.replace("Oslo", "Bergen"), "Fine.", OSLO), [weather, weather, none, none])
    assert [answer.right for answer in found] == [False, True, True, False]
    assert [(row.kind, row.right, row.of, row.tools, row.number) for row in rows(found)] == [
        ("choice", 1, 2, 2, 2),
        ("none", 1, 2, 1, 1),
        ("all", 2, 4, 3, 3),
    ]
    head, *lines = table(found).splitlines()
    assert head.split() == ["kind", "right", "of", "%", "95", "%", "tools", "number", "prompt", "tokens", "seconds"]
    assert lines[0].split()[:7] == ["choice", "1", "2", "50", "9-91", "2", "2"]
    assert len(list(wrong(found))) == 2
    assert "Bergen" in next(iter(wrong(found)))
    told = as_json({"model": "m"}, found)
    assert told["model"] == "m"
    assert len(told["answers"]) == 4
    json.dumps(told)


def test_an_engine_that_fails_has_it_wrong() -> None:
    (answer,) = asked(Replay("a", fail_after=0), [questions("none")[0]])
    assert answer.fault.startswith("an error: ")
    assert not answer.right


def test_the_interval_of_a_share() -> None:
    assert interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-3)
    assert interval(0, 10)[0] == 0
    assert interval(10, 10)[1] == 1


def test_the_command_writes_all_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = Replay(OSLO, "It will.")
    monkeypatch.setattr("toolgram.models.catalog.cached", lambda *_: Path("m.gguf"))
    monkeypatch.setattr("toolgram.models.profiles.gguf_metadata", lambda *_: {})
    monkeypatch.setattr("toolgram.cli.inputs.load_engine", lambda *_, **__: engine)
    monkeypatch.setattr("toolgram.template.chat_template.ChatTemplate.from_gguf", lambda *_: CHATML)
    file = tmp_path / "a.json"
    words = ["bench", "--kind", "simple", "--questions", "2", "--wrong", "--json", str(file)]
    result = CliRunner().invoke(app, words)
    assert result.exception is None, result.output
    assert "simple-2: Set a timer for 12 minutes." in result.stdout
    told = json.loads(file.read_text())
    assert [row["kind"] for row in told["rows"]] == ["simple", "all"]
    assert [answer["id"] for answer in told["answers"]] == ["simple-1", "simple-2"]
    assert engine.closed


@pytest.mark.parametrize("words", [["--kind", "hard"], ["--tool-choice", "none"], ["--model", "m", "--upstream", "u"]])
def test_what_there_is_not_is_refused(words: list[str]) -> None:
    result = CliRunner().invoke(app, ["bench", *words])
    assert result.exit_code == 2


@pytest.mark.parametrize("words", [["bench", "--json"], ["bench", "--html"], ["tune", "--output"]])
@pytest.mark.parametrize("place", ["nowhere/a", "."])
def test_what_cannot_be_written_is_told_before_anything_is_asked(words: list[str], place: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*words, str(tmp_path / place), "--model", "there-is-no-such-model"])
    assert result.exit_code == 2
    assert "cannot be written: " in result.stderr
    assert not list(tmp_path.iterdir())


def test_who_must_call_is_asked_nothing_that_no_tool_fits() -> None:
    from toolgram.cli.bench import chosen

    assert "none" not in {question.kind for question in chosen((), None, "required")}
    assert {question.kind for question in chosen((), 1, "auto")} == set(KINDS)


def answered(id_: str, *, right: bool, prompt_tokens: int, odds: float | None = None, kind: str = "simple") -> Answer:
    return Answer(id_, kind, "?", "" if right else "wrong", right, right, "", "stop", prompt_tokens, 5, 0.1, odds)


LONG = Run("long", tuple(answered(str(at), right=at < 5, prompt_tokens=300, odds=at - 5.0) for at in range(10)))
SHORT = Run("<short>", tuple(answered(str(at), right=at < 6, prompt_tokens=150) for at in range(1, 11)))


def test_runs_are_compared_on_the_questions_that_all_of_them_have() -> None:
    head, first, second = beside(common([LONG, SHORT])).splitlines()
    assert head.split() == ["run", "right", "of", "%", "95", "%", "prompt", "ratio", "points", "95", "%"]
    assert first.split() == ["long", "4", "9", "44", "19-73", "300"]
    assert second.split() == ["<short>", "5", "9", "56", "27-81", "150", "0.50", "+11.1", "-9.4", "to", "+31.6"]


def test_questions_are_in_bins_by_the_odds_of_a_call() -> None:
    answers = [
        answered(str(at), right=True, prompt_tokens=1, odds=at - 4.5, kind="none" if at < 4 else "simple")
        for at in range(10)
    ]
    bins = calibration(Run("m", tuple(answers)))
    assert [(each.need, each.of) for each in bins] == [(0, 2), (0, 2), (2, 2), (2, 2), (2, 2)]
    assert [each.probability for each in bins] == sorted(each.probability for each in bins)
    assert calibration(SHORT) == []


def test_the_page_has_the_plots_and_the_tables() -> None:
    text = page(common([LONG, SHORT]))
    assert text.count("<svg") == 2
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(svg)  # noqa: S314 - our own
    assert "&lt;short&gt;" in text
    assert "<short>" not in text
    assert "tokens of the prompt, mean" in text


def test_no_name_in_a_plot_runs_out_of_it() -> None:
    name = "SmolLM2-135M-Instruct.Q4_1.gguf"
    svg = ElementTree.fromstring(re.findall(r"<svg.*?</svg>", page([Run(name, LONG.answers)]), re.DOTALL)[0])  # noqa: S314 - our own
    dot = svg.find("circle")
    [label] = [text for text in svg.iter("text") if text.text == name]
    assert dot is not None
    assert float(dot.attrib["cx"]) > int(svg.attrib["width"]) / 2  # where a name would have no room behind it
    assert (label.attrib["text-anchor"], float(label.attrib["x"]) < float(dot.attrib["cx"])) == ("end", True)


def test_the_command_shows_runs_that_were_written(tmp_path: Path) -> None:
    for run in (LONG, SHORT):
        (tmp_path / f"{run.name.strip('<>')}.json").write_text(json.dumps(as_json({}, run.answers)))
    files = [str(tmp_path / name) for name in ("long.json", "short.json")]
    words = ["bench", "--show", files[0], "--show", files[1], "--html", str(tmp_path / "runs.html")]
    result = CliRunner().invoke(app, words)
    assert result.exception is None, result.output
    assert "+11.1" in result.stdout
    assert "<svg" in (tmp_path / "runs.html").read_text()
    (tmp_path / "short.json").write_text("{}")
    refused = CliRunner().invoke(app, words)
    assert "short.json: is not what `toolgram bench --json` writes" in " ".join(refused.stderr.split())
