"""`toolgram lint`: what is wrong with a chat template, with what it renders as evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from toolgram.cli.inputs import template_of
from toolgram.doctor.template import abilities, example_call
from toolgram.errors import TemplateError
from toolgram.styles.choose import choose_style
from toolgram.styles.lint import Finding, lint, verdict
from toolgram.styles.registry import kind_of
from toolgram.styles.response_template.write import response_template
from toolgram.template.chat_template import ChatTemplate

_SHOWN = 400  # characters of what is rendered


def linted(file: Path, *, as_json: bool) -> bool:
    """Prints what is wrong with the template of a file; whether there are no errors."""
    try:
        template = template_of(file, None).with_tools
        findings = lint(template)
    except TemplateError as error:  # it does not compile
        template, findings = None, (Finding("syntax", "error", str(error)),)
    if as_json:
        print(json.dumps(_document(template, findings), indent=2, ensure_ascii=False))  # noqa: T201 - the result
    else:
        Console(highlight=False, markup=False, soft_wrap=True).print("\n".join(_lines(template, findings)))
    return not any(each.level == "error" for each in findings)


def print_response_template(file: Path) -> None:
    """Prints what tokenizer_config.json may have for transformers to read calls back. Raises TemplateError."""
    template = template_of(file, None).with_tools
    found = response_template(choose_style(template)[0], template)
    print(json.dumps({"response_template": found}, indent=2, ensure_ascii=False))  # noqa: T201 - the result


def _document(template: ChatTemplate | None, findings: Sequence[Finding]) -> dict[str, Any]:
    style = None if template is None else choose_style(template)[0]
    document: dict[str, Any] = {"verdict": verdict(findings, style), "style": None}
    if template is not None and style is not None:
        document["style"] = style.name
        document["abilities"] = [asdict(each) for each in abilities(template)]
        document["call"] = example_call(template)
    return {**document, "findings": [asdict(each) for each in findings]}


def _lines(template: ChatTemplate | None, findings: Sequence[Finding]) -> Iterator[str]:
    if template is None:
        yield verdict(findings)
    else:
        style, why = choose_style(template)
        yield verdict(findings, style)
        yield f"style: {style.name} ({kind_of(style)}), because {why}"
        found = abilities(template)
        yield f"can: {'; '.join(str(each) for each in found if each.can)}"
        if lacking := "; ".join(each.name for each in found if not each.can):
            yield f"cannot: {lacking}"
        if (call := example_call(template)) is not None:
            yield "a call:"
            yield from (f"    {line}" for line in call.split("\n"))
    for each in findings:
        yield ""
        yield f"{each.level}: {each.what} [{each.code}]"
        if each.mend:
            yield f"  mend: {each.mend}"
        if each.evidence and each.level != "note":
            yield "  rendered:"
            yield from (f"    {line}" for line in _short(each.evidence).split("\n"))


def _short(text: str) -> str:
    """The end of what is rendered, where the turns are that were lately said."""
    return text.strip("\n") if len(text) <= _SHOWN else f"…{text[-_SHOWN:]}".rstrip("\n")
