"""The playground's answers: where the grammar cut in, the conversation as a chat, requests as links and files."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from browser import CONTROL, ENTER, Browser
from live_server import serving
from playground_page import Telling, body, opened, page, run, texts
from toolgram.engines.base import Chunk, Logprob, Prompt, Sampling, SupportsGrammar, TokenLogprobs, TracePoint, Usage
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

BUBBLES = "#turns .turn > h4"


class Cut(Replay):
    """A call whose number became another one than was meant; the trace of each token comes with it."""

    TOKENS = ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "É', '", "days": 1', "}}\n", "</tool_call>")

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        offset = 0
        for at, text in enumerate(self.TOKENS):
            likely = TokenLogprobs(Logprob(at, text.encode(), -0.1), ())
            trace = (
                TracePoint(at, at, 90, b"!", 0.2, offset),  # too little
                *((TracePoint(at, at, 91, b"0", 0.9876, offset),) if at == 2 else ()),
                *((TracePoint(at, at, 92, b" and", 0.7, offset),) if at == 3 else ()),
            )
            yield Chunk(text, (at,), logprobs=(likely,), trace=trace)
            offset += len(text)
        yield Chunk("", finish="stop", usage=Usage(completion_tokens=4))


def test_where_the_grammar_cut_in_is_marked(browser: Browser) -> None:
    with page(browser, Cut()):
        run(browser)
        assert texts(browser, "#tokens .cut") == ["}}\n", "</tool_call>"]
        assert texts(browser, "#tokens .diverged") == ["}}\n"]
        assert 'have written "0", the grammar ruled out 98.8 %' in browser.script(
            "return document.querySelector('#tokens .diverged').title"
        )
        assert browser.shows("#cut-legend")
        browser.click("#cuts summary")
        assert texts(browser, "#cut-list li") == [
            ' {"city": "É", "days": 1}}\\n instead of 0, 98.8 % ruled out divergence at /days',
            'city": "É", "days": 1}}\\n</tool_call> instead of  and, 70.0 % ruled out',
        ]
        assert browser.text("#message .note") == "divergence at /days: the model was about to write 0"


def test_nothing_is_marked_where_nothing_was_cut(browser: Browser) -> None:
    with page(browser, Telling()):
        run(browser)
        assert not browser.shows("#cuts")
        assert not browser.shows("#cut-legend")


def test_answers_in_json_are_indented_and_keep_their_digits(browser: Browser) -> None:
    long = '{"number": 12345678901234567890, "text": "' + "x" * 60 + '", "none": [], "yes": true}'
    with page(browser, Replay(long)):
        browser.choose("#example", "Answer in a schema")
        browser.choose("#format", "json_object")
        run(browser)
        shown = browser.text("#message pre")
        assert shown.split("\n")[1] == '  "number": 12345678901234567890,'
        assert json.loads(shown) == json.loads(long)
        assert texts(browser, "#message .json-word") == ["true"]


def test_a_conversation_goes_on_in_the_chat(browser: Browser) -> None:
    engine = Telling()
    with page(browser, engine):
        browser.click("#tab-chat")
        assert texts(browser, BUBBLES) == ["user"]
        browser.keys(CONTROL, ENTER)
        browser.wait(lambda: len(texts(browser, BUBBLES)) == 3, "a place for the result")
        assert browser.shows("#chat")
        assert texts(browser, BUBBLES) == ["user", "assistant", "result of get_weather"]
        assert texts(browser, "#turns .json-string") == ['"Paris"']
        assert browser.script("return document.querySelector('#turns textarea').ariaLabel") == "result of get_weather"
        engine.steps = [(["Sun", "ny."], [])]
        browser.choose("#tool-choice", "none")
        browser.type("#turns textarea", '{"sky": "clear"}')
        browser.choose("#parallel", "")
        browser.wait(lambda: "parallel_tool_calls" not in body(browser), "another explanation")
        assert browser.value("#turns textarea") == '{"sky": "clear"}'
        browser.click("#chat-form button")
        browser.wait_for_text("#turns", "Sunny.")
        browser.wait(lambda: browser.shows("#run"), "the end")
        assert texts(browser, BUBBLES) == ["user", "assistant", "result of get_weather", "assistant"]
        sent = "".join(text for text, _ in engine.asked[-1])
        assert '{"sky": "clear"}' in sent
        browser.type("#chat-text", "And Oslo?")
        browser.keys(ENTER)
        browser.wait(lambda: len(texts(browser, BUBBLES)) == 6, "another answer")
        browser.wait(lambda: browser.shows("#run"), "the end")
        browser.wait(lambda: len(body(browser)["messages"]) == 5, "an explanation of all")
        roles = [message["role"] for message in body(browser)["messages"]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]
        assert browser.value("#chat-text") == ""
        assert browser.value(".message:nth-child(3) .content") == '{"sky": "clear"}'


def test_reasoning_is_shown_dimmed_and_kept(browser: Browser) -> None:
    with page(browser, Replay(["<think>\nIt is ", "winter.\n</think>\n\n", "No."])):
        browser.type("#style", "deepseek_r1")
        browser.choose("#tool-choice", "none")
        browser.click("#tab-chat")
        browser.keys(CONTROL, ENTER)
        browser.wait_for_text("#turns", "No.")
        browser.wait(lambda: browser.shows("#run"), "the end")
        assert texts(browser, "#turns .reasoning") == ["It is winter."]
        shade = "return getComputedStyle(document.querySelector(arguments[0])).color"
        assert browser.script(shade, "#turns .reasoning") != browser.script(shade, "#turns .part .text:not(.reasoning)")
        browser.click("#tab-answer")
        browser.click("#continue")
        assert browser.value(".message:last-child .reasoning") == "It is winter."
        browser.wait_for_text("#body-text", "winter")
        assert body(browser)["messages"][1] == {
            "role": "assistant",
            "content": "No.",
            "reasoning_content": "It is winter.",
        }


def test_calls_of_mcp_servers_are_run_and_those_that_write_asked_for(browser: Browser) -> None:
    demo = str(Path(__file__).parents[1] / "agent" / "mcp_demo.py")
    servers = {"demo": {"command": sys.executable, "args": [demo]}, "gone": {"command": "there-is-none"}}
    calls = [("demo_add", '{"a": 2, "b": 3}'), ("demo_count", '{"to": 2}')]
    told = "\n".join(
        f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>' for name, arguments in calls
    )
    with page(browser, Replay(told, "Both are done."), Settings(request_templates=True, mcp={"mcpServers": servers})):
        browser.click("#tool-list .remove")
        browser.click("#import-tools")
        browser.wait_for_text("#import-servers", "demo: ")
        assert "'gone' does not start" in browser.text("#import-servers .fault")
        browser.click("#import-servers button")
        browser.click("#import-add")
        assert "demo_add(a, b)" in texts(browser, "#tool-list .signature")
        browser.choose("#parallel", "true")
        browser.click("#tab-chat")
        browser.keys(CONTROL, ENTER)
        browser.wait(lambda: len(texts(browser, "#turns textarea")) == 2, "two places for results")
        assert texts(browser, "#turns .row button") == ["Run add", "Run count"]
        browser.click("#turns .turn:nth-child(3) button")
        browser.wait(lambda: browser.value("#turns textarea") == "5", "the sum")
        browser.click("#turns .turn:nth-child(4) button")
        assert browser.text("#approve-what") == "count of demo"
        assert browser.text("#approve-arguments") == '{"to": 2}'
        assert browser.script("return document.activeElement.id") == "approve-no"
        browser.keys(ENTER)
        browser.wait(lambda: not browser.shows("#approve-dialog"), "the end of the question")
        assert browser.value("#turns .turn:nth-child(4) textarea") == ""
        browser.click("#turns .turn:nth-child(4) button")
        browser.click("#approve-dialog .strong")
        browser.wait(lambda: browser.value("#turns .turn:nth-child(4) textarea") == "counted", "the count")
        browser.click("#chat-form button")
        browser.wait_for_text("#turns", "Both are done.")
        browser.wait(lambda: len(body(browser)["messages"]) == 4, "an explanation of all")
        assert [message["content"] for message in body(browser)["messages"][2:]] == ["5", "counted"]


def test_a_call_that_runs_can_be_stopped(browser: Browser) -> None:
    demo = str(Path(__file__).parents[1] / "agent" / "mcp_demo.py")
    settings = Settings(mcp={"mcpServers": {"demo": {"command": sys.executable, "args": [demo]}}})
    told = '<tool_call>\n{"name": "demo_wait", "arguments": {"seconds": 20}}\n</tool_call>'
    with page(browser, Replay(told), settings):
        browser.click("#tool-list .remove")
        browser.click("#import-tools")
        browser.wait_for_text("#import-servers", "demo: ")
        browser.click("#import-servers button")
        browser.click("#import-add")
        browser.click("#tab-chat")
        browser.keys(CONTROL, ENTER)
        browser.wait(lambda: browser.shows("#turns .row button"), "a place for the result")
        for _ in range(2):  # and again
            assert browser.text("#turns .row button") == "Run wait"
            browser.click("#turns .row button")
            browser.click("#approve-dialog .strong")
            browser.wait_for_text("#turns .row button", "Stop wait")
            assert browser.text("#turns .row .hint") == "demo runs it …"
            browser.click("#turns .row button")
            browser.wait_for_text("#turns .row .hint", "stopped; what it did before is done")
        assert browser.value("#turns textarea") == ""


def _link(address: str, value: Any) -> str:
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(json.dumps(value).encode()) + packer.flush()
    return f"{address}/#request={base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def test_a_request_is_shared_as_a_link(browser: Browser) -> None:
    settings = Settings(api_keys=("secret-key",), request_templates=True)
    with serving(Replay(), settings) as address, opened(browser, address, refusals=True):
        browser.wait(lambda: browser.shows("#key-dialog"), "the question for a key")
        browser.type("#key-text", "secret-key")
        browser.keys(ENTER)
        browser.wait_for_text("#prompt-text", "Paris")
        browser.choose("#example", "Answer in a schema")
        browser.click("#strict")
        browser.choose("#template", "recorded")
        browser.wait(lambda: browser.value("#template-text"), "the template")
        browser.wait_for_text("#body-text", "chat_template")
        shared = body(browser)
        browser.click("#share")
        browser.wait(lambda: browser.value("#share-link"), "the link")
        link = browser.value("#share-link")
        packed = link.partition("#request=")[2]
        unpacked = zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), wbits=-15)
        assert json.loads(unpacked) == shared
        assert "secret-key" not in unpacked.decode()
        browser.open("about:blank")
        browser.open(link)
        browser.wait_for_text("#prompt-text", "Maria")
        assert body(browser) == shared


def test_a_link_that_cannot_be_read_is_told(browser: Browser) -> None:
    long = {"messages": [{"role": "user", "content": "ab" * 3_000_000}]}
    with serving(Replay()) as address, opened(browser, address):
        for value, told in ((long, "unfolds to more than"), ({"a": 1}, "holds no request")):
            link = _link(address, value)
            for given, why in ((link, told), (link[:-6], "a part of it is missing" if value != long else told)):
                browser.open("about:blank")
                browser.open(given)
                browser.wait_for_text("#problem", why)
                assert "Paris" in browser.value(".message .content")


def test_what_is_too_long_for_a_link_is_a_file(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    with page(browser, Replay()):
        words = "".join(f"{number * 7919 % 100_003} " for number in range(8000))
        browser.script(
            "const area = document.querySelector('.message .content'); area.value = arguments[0];"
            "area.dispatchEvent(new Event('input', {bubbles: true}))",
            words,
        )
        browser.click("#share")
        browser.wait_for_text("#share-said", "Download the file instead")
        assert browser.value("#share-link") == ""
        browser.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
        browser.click("#share-file")
        browser.wait(file.exists, "the file")
        browser.wait(lambda: file.stat().st_size > len(words), "all of it")
        saved = json.loads(file.read_text())
        assert saved["messages"][0]["content"] == words
        choice = {"type": "function", "function": {"name": "get_weather"}}
        parts = [{"type": "text", "text": "Is it warm?"}]
        saved |= {"messages": [{"role": "user", "content": parts}], "tool_choice": choice, "logit_bias": {"1": 2}}
        file.write_text(json.dumps(saved))
        browser.send_file("#share-open", file)
        browser.wait_for_text("#prompt-text", "Is it warm?")
        browser.wait_for_text("#status", "no field for it here: logit_bias")
        assert body(browser)["tool_choice"] == choice
        assert body(browser)["messages"][0]["content"] == parts
        file.write_text("{}")
        browser.click("#share")
        browser.send_file("#share-open", file)
        browser.wait_for_text("#problem", "request.json holds no request")
