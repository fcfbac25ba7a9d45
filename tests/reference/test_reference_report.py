"""The document of the 2024 profile, against the golden text and against the ancestor's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from llama_oracle import gbnf_accepts
from toolgram.cli.report import reference_report
from toolgram.grammar.dialects.gbnf_reader import read_gbnf
from toolgram.grammar.grammar import Grammar
from toolgram.reference import template_reports

SEED = Path(__file__).resolve().parents[3] / "shared" / "seeds" / "003_8b0e678405ed2946.txt"
needs_seed = pytest.mark.skipif(not SEED.exists(), reason="the seed document, ../shared/seeds, is not there")

_PIECE = re.compile(r"\n*(?:(#+ [^\n]*|\*\*[^\n]*\*\*)|(\w+):\n\n```(\w+)\n(.*?)\n```)\n", re.DOTALL)
_RULE = re.compile(r"^([A-Za-z0-9-]+) ::=", re.MULTILINE)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[A-Za-z0-9-]+|[()|?*+]')


def rules(grammar: str) -> list[tuple[str, list[str]]]:
    """Each rule's name with the tokens of its right side."""
    starts = list(_RULE.finditer(grammar))
    ends = [start.start() for start in starts[1:]] + [len(grammar)]
    return [(start[1], _TOKEN.findall(grammar[start.end() : end])) for start, end in zip(starts, ends, strict=True)]


def sections(document: str) -> dict[str, list[tuple[str, object]]]:
    """For each heading, the blocks below it in order: label with language, then text, or rules for a grammar."""
    found: dict[str, list[tuple[str, object]]] = {"": []}
    heading = ""
    at = 0
    while piece := _PIECE.match(document, at):
        at = piece.end()
        line, label, language, text = piece.groups()
        if line and line.startswith("#"):
            heading = line
            assert heading not in found
            found[heading] = []
        elif line:
            found[heading].append((line, ""))
        else:
            found[heading].append((f"{label}/{language}", rules(text) if label == "Grammar" else text))
    assert not document[at:].strip(), f"unread: {document[at : at + 200]!r}"
    return found


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("reference_report.md", reference_report())


@needs_seed
def test_sections_are_those_of_the_ancestor() -> None:
    ours, theirs = sections(reference_report()), sections(SEED.read_text(encoding="utf-8"))
    assert list(ours) == list(theirs)
    assert sum(heading.startswith("### ") for heading in ours) == 22
    for heading, blocks in theirs.items():
        assert [label for label, _ in ours[heading]] == [label for label, _ in blocks], heading
        for (label, mine), (_, text) in zip(ours[heading], blocks, strict=True):
            assert mine == text, f"{heading}: {label}"


@needs_seed
def test_document_is_the_ancestors_byte_for_byte() -> None:
    assert reference_report().encode() == SEED.read_bytes()


def test_grammars_are_gbnf_to_us_and_to_llama_cpp() -> None:
    grammars = {
        situation.grammar
        for template in template_reports()
        for style in template.styles
        for situation in style.situations
    }
    assert len(grammars) == 5
    for grammar in grammars:
        read = read_gbnf(grammar)
        assert list(read) == sorted(read)
        assert list(read) == [name for name, _ in rules(grammar)]
        sentence = Grammar(read).sample(1)
        assert gbnf_accepts(grammar, sentence)
