"""What surrounds every route: request ids, API keys, errors in the API's shape, the log and the metrics."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
import uuid
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolgram import work
from toolgram.api.errors import ApiError, anthropic_error, api_error, ollama_error, openai_error, shutting_down
from toolgram.api.json_text import json_bytes
from toolgram.api.ollama.models import NOT_HERE
from toolgram.errors import ToolgramError
from toolgram.server.addresses import path_meant
from toolgram.server.limits import Admission
from toolgram.server.metrics import Metrics
from toolgram.server.origins import check_host, check_origin
from toolgram.server.playground import pages
from toolgram.server.recording.capture import PATHS, Capture, Observer
from toolgram.server.request_log import Line, Record, put, record_of
from toolgram.server.settings import Settings
from toolgram.server.sse import ClientGone
from toolgram.server.store import Client
from toolgram.server.tracing import Ended, of_request

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer  # of an extra

LOG = logging.getLogger("toolgram.server")

_PROMPTS = {
    "/v1/completions": "/prompt",
    "/v1/responses": "/input",
    "/v1/responses/input_tokens": "/input",
    "/tokenize": "/prompt",
    "/api/generate": "/prompt",
}
_OLLAMA = "/api/"
_OPEN = frozenset(("/health", "/metrics", "/openapi.json", *pages()))  # these need no key
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_CLIENT_GONE = 499  # as in nginx; only the log ever shows it
_OUT_OF_TIME = 504
_LAST_WORDS = 2.0  # seconds in which requests that are cancelled tell their clients so


class Front:
    """An ASGI application around another one, which may raise any ToolgramError before it answers."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        metrics: Metrics,
        admission: Admission,
        paths: frozenset[str],
        observer: Observer | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._app = app
        self._admission = admission
        self._settings = settings
        self._metrics = metrics
        self._paths = paths
        self._observer = observer
        self._tracer = tracer
        self._keys = tuple(key.encode() for key in settings.api_keys)
        self._running = set[asyncio.Task[Any]]()

    async def ended(self) -> None:
        """Wait until requests that are cancelled have told their clients, as far as these listen."""
        if self._running:
            await asyncio.wait(self._running, timeout=_LAST_WORDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]  # a slash of a name is written %2F
        if (meant := path_meant(path, self._paths)) != path:
            scope = {**scope, "path": meant, "raw_path": meant.encode()}
        headers = {key: value.decode("latin-1") for key, value in scope["headers"]}
        record = Record(_request_id(headers.get(b"x-request-id")))
        record.capture = Capture() if self._observer and scope["path"] in PATHS else None
        put(scope, record)
        tracer = None if scope["path"] in _OPEN else self._tracer
        route = scope["path"] if scope["path"] in self._paths else None
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._running.add(task)
        try:
            with of_request(tracer, scope, route, headers) as ended:
                await self._served(scope, receive, send, headers, record, ended)
        finally:
            self._running.discard(task)

    async def _served(
        self, scope: Scope, receive: Receive, send: Send, headers: Mapping[bytes, str], record: Record, ended: Ended
    ) -> None:
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                ids = {"x-request-id": record.id, "request-id": record.id}
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in ids.items())]
            await send(message)

        try:
            key = self._known_key(headers)
            who = key or (scope.get("client") or ("",))[0]
            digest = b"" if key is None else sha256(key).digest()
            record.client = Client(digest, digest or who)
            with work.on(self._admission.errand(who, headers.get(b"user-agent", ""))):
                await self._answered(scope, receive, answer, headers, knows_key=key is not None)
        except ClientGone:
            status = _CLIENT_GONE
        except ToolgramError as error:
            failure = api_error(error, _PROMPTS.get(scope["path"], "/messages"))
            await self._fail(failure, scope, receive, answer, headers)
        except asyncio.CancelledError:  # the server ends, and no longer waits for its answers
            if status:
                raise
            await self._fail(shutting_down(), scope, receive, answer, headers)
        except Exception:
            LOG.exception("request %s failed unexpectedly: please report this", record.id)
            if status:
                raise
            failure = ApiError(500, "internal_error", "internal error of the server; its log has the details")
            await self._fail(failure, scope, receive, answer, headers)
        finally:
            ended(status, record)
            self._over(scope, status, record)

    async def _answered(
        self, scope: Scope, receive: Receive, send: Send, headers: Mapping[bytes, str], *, knows_key: bool
    ) -> None:
        check_host(headers, self._settings.hosts)
        check_origin(scope["method"], headers, self._settings.origins)
        if self._keys and scope["path"] not in _OPEN and not knows_key:
            raise ApiError(401, "invalid_api_key", "give a key that this server knows, as `Authorization: Bearer …`")
        length = headers.get(b"content-length", "")
        if length.isdigit() and int(length) > self._settings.max_body:
            raise too_large(self._settings)
        scope["app"] = self  # the router raises then, where it has no route
        try:
            await self._app(scope, receive, send)
        except HTTPException as error:
            record_of(scope).headers.update(error.headers or {})  # finds the methods that there are
            if (why := NOT_HERE.get(scope["path"])) is not None:
                raise ApiError(400, "not_supported", why) from error
            known = ", ".join(sorted(self._paths - pages().keys())).replace(":path", "")
            reason = f"{scope['method']} {scope['path']}: {error.detail}; there are {known}"
            raise ApiError(error.status_code, "no_such_route", reason) from error

    def _known_key(self, headers: Mapping[bytes, str]) -> bytes | None:
        """The key that is given, if it is known; some clients send one in each of two places, of which one is meant.

        It takes the same time whichever is right, and however much of it is.
        """
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        sent = (token if scheme.lower() == "bearer" else "", headers.get(b"x-api-key", ""))
        given = [each.strip().encode() for each in sent]
        compared = [(one, hmac.compare_digest(one, key)) for one in given for key in self._keys]  # all, before a look
        return next((one for one, same in compared if same), None)

    async def _fail(
        self, failure: ApiError, scope: Scope, receive: Receive, answer: Send, headers: Mapping[bytes, str]
    ) -> None:
        record = record_of(scope)
        record.failed(failure.code, failure.message)
        response = error_response(failure, self._told(failure, record, scope["path"], headers), record)
        await response(scope, receive, answer)

    def _told(self, failure: ApiError, record: Record, path: str, headers: Mapping[bytes, str]) -> dict[str, Any]:
        """The failure in the shape of the client's API; where a path is of two, or of nobody here, a header tells."""
        if path.startswith(_OLLAMA):
            return ollama_error(failure)
        both = path.startswith("/v1/models") or path not in self._paths
        if path.startswith("/v1/messages") or (both and b"anthropic-version" in headers):
            return anthropic_error(failure, record.id)
        return openai_error(failure)

    def _over(self, scope: Scope, status: int, record: Record) -> None:
        seconds = time.perf_counter() - record.began
        path = scope["path"] if scope["path"] in self._paths else "other"
        self._metrics.count(path, status, seconds, record)
        if self._observer is not None and record.capture is not None and record.capture.has_body:
            self._observer(record.recorded(scope["path"], self._settings, status), record.id)
        LOG.info(Line(record, scope["method"], scope["path"], status, seconds))


def error_response(error: ApiError, body: Mapping[str, Any], record: Record) -> Response:
    """The answer to a request that failed, with this body."""
    headers = dict(record.headers)
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if error.status == _OUT_OF_TIME:  # the SDKs would ask again, twice, for what takes as long again
        headers["x-should-retry"] = "false"
    return Response(json_bytes(body), error.status, headers, "application/json")


def too_large(settings: Settings) -> ApiError:
    """Raises ApiError for a body that is too large."""
    return ApiError(413, "body_too_large", f"a body may have at most {settings.max_body} bytes")


def _request_id(given: str | None) -> str:
    return given if given is not None and _REQUEST_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"
