"""Before a server that runs several models: one is named, loaded, and asked for by its name or at its address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from engines.fake_router import FakeRouter, FakeSwap
from engines.fake_vllm import serving
from engines.peers import llama_server
from live_server import listening
from toolgram.cli.app import app
from toolgram.cli.inputs import BadInput
from toolgram.cli.options import Kind
from toolgram.cli.serve import Remote
from toolgram.cli.upstream import Upstream, connect
from toolgram.engines.remote import identify
from toolgram.server.app import create_app
from toolgram.server.settings import Settings

MODELS = {"small": (), "large/model:Q4_K_M": ("large",)}
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 8}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with llama_server() as (url, _):
        yield url


@contextmanager
def routed(server: str, models: dict[str, tuple[str, ...]] = MODELS) -> Iterator[tuple[FakeRouter, str]]:
    router = FakeRouter(server, models)
    with serving(router.app) as url:
        yield router, url


def test_which_model_must_be_said(server: str) -> None:
    with routed(server) as (router, url):
        with pytest.raises(BadInput, match=f"{url} runs small, large/model:Q4_K_M, large: say which with --ups"):
            connect(Upstream((url,)), None)
        with pytest.raises(BadInput, match=r"has no model 'smal'; did you mean 'small'\?"):
            connect(Upstream((url,), model="smal"), None)
        assert set(router.status.values()) == {"unloaded"}
    with routed(server, {}) as (_, url), pytest.raises(BadInput, match="runs no model: say which"):
        connect(Upstream((url,)), None)


def test_the_only_one_need_not_be_named(server: str) -> None:
    with routed(server, {"small": ()}) as (_, url):
        found = connect(Upstream((url,)), None)
    assert (found.name, found.model, found.context) == ("small", "small", 2048)
    assert f"{url}: llama-server " in found.about
    assert "with small and its own chat template; grammars are enforced" in found.about
    assert "<|im_start|>" in found.template.source


@pytest.mark.parametrize("name", ["large", "large/model:Q4_K_M"])
def test_each_request_names_it(server: str, name: str) -> None:
    with routed(server) as (router, url):
        answer = CliRunner().invoke(app, ["ask", "Hi.", "--upstream", url, "--upstream-model", name])
        assert answer.exit_code == 0, answer.stderr
        assert '"role": "assistant"' in answer.stdout
        assert set(router.asked) == {name}
        assert router.status == {"small": "unloaded", "large/model:Q4_K_M": "loaded"}


def test_several_are_served(server: str) -> None:
    with routed(server) as (router, url):
        found = tuple(connect(Upstream((url,), model=name), None) for name in ("large", "small"))
        remote = Remote(found, ("any",), Settings(), None, (None, None))
        with listening(create_app(remote.served(), remote.settings)) as address:
            cards = httpx2.get(f"{address}/v1/models").json()["data"]
            shown = [(card["id"], card["aliases"], card["context_length"]) for card in cards]
            assert shown == [("large", ["any"], 2048), ("small", [], 2048)]
            for asked, model in (("any", "large"), ("small", "small")):
                router.asked.clear()
                answer = httpx2.post(f"{address}/v1/chat/completions", json={**HI, "model": asked}, timeout=60)
                assert answer.status_code == 200
                assert set(router.asked) == {model}


@pytest.mark.parametrize("meanwhile", ["loading", "loaded"])
def test_one_that_is_being_loaded_is_waited_for(
    server: str, meanwhile: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also where it came between the two questions, so that the list says that it is there."""
    monkeypatch.setattr(identify, "_SECONDS", 2.0)
    with routed(server) as (router, url):
        router.loading = 3.0
        router.meanwhile = meanwhile
        assert connect(Upstream((url,), model="small"), None).name == "small"
    assert capfd.readouterr().err == f"waiting for {url}: it loads small\n"


def test_one_that_cannot_be_loaded_is_an_error(server: str) -> None:
    with routed(server) as (router, url):
        router.loading = None
        with pytest.raises(BadInput, match=f"^{url} fails to load small: its log says why$"):
            connect(Upstream((url,), model="small"), None, wait=True)


def test_one_that_nobody_loads_is_told(server: str) -> None:
    with routed(server) as (router, url):
        router.autoload = False
        asked = CliRunner().invoke(app, ["ask", "Hi.", "--upstream", url, "--upstream-model", "small"])
        assert asked.stderr == f"error: {url} fails with status 400: model is not loaded\n"
        router.status["small"] = "loaded"
        found = connect(Upstream((url,), model="small"), None)
        router.status["small"] = "unloaded"
        remote = Remote((found,), (), Settings(), None, (None,))
        with listening(create_app(remote.served(), remote.settings)) as address:
            answer = httpx2.post(f"{address}/v1/chat/completions", json=HI)
        assert answer.status_code == 503
        assert "model is not loaded" in answer.json()["error"]["message"]


@contextmanager
def swapping(server: str, *models: str) -> Iterator[tuple[FakeSwap, str]]:
    swap = FakeSwap(server, *models)
    with serving(swap.app) as url:
        yield swap, url


def test_which_model_of_llama_swap_must_be_said(server: str) -> None:
    with swapping(server, "small", "org/large:Q4") as (swap, url):
        with pytest.raises(BadInput, match=f"{url} runs small, org/large:Q4: say which with --upstream-model NAME"):
            connect(Upstream((url,)), None)
        with pytest.raises(BadInput, match=r"has no model 'smal'; did you mean 'small'\?"):
            connect(Upstream((url,), model="smal"), None)
        assert swap.running == "small"


def test_a_model_of_llama_swap_is_asked_at_its_own_address(server: str) -> None:
    with swapping(server, "small", "org/large:Q4") as (swap, url):
        found = connect(Upstream((f"{url}/v1",), model="org/large:Q4"), None)
        assert (found.name, found.kind, found.urls) == (
            "org/large:Q4",
            Kind.llama_server,
            (f"{url}/upstream/org/large:Q4",),
        )
        assert found.template.model == "org/large:Q4, SmolLM2-135M-Instruct.Q4_1"
        assert swap.running == "org/large:Q4"
        remote = Remote((found,), (), Settings(), None, (None,))
        with listening(create_app(remote.served(), remote.settings)) as address:
            swap.running = "small"
            assert httpx2.get(f"{address}/health").json()["status"] == "ok"
            assert swap.running == "small"  # to ask for its health does not load it
            answer = httpx2.post(f"{address}/v1/chat/completions", json=HI, timeout=60)
        assert (answer.status_code, swap.running) == (200, "org/large:Q4")


def test_a_model_of_llama_swap_is_waited_for(
    server: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(identify, "_SECONDS", 2.0)
    with swapping(server, "small", "large") as (swap, url):
        swap.loading = 5.0
        assert connect(Upstream((url,), model="large"), None).name == "large"
    assert capfd.readouterr().err.startswith(f"waiting for {url}/upstream/large: {url}/upstream/large is silent")


def test_several_addresses_of_llama_swap_are_refused(server: str) -> None:
    with (
        swapping(server, "small") as (_, one),
        swapping(server, "small") as (_, other),
        pytest.raises(BadInput, match="several upstreams are possible only before vLLM"),
    ):
        connect(Upstream((one, other)), None)


def test_the_only_model_of_llama_swap_need_not_be_named(server: str) -> None:
    with swapping(server, "small") as (_, url):
        assert connect(Upstream((url,)), None).name == "small"
