"""`toolgram styles --why`: whether a style fits a template, and where it does not."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console

from toolgram.cli.inputs import BadInput
from toolgram.conversation.message import Message
from toolgram.styles.base import ToolStyle
from toolgram.styles.explain import FitReport, Trial, explain_fit
from toolgram.styles.registry import find_style, kind_of, no_such_style
from toolgram.template.chat_template import ChatTemplate

_INDENT = " " * 4
_WIDEST = 96
_BEFORE = 48


def print_why(template: ChatTemplate, name: str) -> None:
    """Prints the verdict, what is chosen and why, how the tools are announced, and what the style reads of each turn.

    Raises BadInput if no style has the name.
    """
    style = find_style(name)
    if style is None:
        raise BadInput(no_such_style(name))
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print("\n".join(_lines(explain_fit(template, style))))


def _lines(report: FitReport) -> Iterator[str]:
    yield report.verdict
    yield ""
    yield f"chosen: {report.chosen.name} ({kind_of(report.chosen)}), because {report.why}"
    yield f"tools: {report.announcement}"
    yield ""
    lost = next((trial for trial in report.trials if trial.lost_at is not None), None)
    for trial in report.trials:
        yield f"{trial.turn}: {_outcome(trial)}"
        if trial is lost:  # the others mostly fail for the same reason
            yield from _difference(report.style, trial)


def _outcome(trial: Trial) -> str:
    if trial.missing:
        return f"not tried: {trial.missing}"
    if trial.lost_at is None:
        return "read back"
    line, column = trial.place
    return f"lost at line {line}, column {column}: {trial.trouble}"


def _difference(style: ToolStyle, trial: Trial) -> Iterator[str]:
    """The turn with a caret at the place where it is lost, what the style read, and how it would write the turn."""
    yield "  the template writes"
    yield from _marked(trial.text, *trial.place)
    yield f"  {style.name} reads"
    yield from (_INDENT + part for part in _parts(trial.read or Message()))
    if trial.written is not None:
        yield f"  {style.name} writes"
        yield from _marked(trial.written)


def _marked(text: str, line: int = 0, column: int = 0) -> Iterator[str]:
    """The lines of a text with a caret under a place in it; long lines are shortened, its own line around the place."""
    for number, each in enumerate(text.split("\n"), 1):
        here = number == line
        start = max(0, column - 1 - _BEFORE) if here and len(each) > _WIDEST else 0
        before, after = "…" * bool(start), "…" * (len(each) > start + _WIDEST)
        yield f"{_INDENT}{before}{each[start : start + _WIDEST]}{after}".rstrip()
        if here:
            yield _INDENT + " " * cell_len(before + each[start : column - 1]) + "^"


def _parts(message: Message) -> Iterator[str]:
    for what, text in (("reasoning", message.reasoning), ("content", message.content)):
        if text is not None and text.strip():
            yield f"{what} {_short(repr(text))}"
    for call in message.tool_calls:
        yield f"a call of {call.name!r} with {_short(call.arguments)}" + (" (cut off)" if call.incomplete else "")
    if message == Message():
        yield "nothing"


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"
