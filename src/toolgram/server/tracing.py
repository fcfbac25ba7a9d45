"""Spans of a server's requests, by OpenTelemetry's conventions for HTTP and for generative models.

    POST /v1/responses ─┬─ plan
                        ├─ queue
                        ├─ chat MODEL          one for each choice and turn
                        └─ execute_tool NAME   of an MCP server

Nothing of what was said is in them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, TypeVar

from starlette.types import Scope

from toolgram.chat import Reply
from toolgram.engines.base import Chunk, Sampling, Usage
from toolgram.errors import needing
from toolgram.planning.plan import Plan
from toolgram.server.models import Reached, Served
from toolgram.server.request_log import Record
from toolgram.spans import Attributes, is_traced, span, tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer  # of an extra

T = TypeVar("T")

_FAILED = 500  # of these statuses on the server is at fault
Ended = Callable[[int, Record], None]


def exporting() -> tuple[Tracer, Callable[[], None]]:
    """A tracer whose spans go by OTLP to where the variables of OpenTelemetry say, and what ends it.

    Raises MissingPackage.
    """
    with needing("otel", "toolgram serve --otel"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    resource = Resource.create({"service.name": "toolgram", **OTELResourceDetector().detect().attributes})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("toolgram"), provider.shutdown


@contextmanager
def of_request(
    tracer: Tracer | None, scope: Scope, route: str | None, headers: Mapping[bytes, str]
) -> Generator[Ended]:
    """The span of a request, in that of the caller which the headers name; what is given is told how it ended."""
    if tracer is None:
        yield _unseen
        return
    method = scope["method"]
    carrier = {key.decode("latin-1"): value for key, value in headers.items()}
    said = {
        "http.request.method": method,
        "http.route": route,
        "url.path": scope["path"],
        "url.scheme": scope["scheme"],
    }
    with tracing(tracer, carrier), span(f"{method} {route or ''}".strip(), said, "server") as note:

        def ended(status: int, record: Record) -> None:
            own = {"toolgram.request.id": record.id, "toolgram.style": record.style, "toolgram.error": record.error}
            failed = (record.error or str(status)) if status >= _FAILED else None
            note({"http.response.status_code": status, "error.type": failed, **own})

        yield ended


def _unseen(_status: int, _record: Record) -> None:
    """Nobody looks."""


def planned(plan: Plan, prompt_tokens: int | None) -> Attributes:
    """What the span of a plan says."""
    return {
        "toolgram.style": plan.style.name,
        "toolgram.tools": len(plan.request.tools),
        "toolgram.relaxations": len(plan.relaxations),
        "toolgram.prompt_tokens": prompt_tokens,
    }


def generated(
    items: AsyncGenerator[T, None],
    served: Served,
    sampling: Sampling,
    operation: str = "chat",
    *,
    as_json: bool = False,
) -> AsyncGenerator[T, None]:
    """What an engine generates, in a span of its own where there are any."""
    if not is_traced():
        return items
    said: Attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "toolgram",
        "gen_ai.request.model": served.name,
        "gen_ai.output.type": "json" if as_json else "text",
        "gen_ai.request.max_tokens": sampling.max_tokens,
        "gen_ai.request.temperature": sampling.temperature,
        "gen_ai.request.top_p": sampling.top_p,
        "gen_ai.request.top_k": sampling.top_k or None,
        "gen_ai.request.frequency_penalty": sampling.frequency_penalty,
        "gen_ai.request.presence_penalty": sampling.presence_penalty,
        "gen_ai.request.seed": sampling.seed,
    }
    return _generated(items, served, operation, said)


async def _generated(
    items: AsyncGenerator[T, None], served: Served, operation: str, said: Attributes
) -> AsyncGenerator[T, None]:
    kind = "client" if isinstance(served.engine, Reached) else "internal"  # where the model runs
    with span(f"{operation} {served.name}", said, kind, around=False) as note:
        async with aclosing(items):
            async for item in items:
                match item:
                    case Reply(finish_reason=finish, usage=usage):
                        note(_ended(served, finish, usage))
                    case Chunk(finish=str(finish), usage=Usage() as usage):
                        note(_ended(served, finish, usage))
                    case _:
                        pass
                yield item


def _ended(served: Served, finish: str, usage: Usage) -> Attributes:
    return {
        "gen_ai.response.model": served.name,
        "gen_ai.response.finish_reasons": (finish,),
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "toolgram.forced_tokens": usage.forced_tokens,
        "toolgram.forward_passes": usage.forward_passes,
    }
