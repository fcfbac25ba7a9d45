"""`toolgram lint --tools`: what is wrong with a set of tools, and what each of them costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolgram.cli import inputs
from toolgram.doctor.tools import ToolCost, ToolFinding, costs, lint_tools
from toolgram.planning.plan import Plan
from toolgram.template.chat_template import ChatTemplate

_GENERIC = ChatTemplate("{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}")


def tools_linted(file: Path, template: Path | None, *, as_json: bool) -> bool:
    """Prints what is wrong with the tools of a file; whether there are no errors.

    Their prompts are those of the template, in tokens where it comes with a model; of a generic style, where none is
    given.
    """
    tools = inputs.read_tools(file)
    found = lint_tools(tools)
    sound = not any(each.level == "error" for each in found)
    chosen = inputs.template_of(template, None) if template else _GENERIC
    with _counting(template) as (unit, count):
        costing = list(costs(tools, chosen, count)) if sound else []
    if as_json:
        document = {"findings": [asdict(each) for each in found], "unit": unit, "costs": [asdict(e) for e in costing]}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print(found, costing, unit, len(tools))
    return sound


@contextmanager
def _counting(template: Path | None) -> Generator[tuple[str, Callable[[Plan], int]]]:
    """What a prompt is counted in: the tokens of a GGUF file, else characters."""
    if template is None or template.suffix != ".gguf":
        yield "characters", lambda plan: len(plan.prompt)
        return
    engine = inputs.load_engine(template, context=1)  # nothing is evaluated
    try:
        yield "tokens", lambda plan: inputs.tokens_of(plan, engine)
    finally:
        engine.close()


def _print(found: Sequence[ToolFinding], costing: Sequence[ToolCost], unit: str, count: int) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    levels = [each.level for each in found]
    counted = ", ".join(
        f"{n} {level}{'s' * (n > 1)}" for level in ("error", "warning", "note") if (n := levels.count(level))
    )
    console.print(f"{count} {'tool' if count == 1 else 'tools'}: {counted or 'nothing to say'}")
    if costing:
        table = Table(box=None, pad_edge=False)
        table.add_column("tool")
        for column in (f"prompt, {unit}", "grammar, characters", "made in"):
            table.add_column(column, justify="right")
        for each in sorted(costing, key=lambda cost: -cost.prompt):
            table.add_row(Text(each.tool), str(each.prompt), str(each.grammar), f"{each.seconds:.3f} s")
        console.print()
        console.print(table)
    for each in found:
        console.print(f"\n{each.level}: {each.tool}: {each.what} [{each.code}]\n  at {each.pointer}")
        if each.mend:
            console.print(f"  mend: {each.mend}")
