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


DECORATED = """
import functools
from helping import helped

@functools.lru_cache
def cached(x: int) -> str: return helped(x)

@functools.wraps(cached)
def cached_too(x: int) -> str: return helped(x)

unnamed = lambda x: x
again = cached
"""


def test_functions_that_are_decorated_are_tools_too_and_each_is_one_once(tmp_path: Path) -> None:
    (tmp_path / "helping.py").write_text("def helped(x): return str(x + 1)\n")
    file = tmp_path / "decorated.py"
    file.write_text(DECORATED)
    cached, _ = tools = tools_of(file)
    assert [tool.name for tool in tools] == ["cached", "cached"]
    assert cached.function(**cached.arguments('{"x": 1}')) == "2"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("x = 1", "no public function"),
        ("1 / 0", "ZeroDivisionError"),
        ("def f(:", "SyntaxError"),
        ("def f(): pass\nimport sys\nsys.exit(0)", "SystemExit"),
        ("__all__ = ['f', 'g']\ndef f(): pass", "'g'"),
        ("__all__ = ['f']\nf = lambda x: x", "with a name"),
    ],
)
def test_a_module_without_tools_is_refused(tmp_path: Path, source: str, reason: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(source)
    with pytest.raises(InvalidTool, match=reason):
        tools_of(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTool, match="no such file"):
        tools_of(tmp_path / "none.py")
