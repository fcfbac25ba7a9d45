"""Models that share a chat template and write calls in ways of their own: their style goes by the model's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import toolgram
from engines.fake_vllm import FakeVllm, serving
from situations import CHATML, HERMES, WEATHER, tool
from toolgram.api.generation import GivenTemplate
from toolgram.cli.inputs import template_of
from toolgram.cli.upstream import Upstream, connect
from toolgram.styles.choose import choose_style

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("get_weather", WEATHER)]}
FENCED = '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'


def of(model: str) -> str:
    return choose_style(toolgram.ChatTemplate(HERMES, model=model))[0].name


@pytest.mark.parametrize(
    ("model", "style"),
    [
        ("Qwen2.5 Coder 7B Instruct", "qwen_coder"),
        ("Qwen/Qwen2.5-Coder-32B-Instruct-AWQ", "qwen_coder"),
        ("qwen2.5-coder-14b-instruct-q4_k_m", "qwen_coder"),
        ("Qwen2.5 7B Instruct", "hermes"),
        ("Qwen3-Coder-Next", "hermes"),
        ("", "hermes"),
    ],
)
def test_the_name_decides_between_styles_of_one_template(model: str, style: str) -> None:
    assert of(model) == style


def test_the_template_goes_before_the_name() -> None:
    assert choose_style(toolgram.ChatTemplate(CHATML.source, model="Qwen2.5-Coder"))[0].name == "compact"


def test_a_fenced_call_is_one_where_the_models_write_such() -> None:
    coder, other = (toolgram.ChatTemplate(HERMES, model=name) for name in ("Qwen2.5-Coder-7B", "Qwen2.5-7B"))
    (call,) = toolgram.plan(BODY, coder).parse(FENCED).tool_calls
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Oslo"}')
    assert toolgram.plan(BODY, other).parse(FENCED).content == FENCED
    assert "is that of Qwen2.5-Coder-7B" in toolgram.plan(BODY, coder).why
    assert toolgram.plan(BODY, coder, style="hermes").parse(FENCED).content == FENCED


def test_what_a_model_is_called_changes_nothing_of_what_its_template_renders() -> None:
    assert toolgram.ChatTemplate(HERMES, model="a") == toolgram.ChatTemplate(HERMES)


def written(path: Path, name: str | None) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    if name is not None:
        writer.add_name(name)
    writer.add_token_list(["a"])
    writer.add_string("tokenizer.chat_template", HERMES)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_a_gguf_is_called_as_it_says_and_as_its_file_is(tmp_path: Path) -> None:
    blob = written(tmp_path / "sha256-74701a8c", "Qwen2.5 Coder 1.5B Instruct")
    named = written(tmp_path / "qwen2.5-coder-3b-q8_0.gguf", None)
    (own := tmp_path / "own.jinja").write_text(HERMES)
    templates = [toolgram.ChatTemplate.from_gguf(blob), template_of(None, named), template_of(own, named)]
    assert [choose_style(each)[0].name for each in templates] == ["qwen_coder"] * 3
    assert [each.model for each in templates] == [
        "Qwen2.5 Coder 1.5B Instruct, sha256-74701a8c",
        *["qwen2.5-coder-3b-q8_0"] * 2,
    ]


@pytest.mark.parametrize(
    ("place", "model"),
    [
        ("Qwen2.5-Coder-7B-Instruct", "Qwen2.5-Coder-7B-Instruct"),
        ("models--Qwen--Qwen2.5-Coder-7B-Instruct/snapshots/c03e6d35", "models--Qwen--Qwen2.5-Coder-7B-Instruct"),
    ],
)
def test_a_folder_is_called_as_it_is_or_as_its_repository(tmp_path: Path, place: str, model: str) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "chat_template.jinja").write_text(HERMES)
    template = toolgram.ChatTemplate.from_hf(tmp_path / place)
    assert (template.model, choose_style(template)[0].name) == (model, "qwen_coder")


def test_a_template_of_the_request_is_still_that_models() -> None:
    given = GivenTemplate(HERMES, "/chat_template").instead_of(toolgram.ChatTemplate("", model="Qwen2.5-Coder-7B"))
    assert choose_style(given)[0].name == "qwen_coder"


def test_a_llama_server_tells_the_file_whatever_it_serves_it_as() -> None:
    async def models(_: Request) -> Response:
        return JSONResponse({"data": [{"id": "gpt-4"}]})

    async def props(_: Request) -> Response:
        return JSONResponse({"chat_template": HERMES, "model_path": "/models/Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf"})

    with serving(Starlette(routes=[Route("/v1/models", models), Route("/props", props)])) as url:
        found = connect(Upstream((url,)), None)
    assert (found.name, found.template.model) == ("gpt-4", "gpt-4, Qwen2.5-Coder-7B-Instruct-Q4_K_M")
    assert choose_style(found.template)[0].name == "qwen_coder"


def test_a_vllm_tells_what_it_loaded_too() -> None:
    server = FakeVllm(template=HERMES)
    server.root = "Qwen/Qwen2.5-Coder-32B-Instruct-AWQ"
    with serving(server.app) as url:
        assert choose_style(connect(Upstream((url,)), None).template)[0].name == "qwen_coder"
