"""Errors of engines as the APIs tell them: what a client can mend is a 4xx, and nothing that fails is out of reach."""

from __future__ import annotations

import pytest

from toolgram.api.errors import anthropic_error, api_error
from toolgram.engines.remote.http import Refused, Unavailable
from toolgram.errors import EngineError, InvalidRequest, OutOfTime, ToolgramError


@pytest.mark.parametrize(
    ("error", "status", "words", "retry"),
    [
        (Refused("http://up refuses the request with status 400: no such token"), 400, "no such token", None),
        (Unavailable("http://up fails with status 429: slow down", 429), 429, "slow down", 1),
        (Unavailable("http://up fails with status 500: oh", 500), 503, "cannot answer now", 1),
        (Unavailable("http://up cannot be reached"), 503, "not within reach", 1),
        (EngineError("broken"), 502, "failed", None),
    ],
)
def test_what_an_engine_says_is_told_with_its_status(
    error: EngineError, status: int, words: str, retry: object
) -> None:
    told = api_error(error)
    assert (told.status, told.retry_after) == (status, retry)
    assert words in told.message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidRequest("/model", "must be a string"), "invalid_request_error"),
        (Unavailable("slow down", 429), "rate_limit_error"),
        (Unavailable("oh", 500), "overloaded_error"),
        (EngineError("broken"), "api_error"),
        (OutOfTime("it took longer than 1 seconds"), "timeout_error"),
    ],
)
def test_anthropic_has_a_word_for_each_kind(error: ToolgramError, kind: str) -> None:
    assert anthropic_error(api_error(error))["error"]["type"] == kind
