"""The settings of a server: limits, keys, names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and keys. Without `api_keys` every client is let in; without `origins` no page of another site is.

    `hosts` are the names that the server answers to, besides addresses and localhost.

    `parallel` requests run at once and `queue` wait; any more are turned away. `timeout` is in seconds, for a whole
    request including its wait; `keep_alive` is the number of silent seconds after which a stream sends a sign of life.
    A body must arrive within `body_timeout` seconds; what still runs `shutdown_timeout` seconds after the server was
    told to end is cut off.
    With `request_templates` a body may bring a chat template, which is limited, but may keep a core busy for a minute.
    With `allow_unenforced` an engine that takes no grammar is asked even for what only a grammar guarantees.
    What fails is written into the folder `record`, with `redact` without what was said.
    With `otel` each request has spans, which go where the variables of OpenTelemetry say.
    `mcp` are the MCP servers whose tools a request may ask for, in the form that editors use.
    What is kept of responses for later requests has at most `max_store` bytes; 0, and several `workers`, keep nothing.
    With `any_model_name` the first model answers to any name there is no model of, since agents ask for their own.
    """

    api_keys: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ("*",)
    parallel: int = 64
    queue: int = 1024
    timeout: float = 600.0
    keep_alive: float = 10.0
    max_body: int = 16 << 20
    max_store: int = 64 << 20
    body_timeout: float = 60.0
    shutdown_timeout: int = 25
    max_tokens: int | None = None
    style: str | None = None
    request_templates: bool = False
    log_contents: bool = False
    any_model_name: bool = False
    allow_unenforced: bool = False
    record: Path | None = None
    redact: bool = False
    otel: bool = False
    mcp: Mapping[str, Any] | None = None
    workers: int = 1
