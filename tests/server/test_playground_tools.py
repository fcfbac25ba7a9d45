"""Tools in the playground: a list and its JSON, which are one; tools that are imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from browser import ENTER, Browser
from playground_page import Telling, body, page, texts
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

NAMES = "#tool-list .signature"
RADIO: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/stations": {"get": {"operationId": "list_stations", "summary": "All stations.\nMore of it."}},
        "/stations/{id}": {
            "delete": {
                "operationId": "delete_station",
                "parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}],
            }
        },
        "/weather": {"get": {"operationId": "get_weather"}},
    },
}


def offered(browser: Browser, count: int) -> list[Any]:
    """The tools of the request, when there are so many."""

    def tools() -> list[Any]:
        return body(browser).get("tools", [])

    browser.wait(lambda: len(tools()) == count, f"{count} tools in the request")
    return tools()


def test_the_list_and_the_json_are_one(browser: Browser) -> None:
    with page(browser, Replay(), refusals=True):
        assert texts(browser, NAMES) == ["get_weather(city, days, unit?)"]
        browser.click("#tools-as-json summary")
        browser.type("#tools", '[{"type": "custom", "custom": {"name": "shell"}}, {"function": {"name": "now"}}]')
        assert texts(browser, NAMES) == ["shell(text)", "now()"]
        assert "a call of now" in browser.text("#tool-choice")
        assert texts(browser, ".editor > pre .json-string")[0] == '"custom"'
        behind = "return document.querySelector('#tools').previousElementSibling.textContent.trimEnd()"
        assert browser.script(behind) == browser.value("#tools")
        browser.type("#tools", "[")
        assert "no list of tools yet" in browser.text("#tool-list")
        assert browser.script("return document.querySelector('#add-tool').disabled")
        browser.wait_for_text("#fault", "a value is expected here")
        browser.type("#tools", '[{"type": "function", "function": {"name": "now", "parameters": {"type": 1}}}]')
        browser.click("#tools-as-json summary")
        browser.wait_for_text("#problem", "Tools: type")
        browser.click("#problem button")
        assert browser.script("return document.activeElement.id") == "tools"
        browser.click("#tool-list .remove")
        assert browser.value("#tools") == ""
        assert offered(browser, 0) == []


def test_a_tool_is_edited_and_keeps_what_has_no_field(browser: Browser) -> None:
    with page(browser, Replay()):
        browser.wait(lambda: browser.text("#body-text"), "the request")
        (before,) = offered(browser, 1)
        browser.click("#tool-list .edit")
        browser.click("#tool-form [type=submit]")
        assert json.loads(browser.value("#tools")) == [before]
        assert browser.script("return document.activeElement.ariaLabel") == "Edit get_weather"
        browser.click("#tool-list .edit")
        browser.type("#tool-about", "How it will be.")
        browser.click("#parameters li:last-of-type .remove")
        browser.click("#add-parameter")
        browser.type("#parameters li:last-of-type .name", "city")
        browser.choose("#parameters li:last-of-type .type", "array")
        browser.type("#parameters li:last-of-type .rest", '{"items": {"type": "string"}')
        browser.click("#tool-form [type=submit]")
        assert "the further keywords of city are not JSON" in browser.text("#tool-fault")
        browser.type("#parameters li:last-of-type .rest", '{"items": {"type": "string"}}')
        browser.click("#tool-form [type=submit]")
        assert browser.text("#tool-fault") == "two parameters are named city"
        browser.type("#parameters li:last-of-type .name", "places")
        browser.click("#parameters li:last-of-type .required")
        browser.click("#tool-form [type=submit]")
        browser.wait_for_text("#prompt-text", "How it will be.")
        (after,) = offered(browser, 1)
        kept = before["function"]["parameters"]["properties"]
        assert after["function"]["description"] == "How it will be."
        assert after["function"]["parameters"] == {
            "type": "object",
            "properties": {
                "city": kept["city"],
                "days": kept["days"],
                "places": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["city", "days"],
        }


def test_a_tool_is_added_by_keys(browser: Browser) -> None:
    with page(browser, Replay()):
        browser.click("#add-tool")
        browser.type("#tool-name", "get_weather")
        browser.keys(ENTER)
        assert browser.text("#tool-fault") == "another tool is named get_weather"
        browser.choose("#tool-type", "custom")
        browser.type("#tool-name", "roman")
        browser.type("#tool-format", '{"type": "grammar", "grammar": {"syntax": "regex", "definition": "[IVXLCDM]+"}}')
        browser.click("#tool-form [type=submit]")
        assert offered(browser, 2)[1]["custom"]["format"]["grammar"]["definition"] == "[IVXLCDM]+"
        assert browser.script("return document.activeElement.ariaLabel") == "Edit roman"


def test_operations_of_a_document_are_imported(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "radio.json"
    file.write_text(json.dumps(RADIO))
    with page(browser, Telling(), Settings(api_keys=("secret",)), refusals=True):
        browser.wait(lambda: browser.shows("#key-dialog"), "the question for a key")
        browser.type("#key-text", "secret")
        browser.keys(ENTER)
        browser.wait_for_text("#prompt-text", "Paris")
        browser.click("#import-tools")
        browser.send_file("#import-file", file)
        browser.wait_for_text("#import-count", "3 tools")
        assert texts(browser, "#import-list .about") == ["All stations.", "", ""]
        assert "takes the place" in browser.text("#import-list li:last-of-type")
        browser.click("#import-list input")
        assert browser.text("#import-add") == "Add 2 tools"
        browser.click("#import-add")
        assert texts(browser, NAMES) == ["delete_station(id)", "get_weather()"]
        assert [tool["function"]["name"] for tool in offered(browser, 2)] == ["delete_station", "get_weather"]


def test_what_cannot_be_imported_is_told(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit")
    with page(browser, Replay(), refusals=True):
        browser.click("#import-tools")
        for text, told in (
            ("", "line 1: this is not JSON: a document is expected here"),
            ("{", "line 1: this is not JSON: a key in double quotes is expected here"),
            ("openapi: 3.1.0", "this is YAML, which is not read here: give it as JSON"),
            ('{"mcpServers": {}}', "starts nothing that a request names"),
            ('{"openapi": "3.1.0", "paths": {"/a": {"$ref": "https://example.org"}}}', "which is not fetched"),
            ('{"tools": []}', "the document has no tools"),
        ):
            browser.type("#import-text", text)
            browser.click("#import-read")
            browser.wait_for_text("#import-fault", told)
        browser.send_file("#import-file", file)
        browser.wait_for_text("#import-fault", "a Python file is not run here")
        assert browser.text("#import-command") == "toolgram tools list mine.py --json"
        browser.click("#import-cancel")
        assert texts(browser, NAMES) == ["get_weather(city, days, unit?)"]
