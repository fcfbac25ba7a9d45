"""Spans of requests, by OpenTelemetry's own exporter in memory; and none, nor its import, where nobody asked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from collector import collecting
from live_server import listening, serving
from situations import CHATML
from toolgram.engines.base import Engine
from toolgram.engines.replay import Replay
from toolgram.errors import EngineError
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings

MCP_SERVER = Path(__file__).resolve().parents[1] / "agent" / "mcp_demo.py"
RAIN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS: dict[str, Any] = {
    "messages": [{"role": "user", "content": "My secret: hunter2. Rain in Oslo?"}],
    "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}],
    "max_tokens": 50,
    "seed": 7,
}
POST = "POST /v1/chat/completions"
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Spans:
    """What was exported, by name."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def __getitem__(self, name: str) -> ReadableSpan:
        (found,) = (each for each in self.all if each.name == name)
        return found

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.all]


@contextmanager
def traced(engine: Engine, settings: Settings = Settings()) -> Iterator[tuple[str, Spans]]:  # noqa: B008 - frozen
    spans = Spans()
    app = create_app([Served("recorded", CHATML, engine)], settings, tracer=spans.provider.get_tracer("test"))
    with listening(app) as address:
        yield address, spans


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_request_is_planned_waits_and_is_answered_in_spans_of_its_own() -> None:
    with traced(Replay(RAIN)) as (address, spans):
        httpx2.post(f"{address}/v1/chat/completions", json=CALLS, headers={"traceparent": CALLER}).raise_for_status()
    assert spans.names == ["plan", "queue", "chat recorded", POST]
    request = spans[POST]
    assert request.kind == SpanKind.SERVER
    assert request.parent is not None
    assert (f"{request.context.trace_id:032x}", f"{request.parent.span_id:016x}") == tuple(CALLER.split("-")[1:3])
    assert all(each.parent == request.context for each in spans.all[:-1])
    assert said(request) | {"toolgram.request.id": ""} == {
        "http.request.method": "POST",
        "http.route": "/v1/chat/completions",
        "url.path": "/v1/chat/completions",
        "url.scheme": "http",
        "http.response.status_code": 200,
        "toolgram.request.id": "",
        "toolgram.style": "compact",
    }
    plan = said(spans["plan"])
    assert (plan["gen_ai.request.model"], plan["toolgram.style"], plan["toolgram.tools"]) == ("recorded", "compact", 1)
    generation = spans["chat recorded"]
    assert generation.kind == SpanKind.INTERNAL
    answer = said(generation)
    tokens = {key: answer.pop(key) for key in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")}
    assert all(type(count) is int for count in tokens.values())
    assert answer == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "toolgram",
        "gen_ai.request.model": "recorded",
        "gen_ai.response.model": "recorded",
        "gen_ai.output.type": "text",
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 0.7,
        "gen_ai.request.top_p": 1.0,
        "gen_ai.request.frequency_penalty": 0.0,
        "gen_ai.request.presence_penalty": 0.0,
        "gen_ai.request.seed": 7,
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "toolgram.forced_tokens": 0,
        "toolgram.forward_passes": 1,
    }
    assert not [each for each in spans.all if "hunter2" in each.to_json()]


@pytest.mark.parametrize("stream", [True, False])
def test_each_choice_has_a_span(stream: bool) -> None:
    with traced(Replay("One.", "Two.")) as (address, spans):
        body = {**CALLS, "n": 2, "stream": stream}
        httpx2.post(f"{address}/v1/chat/completions", json=body).raise_for_status()
    assert spans.names.count("chat recorded") == 2
    assert spans.names[-1] == POST


def test_raw_completions_and_answers_in_a_schema_say_so() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "w", "schema": WEATHER}}
    with traced(Replay("and on", '{"city": "Oslo"}')) as (address, spans):
        httpx2.post(f"{address}/v1/completions", json={"prompt": "On", "max_tokens": 3}).raise_for_status()
        body = {"messages": CALLS["messages"], "response_format": form}
        httpx2.post(f"{address}/v1/chat/completions", json=body).raise_for_status()
    raw = said(spans["text_completion recorded"])
    assert (raw["gen_ai.operation.name"], raw["gen_ai.output.type"]) == ("text_completion", "text")
    assert raw["gen_ai.response.finish_reasons"]
    assert said(spans["chat recorded"])["gen_ai.output.type"] == "json"


def test_what_fails_says_so_and_where() -> None:
    class Broken(Replay):
        async def generate(self, *_: Any) -> Any:
            raise EngineError("the engine is gone")
            yield

    with traced(Broken()) as (address, spans):
        assert httpx2.post(f"{address}/v1/chat/completions", json=CALLS).status_code == 502
        wrong = {**CALLS, "tool_choice": "maybe"}
        assert httpx2.post(f"{address}/v1/chat/completions", json=wrong).status_code == 400
        assert httpx2.get(f"{address}/v1/nothing/42").status_code == 404
    failed, refused, lost = (each for each in spans.all if each.kind == SpanKind.SERVER)
    generation = spans["chat recorded"]
    assert (generation.status.status_code, said(generation)["error.type"]) == (StatusCode.ERROR, "EngineError")
    assert (failed.status.status_code, said(failed)["http.response.status_code"]) == (StatusCode.ERROR, 502)
    # Of what the client did wrong a server's span is no failure.
    assert (refused.status.status_code, said(refused).get("error.type")) == (StatusCode.UNSET, None)
    assert said(refused)["toolgram.error"]
    assert (lost.name, said(lost)["http.response.status_code"]) == ("GET", 404)


def test_a_tool_that_the_server_runs_has_a_span() -> None:
    config = {"mcpServers": {"demo": {"command": sys.executable, "args": [str(MCP_SERVER)]}}}
    call = '<tool_call>\n{"name": "demo_add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    asked = {"type": "mcp", "server_label": "demo", "allowed_tools": ["add"], "require_approval": "never"}
    with traced(Replay(call, "Three."), Settings(mcp=config, style="hermes_2_pro")) as (address, spans):
        answer = httpx2.post(f"{address}/v1/responses", json={"input": "1 + 2?", "tools": [asked]}, timeout=60).json()
    assert [item["type"] for item in answer["output"]] == ["mcp_list_tools", "mcp_call", "message"], answer
    (tool,) = (each for each in spans.all if each.name.startswith("execute_tool"))
    assert said(tool)["gen_ai.operation.name"] == "execute_tool"
    assert (tool.name, said(tool)["gen_ai.tool.name"]) == ("execute_tool demo_add", "demo_add")
    assert tool.parent == spans["POST /v1/responses"].context
    assert spans.names.count("plan") == spans.names.count("chat recorded") == 2


def test_health_and_pages_have_none() -> None:
    with traced(Replay()) as (address, spans):
        for path in ("/health", "/metrics", "/", "/openapi.json"):
            httpx2.get(f"{address}{path}").raise_for_status()
    assert spans.names == []


@pytest.mark.parametrize("service", ["toolgram", "front"])
def test_spans_go_where_the_environment_says(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if service != "toolgram":
        monkeypatch.setenv("OTEL_SERVICE_NAME", service)
    with collecting() as (url, names):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        with serving(Replay("Hello."), Settings(otel=True)) as address:
            httpx2.post(f"{address}/v1/chat/completions", json={"messages": CALLS["messages"]}).raise_for_status()
        assert names() == [f"{service}: {name}" for name in ("plan", "queue", "chat recorded", POST)]


def test_nothing_is_imported_where_nobody_asked() -> None:
    code = """
import asyncio, json, sys
from toolgram.chat import generate_sync
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.engines.replay import Replay
import toolgram, httpx2
template = toolgram.ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\\n{% endfor %}assistant: ")
app = create_app([Served("recorded", template, Replay("Hello."))])
async def ask():
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
        return await client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hi."}]})
print(asyncio.run(ask()).status_code, [name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "200 []\n"
