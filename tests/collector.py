"""A collector of OpenTelemetry's spans, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@contextmanager
def collecting() -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """Its address, and what it got so far: SERVICE: SPAN, in the order in which they came."""
    got: list[ExportTraceServiceRequest] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            read = ExportTraceServiceRequest()
            read.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
            got.append(read)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            pass

    def names() -> list[str]:
        return [
            f"{attribute.value.string_value}: {span.name}"
            for sent in got
            for of in sent.resource_spans
            for attribute in of.resource.attributes
            if attribute.key == "service.name"
            for scope in of.scope_spans
            for span in scope.spans
        ]

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", names
        finally:
            server.shutdown()
