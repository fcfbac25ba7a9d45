"""What becomes of conversations and turns in chat templates that nobody has looked at: a line for each folder.

    python benchmarks/fetch.py --more .data     # templates of axolotl, TRL and Xinference, beside llama.cpp's
    python benchmarks/templates.py .data/templates .data/more_templates

Each template is given fifteen conversations, with a tool and without: whether the tool is shown to the model, and each
text, call and result, or that it is told as left out. Each turn that a template itself writes must be one that the
grammar admits. What is refused or lost is listed below the table. Without folders it is the shared templates.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import _peers  # noqa: F401 # pyright: ignore[reportUnusedImport] - makes the tests importable
import toolgram
from _common import show
from _data import folder
from properties.test_turn_ends import asked_of, written_by
from situations import tool

_CITY = {"type": "object", "properties": {"city": {"type": "string", "description": "zqmeant"}}, "required": ["city"]}
_TOOL = tool("zqweather", _CITY)
_USER = {"role": "user", "content": "zquser"}
_SAID: dict[str, Any] = {"role": "assistant", "content": "zqanswer"}
_FUNCTION = {"name": "zqweather", "arguments": '{"city": "zqoslo"}'}
_CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "abcdefgh0", "type": "function", "function": _FUNCTION}],
}
_RESULT = {"role": "tool", "tool_call_id": "abcdefgh0", "content": "zqrain"}
_SYSTEM, _EMPTY = ({"role": "system", "content": text} for text in ("zqsystem", ""))
CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "a question": [_USER],
    "two": [_USER, _SAID, _USER],
    "two at once": [_USER, _USER],
    "a greeting first": [_SAID, _USER],
    "system": [_SYSTEM, _USER],
    "developer": [_SYSTEM | {"role": "developer"}, _USER],
    "system alone": [_SYSTEM],
    "system later": [_USER, _SAID, _SYSTEM, _USER],
    "empty system": [_EMPTY, _USER],
    "a result": [_USER, _CALL, _RESULT],
    "system, a result": [_SYSTEM, _USER, _CALL, _RESULT],
    "empty system, a result": [_EMPTY, _USER, _CALL, _RESULT],
    "after a result": [_USER, _CALL, _RESULT, _SAID, _USER],
    "two results": [_USER, _CALL, _RESULT, _CALL, _RESULT],
    "words and a call": [_USER, _CALL | {"content": "zqanswer"}, _RESULT],
}


@dataclass
class Verdict:
    """What became of a template: its style, and what was refused, lost, or not admitted."""

    name: str
    style: str = ""
    kind: str = "refused"
    conversations: int = 0
    lost: list[str] = field(default_factory=list[str])
    turns: int = 0
    forbidden: list[str] = field(default_factory=list[str])


def verdict(file: Path) -> Verdict:
    """Everything about the template in a file."""
    found = Verdict(file.stem)
    template = toolgram.ChatTemplate.from_file(file, "<s>", "</s>")
    for tools in ([_TOOL], []):
        for what, messages in CONVERSATIONS.items():
            found.conversations += 1
            body = {"messages": messages, **({"tools": tools} if tools else {})}
            try:
                plan = toolgram.plan(body, template)
            except toolgram.ToolgramError as error:
                found.lost.append(f"{what}{'' if tools else ', no tools'}: {str(error)[:120]}")
                continue
            found.style, found.kind = plan.style.name, _kind(plan.style)
            found.lost += [f"{what}{'' if tools else ', no tools'}: {lost}" for lost in _lost(plan, messages, tools)]
    if found.style:
        _look_at_turns(template, found)
    return found


def _kind(style: toolgram.ToolStyle) -> str:
    return "discovered" if style.name == "discovered" else "generic" if style.is_generic else "native"


def _lost(plan: toolgram.Plan, messages: list[dict[str, Any]], tools: list[Any]) -> Iterator[str]:
    """What was said, is not in the prompt, and is not told either."""
    if tools and "zqmeant" not in plan.prompt:
        yield "the tool is not shown"
    for at, message in enumerate(messages):
        words = [message["content"], *(("zqoslo",) if "tool_calls" in message else ())]
        told = any(pointer.startswith(f"/messages/{at}/") for pointer in plan.left_out)
        yield from (f"{word} is lost" for word in words if word and word not in plan.prompt and not told)


def _look_at_turns(template: toolgram.ChatTemplate, found: Verdict) -> None:
    """Turns as the template writes them, wherever these go on from the prompt and are read as what was said."""
    for said, more in asked_of(template):
        try:
            plan, whole = written_by(template, said, more)
        except toolgram.TemplateError:  # some refuse not to think
            continue
        found.turns += bool(whole)
        if whole and plan.constraint and not any(map(plan.constraint.grammar.accepts, whole)):
            found.forbidden.append(f"{', '.join(map(str, more.values()))}: {whole[-1][:160]!r}")


def main() -> None:
    """Prints the table, and what was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", default=[folder() / "templates"], help="with .jinja files")
    files = sorted(file for each in parser.parse_args().folders for file in each.rglob("*.jinja"))
    if not files:
        sys.exit("there are no templates; `python benchmarks/fetch.py` fetches some")
    once = {file.read_text(encoding="utf-8").strip(): file for file in reversed(files)}  # many are in several packages
    verdicts: list[Verdict] = []
    rows: list[tuple[object, ...]] = []
    for place, group in groupby(sorted(once.values()), key=lambda file: file.parent):
        found = [verdict(file) for file in group]
        kinds = [sum(each.kind == kind for each in found) for kind in ("native", "discovered", "generic", "refused")]
        counts = [sum(each.conversations for each in found), sum(len(each.lost) for each in found)]
        counts += [sum(each.turns for each in found), sum(len(each.forbidden) for each in found)]
        rows.append((place.name, len(found), *kinds, *counts))
        verdicts += found
    head = ["folder", "templates", "native", "discovered", "generic", "refused"]
    show("chat templates", [*head, "conversations", "lost", "turns", "forbidden"], rows)
    for each in verdicts:
        if each.lost or each.forbidden:
            print(f"\n{each.name} ({each.style or 'refused'})")
            print("\n".join(f"    {what}" for what in [*each.lost, *each.forbidden]))


if __name__ == "__main__":
    main()
