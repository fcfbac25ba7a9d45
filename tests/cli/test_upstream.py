"""Before other servers: what they are is asked of them, and said in a line; what goes wrong is a line, too."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from huggingface_hub import constants
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from typer.testing import CliRunner

from engines.fake_sglang import FakeSglang
from engines.fake_vllm import FakeVllm, serving
from engines.peers import llama_server
from live_server import listening
from situations import CHATML
from toolgram.cli.app import app
from toolgram.cli.inputs import BadInput
from toolgram.cli.options import Kind
from toolgram.cli.upstream import Upstream, connect
from toolgram.engines.base import SamplingDefaults
from toolgram.engines.remote.http import Unavailable
from toolgram.engines.remote.llama_server import LlamaServer
from toolgram.engines.remote.openai import OpenAICompletions
from toolgram.engines.remote.sglang import Sglang
from toolgram.engines.remote.vllm import Vllm
from toolgram.engines.replay import Replay
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate

NOWHERE = "http://127.0.0.1:9"
CHAT = "/v1/chat/completions"
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 8}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@contextmanager
def answering(pages: dict[str, Any], status: int = 200) -> Iterator[str]:
    """The address of a server with these pages, as others recorded them."""

    async def page(request: Request) -> Response:
        if request.url.path not in pages:
            return JSONResponse({"detail": "Not Found"}, 404)
        found = pages[request.url.path]
        return PlainTextResponse(found) if isinstance(found, str) else JSONResponse(found, status)

    with serving(Starlette(routes=[Route("/{path:path}", page, methods=["GET", "POST"])])) as url:
        yield url


# As SGLang 0.5 answers, by its protocol.py and http_server.py.
SGLANG = {
    "/v1/models": {
        "object": "list",
        "data": [{"id": "org/model", "object": "model", "owned_by": "sglang", "root": "org/model", "max_model_len": 8}],
    },
    "/get_model_info": {
        "model_path": "org/model",
        "tokenizer_path": "org/model",
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
    },
}
# As Ollama 0.12 answers.
OLLAMA = {
    "/": "Ollama is running",
    "/api/version": {"version": "0.12.6"},
    "/v1/models": {"object": "list", "data": [{"id": "llama3.2:latest", "object": "model", "owned_by": "library"}]},
}
OTHER = {"/v1/models": {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "me"}]}}


@pytest.fixture
def template(tmp_path: Path) -> Path:
    file = tmp_path / "t.jinja"
    file.write_text(CHATML.source)
    return file


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's cache, with the tokenizer of org/model; there is no network."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--org--model" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    (snapshot / "chat_template.jinja").write_text(CHATML.source)
    (snapshot / "generation_config.json").write_text(json.dumps({"temperature": 0.6, "top_p": 0.95, "do_sample": True}))
    (tmp_path / "models--org--model" / "refs").mkdir()
    (tmp_path / "models--org--model" / "refs" / "main").write_text("0" * 40)


def test_a_vllm_that_tells_its_template() -> None:
    fake = FakeVllm(template=CHATML.source)
    with serving(fake.app) as url:
        found = connect(Upstream((f"{url}/v1",)), None)
    assert (found.kind, found.name, found.urls) == (Kind.vllm, "org/model", (url,))
    assert found.template == ChatTemplate(CHATML.source, "", "<|im_end|>")
    assert isinstance(found.engine(5), Vllm)
    assert found.about == f"{url}: vLLM 0.33.0 with org/model and its own chat template; grammars are enforced"


def test_a_vllm_whose_model_is_a_folder_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(CHATML.source)
    with serving(FakeVllm(root=str(tmp_path)).app) as url:
        assert f"and the chat template of {tmp_path}; gr" in connect(Upstream((url,)), None).about


@pytest.mark.usefixtures("hub")
def test_a_vllm_whose_model_is_on_the_hub() -> None:
    with serving(FakeVllm().app) as url:
        found = connect(Upstream((url,)), None)
    assert found.template == ChatTemplate(CHATML.source, "", "<|im_end|>")
    assert "and the chat template of org/model; gr" in found.about
    assert found.defaults == SamplingDefaults(0.6, top_p=0.95, source="generation_config.json of org/model")


def test_a_server_of_toolgram_is_told_as_such(template: Path) -> None:
    with serving(create_app([Served("m", CHATML, Replay())])) as url:
        with pytest.raises(BadInput, match=f"{url} is a server of toolgram: any client .* the same --model or --upstr"):
            connect(Upstream((url,)), None)
        assert connect(Upstream((url,), Kind.openai), template).model == "m"


@pytest.mark.usefixtures("hub")
def test_a_template_that_cannot_be_found_is_asked_for() -> None:
    with serving(FakeVllm(root="org/other").app) as url, pytest.raises(BadInput, match="give --chat-template FILE"):
        connect(Upstream((url,)), None)
    with answering(OTHER) as url, pytest.raises(BadInput, match="does not tell its chat template: give --chat-temp"):
        connect(Upstream((url,)), None)


def test_a_model_that_the_server_does_not_have(template: Path) -> None:
    with serving(FakeVllm(names=("base", "adapter")).app) as url:
        assert connect(Upstream((url,)), template).model == "base"
        assert connect(Upstream((url,), model="adapter"), template).name == "adapter"
        with pytest.raises(BadInput, match=r"has no model 'adaptor'; did you mean 'adapter'\?"):
            connect(Upstream((url,), model="adaptor"), template)
        with pytest.raises(BadInput, match="has no model 'x'; there are: base, adapter"):
            connect(Upstream((url,), model="x"), template)


def test_a_llama_server_tells_all(template: Path) -> None:
    with llama_server() as (url, _):
        found = connect(Upstream((url,)), None)
        with pytest.raises(BadInput, match=f"{url} is llama-server .*, not vLLM: leave --upstream-kind out"):
            connect(Upstream((url,), Kind.vllm), template)
        given = connect(Upstream((url,)), template)
        asked = CliRunner().invoke(app, ["ask", "Say hi.", "--upstream", url, "--max-tokens", "4"])
    assert (found.kind, found.name) == (Kind.llama_server, "SmolLM2-135M-Instruct.Q4_1")
    assert (found.template.bos_token, found.template.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert given.template == ChatTemplate(CHATML.source, "<|im_start|>", "<|im_end|>")
    assert isinstance(found.engine(5), LlamaServer)
    assert f"{url}: llama-server " in asked.stderr
    assert "with SmolLM2-135M-Instruct.Q4_1 and its own chat template; grammars are enforced\n" in asked.stderr
    assert '"role": "assistant"' in asked.stdout


@pytest.mark.usefixtures("hub")
def test_sglang_is_asked_as_a_server_that_enforces_nothing() -> None:
    with answering(SGLANG) as url:
        found = connect(Upstream((url,)), None)
    assert (found.kind, found.model) == (Kind.sglang, "org/model")
    assert isinstance(found.engine(5), Sglang)
    assert f"{url}: SGLang with org/model and the chat template of org/model; nothing is enforced" in found.about


@pytest.mark.parametrize(("backend", "dialect"), [("xgrammar", "ebnf"), ("llguidance", "lark")])
@pytest.mark.usefixtures("hub")
def test_an_sglang_that_keeps_to_grammars_is_sent_them(backend: str, dialect: str) -> None:
    with serving(FakeSglang(backend).app) as url:
        found = connect(Upstream((url,)), None, wait=True)
        assert f"{url}: SGLang 0.5.9 with org/model and the chat template of org/model; grammars are" in found.about
        assert found.engine(5).capabilities.dialects == (dialect,)


@pytest.mark.usefixtures("hub")
def test_an_sglang_that_does_not_is_asked_for_none(capsys: pytest.CaptureFixture[str]) -> None:
    for fake, said in (
        (FakeSglang(unread=True), "does not keep to grammars: start SGLang without --reasoning-parser"),
        (FakeSglang(refusing=True), "does not take the grammars that toolgram writes: "),
        (FakeSglang(closed=True), ""),
    ):
        with serving(fake.app) as url:
            found = connect(Upstream((url,)), None, wait=True)
            assert "; nothing is enforced" in found.about
            assert found.engine(5).capabilities.unenforced
            assert (f"warning: {url} {said}" in capsys.readouterr().err) == bool(said)


@pytest.mark.parametrize("kind", [None, Kind.openai, Kind.vllm])
def test_ollama_is_refused_with_what_to_do(kind: Kind | None, template: Path) -> None:
    with answering(OLLAMA) as url, pytest.raises(BadInput, match=f"{url} is Ollama 0.12.6: .*ollama show MODEL --mod"):
        connect(Upstream((url,), kind), template)


@pytest.mark.parametrize("kind", [None, Kind.vllm])
def test_a_vllm_that_ignores_grammars_is_refused_with_what_to_do(kind: Kind | None, template: Path) -> None:
    with serving(FakeVllm(unread=True).app) as url:
        with pytest.raises(BadInput, match=f"{url} does not keep to grammars: .*--reasoning-parser.*--upstream-kind"):
            connect(Upstream((url,), kind), template, wait=True)
        assert "nothing is enforced" in connect(Upstream((url,), Kind.openai), template).about


def test_any_other_server_completes_prompts(template: Path) -> None:
    with answering(OTHER) as url:
        found = connect(Upstream((url,)), template)
        # A proxy may hide what is behind it.
        assert connect(Upstream((url,), Kind.vllm), template).kind is Kind.vllm
    assert (found.kind, found.model) == (Kind.openai, "m")
    with answering({}) as url, pytest.raises(BadInput, match="does not tell its models: give --upstream-model NAME"):
        connect(Upstream((url,)), template)


def test_upstreams_of_several_kinds_are_refused(template: Path) -> None:
    with serving(FakeVllm().app) as one, answering(OTHER) as other:
        with pytest.raises(BadInput, match=f"differ: {one} is vLLM 0.33.0, {other} is a server of an unknown kind"):
            connect(Upstream((one, other)), template)
        with pytest.raises(BadInput, match="several upstreams are possible only before vLLM"):
            connect(Upstream((other, other)), template)


def test_one_of_several_may_come_later(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(FakeVllm(template=CHATML.source).app) as url:
        found = connect(Upstream((NOWHERE, url)), None, wait=True)
    assert (found.urls, found.kind) == ((NOWHERE, url), Kind.vllm)
    assert f"warning: {NOWHERE} cannot be reached" in capfd.readouterr().err


def test_a_server_that_wants_a_key_is_told(template: Path) -> None:
    refusing = {"/v1/models": {"error": {"message": "Invalid API Key"}}}
    with (
        answering(refusing, 401) as url,
        pytest.raises(BadInput, match=r"Invalid API Key \(--upstream-key gives it a key\)"),
    ):
        connect(Upstream((url,)), template)


def test_where_nothing_answers(template: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        connect(Upstream((NOWHERE,)), template)
    asked = CliRunner().invoke(app, ["ask", "Hi.", "--upstream", NOWHERE])
    assert (asked.exit_code, asked.stderr.count("\n")) == (2, 1)
    assert asked.stderr.startswith(f"error: {NOWHERE} cannot be reached")
    found = connect(Upstream((NOWHERE,), Kind.vllm), template, wait=True)  # all is given: it may come later
    assert found.name == "vllm"
    assert f"warning: {NOWHERE} cannot be reached" in capfd.readouterr().err


def test_a_server_that_still_loads_is_waited_for(capfd: pytest.CaptureFixture[str]) -> None:
    loading, loaded = {"error": {"message": "Loading model", "code": 503}}, threading.Event()

    async def models(request: Request) -> Response:
        return JSONResponse({"data": [{"id": "m"}]}) if loaded.is_set() else JSONResponse(loading, 503)

    async def props(request: Request) -> Response:
        return JSONResponse({"chat_template": CHATML.source, "build_info": "b1"})

    with serving(Starlette(routes=[Route("/v1/models", models), Route("/props", props)])) as url:
        threading.Timer(0.5, loaded.set).start()
        assert connect(Upstream((url,)), None, wait=True).kind is Kind.llama_server
    assert f"waiting for {url}: {url} fails with status 503: Loading model\n" in capfd.readouterr().err


def test_the_template_that_a_llama_server_has_for_tools_is_taken() -> None:
    async def models(request: Request) -> Response:
        return JSONResponse({"data": [{"id": "m"}]})

    async def props(request: Request) -> Response:
        templates = {"chat_template": CHATML.source, "chat_template_tool_use": "{{ tools }}"}
        return JSONResponse({**templates, "build_info": "b1"})

    with serving(Starlette(routes=[Route("/v1/models", models), Route("/props", props)])) as url:
        template = connect(Upstream((url,)), None).template
    assert (template.source, template.with_tools.source) == (CHATML.source, "{{ tools }}")


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"tools": [TOOL], "tool_choice": "required"}, "/tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}}, "/tool_choice"),
        ({"tools": [{**TOOL, "function": {**TOOL["function"], "strict": True}}]}, "/tools/0/function"),  # type: ignore[dict-item] - a dict
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": {}}}},
            "/response_format/json_schema/schema",
        ),
    ],
)
def test_what_only_a_grammar_guarantees_is_refused_where_none_is_enforced(asked: dict[str, Any], pointer: str) -> None:
    served = [Served("m", CHATML, OpenAICompletions(NOWHERE, "m"))]
    with listening(create_app(served)) as address:
        answer = httpx2.post(address + CHAT, json={**HI, **asked})
        error = answer.json()["error"]
        assert (answer.status_code, error["pointer"]) == (400, pointer)
        assert "--allow-unenforced" in error["message"]
        assert httpx2.post(f"{address}/v1/explain", json={**HI, **asked}).status_code == 200
        auto = httpx2.post(address + CHAT, json={**HI, "tools": [TOOL]})
        assert auto.status_code == 503  # it was asked
    with listening(create_app(served, Settings(allow_unenforced=True))) as address:
        assert httpx2.post(address + CHAT, json={**HI, **asked}).status_code == 503


def test_ask_and_agent_refuse_it_too(template: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([TOOL]))
    with answering(OTHER) as url:
        asking = ["ask", "Hi.", "--upstream", url, "--template", str(template), "--tools", str(tools)]
        refused = CliRunner().invoke(app, [*asking, "--tool-choice", "required"])
        assert refused.exit_code == 2
        assert "error: /tool_choice: a call is required, but nothing can guarantee it" in refused.stderr
        allowed = CliRunner().invoke(app, [*asking, "--tool-choice", "required", "--allow-unenforced"])
        assert "nothing can guarantee" not in allowed.stderr
        functions = tmp_path / "functions.py"
        functions.write_text("def f() -> int: return 1\n")
        agent = ["agent", "Hi.", "--upstream", url, "--template", str(template), "--tools", str(functions)]
        refused = CliRunner().invoke(app, agent)
        assert refused.exit_code == 2
        assert "--tool-choice auto asks it all the same" in refused.stderr
        allowed = CliRunner().invoke(app, [*agent, "--tool-choice", "auto"])
        assert "nothing can guarantee" not in allowed.stderr
    both = CliRunner().invoke(app, ["ask", "Hi.", "--upstream", url, "--model", "m.gguf"])
    assert "give --model or --upstream, not both" in both.stderr


def test_health_tells_of_the_servers() -> None:
    fake = FakeVllm()
    with serving(fake.app) as url, serving(Starlette()) as deaf:
        served = [
            Served("a", CHATML, Vllm([url, NOWHERE])),
            Served("b", CHATML, OpenAICompletions(url, "m")),
        ]
        with listening(create_app(served)) as address:
            well = httpx2.get(f"{address}/health")
            models = [
                {"id": "a", "status": "ok", "enforced": True},
                {"id": "b", "status": "ok", "enforced": False},
            ]
            assert (well.status_code, well.json()) == (200, {"status": "ok", "models": models})
            fake.fault = "dead"
            failing = httpx2.get(f"{address}/health")
        assert (failing.status_code, failing.json()["status"]) == (503, "unavailable")
        assert [model["status"] for model in failing.json()["models"]] == ["unavailable", "ok"]
        with listening(create_app([Served("c", CHATML, LlamaServer(deaf))])) as address:
            assert httpx2.get(f"{address}/health").json()["models"][0]["status"] == "unavailable"


@pytest.mark.parametrize("kind", [Kind.vllm, Kind.llama_server])
def test_a_wrong_kind_that_a_proxy_hides_is_an_error_that_says_so(kind: Kind, template: Path) -> None:
    pages = {**OTHER, "/tokenize": {"tokens": None}, "/health": {}}
    with answering(pages) as url:
        found = connect(Upstream((url,), kind), template)
        with listening(create_app([Served("m", found.template, found.engine(5))])) as address:
            answer = httpx2.post(address + CHAT, json=HI)
    assert answer.status_code == 502
    assert "it is of another kind" in answer.json()["error"]["message"]
