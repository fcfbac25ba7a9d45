"""Typed functions as tools."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, Optional, Union
from uuid import UUID

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import toolgram
from situations import CHATML
from toolgram import InvalidOutput, schema_grammar
from toolgram.agent import FunctionTool, InvalidTool, tool_of


class Unit(Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(TypedDict):
    name: Annotated[str, Field(description="What it is called")]
    country: NotRequired[str]


@dataclass
class Range:
    low: int
    high: int = 10
    steps: list[int] = field(default_factory=list[int])


@dataclass
class Node:
    next: Node | None = None


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    since: date | None = None


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    schema = dict(tool_of(function).parameters)
    jsonschema_rs.meta.validate(schema)
    schema_grammar(schema, mode="relaxed")
    return schema


def one_parameter(hint: Any) -> Callable[..., None]:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = hint
    return tool


def test_signature_and_docstring_make_the_tool() -> None:
    def get_weather(city: Annotated[str, "Its name"], days: int = 3) -> str:
        """Get the weather."""
        return city * days

    assert tool_of(get_weather).to_openai() == {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the weather.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Its name"},
                    "days": {"type": "integer", "default": 3},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }


def shape(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


STRING, NULL, INTEGER = {"type": "string"}, {"type": "null"}, {"type": "integer"}
UNIT = {"enum": ["celsius", "fahrenheit"], "type": "string"}
PLACE = shape({"name": {**STRING, "description": "What it is called"}, "country": STRING}, ["name"])
RANGE = shape(
    {"low": INTEGER, "high": {"type": "integer", "default": 10}, "steps": {"type": "array", "items": INTEGER}}, ["low"]
)
ADDRESS = shape(
    {"street": STRING, "since": {"anyOf": [{**STRING, "format": "date"}, NULL], "default": None}}, ["street"]
) | {"description": "Where somebody lives."}
# A type, its schema, the schema of what it refers to, the text of a value, and the value.
TYPES: list[tuple[Any, dict[str, Any], Any, str, Any]] = [
    (str, STRING, None, '"a"', "a"),
    (int, INTEGER, None, "1", 1),
    (float, {"type": "number"}, None, "1", 1.0),
    (bool, {"type": "boolean"}, None, "true", True),
    (None, NULL, None, "null", None),
    (Any, {}, None, "[null]", [None]),
    (list, {"type": "array", "items": {}}, None, "[1]", [1]),
    (dict, {"type": "object", "additionalProperties": True}, None, '{"a": 1}', {"a": 1}),
    (list[str], {"type": "array", "items": STRING}, None, '["a"]', ["a"]),
    (set[int], {"type": "array", "uniqueItems": True, "items": INTEGER}, None, "[1, 1]", {1}),
    (
        tuple[int, str],
        {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
        None,
        '[1, "a"]',
        (1, "a"),
    ),
    (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, None, '{"a": 1}', {"a": 1}),
    (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, None, '"b"', "b"),
    (Literal["a", 1], {"enum": ["a", 1]}, None, "1", 1),
    (Optional[str], {"anyOf": [STRING, NULL]}, None, "null", None),  # noqa: UP045 - both spellings are to be read
    (str | None, {"anyOf": [STRING, NULL]}, None, '"a"', "a"),
    (Union[int, list[int]], {"anyOf": [INTEGER, {"type": "array", "items": INTEGER}]}, None, "[1]", [1]),  # noqa: UP007 - as above
    (date, {**STRING, "format": "date"}, None, '"2024-02-29"', date(2024, 2, 29)),
    (UUID, {**STRING, "format": "uuid"}, None, f'"{UUID(int=7)}"', UUID(int=7)),
    (Annotated[int, Field(ge=1, lt=9)], {**INTEGER, "exclusiveMaximum": 9, "minimum": 1}, None, "8", 8),
    (Annotated[list[str], "Names", 3], {"type": "array", "items": STRING, "description": "Names"}, None, "[]", []),
    (Annotated[str, []], STRING, None, '"a"', "a"),
    (Unit, {"$ref": "#/$defs/Unit"}, {"Unit": UNIT}, '"celsius"', Unit.C),
    (Place, {"$ref": "#/$defs/Place"}, {"Place": PLACE}, '{"name": "Oslo"}', {"name": "Oslo"}),
    (Range, {"$ref": "#/$defs/Range"}, {"Range": RANGE}, '{"low": 1}', Range(1)),
    (Address, {"$ref": "#/$defs/Address"}, {"Address": ADDRESS}, '{"street": "x"}', Address(street="x")),
    (
        Annotated[Address, "Of whom"],
        {"$ref": "#/$defs/Address", "description": "Of whom"},
        {"Address": ADDRESS},
        '{"street": "x", "since": "2024-01-01"}',
        Address(street="x", since=date(2024, 1, 1)),
    ),
    (
        Node,
        {"$ref": "#/$defs/Node"},
        {
            "Node": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, NULL], "default": None}},
            }
        },
        '{"next": {}}',
        Node(Node()),
    ),
]


@pytest.mark.parametrize(("hint", "schema", "definitions", "text", "value"), TYPES, ids=[row[3] for row in TYPES])
def test_a_type_becomes_a_schema_and_its_json_a_value(
    hint: Any, schema: dict[str, Any], definitions: Any, text: str, value: Any
) -> None:
    function = one_parameter(hint)
    made = parameters(function)
    assert made["properties"]["value"] == schema
    assert made.get("$defs") == definitions
    read = tool_of(function).arguments(f'{{"value": {text}}}')
    assert read == {"value": value}
    assert type(read["value"]) is type(value)


def test_a_default_that_is_not_json_is_left_out() -> None:
    def tool(
        unit: Unit = Unit.C, place: Any = print, far: float = float("inf"), at: date = date(2024, 1, 1)
    ) -> None: ...

    schema = parameters(tool)
    assert "required" not in schema
    assert schema["properties"]["unit"]["default"] == "celsius"
    assert schema["properties"]["at"]["default"] == "2024-01-01"
    assert "default" not in schema["properties"]["place"]
    assert "default" not in schema["properties"]["far"]
    assert tool_of(tool).arguments("{}") == {
        "unit": Unit.C,
        "place": print,
        "far": float("inf"),
        "at": date(2024, 1, 1),
    }


def test_a_field_may_be_the_default() -> None:
    def tool(days: int = Field(3, ge=1, description="How many"), *, city: str = Field(description="Which")) -> None: ...

    schema = parameters(tool)
    assert schema["properties"]["days"] == {**INTEGER, "minimum": 1, "description": "How many", "default": 3}
    assert schema["required"] == ["city"]


def test_a_default_of_none_may_be_written() -> None:
    def tool(
        days: int = None,  # noqa: RUF013 - as people write it
        city: Annotated[str, Field(min_length=1), "Which"] = None,  # noqa: RUF013 - as above
        rest: Any = None,
    ) -> None: ...

    properties = parameters(tool)["properties"]
    assert properties["days"] == {"anyOf": [INTEGER, NULL], "default": None}
    assert properties["city"] == {"anyOf": [{**STRING, "minLength": 1}, NULL], "default": None, "description": "Which"}
    assert properties["rest"] == {"default": None}
    assert tool_of(tool).arguments('{"days": null}') == {"days": None, "city": None, "rest": None}
    with pytest.raises(InvalidOutput, match="/city: "):
        tool_of(tool).arguments('{"city": ""}')


@pytest.mark.parametrize("hint", [Callable[[], int], Exception, "Nowhere", list["Nowhere"]], ids=str)  # noqa: F821 - the case
def test_what_json_schema_cannot_say_is_refused_by_name(hint: Any) -> None:
    def tool(good: int, bad: Any, fine: str) -> None: ...

    tool.__annotations__["bad"] = hint
    with pytest.raises(InvalidTool, match=r"tool, parameter 'bad'|tool: its types cannot be resolved: .*Nowhere"):
        tool_of(tool)


def test_parameters_have_names() -> None:
    def starred(*args: int) -> None: ...

    def named(**kwargs: int) -> None: ...

    def positional(x: int, /) -> None: ...

    functions: list[Callable[..., Any]] = [starred, named, positional]
    for function in functions:
        with pytest.raises(
            InvalidTool, match=f"{function.__name__}, parameter '.*: a tool is called with named arguments"
        ):
            tool_of(function)


def test_a_parameter_without_a_type_takes_anything_and_says_so() -> None:
    def tool(x, y=None) -> None:  # type: ignore[no-untyped-def]
        """Do it.

        Args:
            y: Whatever
        """

    schema = parameters(tool)  # pyright: ignore - the case
    assert schema["properties"] == {
        "x": {"description": "Any JSON value"},
        "y": {"description": "Whatever", "default": None},
    }
    assert tool_of(tool).arguments('{"x": [1, "a"]}') == {"x": [1, "a"], "y": None}  # pyright: ignore - the case


class Station:
    def __init__(self, name: str) -> None:
        self.name = name

    def measure(self, day: date) -> str:
        """Measure."""
        return f"{self.name} {day:%j}"

    @classmethod
    def named(cls, name: str) -> str:
        return f"{cls.__name__} {name}"

    @staticmethod
    def unit(of: Literal["rain"]) -> str:
        return of


def loud(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return str(function(*args, **kwargs)).upper()

    return wrapper


def forecast(city: str, *, day: date, unit: Unit = Unit.C) -> str:
    """Forecast."""
    return f"{city} {day:%j} {unit.value}"


async def slow_forecast(day: date) -> str:
    return f"{day:%j}"


CALLED: list[tuple[Callable[..., Any], str, list[str], str]] = [
    (forecast, "forecast", ["city", "day", "unit"], "Oslo 032 celsius"),
    (loud(forecast), "forecast", ["city", "day", "unit"], "OSLO 032 CELSIUS"),
    (partial(forecast, "Paris"), "forecast", ["day", "unit"], "Paris 032 celsius"),
    (partial(loud(forecast), city="Rome"), "forecast", ["day", "unit"], "ROME 032 CELSIUS"),
    (partial(forecast, "Paris", unit=Unit.F), "forecast", ["day"], "Paris 032 fahrenheit"),
    (Station("North").measure, "measure", ["day"], "North 032"),
    (loud(Station("North").measure), "measure", ["day"], "NORTH 032"),
    (partial(Station.measure, Station("West")), "measure", ["day"], "West 032"),
    (Station.named, "named", ["name"], "Station rain"),
    (Station.unit, "unit", ["of"], "rain"),
    (slow_forecast, "slow_forecast", ["day"], "032"),
]


@pytest.mark.parametrize(("function", "name", "names", "result"), CALLED, ids=[str(i) for i in range(len(CALLED))])
def test_functions_of_every_kind_are_called(
    function: Callable[..., Any], name: str, names: list[str], result: str
) -> None:
    tool = tool_of(function)
    assert tool.name == name
    assert list(parameters(function)["properties"]) == names
    given = {"city": "Oslo", "day": "2024-02-01", "name": "rain", "of": "rain"}
    text = json.dumps({key: value for key, value in given.items() if key in names})
    returned = tool.function(**tool.arguments(text))
    assert (asyncio.run(returned) if asyncio.iscoroutine(returned) else returned) == result


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (Station.measure, "measure: a method needs its object"),
        (Station, "a tool is a function"),
        (partial(Station, "x"), "a tool is a function"),
        (7, "7: a tool is a function"),
        (min, "min: its parameters are not known"),
    ],
)
def test_what_is_no_function_to_call_is_refused(function: Any, reason: str) -> None:
    with pytest.raises(InvalidTool, match=reason):
        tool_of(function)


def book(
    at: datetime, seats: Annotated[int, Field(ge=1, le=9)], names: list[str], address: Address | None = None
) -> None:
    """Book a table."""


WRONG: list[tuple[str, str]] = [
    ("", "(root): Invalid JSON: EOF while parsing a value at line 1 column 0"),
    ('{"at": "2024-', "(root): Invalid JSON: EOF while parsing a string at line 1 column 13"),
    ("[]", "(root): Arguments must be an object"),
    ("7", "(root): Arguments must be an object"),
    ("{}", "/at: Field required; /seats: Field required; /names: Field required"),
    (
        '{"at": "2024-01-01T00:00:00Z", "seats": 10, "names": ["a", 1], "x": 1}',
        "/seats: Input should be less than or equal to 9; /names/1: Input should be a valid string; "
        "/x: There is no such parameter",
    ),
    (
        '{"at": "2024-01-01T00:00:00Z", "seats": 1, "names": [], "address": {"since": "2024-02-30"}}',
        "/address/street: Field required; "
        "/address/since: Input should be a valid date or datetime, day value is outside expected range",
    ),
]


@pytest.mark.parametrize(("text", "reason"), WRONG, ids=[text for text, _ in WRONG])
def test_wrong_arguments_are_refused_with_their_places(text: str, reason: str) -> None:
    with pytest.raises(InvalidOutput) as error:
        tool_of(book).arguments(text)
    assert str(error.value) == reason


def test_a_call_runs_the_function() -> None:
    tools = {tool.name: tool for tool in map(tool_of, (forecast, book))}
    messages = [{"role": "user", "content": "Will it rain?"}]
    request = {"messages": messages, "tools": [tool.to_openai() for tool in tools.values()], "tool_choice": "required"}
    plan = toolgram.plan(request, CHATML, style="long")
    text = '<tool_call>\n{"name": "forecast", "arguments": {"city": "Oslo", "day": "2024-02-01"}}\n</tool_call>'
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)
    [call] = plan.parse(text).tool_calls
    tool: FunctionTool = tools[call.name]
    assert tool.function(**tool.arguments(call.arguments)) == "Oslo 032 celsius"


def test_what_a_grammar_samples_are_arguments() -> None:
    def tool(place: Place, range_: Range, unit: Unit, pair: tuple[int, bool], of: UUID | None = None) -> None: ...

    made = tool_of(tool)
    grammar = schema_grammar(made.parameters)
    for seed in range(30):
        assert set(made.arguments(grammar.sample(seed))) == {"place", "range_", "unit", "pair", "of"}
