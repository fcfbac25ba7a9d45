"""The functions of a Python file as tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolgram.agent import InvalidTool, tools_of

MODULE = '''
from __future__ import annotations
from dataclasses import dataclass
from json import dumps

@dataclass
class Point:
    x: float

def second(point: Point) -> str:
    """The second."""
    return dumps(point)

def first(): pass

def _hidden(x): pass
'''


def test_a_module_gives_its_public_functions_in_order(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MODULE)
    tools = tools_of(file)
    assert [tool.name for tool in tools] == ["second", "first"]
    assert tools[0].parameters["$defs"]["Point"] == {
        "type": "object",
        "properties": {"x": {"type": "number"}},
        "required": ["x"],
    }


def test_all_says_what_is_public(tmp_path: Path) -> None:
    file = tmp_path / "listed.py"
    file.write_text("__all__ = ['_one']\ndef _one(): pass\ndef two(): pass\n")
    assert [tool.name for tool in tools_of(file)] == ["_one"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [("x = 1", "no public function"), ("1 / 0", "ZeroDivisionError"), ("def f(:", "SyntaxError")],
)
def test_a_module_without_tools_is_refused(tmp_path: Path, source: str, reason: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(source)
    with pytest.raises(InvalidTool, match=reason):
        tools_of(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTool, match="no such file"):
        tools_of(tmp_path / "none.py")
