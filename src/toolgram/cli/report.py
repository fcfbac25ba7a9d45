"""The prompts and grammars of requests in templates and styles, as one Markdown document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from toolgram.conversation.request import parse_request
from toolgram.errors import InvalidRequest, ToolgramError
from toolgram.json_texts import pretty
from toolgram.planning.plan import Plan, plan
from toolgram.reference import MESSAGES, Situation, template_reports
from toolgram.styles.registry import find_style, no_such_style
from toolgram.template.chat_template import ChatTemplate

_BACKTICKS = re.compile("`{3,}")


def report(
    *,
    reference: bool = False,
    templates: Path | None = None,
    request: Path | None = None,
    style_names: Sequence[str] = (),
    now: datetime | None = None,
) -> str:
    """The reference report, or the report of a folder of templates and a request.

    Raises InvalidRequest if the arguments ask for neither, and whenever `templates_report` does.
    """
    if reference and (templates or request or style_names):
        raise InvalidRequest("", "the reference report has its own templates, styles and request")
    if reference:
        return reference_report()
    if templates is None or request is None:
        raise InvalidRequest("", "a report needs a folder of templates and a request")
    return templates_report(templates, request, style_names, now)


def reference_report() -> str:
    """The document of the 2024 profile: its prompts, format prompts and grammars."""
    return _document(_reference_pieces())


def templates_report(folder: Path, request: Path, style_names: Sequence[str] = (), now: datetime | None = None) -> str:
    """What the request in a JSON file becomes with each `.jinja` file of a folder, in the named styles or the best one.

    If a template or a style fails, its section shows the error. Raises InvalidRequest for a malformed request, an
    unknown style, or a folder without templates.
    """
    body = _read_request(request)
    parse_request(body)
    for name in style_names:
        if find_style(name) is None:
            raise InvalidRequest("/style", no_such_style(name))
    paths = sorted(folder.glob("*.jinja"))
    if not paths:
        raise InvalidRequest("", f"{folder} contains no .jinja file")
    pieces = [_block("Messages", "json", pretty(body["messages"]))]
    for path in paths:
        pieces += _template_pieces(path, body, style_names, now)
    return _document(pieces)


def _read_request(path: Path) -> Mapping[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InvalidRequest("", f"{path}: {error}") from error


# The reference ---------------------------------------------------------------------------------------------------


def _reference_pieces() -> Iterator[str]:
    yield _block("Messages", "js", pretty(MESSAGES))
    for template in template_reports():
        yield _heading(1, template.name)
        if template.parallel_tool_calls:
            yield "**Might Support Parallel Tool Calls**"
        yield _block("Template", "js", template.source)
        for style in template.styles:
            yield _heading(2, template.name, style.title)
            for situation in style.situations:
                yield _heading(3, template.name, style.title, situation.title)
                yield from _situation_pieces(situation)


def _situation_pieces(situation: Situation) -> Iterator[str]:
    yield _block("Prompt", "js", situation.prompt)
    yield _block("Prompt", "json", situation.format_prompt)
    yield _block("Grammar", "js", situation.grammar)


# Any templates ---------------------------------------------------------------------------------------------------


def _template_pieces(
    path: Path, body: Mapping[str, Any], style_names: Sequence[str], now: datetime | None
) -> Iterator[str]:
    yield _heading(1, path.stem)
    try:
        template = ChatTemplate.from_file(path)
    except ToolgramError as error:
        yield _failure(error)
        return
    yield _block("Template", "jinja", template.source)
    for name in style_names or (None,):
        try:
            planned = plan(body, template, name, now)
            pieces = list(_plan_pieces(path.stem, planned))
        except ToolgramError as error:
            pieces = [*([_heading(2, path.stem, name)] if name else []), _failure(error)]
        yield from pieces


def _plan_pieces(name: str, planned: Plan) -> Iterator[str]:
    yield _heading(2, name, planned.style.name)
    yield f"Style: {planned.style.name}, since {planned.why}."
    yield _block("Prompt", "text", planned.prompt)
    if planned.format_prompt is not None:
        yield _block("Format prompt", "text", planned.format_prompt)
    yield _block("Stops", "json", pretty(planned.stop))
    if planned.constraint is None:
        yield "Grammar: none, since the request constrains nothing."
    else:
        yield _block("Grammar", "gbnf", planned.constraint.grammar.to("gbnf").rstrip("\n"))
    if planned.relaxations:
        lines = (f"- `{each.pointer or '/'}` {each.keyword}: {each.enforced}" for each in planned.relaxations)
        yield "Relaxations:\n\n" + "\n".join(lines)


def _failure(error: ToolgramError) -> str:
    return _block(f"Error ({type(error).__name__})", "text", str(error))


# Markdown --------------------------------------------------------------------------------------------------------


def _document(pieces: Iterable[str]) -> str:
    """The pieces, separated by two blank lines."""
    return "".join(f"\n{piece}\n\n" for piece in pieces)


def _heading(level: int, *path: str) -> str:
    return f"{'#' * level} {' / '.join(path)}"


def _block(label: str, language: str, text: str) -> str:
    """A labelled block of code, its fence longer than any in the text."""
    fence = "`" * max((len(run) + 1 for run in _BACKTICKS.findall(text)), default=3)
    return f"{label}:\n\n{fence}{language}\n{text}\n{fence}"
