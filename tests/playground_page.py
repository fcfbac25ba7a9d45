"""The playground in a browser, with an engine that writes what it is told to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from browser import CONTROL, ENTER, Browser
from live_server import serving
from toolgram.engines.base import Chunk, Logprob, Prompt, Sampling, SupportsGrammar, TokenLogprobs, Usage
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

CALL = [
    ([], ["<tool_call>", '\n{"name": "get_weather", "arguments": {"city": "']),
    (["Par"], []),
    (['is"'], [', "days": ']),
    (["3"], ["}}\n", "</tool_call>"]),
]
OPEN = Settings(request_templates=True)


class Telling(Replay):
    """Writes steps of (chosen, forced) tokens, whatever it is asked, and tells them apart as an embedded engine does.

    It waits where `gate` is closed, after the first step.
    """

    def __init__(self, steps: list[tuple[list[str], list[str]]] = CALL) -> None:
        super().__init__()
        self.steps = steps
        self.gate = threading.Event()
        self.gate.set()
        self.asked: list[Prompt] = []
        self.stopped = threading.Event()

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """A chunk for each step."""
        self.asked.append(prompt)
        try:
            for at, (chosen, forced) in enumerate(self.steps):
                while at and not self.gate.is_set():
                    await asyncio.sleep(0.01)
                tokens = tuple(range(len(chosen) + len(forced)))
                likely = () if sampling.logprobs is None else tuple(map(_likely, [*chosen, *forced]))
                yield Chunk("".join([*chosen, *forced]), tokens, len(forced), logprobs=likely)
            yield Chunk("", finish="stop", usage=Usage(prompt_tokens=7, completion_tokens=9))
        finally:
            self.stopped.set()


def _likely(text: str) -> TokenLogprobs:
    return TokenLogprobs(Logprob(1, text.encode(), -0.5), ())


@contextmanager
def opened(browser: Browser, address: str, *, refusals: bool = False) -> Iterator[None]:
    """The playground there. In the end its console has no errors but the `refusals`, and it asked that server only."""
    browser.requested()
    browser.logged()
    browser.open(f"{address}/")
    yield
    browser.open("about:blank")
    assert [url for url in browser.requested() if not url.startswith((f"{address}/", "about:", "data:"))] == []
    refused = "the server responded with a status of 4" if refusals else None
    assert [line for line in browser.logged() if refused is None or refused not in line] == []


@contextmanager
def page(browser: Browser, engine: Replay, settings: Settings = OPEN, *, refusals: bool = False) -> Iterator[None]:
    """The playground, loaded, of a server with that engine."""
    with serving(engine, settings) as address, opened(browser, address, refusals=refusals):
        if not settings.api_keys:
            browser.wait_for_text("#prompt-text", "Paris")
        yield


def run(browser: Browser) -> None:
    browser.keys(CONTROL, ENTER)
    browser.wait(lambda: browser.text("#figures"), "the end of the answer")


def body(browser: Browser) -> Any:
    """The request that the form makes, as the page shows it once it was explained."""
    browser.wait(lambda: not browser.shows("#problem"), "no problem")
    return json.loads(browser.text("#body-text"))


def texts(browser: Browser, selector: str) -> list[str]:
    found = "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)"
    return browser.script(found, selector)
