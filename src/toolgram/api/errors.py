"""What went wrong, in the shape of each API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolgram.engines.remote.http import Refused, Unavailable
from toolgram.errors import (
    EngineError,
    GrammarError,
    InvalidRequest,
    InvalidSchema,
    OutOfTime,
    PromptTooLong,
    TemplateError,
    ToolgramError,
    TooMuchWork,
    UnsupportedSchema,
)


class ApiError(ToolgramError):
    """An error as HTTP tells it. `pointer` is a JSON pointer into the body, None where no part of it is at fault.

    `details` are those of Anthropic's errors.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        pointer: str | None = None,
        retry_after: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.pointer = pointer
        self.retry_after = retry_after
        self.details = details


_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def api_error(error: ToolgramError, prompt_at: str = "/messages") -> ApiError:
    """An error of ours as one of the API: what the client may mend is a 400, a fault of the engine a 502.

    `prompt_at` is where the body has the prompt.
    """
    match error:
        case ApiError():
            return error
        case UnsupportedSchema(pointer=pointer):
            return ApiError(400, "unsupported_schema", str(error), pointer)
        case InvalidSchema(pointer=pointer):
            return ApiError(400, "invalid_schema", str(error), pointer)
        case InvalidRequest(pointer=pointer):
            return ApiError(400, "invalid_value", str(error), pointer)
        case TemplateError() | GrammarError():
            return ApiError(400, "cannot_be_prompted", str(error), "/messages")
        case TooMuchWork():
            return ApiError(400, "too_costly", str(error), "")
        case OutOfTime():
            return ApiError(504, "timeout", str(error))
        case PromptTooLong():
            return ApiError(400, "context_length_exceeded", str(error), prompt_at)
        case Refused():
            return ApiError(400, "invalid_value", f"the engine took it for wrong: {error}", "")
        case Unavailable(status=429):
            return ApiError(429, "rate_limited", f"the engine has no room: {error}", retry_after=1)
        case Unavailable(status=None):
            return ApiError(503, "unavailable", f"the engine is not within reach: {error}", retry_after=1)
        case Unavailable():
            return ApiError(503, "unavailable", f"the engine cannot answer now: {error}", retry_after=1)
        case EngineError():
            return ApiError(502, "engine_error", f"the engine failed: {error}")
        case _:
            return ApiError(503, "unavailable", str(error))


def shutting_down() -> ApiError:
    """What a client is told whose answer the server, which was told to end, no longer waits for."""
    reason = "the server is shutting down, and the answer took longer than it waits for one: ask again"
    return ApiError(503, "shutting_down", reason, retry_after=1)


def openai_error(error: ApiError) -> dict[str, Any]:
    """The body of an error as OpenAI writes it; `param` is the place as a path, `pointer` as a JSON pointer."""
    inner: dict[str, Any] = {
        "message": error.message,
        "type": "server_error" if error.status >= 500 else _openai_type(error.status),
        "param": None if error.pointer is None else param(error.pointer),
        "code": error.code,
    }
    if error.pointer is not None:
        inner["pointer"] = error.pointer
    return {"error": inner}


def _openai_type(status: int) -> str:
    return _TYPES[status] if status in (401, 403, 429) else "invalid_request_error"


def anthropic_error(error: ApiError, request_id: str | None = None) -> dict[str, Any]:
    """The body of an error as Anthropic writes it."""
    type_ = _TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    inner = {"type": type_, "message": error.message, **({"details": error.details} if error.details else {})}
    return {"type": "error", "error": inner, "request_id": request_id}


def ollama_error(error: ApiError) -> dict[str, Any]:
    """The body of an error as Ollama writes it, or a line of a stream."""
    return {"error": error.message}


def param(pointer: str) -> str | None:
    """A JSON pointer as OpenAI's `param`: `messages[0].role`; None for the whole body."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    path = "".join(f"[{part}]" if re.fullmatch(r"\d+", part) else f".{part}" for part in parts)
    return path.removeprefix(".") or None
