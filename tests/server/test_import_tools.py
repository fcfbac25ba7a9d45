"""`/v1/tools/import`: documents become tools; nothing is fetched, and what costs too much is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from live_server import serving
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}}
WEATHER: dict[str, Any] = {
    "openapi": "3.0.3",
    "paths": {
        "/weather": {
            "get": {
                "operationId": "get_weather",
                "summary": "The weather.",
                "parameters": [
                    {"name": "city", "in": "query", "required": True, "schema": {"$ref": "#/components/schemas/City"}}
                ],
            },
            "delete": {"summary": "No more weather."},
        }
    },
    "components": {"schemas": {"City": {"type": "string", "nullable": True}}},
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Replay(), Settings(api_keys=("right",))) as at:
        yield at


def imported(address: str, document: Any, key: str = "right") -> httpx2.Response:
    body = {"document": document}
    return httpx2.post(f"{address}/v1/tools/import", json=body, headers={"x-api-key": key}, timeout=60)


def test_operations_become_tools(address: str) -> None:
    tools = imported(address, WEATHER).json()["tools"]
    assert [tool["function"]["name"] for tool in tools] == ["get_weather", "delete_weather"]
    assert tools[0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/City"}},
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"City": {"type": ["string", "null"]}},
    }


@pytest.mark.parametrize(
    "document",
    [
        [TOOL],
        TOOL,
        {"tools": [TOOL]},
        {"tools": [{"name": "get_weather", "description": "The weather.", "inputSchema": SCHEMA}]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{**TOOL["function"], "annotations": {"readOnlyHint": True}}]}},
        [{"name": "get_weather", "description": "The weather.", "input_schema": SCHEMA}],
        [{"type": "function", **TOOL["function"]}],
    ],
)
def test_tools_of_others_become_those_of_a_chat(address: str, document: Any) -> None:
    assert imported(address, document).json() == {"tools": [TOOL]}


def test_a_key_is_needed(address: str) -> None:
    assert imported(address, WEATHER, "wrong").status_code == 401


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"mcpServers": {"files": {"command": "rm"}}}, "toolgram tools list FILE --json"),
        ({"swagger": "2.0", "paths": {}}, "not an OpenAPI 3 document"),
        ({"openapi": "3.1.0", "paths": {"/a": {"$ref": "http://127.0.0.1:1/a"}}}, "which is not fetched"),
        ({"openapi": "3.1.0", "paths": [1]}, "/paths: must be an object"),
        ({"title": "no tools"}, "neither an OpenAPI document"),
        ([TOOL, 7], "number 2 of its list is no tool"),
        ("text", "must be an object or an array"),
    ],
)
def test_what_is_none_is_refused(address: str, document: Any, told: str) -> None:
    answer = imported(address, document)
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]
    assert answer.json()["error"]["pointer"] == "/document"


def _shared(count: int, text: int) -> dict[str, Any]:
    """Operations that all refer to one large component."""
    large = {"type": "object", "properties": {f"p{i}": {"description": "x" * text} for i in range(2000)}}
    operation = {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Large"}}}}}
    paths = {f"/{i}": {"post": operation} for i in range(count)}
    return {"openapi": "3.1.0", "paths": paths, "components": {"schemas": {"Large": large}}}


def _alike(count: int) -> dict[str, Any]:
    """Operations of one name."""
    return {"openapi": "3.1.0", "paths": {f"/{i}": {"get": {"operationId": "x"}} for i in range(count)}}


def _long(count: int) -> dict[str, Any]:
    """Paths that all refer to one operation with a long text."""
    item = {"get": {"operationId": "x", "description": "y" * 1_000_000}}
    return {"openapi": "3.1.0", "paths": {f"/{i}": {"$ref": "#/item"} for i in range(count)}, "item": item}


@pytest.mark.parametrize("document", [_shared(3000, 10), _shared(100, 1000), _long(5000)])
def test_what_would_be_too_large_is_refused(address: str, document: Any) -> None:
    answer = imported(address, document)
    assert answer.status_code == 400
    assert "too large together" in answer.json()["error"]["message"]


def test_names_that_are_alike_are_told_apart(address: str) -> None:
    names = [tool["function"]["name"] for tool in imported(address, _alike(5000)).json()["tools"]]
    assert names[:3] == ["x", "x_2", "x_3"]
    assert len(set(names)) == 5000


@pytest.mark.parametrize("depth", [100, 240, 2000])
def test_what_is_nested_deeply_is_no_fault_of_the_server(address: str, depth: int) -> None:
    deep = '{"items": ' * depth + "true" + "}" * depth
    body = {"content": {"application/json": {"schema": "DEEP"}}}
    for document in (
        [{"name": "deep", "inputSchema": "DEEP"}],
        {"openapi": "3.1.0", "paths": {"/a": {"post": {"requestBody": body}}}},
    ):
        content = json.dumps({"document": document}).replace('"DEEP"', deep)
        answer = httpx2.post(f"{address}/v1/tools/import", content=content, headers={"x-api-key": "right"})
        assert answer.status_code == (200 if depth == 100 else 400)
