"""Metrics for Prometheus, of one server or of all its workers together."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from toolgram.server.request_log import Record

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """What a server has done, and what it is doing now: how many requests run and how many wait.

    In a process with PROMETHEUS_MULTIPROC_DIR, such as a worker, the metrics are those of all processes that share it.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "toolgram_requests", "Requests by path and status.", ("path", "status"), registry=registry
        )
        self._seconds = Histogram(
            "toolgram_request_seconds", "Time of whole requests.", ("path",), buckets=_SECONDS, registry=registry
        )
        self._first = Histogram(
            "toolgram_first_token_seconds", "Time to the first event of an answer.", buckets=_SECONDS, registry=registry
        )
        self._tokens = Counter(
            "toolgram_tokens", "Tokens of prompts and answers; forced tokens are counted in answers too.", ("kind",),
            registry=registry,
        )  # fmt: skip
        self.running = Gauge(
            "toolgram_requests_running", "Requests that run now.", registry=registry, multiprocess_mode="livesum"
        )
        self.planned = Gauge(
            "toolgram_requests_planned", "Requests that are planned now, or wait for it.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self.waiting = Gauge(
            "toolgram_requests_waiting", "Requests that are waiting for a slot.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip

    def count(self, path: str, status: int, seconds: float, record: Record) -> None:
        """Count a finished request; `path` is one of the routes."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)
        if record.first is not None:
            self._first.observe(record.first)
        self._tokens.labels("prompt").inc(record.prompt_tokens)
        self._tokens.labels("answer").inc(record.completion_tokens)
        self._tokens.labels("forced").inc(record.forced_tokens)

    def text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
