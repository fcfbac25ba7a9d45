"""Operations of OpenAPI documents as tools, called on a real server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from situations import CHATML
from toolgram import schema_grammar
from toolgram.agent import Agent, InvalidTool, Limits
from toolgram.agent.calls import CallFailed, result_of
from toolgram.agent.openapi import OpenApiTool, openapi_tools
from toolgram.agent.openapi.places import Place, Sent
from toolgram.cli.app import app
from toolgram.conversation.message import ToolCall
from toolgram.engines import Replay

SHOP: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "/v1"}],
    "paths": {
        "/orders/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "operationId": "getOrder",
                "summary": "One order.",
                "parameters": [
                    {"name": "fields", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "session", "in": "cookie", "schema": {"type": "string"}},
                ],
                "security": [{"key": []}],
            },
        },
        "/orders": {
            "post": {
                "description": "Order it.",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}},
                },
            },
        },
        "/picture": {"put": {"requestBody": {"content": {"image/png": {}}}}},
        "/broken": {"get": {"operationId": "broken"}},
        "/noise": {"get": {"operationId": "noise"}},
    },
    "components": {
        "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}},
        "schemas": {
            "Order": {
                "type": "object",
                "properties": {
                    "item": {"type": "string", "nullable": True},
                    "count": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                    "gifts": {"type": "array", "items": {"$ref": "#/components/schemas/Order"}},
                },
                "required": ["item", "count"],
            },
            "Unused": {"type": "string"},
        },
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
}


class _Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/openapi.json":
            return self._say(200, SHOP)
        if self.path == "/v1/broken":
            return self._say(500, {"error": "out of order"})
        if self.path == "/v1/noise":
            return self._send(200, b"\0" * 3_000_000)
        url = urlsplit(self.path)
        seen = {"path": url.path, "query": parse_qs(url.query)}
        return self._say(200, {**seen, "key": self.headers["X-Key"], "trace": self.headers["X-Trace"]})

    def do_POST(self) -> None:
        self._say(201, {"ordered": json.loads(self.rfile.read(int(self.headers["Content-Length"])))})

    def _say(self, status: int, value: Any) -> None:
        self._send(status, json.dumps(value).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Shop)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()


def tools(base: str = "http://shop.example", **options: Any) -> dict[str, OpenApiTool]:
    return {tool.name: tool for tool in openapi_tools(SHOP, base, **options)}


def called(tool: OpenApiTool, **arguments: Any) -> Any:
    return json.loads(asyncio.run(tool.call(json.dumps(arguments))))


def test_operations_are_tools() -> None:
    found = tools()
    assert sorted(found) == ["broken", "getOrder", "noise", "post_orders"]
    order = found["getOrder"]
    assert (order.description, order.writes, order.url) == ("One order.", False, "http://shop.example/v1/orders/{id}")
    assert sorted(order.parameters["properties"]) == ["X-Trace", "fields", "id"]
    assert order.parameters["required"] == ["id"]
    assert found["post_orders"].writes


def test_a_body_that_refers_to_itself_is_enforced() -> None:
    parameters = tools()["post_orders"].parameters
    assert sorted(parameters["$defs"]) == ["Order"], "what is not referred to is left out"
    grammar = schema_grammar(parameters)
    assert grammar.accepts('{"body": {"item": null, "count": 1, "gifts": [{"item": "x", "count": 2}]}}')
    assert not grammar.accepts('{"body": {"item": null, "count": 0}}')


def test_a_call_goes_to_the_server(server: str) -> None:
    found = tools(server, auth={"key": "s3cret"})
    seen = called(found["getOrder"], id="a/b", fields=["x", "y"], **{"X-Trace": "t"})
    assert seen == {"path": "/v1/orders/a%2Fb", "query": {"fields": ["x", "y"]}, "key": "s3cret", "trace": "t"}
    assert called(found["post_orders"], body={"item": "tea", "count": 2}) == {"ordered": {"item": "tea", "count": 2}}


def test_errors_and_noise_are_told(server: str) -> None:
    found = tools(server)
    with pytest.raises(CallFailed, match=r"500 Internal Server Error: .*out of order"):
        asyncio.run(found["broken"].call("{}"))
    assert asyncio.run(found["noise"].call("{}")).endswith("bytes of binary data)")
    with pytest.raises(CallFailed, match="cannot be reached"):
        asyncio.run(tools("http://127.0.0.1:9")["broken"].call("{}"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": ".."}, "cannot stand in a path"),
        ({"id": ""}, "cannot stand in a path"),
        ({}, "There is no argument 'id'"),
        ({"id": "7", "X-Key": "mine"}, "There is no parameter 'X-Key'"),
        ({"id": "7", "X-Trace": "a\r\nb: c"}, "cannot stand in a header"),
        ({"id": "7", "X-Trace": "é"}, "cannot stand in a header"),
    ],
)
def test_arguments_lead_nowhere_else(server: str, arguments: Any, message: str) -> None:
    with pytest.raises(CallFailed, match=message):
        asyncio.run(tools(server)["getOrder"].call(json.dumps(arguments)))


@pytest.mark.parametrize("arguments", ["[1]", '{"id": '])
def test_arguments_that_are_no_object_are_told(arguments: str) -> None:
    made = ToolCall("getOrder", arguments, "1")
    told = asyncio.run(result_of(made, tools(), Limits()))
    assert told.text.startswith("The arguments are not what getOrder takes: (root): ")


def test_what_only_a_server_says_is_asked_of_nobody() -> None:
    said = {"type": "integer", "readOnly": True}
    pet = {"type": "object", "required": ["id", "name"], "properties": {"id": said, "name": {"type": "string"}}}
    operation = {"requestBody": {"content": {"application/json": {"schema": {"type": "array", "items": pet}}}}}
    [tool] = openapi_tools({"openapi": "3.0.3", "paths": {"/x": {"post": operation}}}, "http://shop.example")
    assert tool.parameters["properties"]["body"]["items"] == {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}},
    }


def test_a_server_that_is_not_said_is_the_root_of_where_the_document_is() -> None:
    paths = {"/a.b": {"get": {"operationId": "a.b"}}, "/a_b": {"get": {"operationId": "a_b"}}}
    found = openapi_tools({"openapi": "3.1.0", "paths": paths}, "http://shop.example/docs/openapi.json")
    assert [(tool.name, tool.url) for tool in found] == [
        ("a_b", "http://shop.example/a.b"),
        ("a_b_2", "http://shop.example/a_b"),
    ]


def test_a_parameter_named_body_goes_where_it_belongs() -> None:
    operation = {
        "parameters": [{"name": "body", "in": "query", "schema": {}}],
        "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
    }
    [tool] = openapi_tools({"openapi": "3.1.0", "paths": {"/x": {"post": operation}}}, "http://shop.example")
    assert sorted(tool.parameters["properties"]) == ["body", "query_body"]
    assert [(place.where, place.name) for place in tool._places.values()] == [
        ("query", "body"),
        ("body", "application/json"),
    ]


def test_an_agent_calls_operations(server: str) -> None:
    call = '<tool_call>\n{"name": "getOrder", "arguments": {"id": "7"}}\n</tool_call>'
    made = Agent(Replay(call, "It is on its way."), CHATML, list(tools(server).values()), style="hermes_2_pro")
    run = asyncio.run(made.run("Where is order 7?"))
    assert '"path": "/v1/orders/7"' in run.messages[2]["content"]
    assert run.answer == "It is on its way."


def sent(parameter: dict[str, Any], value: Any) -> Sent:
    """What a request has of one argument."""
    found = Sent()
    Place.of({"name": "p", **parameter}).put(value, found)
    return found


LIST, MEMBERS = [3, "a b"], {"x": 1, "y": "b,c"}


# The table of "Style Examples" in the OpenAPI Specification 3.1.
@pytest.mark.parametrize(
    ("parameter", "value", "query"),
    [
        ({"in": "query"}, LIST, [("p", "3"), ("p", "a b")]),
        ({"in": "query", "explode": False}, LIST, [("p", "3,a b")]),
        ({"in": "query", "style": "spaceDelimited", "explode": False}, LIST, [("p", "3 a b")]),
        ({"in": "query", "style": "pipeDelimited"}, LIST, [("p", "3|a b")]),
        ({"in": "query"}, MEMBERS, [("x", "1"), ("y", "b,c")]),
        ({"in": "query", "explode": False}, MEMBERS, [("p", "x,1,y,b,c")]),
        ({"in": "query", "style": "deepObject", "explode": True}, MEMBERS, [("p[x]", "1"), ("p[y]", "b,c")]),
        ({"in": "query", "content": {"application/json": {}}}, LIST, [("p", '[3, "a b"]')]),
        ({"in": "query"}, True, [("p", "true")]),
        ({"in": "query"}, None, []),
        ({"in": "query", "content": {"application/json": {}}}, None, [("p", "null")]),
    ],
)
def test_a_query_is_written_in_the_style_of_its_parameter(parameter: Any, value: Any, query: Any) -> None:
    made = sent(parameter, value).query
    assert [(name, text) for name, texts in made.items() for text in texts] == query


@pytest.mark.parametrize(
    ("parameter", "value", "path"),
    [
        ({}, LIST, "3,a%20b"),
        ({"explode": True}, MEMBERS, "x=1,y=b%2Cc"),
        ({}, MEMBERS, "x,1,y,b%2Cc"),
        ({"style": "label"}, LIST, ".3,a%20b"),
        ({"style": "label", "explode": True}, LIST, ".3.a%20b"),
        ({"style": "matrix"}, "a/b", ";p=a%2Fb"),
        ({"style": "matrix"}, LIST, ";p=3,a%20b"),
        ({"style": "matrix", "explode": True}, LIST, ";p=3;p=a%20b"),
        ({"style": "matrix", "explode": True}, MEMBERS, ";x=1;y=b%2Cc"),
    ],
)
def test_a_path_is_written_in_the_style_of_its_parameter(parameter: Any, value: Any, path: str) -> None:
    assert sent({"in": "path", **parameter}, value).path == {"p": path}


def test_headers_cookies_and_bodies_are_written_as_they_are_said() -> None:
    assert sent({"in": "header"}, LIST).headers == {"p": "3,a b"}
    assert sent({"in": "header"}, None).headers == {}
    assert sent({"in": "cookie"}, "a;b").cookies == ["p=a%3Bb"]
    patch = {"content": {"application/merge-patch+json": {"schema": {}}}}
    operation = {
        "requestBody": patch,
        "servers": [{"url": "https://files.example"}],
        "parameters": [{"name": "token", "in": "cookie", "required": True, "schema": {}}],
    }
    paths = {"/x": {"patch": operation, "servers": [{"url": "/files"}], "get": {}}}
    get, patched = sorted(openapi_tools({"openapi": "3.1.0", "paths": paths}, "http://shop.example"), key=str)
    assert (get.url, patched.url) == ("http://shop.example/files/x", "https://files.example/x")
    assert sorted(patched.parameters["required"]) == ["body", "token"]
    made = Sent()
    patched._places["body"].put({"a": None}, made)
    assert (made.headers, made.content) == ({"Content-Type": "application/merge-patch+json"}, b'{"a": null}')


def test_only_some() -> None:
    assert list(tools(only=["getOrder"])) == ["getOrder"]
    with pytest.raises(InvalidTool, match="no operation other"):
        tools(only=["other"])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "not an OpenAPI 3 document"),
        ({"swagger": "2.0"}, "not an OpenAPI 3 document"),
        ({"openapi": "3.1.0", "paths": {"/x": {"get": {}}}}, "/servers/0/url: '' is no address"),
        ({**SHOP, "paths": {"/x": 3}}, "/paths/~1x: must be an object"),
        ({**SHOP, "paths": {"/x": {"$ref": "#/paths/~1x"}}}, "/paths/~1x: its references go in a circle"),
        ({**SHOP, "paths": {"/x": {"get": {"parameters": [{"in": "query"}]}}}}, "a parameter needs a name and a place"),
        (
            {**SHOP, "paths": {"/x": {"get": {"parameters": [{"$ref": "other.json#/a"}]}}}},
            "/paths/~1x/get/parameters/0: 'other.json#/a' is in another document",
        ),
        ({**SHOP, "paths": {"/x": {"get": {"parameters": 3}}}}, "the document cannot be read"),
        ({**SHOP, "components": {}}, "'#/components/parameters/Id' leads nowhere"),
    ],
)
def test_what_is_no_document_is_told_with_its_place(document: Any, message: str) -> None:
    with pytest.raises(InvalidTool) as told:
        openapi_tools(document, None if "servers" not in document else "http://shop.example")
    assert message in str(told.value)


def test_a_source_may_be_an_address(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # which a server of this machine is not behind
    listed = CliRunner().invoke(app, ["tools", "list", f"{server}/openapi.json"])
    assert listed.stdout.splitlines()[:2] == ["getOrder: One order.", "post_orders (writes): Order it."]
    failed = CliRunner().invoke(app, ["tools", "list", f"{server}/v1/broken"])
    assert "it cannot be fetched" in failed.output


def test_tools_are_listed_as_a_request_has_them(tmp_path: Any) -> None:
    file = tmp_path / "shop.json"
    file.write_text(json.dumps({**SHOP, "servers": [{"url": "http://localhost:1/v1"}]}))
    ran = CliRunner().invoke(app, ["tools", "list", str(file), "--json"])
    tools = openapi_tools(SHOP, "http://localhost:1/")
    assert json.loads(ran.stdout) == [tool.to_openai() for tool in tools]
