"""Images in the playground: added, shown, sent, and taken out again."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from browser import Browser
from engines.projector import png
from playground_page import Telling, body, page, run, texts
from seeing import Seeing
from toolgram.conversation.media import media_in

PNG = png((200, 30, 30))
WEBP = base64.b64decode("UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA=")  # a pixel
THUMBNAILS = "#messages .images img"
PASTED = """
const files = new DataTransfer();
const bytes = Uint8Array.from(atob(arguments[0]), (char) => char.charCodeAt());
files.items.add(new File([bytes], "a.png", {type: "image/png"}));
if (arguments[2]) files.setData("text/plain", arguments[2]);
const event = arguments[1] === "paste"
  ? new ClipboardEvent("paste", {clipboardData: files, bubbles: true, cancelable: true})
  : new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true});
return document.querySelector('.message[data-role="user"] .content').dispatchEvent(event);
"""


class Looking(Telling, Seeing):
    """As `Telling`, of a model that sees."""


def shown(browser: Browser, count: int) -> None:
    """That many images are shown and loaded."""
    script = "return [...document.querySelectorAll(arguments[0])].filter((image) => image.naturalWidth).length"
    browser.wait(lambda: browser.script(script, THUMBNAILS) == count, f"{count} images")


def urls(browser: Browser) -> list[str]:
    """The images of the last message."""
    content = body(browser)["messages"][-1]["content"]
    return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


def test_an_image_is_shown_to_the_model_and_in_the_chat(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "red.png").write_bytes(PNG)
    engine = Looking()
    with page(browser, engine):
        browser.send_file('.message[data-role="user"] .image-file', tmp_path / "red.png")
        shown(browser, 1)
        browser.wait_for_text("#prompt-text", "[image/png]")
        assert urls(browser) == ["data:image/png;base64," + base64.b64encode(PNG).decode()]
        run(browser)
        assert [media.data for media in media_in(engine.asked[-1])] == [base64.b64encode(PNG).decode()]
        assert browser.script("return document.querySelectorAll('#turns .turn img').length") == 1
        said = body(browser)["messages"][-1]["content"][0]["text"]
        browser.click("#messages .images button")
        browser.wait(lambda: body(browser)["messages"][-1]["content"] == said, "the text alone")


def test_what_the_server_does_not_read_is_made_a_png(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "pixel.webp").write_bytes(WEBP)
    (tmp_path / "notes.txt").write_text("none")
    with page(browser, Looking()):
        browser.send_file('.message[data-role="user"] .image-file', tmp_path / "notes.txt")
        browser.wait_for_text("#problem", "notes.txt is no image that this browser can show")
        browser.send_file('.message[data-role="user"] .image-file', tmp_path / "pixel.webp")
        shown(browser, 1)
        browser.wait_for_text("#prompt-text", "[image/png]")
        assert [url[:22] for url in urls(browser)] == ["data:image/png;base64,"]


def test_an_image_may_be_pasted_and_dropped(browser: Browser) -> None:
    with page(browser, Looking()):
        for count, kind in enumerate(("paste", "drop"), 1):
            assert browser.script(PASTED, base64.b64encode(PNG).decode(), kind) is False  # the page has taken it
            shown(browser, count)
        assert texts(browser, "#messages .images button") == ["✕", "✕"]


def test_cells_of_a_table_are_pasted_as_text(browser: Browser) -> None:
    with page(browser, Looking()):
        assert (
            browser.script(PASTED, base64.b64encode(PNG).decode(), "paste", "1\t2") is True
        )  # it is left to the browser
        assert texts(browser, "#messages .images button") == []


def test_parts_without_a_field_stay_beside_an_image_and_no_other_role_has_one(browser: Browser, tmp_path: Path) -> None:
    with page(browser, Looking(), refusals=True):
        audio = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
        request = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hear."}, audio]}]}
        (tmp_path / "request.json").write_text(json.dumps(request))
        browser.send_file("#share-open", tmp_path / "request.json")
        browser.wait_for_text("#body-text", "input_audio")
        browser.script(PASTED, base64.b64encode(PNG).decode(), "drop")
        shown(browser, 1)
        browser.wait_for_text("#body-text", "image_url")
        content = json.loads(browser.text("#body-text"))["messages"][0]["content"]
        assert [part["type"] for part in content] == ["text", "input_audio", "image_url"]
        browser.choose(".message .role", "system")
        browser.wait(lambda: "image_url" not in browser.text("#body-text"), "no image")


def test_a_model_that_does_not_see_says_so_at_the_message(browser: Browser) -> None:
    with page(browser, Telling(), refusals=True):
        browser.script(PASTED, base64.b64encode(PNG).decode(), "paste")
        browser.wait_for_text('.message[data-role="user"] .fault', "image")
