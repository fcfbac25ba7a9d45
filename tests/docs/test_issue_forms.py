"""The forms for issues ask for what commands print, and these commands are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from toolgram.cli.app import app

FORMS = Path(__file__).resolve().parents[2] / ".github/ISSUE_TEMPLATE"
ELEMENTS = {"input", "textarea", "dropdown", "checkboxes", "markdown"}  # as GitHub has them
COMMANDS: Any = get_command(app)


def form_of(name: str) -> dict[str, Any]:
    return yaml.safe_load((FORMS / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["wrong.yml", "template.yml"])
def test_a_form_is_one_and_names_commands_that_are_there(name: str) -> None:
    form = form_of(name)
    assert form.keys() == {"name", "description", "labels", "body"}
    assert {each["type"] for each in form["body"]} <= ELEMENTS
    assert len({each["id"] for each in form["body"]}) == len(form["body"])
    assert any(each.get("validations", {}).get("required") for each in form["body"])
    said = re.findall(r"`toolgram ([^`]+)`", " ".join(each["attributes"]["description"] for each in form["body"]))
    assert said
    for words in map(shlex.split, said):
        command = COMMANDS if words[0].startswith("-") else COMMANDS.commands[words[0]]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options | {"--version"}, words


def test_holes_are_not_reported_in_public() -> None:
    (link,) = form_of("config.yml")["contact_links"]
    assert "SECURITY.md" in link["about"]
