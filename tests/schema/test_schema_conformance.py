"""Real schemas, and the official suite: what compiles in exact mode admits exactly the valid instances."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgram.errors import UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.schema import RuleNames, Spelling, compile_schema
from toolgram.schema.writing.values import spell_as

DATA = Path(__file__).resolve().parents[3] / "shared" / "conformance"
SUITE, REAL = DATA / "json_schema_test_suite_2020_12.jsonl", DATA / "maskbench_dev.jsonl"
needs_data = pytest.mark.skipif(not DATA.exists(), reason=f"there is no conformance data at {DATA}")

BEYOND = {"vocabulary#0"}  # a meta-schema of its own takes a vocabulary away


def rows(path: Path, step: int = 1) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for index, line in enumerate(lines) if index % step == 0)


def compiled(schema: object, mode: str):
    return compile_schema(
        schema, pointer="", mode=mode, closed=False, spelling=Spelling(), names=RuleNames("root"), root_name="value"
    )


def check(row: dict[str, Any], valid: list[bool]) -> bool:
    """Checks the instances of a row against their verdicts; False if exact mode refuses the schema."""
    instances = [test["data"] for test in row["tests"]]
    relaxed = compiled(row["schema"], "relaxed")
    for instance, good in zip(instances, valid, strict=True):
        assert not good or spell_as(relaxed.type, instance, Spelling()) is not None, (row["id"], instance)
    try:
        exact = compiled(row["schema"], "exact")
    except UnsupportedSchema:
        assert relaxed.relaxations, row["id"]
        return False
    grammar = Grammar({"root": exact.expr, **exact.rules})
    for instance, good in zip(instances, valid, strict=True):
        text = spell_as(exact.type, instance, Spelling())
        assert (text is not None) == good, (row["id"], instance)
        if text is not None and len(text) < 1000:
            assert grammar.accepts(text), (row["id"], text)
    return True


@needs_data
def test_the_official_suite():
    rows_of_suite = [row for row in rows(SUITE) if row["id"] not in BEYOND]
    done = sum(check(row, [test["valid"] for test in row["tests"]]) for row in rows_of_suite)
    assert done >= 350


@needs_data
def test_real_schemas():
    """A sample of them."""
    done = total = 0
    for row in rows(REAL, step=12):
        done += check(row, [test["valid"] for test in row["tests"]])
        total += 1
    assert done >= 0.97 * total
