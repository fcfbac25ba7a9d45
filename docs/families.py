"""Prints the styles, or with `--templates FOLDER` which style each chat template of a folder gets, as Markdown."""

from __future__ import annotations

import argparse
from pathlib import Path

import toolgram
from toolgram.planning.readable_names import some_id
from toolgram.styles.base import ToolStyle
from toolgram.styles.registry import all_styles, kind_of
from toolgram.wire.format import Reasoning, holds

TEMPLATE = toolgram.ChatTemplate("{{ tools | tojson if tools }}{% for m in messages %}{{ m.content }}\n{% endfor %}")
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}}
REQUEST = {
    "messages": [{"role": "user", "content": "Hi."}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "Does it.", "parameters": PARAMETERS}}],
}


def call_of(style: ToolStyle) -> str:
    """A call as the style writes it."""
    plan = toolgram.plan(REQUEST, TEMPLATE, style)
    call = toolgram.ToolCall("f", '{"a": 1}', some_id("f", style.wire))
    return code(repr(plan.write(toolgram.Message(tool_calls=(call,)))))


def code(text: str) -> str:
    """Text as code in a table."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}".replace("|", "\\|")


def prose(text: str) -> str:
    """Text as it is, in a table."""
    return text.replace("<", "&lt;").replace("|", "\\|")


def styles() -> None:
    """Prints the styles, whether they have a place for reasoning, and a call of each."""
    print("\n| Style | Kind | Reasoning | About | A call |\n|---|---|---|---|---|")
    for style in all_styles():
        reasoning = "yes" if holds(style.wire.turn, Reasoning) else ""
        print("|", " | ".join((code(style.name), kind_of(style), reasoning, prose(style.about), call_of(style))), "|")
    print()


def templates(folder: Path) -> None:
    """Prints the style that each template gets when there are tools."""
    print("\n| Chat template | Style | Kind |\n|---|---|---|")
    for file in sorted(folder.glob("*.jinja")):
        style = toolgram.plan(REQUEST, toolgram.ChatTemplate.from_file(file)).style
        print(f"| {file.stem} | {code(style.name)} | {kind_of(style)} |")
    print()


def main() -> None:
    """Prints one table or the other."""
    parser = argparse.ArgumentParser(description="Prints the styles, or the style of each template.")
    parser.add_argument("--templates", type=Path, metavar="FOLDER", help="a folder of .jinja files")
    folder: Path | None = parser.parse_args().templates
    if folder is None:
        styles()
    else:
        templates(folder)


if __name__ == "__main__":
    main()
