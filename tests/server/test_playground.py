"""The playground in a real browser: what is shown, what is run, and that nothing leaves the server's origin."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
from starlette.types import Message, Receive, Scope, Send

import toolgram
from browser import CONTROL, ENTER, ESCAPE, Browser
from live_server import listening, serving
from playground_page import CALL, Telling, opened, page, run, texts
from situations import CHATML
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.replay import Replay
from toolgram.models.catalog import default_model
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.playground import pages
from toolgram.server.settings import Settings

OTHER = "{% for m in messages %}<turn>{{ m.role }}: {{ m.content }}</turn>{% endfor %}<turn>assistant:"


def test_files_come_with_a_policy_and_are_not_sent_twice() -> None:
    with serving(Replay(), Settings(api_keys=("secret",))) as address:
        for path in pages():
            answer = httpx2.get(address + path)
            assert answer.status_code == 200, path
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            again = httpx2.get(address + path, headers={"if-none-match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        assert httpx2.get(f"{address}/").headers["content-type"] == "text/html; charset=utf-8"
        assert httpx2.get(f"{address}/playground/__init__.py", headers={"x-api-key": "secret"}).status_code == 404


def test_the_first_example_runs_at_one_key(browser: Browser) -> None:
    engine = Telling()
    with page(browser, engine):
        run(browser)
        assert texts(browser, "#tokens .forced") == [text for _, forced in CALL for text in forced]
        assert texts(browser, "#tokens .token:not(.forced)") == ["Par", 'is"', "3"]
        assert "60.7 % likely" in browser.script("return document.querySelector('#tokens .token:not(.forced)').title")
        assert "get_weather" in browser.text("#message")
        assert '{"city": "Paris", "days": 3}' in browser.text("#message")
        assert "completion tokens8forced tokens5" in browser.text("#figures")
        assert texts(browser, "#message .json-key, #message .json-number") == ['"city"', '"days"', "3"]
        kinds = texts(browser, "#event-list .kind")
        assert kinds[:2] == ["begin", "call"]
        assert kinds[-2:] == ["finish", "usage"]
        assert "tool_calls: 8 tokens, 5 of them forced" in browser.text("#status")
        browser.click("#continue")
        assert browser.value(".message:last-child .role") == "tool"
        assert browser.value(".message:nth-child(2) .calls").startswith("[")
        browser.wait_for_text("#prompt-text", "<tool_call>\n")


def test_prompt_grammar_and_relaxations_follow_what_is_typed(browser: Browser) -> None:
    with page(browser, Replay(), refusals=True):
        browser.click("#tab-prompt")
        browser.type(".message:first-child .content", "Is it <|im_end|> warm?")
        browser.wait_for_text("#prompt-text", "warm?")
        assert "Is it <|im_end|> warm?" in "".join(texts(browser, "#prompt-text .said"))
        assert "<|im_start|>user\n" in "".join(texts(browser, "#prompt-text .trusted"))
        assert "get_weather" in "".join(texts(browser, "#prompt-text .asked"))
        assert browser.script("return getComputedStyle(document.querySelector('#prompt-text .said')).color") != (
            browser.script("return getComputedStyle(document.querySelector('#prompt-text .trusted')).color")
        )
        assert "get_weather" in browser.text("#format-prompt-text")
        browser.click("#tab-grammar")
        assert browser.text("#grammar-text").startswith("root ::=")
        browser.choose("#dialect", "lark")
        browser.wait_for_text("#grammar-text", "start:")
        browser.choose("#example", "A schema that is not enforced exactly")
        browser.wait(lambda: browser.text("#relaxation-count") == "1", "a relaxation")
        browser.click("#tab-relaxations")
        assert "uniqueItems" in browser.text("#relaxation-list")
        browser.click("#relaxation-list button")
        chosen = "const one = document.activeElement; return one.value.slice(one.selectionStart - 15, one.selectionEnd)"
        assert browser.script(chosen) == '"uniqueItems": true'
        browser.click("#strict")
        browser.wait_for_text("#problem", "uniqueItems: cannot be enforced for items that are not finitely many")


def test_every_example_is_a_request_that_the_server_takes(browser: Browser) -> None:
    with page(browser, Replay()):
        names = browser.script("return [...document.querySelector('#example').options].map(one => one.value)")
        assert len(names) > 5
        for name in names:
            browser.choose("#example", name)
            body = json.loads(browser.text("#body-text"))
            said = body["messages"][-1]["content"]
            browser.wait(lambda said=said: said in browser.text("#prompt-text"), f"the prompt of {name!r}")
            assert not browser.shows("#problem"), name
        known = {*toolgram.style_names()}
        assert set(browser.script("return [...document.querySelectorAll('#styles option')].map(o => o.value)")) <= known


_NO_JSON = {
    '[{"type": "function"\n "function"}]': "a comma or }",
    "[1,\n tru, 3,\n 4]": "a value",
    '[{"a":\n "b\\x"}\n]': "a value",
    "[{\n'a': 1}\n]": "a key in double quotes",
    '[{"a": 1}, {"b"\n 1}]': "a colon",
    "[]\n[]": "the end",
}


def test_what_is_wrong_is_told_at_its_place(browser: Browser) -> None:
    tools = '[{"type": "function",\n "function": {"name": "f", "parameters":\n {"type": "object", "minimum": "x"}}}]'
    with page(browser, Replay(), refusals=True):
        browser.click("#tools-as-json summary")
        browser.type("#tools", tools)
        browser.wait_for_text("#problem", 'Tools: minimum: "x" is not a number')
        assert browser.text("#fault") == 'line 3: minimum: "x" is not a number'
        assert browser.script("return document.querySelector('#tools').getAttribute('aria-describedby')") == "fault"
        browser.click("#problem button")
        start = browser.script("return document.activeElement.selectionStart")
        assert tools[start:].startswith('{"type": "object"')
        for text, told in _NO_JSON.items():
            browser.type("#tools", text)
            browser.wait_for_text("#fault", f"{told} is expected here")
            assert browser.text("#fault").startswith("line 2: this is not JSON: ")
        browser.type("#tools", "")
        browser.wait(lambda: not browser.shows("#problem"), "no problem")
        assert browser.script("return document.querySelectorAll('[aria-invalid]').length") == 0
        browser.type("#temperature", "-1")
        browser.wait_for_text("#fault", "must be between 0 and 100, not -1")


def test_escape_stops_the_engine(browser: Browser) -> None:
    engine = Telling()
    engine.gate.clear()
    with page(browser, engine):
        browser.keys(CONTROL, ENTER)
        browser.wait_for_text("#tokens", "<tool_call>")
        assert browser.shows("#stop")
        browser.keys(ESCAPE)
        assert engine.stopped.wait(5)
        browser.wait_for_text("#status", "stopped: 2 tokens")
        assert browser.shows("#run")
        engine.gate.set()
        run(browser)
        assert '"Paris"' in browser.text("#message")


def test_an_engine_that_fails_leaves_what_it_said(browser: Browser) -> None:
    with page(browser, Replay(["<tool_call>\n", '{"name": "get_weather", "arguments": {"ci', "ty"], fail_after=2)):
        run(browser)
        browser.wait_for_text("#problem", "the engine failed")
        assert "get_weather" in browser.text("#message")
        assert "an error" in browser.text("#status")


def test_a_connection_that_is_cut_is_told(browser: Browser) -> None:
    pieces = ["<tool_call>\n", *'{"name": "get_weather", "arguments": {']
    app = create_app([Served("recorded", CHATML, Replay(pieces))])

    async def cut(scope: Scope, receive: Receive, send: Send) -> None:
        left = 6

        async def some(message: Message) -> None:
            nonlocal left
            left -= scope["path"].endswith("completions")
            if left < 0:
                await asyncio.sleep(0.3)
                raise ConnectionResetError
            await send(message)

        await app(scope, receive, some)

    with listening(cut) as address, opened(browser, address):
        browser.wait_for_text("#prompt-text", "Paris")
        run(browser)
        assert "the connection broke off" in browser.text("#problem")
        assert "<tool_call>" in browser.text("#tokens")
        assert "ERR_INCOMPLETE_CHUNKED_ENCODING" in "".join(browser.logged())


def test_another_template_is_shown_and_run(browser: Browser) -> None:
    engine = Telling([(["It ", "rains."], [])])
    with page(browser, engine, refusals=True):
        browser.click("#tool-list .remove")
        browser.choose("#template", "recorded")
        browser.wait(lambda: browser.value("#template-text") == CHATML.source, "the model's template")
        assert browser.value("#eos") == "<|im_end|>"
        browser.type("#template-text", OTHER)
        browser.wait_for_text("#prompt-text", "<turn>user: What")
        browser.type("#template-text", f"{OTHER}\n{{% if %}}")
        browser.wait_for_text("#fault", "line 2")
        browser.click("#problem button")
        here = "const one = document.activeElement; return one.value.slice(one.selectionStart, one.selectionEnd)"
        assert browser.script(here) == "{% if %}"
        browser.type("#template-text", OTHER)
        browser.wait(lambda: not browser.shows("#problem"), "no problem")
        run(browser)
        assert "It rains." in browser.text("#message")
    assert "".join(text for text, _ in engine.asked[-1]).startswith("<turn>user: What")


def test_a_fault_of_all_messages_leaves_them_to_be_read(browser: Browser) -> None:
    with page(browser, Replay(), refusals=True):
        browser.choose("#template", "recorded")
        browser.wait(lambda: browser.value("#template-text") == CHATML.source, "the model's template")
        browser.type("#template-text", "Nothing of it.")
        browser.wait_for_text("#fault", "conversation")
        browser.type("#template-text", OTHER)
        browser.wait_for_text("#prompt-text", "<turn>user: What")
        assert not browser.shows("#problem")


def test_a_tokenizers_configuration_brings_its_template(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps({"chat_template": OTHER, "bos_token": {"content": "<b>"}, "eos_token": "</turn>"}))
    with page(browser, Replay(), refusals=True):
        browser.choose("#template", "*")
        browser.send_file("#template-file", file)
        browser.wait_for_text("#prompt-text", "<turn>user: What")
        assert (browser.value("#bos"), browser.value("#eos")) == ("<b>", "</turn>")


def test_the_key_is_kept_in_the_tab_alone(browser: Browser) -> None:
    with page(browser, Telling(), Settings(api_keys=("secret",)), refusals=True):
        browser.wait(lambda: browser.shows("#key-dialog"), "the question for a key")
        browser.type("#key-text", "wrong")
        browser.keys(ENTER)
        browser.wait(lambda: browser.shows("#key-dialog") and browser.value("#key-text") != "", "another question")
        browser.type("#key-text", "secret")
        browser.keys(ENTER)
        browser.wait_for_text("#prompt-text", "Paris")
        assert not browser.shows("#problem")
        run(browser)
        assert browser.script("return [{...localStorage}, document.cookie]") == [{}, ""]
        assert list(browser.script("return {...sessionStorage}").values()) == ["secret"]
        assert "secret" not in browser.text("#curl-text")
        browser.script("sessionStorage.clear()")


def test_the_embedded_model_at_one_key(browser: Browser) -> None:
    path = default_model()
    served = Served("smollm2", toolgram.ChatTemplate.from_gguf(path), LlamaCpp(path, context=2048))
    with listening(create_app([served])) as address, opened(browser, address):
        browser.wait_for_text("#prompt-size", "tokens")
        browser.choose("#example", "Answer in a schema")
        browser.wait_for_text("#prompt-text", "Maria")
        run(browser)
        forced = "".join(texts(browser, "#tokens .forced"))
        written = "".join(texts(browser, "#tokens .token"))
    assert '"name":' in forced
    assert len(forced) < len(written)
    answer: Any = json.loads(written)
    assert set(answer) == {"name", "age", "city", "job"}
