"""`toolgram explain` and `toolgram styles`: what toolgram would do, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from toolgram.cli import inputs
from toolgram.cli.inputs import BadInput
from toolgram.conversation.media import described, media_in
from toolgram.errors import PromptTooLong, UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.planning.plan import Plan
from toolgram.schema import schema_grammar
from toolgram.styles.choose import choose_style
from toolgram.styles.detect import speaks
from toolgram.styles.discovery import discover, proof
from toolgram.styles.discovery.as_python import python_source
from toolgram.styles.registry import all_styles, kind_of
from toolgram.template.chat_template import ChatTemplate

Section = tuple[str, str]


def explain_plan(plan: Plan, dialect: str, model: Path | None) -> None:
    """Prints everything in a plan; given a model file, the number of tokens too."""
    _print_sections(_plan_sections(plan, dialect, model))


def explain_schema(schema: Any, dialect: str) -> None:
    """Prints the grammar of a schema in relaxed mode, its relaxations, and what exact mode says about it."""
    _print_sections(_schema_sections(schema, dialect))


def _schema_sections(schema: Any, dialect: str) -> Iterator[Section]:
    yield from _grammar_sections(schema_grammar(schema, mode="relaxed"), dialect)
    try:
        schema_grammar(schema)
    except UnsupportedSchema as error:
        yield "Exact mode", f"refuses it: {error}"
    else:
        yield "Exact mode", "takes it"


def _plan_sections(plan: Plan, dialect: str, model: Path | None) -> Iterator[Section]:
    yield "Style", f"{plan.style.name}: {plan.style.about}\nchosen because {plan.why}"
    if plan.format_prompt is not None:
        yield "Format prompt", plan.format_prompt
    prompt = "".join(text for text, _ in described(plan.prompt_parts))
    yield "Prompt", prompt
    yield "Size", _size(plan, f"{len(prompt)} characters", model)
    yield "Stops", "\n".join(map(repr, plan.stop)) or "none"
    if plan.constraint is None:
        yield "Grammar", "none: there are no tools, and no schema for the answer"
    else:
        yield from _grammar_sections(plan.constraint.grammar, dialect)


def _grammar_sections(grammar: Grammar, dialect: str) -> Iterator[Section]:
    yield f"Grammar ({dialect})", grammar.to(dialect)
    yield "Relaxations", "\n".join(map(str, grammar.relaxations)) or "none: the schemas are enforced exactly"


def _size(plan: Plan, characters: str, model: Path | None) -> str:
    if media_in(plan.prompt_parts):
        return f"{characters}; the tokens of an image are known once it is read"
    if model is None:
        return f"{characters} (give --model FILE to count tokens)"
    engine = inputs.load_engine(model, context=1)  # nothing is evaluated
    try:
        return f"{characters}, {inputs.tokens_of(plan, engine)} tokens of {model.name}"
    except PromptTooLong as error:
        return f"{characters}: {error}"
    finally:
        engine.close()


def _print_sections(sections: Iterator[Section]) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for at, (title, text) in enumerate(list(sections)):
        console.print("\n" * bool(at) + f"# {title}", style="bold")
        console.print(text.rstrip("\n"))


def list_styles(template: ChatTemplate | None) -> None:
    """Prints all styles; with a template, which of them fit, which is chosen, and how it reads the probes."""
    table = Table(box=None, pad_edge=False)
    for column in ("name", "kind", *(("fits",) if template else ()), "about"):
        table.add_column(column, no_wrap=column != "about")
    for style in all_styles():
        fits = (("yes" if speaks(template, style) else "",)) if template else ()
        table.add_row(style.name, kind_of(style), *fits, style.about)
    console = Console(highlight=False)
    console.print(table)
    if template is not None:
        console.print("\n" + "\n".join(_choice(template)), markup=False, soft_wrap=True)


def _choice(template: ChatTemplate) -> Iterator[str]:
    """Which style is chosen for a template and why, and how it reads what the template renders."""
    chosen, why = choose_style(template)
    yield f"chosen: {chosen.name} ({kind_of(chosen)}), because {why}"
    for reading in () if chosen.is_generic else proof(template, chosen):
        yield f"  {reading.probe}: {reading.wrong or 'read back'}"


def print_discovered(template: ChatTemplate, file: Path) -> None:
    """Prints the style discovered from a template as a Python file, named after the template's. Raises BadInput."""
    found = discover(template)
    if found.style is None:
        raise BadInput(f"{file}: no style was found: {found.why}")
    name = re.sub(r"[^a-z0-9]+", "_", file.stem.lower()).strip("_")
    print(python_source(replace(found.style, name=name or found.style.name)), end="")  # noqa: T201 - to be redirected
