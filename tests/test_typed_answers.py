"""A response format that is a type, and `plan.value`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, HttpUrl, PositiveInt, field_validator
from typing_extensions import TypedDict

import toolgram
from situations import CHATML, TOOLS
from toolgram import InvalidOutput, InvalidRequest, Message, ToolCall
from toolgram.chat import Reply, generate
from toolgram.engines.base import Capabilities
from toolgram.engines.replay import Replay


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Person(BaseModel):
    name: str
    age: Annotated[int, Field(ge=0, le=130)] = 0


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("it is odd")
        return value


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class Point:
    x: float
    y: float = 0.0


class Place(TypedDict):
    name: str
    country: NotRequired[str]


class Size(NamedTuple):
    width: int
    height: int = 1


def planned(format_: Any, **more: Any) -> toolgram.Plan:
    request = {"messages": [{"role": "user", "content": "Well?"}], "response_format": format_, **more}
    return toolgram.plan(request, CHATML)


ANSWERS: list[tuple[Any, str, Any]] = [
    (Person, '{"name": "Ada", "age": 36}', Person(name="Ada", age=36)),
    (Person, '{"name": "Ada"}', Person(name="Ada")),
    (Point, '{"x": 0.5}', Point(0.5)),
    (Place, '{"name": "Oslo"}', {"name": "Oslo"}),
    (Size, "[3, 4]", Size(3, 4)),
    (list[Person], '[{"name": "Ada", "age": 1}]', [Person(name="Ada", age=1)]),
    (Node, '{"value": 1, "children": [{"value": 2}]}', Node(value=1, children=[Node(value=2)])),
    (int, "-7", -7),
    (PositiveInt, "7", 7),
    (str, '"seven"', "seven"),
    (bool, "true", True),
    (float, "7", 7.0),
    (type(None), "null", None),
    (Any, '{"a": [1]}', {"a": [1]}),
    (Literal["a", "b"], '"b"', "b"),
    (Colour, '"red"', Colour.RED),
    (Level, "2", Level.HIGH),
    (int | str, '"7"', "7"),
    (int | None, "null", None),
    (Person | Point, '{"x": 1, "y": 2}', Point(1, 2)),
    (tuple[int, str], '[1, "a"]', (1, "a")),
    (tuple[int, ...], "[1, 2, 3]", (1, 2, 3)),
    (set[int], "[1, 2]", {1, 2}),
    (frozenset[Colour], '["red", "green"]', frozenset(Colour)),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (dict[Literal["a"], int], '{"a": 1}', {"a": 1}),
    (date, '"2024-02-29"', date(2024, 2, 29)),
    (datetime, '"2024-02-29T10:00:00+01:00"', datetime(2024, 2, 29, 10, tzinfo=timezone(timedelta(hours=1)))),
    (timedelta, '"PT90S"', timedelta(seconds=90)),
    (UUID, '"12345678-1234-5678-1234-567812345678"', UUID("12345678123456781234567812345678")),
    (Decimal, "1.25", Decimal("1.25")),
    (HttpUrl, '"https://example.com/a"', HttpUrl("https://example.com/a")),
    (Annotated[float, Field(multiple_of=0.1)], "0.3", 0.3),
    (Annotated[str, Field(pattern="^[a-z]+$", max_length=3)], '"abc"', "abc"),
]


@pytest.mark.parametrize(("hint", "text", "value"), ANSWERS, ids=[text for _, text, _ in ANSWERS])
def test_an_answer_is_read_as_its_type(hint: Any, text: str, value: Any) -> None:
    plan = planned(hint)
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)
    got = plan.value(plan.parse(text))
    assert got == value
    assert type(got) is type(value)


REFUSED: list[tuple[Any, str]] = [
    (Person, '{"name": "Ada", "age": 131}'),
    (Person, '{"age": 1}'),
    (Person, '{"name": "Ada", "born": 1815}'),
    (Colour, '"blue"'),
    (int, '"7"'),
    (Literal["a", "b"], "b"),
    (tuple[int, str], "[1]"),
    (date, '"2024-02-30"'),
    (Annotated[float, Field(multiple_of=0.1)], "0.35"),
]


@pytest.mark.parametrize(("hint", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_the_grammar_admits_no_other_values(hint: Any, text: str) -> None:
    plan = planned(hint)
    assert plan.constraint is not None
    assert not plan.constraint.grammar.accepts(text)


def test_what_a_grammar_cannot_enforce_is_reported_and_checked_by_the_value() -> None:
    class Links(BaseModel):
        at: HttpUrl
        ids: set[int]

    plan = planned(Links)
    at = "/response_format/json_schema/schema/properties"
    assert {(each.pointer, each.keyword) for each in plan.relaxations} >= {
        (f"{at}/at", "maxLength"),
        (f"{at}/ids", "uniqueItems"),
    }
    text = f'{{"at": "http://a.b/{"c" * 2083}", "ids": [1, 1]}}'
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)
    with pytest.raises(InvalidOutput, match="/at: URL should have at most 2083 characters"):
        plan.value(plan.parse(text))
    assert plan.value(plan.parse('{"at": "http://a.b", "ids": [1, 1]}')).ids == {1}


def test_a_type_means_what_its_schema_does() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "maximum": 130, "minimum": 0, "default": 0},
        },
        "required": ["name"],
    }
    one = planned(Person)
    other = planned({"type": "json_schema", "json_schema": {"name": "Person", "schema": schema}})
    assert one.prompt == other.prompt
    assert one.request == other.request
    assert one.constraint == other.constraint
    assert one.answer_type is not None
    assert other.answer_type is None


MESSAGES: list[tuple[Message, str]] = [
    (Message('{"name": "Ad'), "(root): Invalid JSON: EOF while parsing a string at line 1 column 12"),
    (Message(), "(root): the message has no content"),
    (Message(tool_calls=(ToolCall("get", "{}"),)), "(root): the message is no answer but a call of 'get'"),
    (Message('{"name": 1}'), "/name: Input should be a valid string"),
]


@pytest.mark.parametrize(("message", "reason"), MESSAGES, ids=str)
def test_a_message_that_is_no_answer_is_refused(message: Message, reason: str) -> None:
    with pytest.raises(InvalidOutput) as error:
        planned(Person, tools=TOOLS).value(message)
    assert str(error.value) == reason


def test_an_answer_beside_tools_is_read() -> None:
    plan = planned(Person, tools=TOOLS)
    assert plan.value(plan.parse('{"name": "Ada"}')) == Person(name="Ada")


def test_an_answer_that_the_prompt_begins_is_read_whole() -> None:
    messages = [{"role": "user", "content": "Well?"}, {"role": "assistant", "content": '{"name": "A'}]
    plan = toolgram.plan({"messages": messages, "response_format": Person, "continue_final_message": True}, CHATML)
    assert plan.value(plan.parse('da"}')) == Person(name="Ada")


def test_an_answer_in_a_schema_is_what_json_means_and_checked() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}, "required": ["n"]}
    plan = planned({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})
    assert plan.value(Message('{"n": 5}')) == {"n": 5}
    for text, reason in (
        ('{"n": 6}', "does not match the schema"),
        ('{"n"', "not whole, valid JSON"),
        ("", "no content"),
    ):
        with pytest.raises(InvalidOutput, match=reason):
            plan.value(Message(text or None))
    assert planned({"type": "json_object"}).value(Message('{"a": 1}')) == {"a": 1}


def test_a_plain_answer_is_its_text() -> None:
    for format_ in ({"type": "regex", "regex": "[0-9]+"}, {"type": "choice", "choice": ["12", "ab"]}):
        plan = planned(format_)
        assert plan.value(plan.parse("12")) == "12"
        with pytest.raises(InvalidOutput, match="not one that the response format allows"):
            plan.value(Message("x"))


def test_without_a_response_format_there_is_no_value() -> None:
    with pytest.raises(InvalidRequest, match=r"/response_format: there is none.*message\.content"):
        planned(None).value(Message("Hello"))


@pytest.mark.parametrize("format_", [object(), {}, "Person", ["Person"], 7, lambda: 7, type("Odd", (), {})], ids=type)
def test_what_is_neither_json_nor_a_type_is_refused(format_: Any) -> None:
    with pytest.raises(InvalidRequest) as error:
        planned(format_)
    assert error.value.pointer == "/response_format"
    assert "\n" not in str(error.value)


def test_a_request_is_left_as_it_is() -> None:
    request = {"messages": [{"role": "user", "content": "Well?"}], "response_format": Person}
    toolgram.plan(request, CHATML)
    assert request["response_format"] is Person


def test_a_reply_that_its_type_refuses_is_asked_for_again() -> None:
    """A grammar knows nothing of validators: what they refuse is not valid, whatever the engine enforced."""
    plan = planned(Even)
    for capabilities in (Capabilities(dialects=("gbnf",)), Capabilities(unenforced=True)):
        engine = Replay('{"number": 3}', '{"number": 4}', capabilities=capabilities)
        reply: Reply = asyncio.run(generate(plan, engine, retries=1))
        assert (reply.valid, plan.value(reply.message)) == (True, Even(number=4))
        engine = Replay('{"number": 3}', capabilities=capabilities)
        reply = asyncio.run(generate(plan, engine))
        assert not reply.valid


def test_pydantic_is_loaded_where_a_type_is_given() -> None:
    """What a plan without types needs of it is little; generating schemas and reading them is another matter."""
    code = (
        "import sys, toolgram\ntemplate = toolgram.ChatTemplate('{{ messages }}')\n"
        "toolgram.plan({'messages': [{'role': 'user', 'content': 'Hi'}]}, template)\n"
        "sys.exit('toolgram.schema.python_types' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
