"""`/docs`: the page that shows the OpenAPI document, from the server alone."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from browser import Browser
from contrast import SHADES, contrast
from live_server import serving
from playground_page import texts
from toolgram.api.openapi.document import document
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

CHAT = "#post-v1-chat-completions"
FIELDS = f"{CHAT} > .fields > li"


@pytest.fixture
def shown(browser: Browser) -> Iterator[str]:
    """The address of a server with a key, whose page is loaded. In the end it asked no other, and has no errors."""
    with serving(Replay(), Settings(api_keys=("secret",))) as address:
        browser.requested()
        browser.logged()
        browser.open(f"{address}/docs")
        browser.wait(lambda: browser.shows(CHAT), "the routes")
        yield address
        browser.open("about:blank")
        assert [url for url in browser.requested() if not url.startswith((f"{address}/", "about:"))] == []
        assert browser.logged() == []


def test_every_route_is_shown_with_what_it_takes_and_gives(browser: Browser, shown: str) -> None:
    routes = [(path, method, of) for path, methods in document()["paths"].items() for method, of in methods.items()]
    assert texts(browser, "#routes code") == [path for path, _, _ in routes]
    assert texts(browser, ".operation h2") == [f"{method.upper()}{path}" for path, method, _ in routes]
    assert texts(browser, ".operation > details.answer > summary > code:first-child") == [
        status for _, _, of in routes for status in of["responses"]
    ]
    examples = [
        of["requestBody"]["content"]["application/json"].get("examples", {}) for *_, of in routes if "requestBody" in of
    ]
    assert len(texts(browser, "details.example")) == sum(map(len, examples)) > 10


def test_fields_tell_their_types_and_open(browser: Browser, shown: str) -> None:
    lines = texts(browser, FIELDS)
    assert "messages list of ChatMessage required 1 to 16384 items" in " ".join(lines[10].split())[:60]
    assert texts(browser, f"{FIELDS} code:first-child") == list(
        document()["components"]["schemas"]["ChatCompletionBody"]["properties"]
    )
    temperature = next(line for line in lines if line.startswith("temperature"))
    assert "0 to 100" in temperature
    assert texts(browser, f"{FIELDS} .fields") == []
    browser.click(f"{FIELDS} summary")
    browser.wait(lambda: texts(browser, f"{FIELDS} .fields code:first-child"), "what is inside")
    assert texts(browser, f"{FIELDS} .fields code:first-child")[:2] == ["role", "content"]


def test_an_example_is_a_command_that_works(browser: Browser, shown: str) -> None:
    browser.click("#post-tokenize details.example summary")
    browser.wait(lambda: len(texts(browser, "#post-tokenize pre")) == 2, "the example")
    assert texts(browser, "#post-tokenize pre")[1].startswith(f"curl -N {shown}/tokenize ")


def test_an_answer_shows_its_headers(browser: Browser, shown: str) -> None:
    browser.script("document.querySelectorAll('#post-v1-chat-completions .answer')[8].open = true")
    browser.wait_for_text(f"{CHAT} .answer:nth-last-of-type(4)", "retry-after")


@pytest.mark.parametrize("dark", [False, True])
def test_it_can_be_read_by_day_and_by_night_and_on_a_phone(browser: Browser, shown: str, dark: bool) -> None:
    browser.dark(on=dark)
    browser.script("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    browser.wait(lambda: len(texts(browser, "pre")) > 10, "the examples")
    for text, behind in {tuple(pair) for pair in browser.script(SHADES)}:
        assert contrast(text, behind) >= 4.5, (text, behind)
    browser.dark(on=False)
    browser.size(360, 740)
    assert browser.script("return document.documentElement.scrollWidth - innerWidth") <= 0


def test_it_needs_no_key_and_runs_nothing_of_others(shown: str) -> None:
    answer = httpx2.get(f"{shown}/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
