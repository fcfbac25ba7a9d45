"""The benchmark of schemas: tiny runs of it, and the parts that decide what counts as right."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
CASE = {
    "id": "tiny",
    "schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"size": {"type": "integer", "minimum": 3}, "mail": {"type": "string", "format": "email"}},
        "required": ["mail"],
        "additionalProperties": False,
    },
    "tests": [
        {"valid": True, "data": {"mail": "a@b.example", "size": 7}},
        {"valid": False, "data": {"mail": "a@b.example", "size": 2}},
        {"valid": False, "data": {"size": 7}},
    ],
}


def run(code_or_file: list[str]) -> str:
    """What a fresh process prints: the pool forks, which is not for one that has threads."""
    done = subprocess.run(
        [sys.executable, *code_or_file], cwd=BENCHMARKS, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def row_of(table: str, who: str) -> list[str]:
    (line,) = (line for line in table.splitlines() if re.match(rf"\| {who} *\|", line))
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_a_whole_run_over_a_file_of_maskbench_s_form(tmp_path: Path):
    (tmp_path / "tiny.json").write_text(json.dumps(CASE))
    wrong = tmp_path / "wrong.jsonl"
    kept = tmp_path / "kept.json"
    options = ["--walks", "3", "--failures", str(wrong), "--seconds", "30", "--json", str(kept)]
    out = run(["jsonschema.py", str(tmp_path / "tiny.json"), *options])
    scores = out[: out.index("Goals")]
    total, *shares, hung, died, _, _, _ = row_of(scores, "toolgram exact")
    assert total == "1"
    assert shares[:4] == ["100", "100", "100", "0.00"]
    assert (hung, died) == ("0", "0")
    assert row_of(scores, "llguidance")[1] == "100"
    assert "agree on 3 of 3 instances in every order of the keys, on 3 in some order" in out
    walks = out[out.index("Random walks") :]
    for engine in ("our matcher", "llguidance", "XGrammar", "llama.cpp"):
        for mode in ("exact", "relaxed"):
            assert row_of(walks, rf"{mode} *\| {engine}")[2:] == ["3", "100", "100", "0", "0", "0"]
    assert [line for line in wrong.read_text().splitlines() if '"toolgram' in line] == []
    rows = {row["who"]: row for row in json.loads(kept.read_text())["rows"]}
    assert rows["toolgram exact"]["all-correct %"] == rows["llguidance"]["all-correct %"] == 100


def test_wrong_verdicts_and_refusals_are_told(tmp_path: Path):
    lie = {
        "id": "lie",
        "schema": {"type": "integer"},
        "tests": [{"valid": False, "data": 1}, {"valid": True, "data": ""}],
    }
    unsound_by_format = {"schema": {"type": "string", "format": "x-unheard"}, "tests": [{"valid": False, "data": "a"}]}
    refused: dict[str, Any] = {"id": "refused", "schema": {"type": "array", "uniqueItems": True}, "tests": []}
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "a.jsonl").write_text("\n".join(json.dumps(row) for row in (lie, refused)))
    (folder / "b.json").write_text(json.dumps(unsound_by_format))
    wrong = tmp_path / "wrong.jsonl"
    out = run(
        ["jsonschema.py", str(folder), "--failures", str(wrong), "--seconds", "30", "--jobs", "1", "--every", "1"]
    )
    told = [json.loads(line) for line in wrong.read_text().splitlines()]
    ours = {(row["id"], row["kind"]) for row in told if row["who"] == "toolgram exact"}
    assert {("lie", "unsound by format alone"), ("lie", "incomplete"), ("refused", "refused")} <= ours
    assert "uniqueItems" in out[out.index("Refused in exact mode") :]


def test_what_hangs_or_dies_takes_nobody_along():
    code = """
import os, time
from _schema_pool import run
def work(task, tell):
    tell(f"stage of {task}")
    while task == 1: pass
    if task == 4: time.sleep(60)
    if task == 2: os._exit(1)
    return task * 10
print(*run([0, 1, 2, 3, 4], work, 2, 0.3), sep=chr(10))
def fail(task, tell): raise ValueError("told")
try: run([0], fail, 1, 9.0)
except ValueError as error: print(error)
"""
    out = run(["-c", code])
    assert out.splitlines() == [
        "0",
        "Lost(how='hung', stage='stage of 1')",
        "Lost(how='died', stage='stage of 2')",
        "30",
        "Lost(how='hung', stage='stage of 4')",
        "told",
    ]


def test_a_search_for_garbage_among_all_objects_is_no_task_s_work():
    code = """
import gc
from _schema_pool import _TASKS_PER_PASS, run
kept = [[] for _ in range(100_000)]
def passes(): return gc.get_stats()[2]["collections"]
def work(task, tell):
    before = passes()
    kept.extend([] for _ in range(20_000))
    return before, passes()
found = run(list(range(2 * _TASKS_PER_PASS)), work, 1, 9.0)
print(sum(after - before for before, after in found), found[-1][1] - found[0][0])
"""
    assert run(["-c", code]) == "0 1\n"


@pytest.fixture(scope="module")
def cases() -> Any:
    """The module _schema_cases; its folder does not stay on the path, where one of its files has a package's name."""
    sys.path.append(str(BENCHMARKS))
    module = importlib.import_module("_schema_cases")
    sys.path.remove(str(BENCHMARKS))
    return module


def test_keys_in_the_order_of_the_schema(cases: Any):
    schema = {
        "properties": {"a": {"$ref": "#/$defs/inner"}, "b": True},
        "required": ["b"],
        "$defs": {
            "inner": {"prefixItems": [{"properties": {"x": True}}], "items": {"anyOf": [{"properties": {"y": 1}}]}}
        },
        "patternProperties": {"^p": {"properties": {"z": True}}},
    }
    data = {"p": {"o": 1, "z": 2}, "b": 1, "a": [{"o": 1, "x": 2}, {"o": 1, "y": 2}]}
    ordered = cases.in_schema_order(schema, [schema], data)
    assert json.dumps(ordered) == '{"a": [{"x": 2, "o": 1}, {"y": 2, "o": 1}], "b": 1, "p": {"z": 2, "o": 1}}'
    assert list(cases.in_schema_order(schema, [schema], data, required_first=True)) == ["b", "a", "p"]


def test_a_schema_that_refers_to_itself_ends(cases: Any):
    schema = {"properties": {"b": True, "a": {"$ref": "#"}}, "allOf": [{"$ref": "#"}, {"$ref": "#/none/0"}, True]}
    assert list(cases.in_schema_order(schema, [schema], {"a": {"c": 1, "b": 1}, "b": 1})) == ["b", "a"]


def test_spellings(cases: Any):
    texts = cases.spellings({}, {"k": [1.0, "é\ud800"]})
    assert set(texts) == {
        f'{{"k"{colon}[{number}{comma}"\\u00e9\\ud800"]}}'
        for comma, colon in ((", ", ": "), (",", ":"))
        for number in ("1.0", "1")
    }
    assert cases.spellings({}, "é") == ['"é"', '"\\u00e9"']


def test_until_draft_4_a_text_with_1_is_not_about_1_0(cases: Any):
    def left(draft: str, valid: bool) -> list[str]:
        instance = cases.Instance(valid, 1.0)
        return cases.that_say(["1.0", "1"], cases.Case("", "", {"$schema": draft}, (instance,)), instance)

    old, new = "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"
    assert left(old, valid=False) == ["1.0"]
    assert left(old, valid=True) == left(new, valid=False) == ["1.0", "1"]
