"""`toolgram bench`: how many answers of a model are right."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import typer

from toolgram.bench.asking import Answer, ask
from toolgram.bench.page import page
from toolgram.bench.questions import KINDS, Question, questions
from toolgram.bench.runs import Run, beside, common
from toolgram.bench.tables import as_json, table, wrong
from toolgram.cli.inputs import BadInput, read_json, write_text
from toolgram.engines.base import Engine, Sampling
from toolgram.planning.profile import Profile
from toolgram.styles.base import ToolStyle
from toolgram.template.chat_template import ChatTemplate

CHOICES = ("auto", "required")


@dataclass(frozen=True)
class Asked:
    """What is asked, and how: `most` questions of each kind, None for all."""

    kinds: tuple[str, ...]
    most: int | None
    tool_choice: str
    style: str | ToolStyle | None
    sampling: Sampling
    model: str
    profile: Profile | None = None


def chosen(kinds: Sequence[str], most: int | None, tool_choice: str) -> tuple[Question, ...]:
    """The questions of some kinds (none: all). Where a model must call, there are none that no tool fits.

    Raises BadInput for a kind or a choice that there is not.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise BadInput(f"there is no kind {unknown[0]!r}; there are {', '.join(KINDS)}")
    if tool_choice not in CHOICES:
        raise BadInput(f"--tool-choice is {' or '.join(CHOICES)}, not {tool_choice!r}")
    left = [kind for kind in kinds or KINDS if kind != "none" or tool_choice != "required"]
    return tuple(question for kind in left for question in questions(kind)[:most])


def shown(files: Sequence[Path], html: Path | None) -> None:
    """Prints runs that were written to files, on the questions that all of them have.

    Raises BadInput for a file that is none, and where they have no question in common.
    """
    runs = common([_read(file) for file in files])
    if not runs[0].answers:
        raise BadInput("these runs have no question in common")
    typer.echo(beside(runs))
    if html is not None:
        write_text(html, page(runs))


def _read(file: Path) -> Run:
    try:
        return Run.read(file.stem, read_json(file))
    except (KeyError, TypeError) as error:
        raise BadInput(f"{file}: is not what `toolgram bench --json` writes") from error


def bench(
    asked: Asked, template: ChatTemplate, engine: Engine, file: Path | None, html: Path | None, *, show_wrong: bool
) -> None:
    """Asks, and prints the table; progress goes to stderr. What there is, is printed if it is interrupted."""
    found: list[Answer] = []
    try:
        asyncio.run(_run(asked, template, engine, found))
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
    if not found:
        return
    for paragraph in wrong(found) if show_wrong else ():
        typer.echo(paragraph)
    typer.echo(table(found))
    if file is not None:
        about = {
            "model": asked.model,
            "tool_choice": asked.tool_choice,
            "style": asked.style.name if isinstance(asked.style, ToolStyle) else asked.style,
            "profile": None if asked.profile is None else asked.profile.write(),
            "temperature": asked.sampling.temperature,
        }
        write_text(file, json.dumps(as_json(about, found), indent=1, ensure_ascii=False) + "\n")
    if html is not None:
        write_text(html, page([Run(asked.model, tuple(found))]))


async def _run(asked: Asked, template: ChatTemplate, engine: Engine, found: list[Answer]) -> None:
    put = chosen(asked.kinds, asked.most, asked.tool_choice)
    try:
        answers = ask(
            put,
            template,
            engine,
            asked.sampling,
            style=asked.style,
            tool_choice=asked.tool_choice,
            profile=asked.profile,
        )
        async with aclosing(answers):
            async for answer in answers:
                found.append(answer)
                right = sum(each.right for each in found)
                sys.stderr.write(f"\r{len(found)} of {len(put)} asked, {right} right ")
                sys.stderr.flush()
    finally:
        sys.stderr.write("\n")
        await engine.aclose()
