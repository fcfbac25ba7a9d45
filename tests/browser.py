"""A headless Chromium, by the W3C WebDriver protocol: chromedriver is a server, and its commands are JSON over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

CONTROL, ENTER, ESCAPE, TAB, SHIFT, RIGHT = "\ue009", "\ue007", "\ue00c", "\ue004", "\ue008", "\ue014"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # as the specification names it
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
)
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Browser:
    """A window. Elements are named by CSS selectors."""

    client: httpx2.Client
    session: str

    def command(self, method: str, path: str, **body: Any) -> Any:
        """A command of the protocol; what it answers."""
        sent = {"json": body} if method == "POST" else {}
        answer = self.client.request(method, f"{self.session}{path}", **sent).json()["value"]
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer

    def open(self, url: str) -> None:
        """Go there, and wait until the page is loaded."""
        self.command("POST", "/url", url=url)

    def script(self, source: str, *given: Any) -> Any:
        """What a function body returns; `arguments` are what is given."""
        return self.command("POST", "/execute/sync", script=source, args=list(given))

    def text(self, selector: str) -> str:
        """The text of an element, shown or not; "" where there is none."""
        return self.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def shows(self, selector: str) -> bool:
        """Whether there is such an element, and it can be seen."""
        return self.script("return !!document.querySelector(arguments[0])?.checkVisibility()", selector)

    def value(self, selector: str) -> Any:
        """What a control holds."""
        return self.script("return document.querySelector(arguments[0]).value", selector)

    def click(self, selector: str) -> None:
        """Click where the element is, as a person does."""
        self.command("POST", f"/element/{self._element(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        """Put a text in the place of what the control holds, by keys."""
        element = self._element(selector)
        self.command("POST", f"/element/{element}/clear")
        self.command("POST", f"/element/{element}/value", text=text)

    def send_file(self, selector: str, path: Path) -> None:
        """Choose a file."""
        self.command("POST", f"/element/{self._element(selector)}/value", text=str(path))

    def choose(self, selector: str, option: str) -> None:
        """Choose an option of a select by its value."""
        self.script(
            "const [control, value] = [document.querySelector(arguments[0]), arguments[1]];"
            "control.focus(); control.value = value;"
            "for (const kind of ['input', 'change']) control.dispatchEvent(new Event(kind, {bubbles: true}))",
            selector,
            option,
        )
        assert self.value(selector) == option

    def keys(self, *keys: str) -> None:
        """Press keys together, wherever the focus is, and let them go."""
        actions = [{"type": "keyDown", "value": key} for key in keys]
        actions += [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self.command("POST", "/actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def wait(self, holds: Callable[[], Any], what: str) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + _PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"waited for {what}: {self.text('#status, #problem')}\n{self.logged()}"
            time.sleep(0.03)

    def wait_for_text(self, selector: str, text: str) -> None:
        """Wait until an element has a text in it."""
        self.wait(lambda: text in self.text(selector), f"{text!r} in {selector}")

    def size(self, width: int, height: int) -> None:
        """The size of what a page sees; it may be narrower than a window can be."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def dark(self, *, on: bool) -> None:
        """What the page is told that its reader prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def devtools(self, name: str, **parameters: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self.command("POST", "/goog/cdp/execute", cmd=name, params=parameters)

    def logged(self) -> list[str]:
        """What the console has of errors and warnings since it was last asked."""
        entries = self.command("POST", "/se/log", type="browser")
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def requested(self) -> list[str]:
        """The addresses that were asked for since this was last asked, whoever in the browser's page asked."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.command("POST", "/se/log", type="performance")
        ]
        return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]

    def _element(self, selector: str) -> str:
        return self.command("POST", "/element", using="css selector", value=selector)[_ELEMENT]


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser with an empty profile in `folder`. Where there is none the test is skipped, but fails under CI."""
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or browser is None:
        missing = "chromium and chromedriver are wanted for this: apt-get install chromium chromium-driver"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{_port(process)}", timeout=60) as client:
                yield from _session(client, browser, folder)
        finally:
            process.terminate()


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        if "started successfully on port" in line:
            return int(line.rstrip(".\n").rpartition(" ")[2])
    raise AssertionError("chromedriver did not start")


def _session(client: httpx2.Client, browser: str, folder: Path) -> Iterator[Browser]:
    options = {"binary": browser, "args": [*_FLAGS, f"--user-data-dir={folder}", "--window-size=1360,900"]}
    wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
    answer = client.post("/session", json={"capabilities": {"alwaysMatch": wanted}}).json()["value"]
    assert "sessionId" in answer, answer
    session = f"/session/{answer['sessionId']}"
    window = Browser(client, session)
    window.open("about:blank")
    try:
        yield window
    finally:
        client.delete(session)
