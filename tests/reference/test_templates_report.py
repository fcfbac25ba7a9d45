"""The report on a folder of templates."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from toolgram.cli.report import report
from toolgram.errors import InvalidRequest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "templates"
CHATML = """\
{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
REQUEST: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Ça va?"}],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "find",
                "parameters": {
                    "type": "object",
                    "properties": {"keys": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
                },
            },
        }
    ],
}


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    return _written(tmp_path / "request.json", json.dumps(REQUEST))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "templates"
    folder.mkdir()
    _written(folder / "chatml.jinja", CHATML)
    _written(folder / "broken.jinja", "{% if %}")
    _written(folder / "refusing.jinja", "{# ```` #}{{ raise_exception('not today') }}")
    _written(folder / "notes.txt", "not a template")
    return folder


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_each_template_has_its_section(folder: Path, request_file: Path) -> None:
    document = report(templates=folder, request=request_file)
    lines = document.split("\n")
    assert [line for line in lines if line.startswith("# ")] == ["# broken", "# chatml", "# refusing"]
    assert '    "content": "Ça va?"' in lines
    broken, chatml, refusing = (part.split("\n\n\n") for part in document.split("\n# ")[1:])
    assert "Error (TemplateError):" in broken[1]
    assert chatml[1] == f"Template:\n\n```jinja\n{CHATML}\n```"
    assert chatml[2] == "## chatml / compact"
    assert chatml[3].startswith("Style: compact, since ")
    assert chatml[4].startswith("Prompt:\n\n```text\n<|im_start|>system\n")
    assert chatml[5].startswith("Format prompt:\n\n```text\nYou can call these functions")
    assert chatml[6] == 'Stops:\n\n```json\n[\n  "<|im_end|>"\n]\n```'
    assert chatml[7].startswith("Grammar:\n\n```gbnf\nroot ::= ")
    assert "- `/tools/0/function/parameters/properties/keys` uniqueItems: items may be equal" in chatml[8].split("\n")
    assert refusing[1].startswith("Template:\n\n`````jinja\n{# ````")
    told = "the template refuses the conversation: not today"
    assert refusing[2].rstrip() == f"Error (TemplateError):\n\n```text\n{told}\n```"


def test_styles_named(folder: Path, request_file: Path) -> None:
    now = datetime(2025, 1, 2)
    document = report(templates=folder, request=request_file, style_names=("hermes_2_pro", "hermes"), now=now)
    assert "Style: hermes_2_pro, since it was asked for." in document
    assert "The current date is: 2025-01-02." in document
    named = document.partition("## chatml / hermes\n")[2]
    assert "Style: hermes, since it was asked for." in named
    assert "Here are the tools available:" in named


def test_a_request_that_constrains_nothing(folder: Path, tmp_path: Path) -> None:
    request = _written(tmp_path / "plain.json", json.dumps({"messages": REQUEST["messages"]}))
    assert "Grammar: none, since the request constrains nothing." in report(templates=folder, request=request)


@pytest.mark.parametrize("text", ["{", "[]", '{"messages": []}', None])
def test_requests_that_are_none(folder: Path, tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "request.json"
    if text is not None:
        _written(path, text)
    with pytest.raises(InvalidRequest):
        report(templates=folder, request=path)


def test_what_is_no_report(folder: Path, request_file: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for options in (
        {},
        {"templates": folder},
        {"request": request_file},
        {"reference": True, "templates": folder},
        {"templates": empty, "request": request_file},
        {"templates": folder, "request": request_file, "style_names": ("unknown",)},
    ):
        with pytest.raises(InvalidRequest):
            report(**options)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the chat templates, ../shared/templates, are not there")
def test_no_real_template_stops_the_report(request_file: Path) -> None:
    document = report(templates=SHARED, request=request_file)
    for path in SHARED.glob("*.jinja"):
        assert f"\n# {path.stem}\n" in document
