"""`toolgram doctor`: what a running model and its server really do, on a page."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolgram.cli.inputs import BadInput
from toolgram.doctor.examine import examine
from toolgram.doctor.probe import Finding, Outcome, Probe
from toolgram.doctor.probes import PROBES, SECTIONS
from toolgram.doctor.verdict import Verdict, as_json, verdict
from toolgram.engines.base import Engine
from toolgram.errors import nearest
from toolgram.planning.profile import Profile
from toolgram.styles.base import ToolStyle
from toolgram.template.chat_template import ChatTemplate

_MARKS: dict[Outcome, tuple[str, str]] = {"yes": ("yes", "green"), "no": ("no", "red"), "untried": ("–", "dim")}


@dataclass(frozen=True, slots=True)
class Patient:
    """What is examined: its name, its template, the style that was asked for, the words that serve it, its profile."""

    name: str
    template: ChatTemplate
    style: str | ToolStyle | None
    command: tuple[str, ...]
    profile: Profile | None = None


def chosen(names: Sequence[str]) -> tuple[Probe, ...]:
    """The probes of these names (none: all). Raises BadInput for a name that there is not."""
    known = {probe.name: probe for probe in PROBES}
    for name in names:
        if name not in known:
            raise BadInput(f"there is no probe {name!r}; {nearest(name, known)}")
    return tuple(probe for probe in PROBES if not names or probe.name in names)


def doctor(patient: Patient, engine: Engine, probes: Sequence[Probe], *, json_: bool) -> bool:
    """Puts the probes and prints the page; progress goes to stderr. Whether nothing that must be is missing."""
    found: list[Finding] = []
    try:
        asyncio.run(_examined(patient, engine, probes, found))
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
    result = verdict(found)
    command = shlex.join(_command(patient, result))
    if json_:
        document = {"model": patient.name, "command": command, **as_json(found)}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print(patient, found, result, command)
    return result.sound


async def _examined(patient: Patient, engine: Engine, probes: Sequence[Probe], found: list[Finding]) -> None:
    shows = sys.stderr.isatty()
    try:
        async with aclosing(examine(probes, engine, patient.template, patient.style, patient.profile)) as findings:
            async for finding in findings:
                found.append(finding)
                if shows:
                    sys.stderr.write(f"\r{len(found)} of {len(probes)} probes ")
                    sys.stderr.flush()
    finally:
        if shows:
            sys.stderr.write("\r\x1b[K")
        await engine.aclose()


def _command(patient: Patient, found: Verdict) -> Iterator[str]:
    yield from ("toolgram", "serve", *patient.command)
    if found.unenforced and found.obliging:
        yield "--allow-unenforced"


def _print(patient: Patient, found: Sequence[Finding], result: Verdict, command: str) -> None:
    console = Console(highlight=False)
    console.print(Text(patient.name, style="bold"))
    for sentence in result.sentences:
        console.print(Text(sentence))
    for title, section in SECTIONS.items():
        here = [finding for finding in found if finding.probe in section]
        if here:
            console.print(Text(f"\n{title}", style="bold"))
            console.print(_table(here))
    console.print(Text("\nServe it", style="bold"))
    for line in (command, *result.mends):
        console.print(Text(f"  {line}"), soft_wrap=True)


def _table(findings: Sequence[Finding]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, expand=True)
    table.add_column(width=5)
    table.add_column(width=18, no_wrap=True)
    table.add_column(ratio=2)
    table.add_column(ratio=3, overflow="fold")
    for each in findings:
        mark, style = _MARKS[each.outcome]
        evidence = "".join(c if c.isprintable() else repr(c)[1:-1] for c in each.evidence)
        table.add_row(
            Text(f"  {mark}", style=style), each.probe.name, Text(each.probe.question), Text(evidence, style="dim")
        )
    return table
