"""The benchmark of records that are copied: how they are shown, what counts as right, and what its table counts."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
copying: Any = import_module("copying")


def test_a_record_is_shown_in_yaml():
    data = {"name": "Ada", "on": "yes", "tags": ["a b", "7", ""], "at": {"x": 1.5, "none": {}}, "rows": [{"n": None}]}
    assert list(copying.outline(data)) == [
        "name: Ada",
        '"on": "yes"',
        "tags:",
        "  - a b",
        '  - "7"',
        '  - ""',
        "at:",
        "  x: 1.5",
        "  none: {}",
        "rows:",
        "  -",
        "    n: null",
    ]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"a": 1, "b": [true]}', True),
        ('Here it is:\n```json\n{"b": [true],\n "a": 1}\n```\nDone.', True),
        ('Here it is: {"b": [true], "a": 1}. Done.', True),
        ('{"a": 1.0, "b": [true]}', False),
        ('{"a": 1, "b": [1]}', False),
        ('{"a": 1, "b": [true]', False),
        ("No.", False),
    ],
)
def test_an_answer_is_right_if_it_is_the_record(text: str, right: bool):
    assert copying.is_copy(text, {"a": 1, "b": [True]}) is right


def test_the_table_tells_what_only_one_side_has_right():
    def answers(right: str) -> list[Any]:
        return [copying.Answer("", right=each == "+", finished=each == "+") for each in right]

    found = {"no schema": answers("+--"), "toolgram": answers("-++")}
    assert copying.row("no schema", found) == ["no schema", 1, 2, 2, 1, 1.0]
    assert copying.row("toolgram", found) == ["toolgram", 2, 1, None, None, None]
