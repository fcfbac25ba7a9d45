"""Spans: what is done for a request and how long each part takes, for whoever follows it with OpenTelemetry.

Spans are made where `tracing` was entered, with a tracer. Elsewhere there are none, and OpenTelemetry is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer  # of an extra

Attributes = Mapping[str, str | bool | int | float | tuple[str, ...] | None]
"""What a span says, by the names of OpenTelemetry's semantic conventions; None says nothing."""
Note = Callable[[Attributes], None]
"""Says more of a span. One with an `error.type` has failed."""

_tracer: ContextVar[Tracer | None] = ContextVar("toolgram_tracer", default=None)


def is_traced() -> bool:
    """Whether spans are made here."""
    return _tracer.get() is not None


@contextmanager
def tracing(tracer: Tracer, carrier: Mapping[str, str] | None = None) -> Generator[None]:
    """What is done inside has spans. `carrier` are the headers that may name the span of whoever asks for it."""
    from opentelemetry.context import attach, detach
    from opentelemetry.propagate import extract

    outer = attach(extract(carrier or {}))
    token = _tracer.set(tracer)
    try:
        yield
    finally:
        _tracer.reset(token)
        detach(outer)


@contextmanager
def span(
    name: str, said: Attributes, kind: Literal["internal", "server", "client"] = "internal", *, around: bool = True
) -> Generator[Note]:
    """A span of what is done inside. It is `around` the spans that begin there.

    A generator must not be around those of its caller, which runs between its items.
    """
    if (tracer := _tracer.get()) is None:
        yield _nothing
        return
    from opentelemetry.trace import SpanKind, StatusCode, use_span

    made = tracer.start_span(name, kind=SpanKind[kind.upper()])

    def note(more: Attributes) -> None:
        made.set_attributes({key: value for key, value in more.items() if value is not None})
        if more.get("error.type") is not None:
            made.set_status(StatusCode.ERROR)

    note(said)
    used = use_span(made, record_exception=False, set_status_on_exception=False) if around else nullcontext()
    try:
        with used:
            yield note
    except Exception as error:
        note({"error.type": type(error).__name__})
        raise
    finally:
        made.end()


def _nothing(_more: Attributes) -> None:
    """There is no span."""
