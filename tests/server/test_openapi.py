"""The OpenAPI document is true: every answer is one that it tells of, and what it does not allow is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx2
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks
from schemathesis.generation.meta import TestPhase

from live_server import listening
from sampled_engine import Sampled
from situations import CHATML
from toolgram.api.openapi.document import document
from toolgram.server import app
from toolgram.server.models import Served
from toolgram.server.playground import pages
from toolgram.server.settings import Settings

API = schemathesis.openapi.from_dict(document())
API.config.output.sanitization.update(enabled=False)
API.config.checks.negative_data_rejection.expected_statuses.append("413")  # what is too large is refused as that
# The engine breaks off at times, so that 502 and 503 are as they should be; and a body of the right form may still ask
# for what there is not: another model, a result without a call.
EXCLUDED = [checks.not_a_server_error, checks.positive_data_acceptance]
# Each operation has a thousand cases besides, of what its schemas allow and do not, which every worker makes when it
# collects tests: so there is no other test for long runs. In these each of the cases is sent and there are 500
# examples; else one case of four.
EXAMPLES = settings(max_examples=max(12, settings().max_examples // 4), suppress_health_check=list(HealthCheck))
ONE_OF = 4 if settings().derandomize else 1
NUMBER = count()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    served = Served("sampled", CHATML, Sampled(failing=20))
    with listening(app.create_app([served], Settings(style="hermes_2_pro", api_keys=("right",)))) as at:
        yield at


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Connections that are kept: there are thousands of cases."""
    with requests.Session() as kept:
        kept.trust_env = False  # else proxies and passwords are looked for with each case
        yield kept


def is_left_out(case: Any) -> bool:
    """Whether a case of those that are there besides is left to long runs."""
    return case.meta.phase.name is TestPhase.COVERAGE and next(NUMBER) % ONE_OF > 0


def answered(case: Any, address: str, session: requests.Session) -> None:
    # A header of the case's own goes before: cases without a key, or with a wrong one, are refused.
    case.headers.setdefault("authorization", "Bearer right")
    case.call_and_validate(base_url=address, session=session, excluded_checks=EXCLUDED)


@API.parametrize()
@EXAMPLES
def test_answers_are_those_of_the_document(case: Any, address: str, session: requests.Session) -> None:
    if not is_left_out(case):
        answered(case, address, session)


def test_it_is_an_openapi_document_of_every_route(address: str) -> None:
    told = httpx2.get(f"{address}/openapi.json").json()
    assert told == document()
    API.validate()
    methods = app._METHODS.items()
    routes = {(path.replace(":path", ""), method.lower()) for method, handlers in methods for path in handlers}
    routes -= {(path, "get") for path in pages()}  # of the playground, which is no API
    assert {(path, method) for path, item in told["paths"].items() for method in item} == routes
