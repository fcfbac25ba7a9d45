"""`toolgram agent` on the embedded model: a goal, tools of a Python file and of a real server, and a typed answer."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolgram.cli.app import app

TOOLS = '''
import os
from dataclasses import dataclass


@dataclass
class Number:
    """A number."""

    value: float


def temperature(city: str) -> int:
    """The temperature in a city now, in degrees Celsius."""
    return 3


with open(os.path.join(os.path.dirname(__file__), "seen"), "a") as seen:
    seen.write(f"{os.getpid()}\\n")
'''
DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/prices/{item}": {
            "get": {
                "operationId": "price",
                "summary": "The price of an item, in euros.",
                "parameters": [{"name": "item", "in": "path", "required": True, "schema": {"type": "string"}}],
            }
        }
    },
}
INSTRUCTIONS = "Use the tools to find out what you are asked for, then answer."


class Shop(BaseHTTPRequestHandler):
    """A document, and prices."""

    asked: list[str] = []  # noqa: RUF012 - what this class was asked, over all requests

    def do_GET(self) -> None:
        self.asked.append(self.path)
        said = DOCUMENT if self.path == "/openapi.json" else {"euros": 2.5}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def shop() -> Iterator[str]:
    Shop.asked.clear()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()


@pytest.mark.parametrize("more", [(), ("--isolate",)], ids=["here", "isolated"])
def test_a_goal_with_tools_of_a_file_and_of_a_server_ends_with_a_typed_answer(
    shop: str, tmp_path: Path, more: tuple[str, ...]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(TOOLS)
    ended = CliRunner().invoke(
        app,
        ["agent", "What is the price of tea?", "--tools", str(file), "--tools", f"{shop}/openapi.json",
         "--instructions", INSTRUCTIONS, "--answer", f"{file}:Number", "--max-steps", "2", "--max-tokens", "80", *more],
    )  # fmt: skip
    assert ended.exit_code == 0, ended.output
    assert 'price({"item": "tea"})' in ended.stderr
    assert Shop.asked == ["/openapi.json", "/prices/tea"]
    answer = json.loads(ended.stdout)
    assert list(answer) == ["value"]
    assert isinstance(answer["value"], int | float)
    loaded_by = (tmp_path / "seen").read_text().split()
    assert len(loaded_by) == 2  # for the tools, and for the type
    assert (str(os.getpid()) in loaded_by) != bool(more)


PRINTS = '''
print("loading")


def temperature(city: str) -> int:
    """The temperature in a city now, in degrees Celsius."""
    print("measuring")
    return 3
'''


def test_what_tools_print_is_no_part_of_the_answer_and_a_cut_one_is_told(tmp_path: Path) -> None:
    file = tmp_path / "prints.py"
    file.write_text(PRINTS)
    words = ["agent", "How warm is it in Oslo?", "--tools", str(file), "--max-steps", "2", "--max-tokens", "40"]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 3, ended.output
    assert ended.stdout
    assert "loading" not in ended.stdout
    assert "measuring" not in ended.stdout
    assert "loading\n" in ended.stderr
    assert "measuring\n" in ended.stderr
    assert "cut off by --max-tokens" in ended.stderr
    listed = CliRunner().invoke(app, ["tools", "list", str(file), "--json"])
    assert [tool["function"]["name"] for tool in json.loads(listed.stdout)] == ["temperature"]


@pytest.mark.parametrize("document", ["5", "null", "[]"])
def test_a_document_that_lists_no_tools_is_told_in_a_line(tmp_path: Path, document: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(document)
    told = CliRunner().invoke(app, ["tools", "list", str(file)])
    assert told.exit_code == 2
    assert told.stderr.startswith(f"error: {file}: must be")
