"""Typed functions as tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict, Union

import jsonschema_rs
import pytest

from toolgram import schema_grammar
from toolgram.agent.tools import InvalidTool, tool_of, tools_of


class Unit(Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(TypedDict):
    name: Annotated[str, "What it is called"]
    country: NotRequired[str]


@dataclass
class Range:
    low: int
    high: int = 10
    steps: list[int] = field(default_factory=list[int])


@dataclass
class Node:
    next: Node | None = None


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    schema = tool_of(function)["function"]["parameters"]
    jsonschema_rs.meta.validate(schema)
    schema_grammar(schema)
    return schema


def test_signature_and_docstring_make_the_tool() -> None:
    def get_weather(city: Annotated[str, "Its name"], days: int = 3) -> str:
        """Get the weather."""
        return city * days

    assert tool_of(get_weather) == {
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


def closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


STRING, NULL = {"type": "string"}, {"type": "null"}
TYPES: list[tuple[Any, dict[str, Any]]] = [
    (str, STRING),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, NULL),
    (Any, {}),
    (list, {"type": "array"}),
    (dict, {"type": "object"}),
    (list[str], {"type": "array", "items": STRING}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a", 1], {"enum": ["a", 1]}),
    (Optional[str], {"anyOf": [STRING, NULL]}),  # noqa: UP045 - both spellings are to be read
    (str | None, {"anyOf": [STRING, NULL]}),
    (Union[str, list[str]], {"anyOf": [STRING, {"type": "array", "items": STRING}]}),  # noqa: UP007 - as above
    (Unit, {"type": "string", "enum": ["celsius", "fahrenheit"]}),
    (Annotated[list[str], "Names", 3], {"type": "array", "items": STRING, "description": "Names"}),
    (Annotated[str, []], STRING),
    (Place, closed({"name": {**STRING, "description": "What it is called"}, "country": STRING}, ["name"])),
    (
        Range,
        closed(
            {
                "low": {"type": "integer"},
                "high": {"type": "integer", "default": 10},
                "steps": {"type": "array", "items": {"type": "integer"}},
            },
            ["low"],
        ),
    ),
]


@pytest.mark.parametrize(("hint", "schema"), TYPES, ids=lambda value: str(value)[:40])
def test_types_become_schemas(hint: Any, schema: dict[str, Any]) -> None:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = hint
    assert parameters(tool)["properties"]["value"] == schema


def test_a_default_that_is_not_json_is_left_out() -> None:
    def tool(unit: Unit = Unit.C, place: Range = Range(1), far: float = float("inf")) -> None: ...  # noqa: B008 - the case

    schema = parameters(tool)
    assert schema["required"] == []
    assert schema["properties"]["unit"]["default"] == "celsius"
    assert "default" not in schema["properties"]["place"]
    assert "default" not in schema["properties"]["far"]


@pytest.mark.parametrize("hint", [object, complex, set[str], tuple[int, str], dict[int, str], Callable[[], int], Node])
def test_what_json_schema_cannot_say_is_refused_by_name(hint: Any) -> None:
    def tool(good: int, bad: Any) -> None: ...

    tool.__annotations__["bad"] = hint
    with pytest.raises(InvalidTool, match="tool, parameter 'bad'"):
        tool_of(tool)


def test_parameters_need_types_and_names() -> None:
    def untyped(x: Any) -> None: ...

    del untyped.__annotations__["x"]

    def starred(*args: int) -> None: ...

    def positional(x: int, /) -> None: ...

    functions: list[Callable[..., Any]] = [untyped, starred, positional]
    for function in functions:
        with pytest.raises(InvalidTool, match=f"{function.__name__}, parameter '"):
            tool_of(function)


def test_a_type_that_does_not_exist_is_refused() -> None:
    def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = "Nowhere"
    with pytest.raises(InvalidTool, match="Nowhere"):
        tool_of(tool)


MODULE = '''
from __future__ import annotations
from dataclasses import dataclass
from json import dumps

@dataclass
class Point:
    x: float

def second(point: Point) -> str:
    """The second."""
    return dumps(point)

def first(): pass

def _hidden(x): pass
'''


def test_a_module_gives_its_public_functions_in_order(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MODULE)
    tools = [tool["function"] for tool in tools_of(file)]
    assert [tool["name"] for tool in tools] == ["second", "first"]
    assert tools[0]["parameters"]["properties"]["point"] == closed({"x": {"type": "number"}}, ["x"])


def test_all_says_what_is_public(tmp_path: Path) -> None:
    file = tmp_path / "listed.py"
    file.write_text("__all__ = ['_one']\ndef _one(): pass\ndef two(): pass\n")
    assert [tool["function"]["name"] for tool in tools_of(file)] == ["_one"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [("x = 1", "no public function"), ("1 / 0", "ZeroDivisionError"), ("def f(:", "SyntaxError")],
)
def test_a_module_without_tools_is_refused(tmp_path: Path, source: str, reason: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(source)
    with pytest.raises(InvalidTool, match=reason):
        tools_of(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTool, match="no such file"):
        tools_of(tmp_path / "none.py")
