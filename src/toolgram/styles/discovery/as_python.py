"""A style as a Python file: to be kept, changed and registered like any other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from toolgram.styles.base import ToolStyle
from toolgram.wire import encodings
from toolgram.wire import format as wire

_WIDTH = 120
_CONSTANTS: dict[Any, str] = {encodings.JSON: "JSON", encodings.PYTHON: "PYTHON"}
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_FILE = '''\
"""{about}.

An installed package registers it like this in its pyproject.toml, with the name of this module:

    [project.entry-points."toolgram.styles"]
    {name} = "my_package.{name}:STYLE"
"""

from toolgram.styles.base import ToolStyle
{imports}

STYLE = {style}
'''

_Part = tuple[str, Any]  # a keyword, or "", and a value


def python_source(style: ToolStyle) -> str:
    """The text of a Python file whose STYLE equals this style, which must not announce the tools itself."""
    return _FILE.format(
        about=style.about[:1].upper() + style.about[1:],
        name=style.name,
        imports="\n".join(_imports(style.wire)),
        style=_laid_out(*_parts(style), indent=0),
    )


def _imports(format_: wire.WireFormat) -> Iterator[str]:
    used = set(re.findall(r"\b[A-Z][A-Za-z]+(?=\()|\b(?:JSON|PYTHON)\b", _STRING.sub("''", _line(format_))))
    for module, ours in (("wire.encodings", True), ("wire.format", False)):
        names = sorted(name for name in used if (name in encodings.__all__) == ours)
        line = f"from toolgram.{module} import {', '.join(names)}"
        if names:
            yield line if len(line) <= _WIDTH else _several_lines(f"from toolgram.{module} import ", names, 0)


def _line(value: Any) -> str:
    """A value of a wire format as an expression on one line."""
    if value in _CONSTANTS:
        return _CONSTANTS[value]
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int | None):
        return repr(value)
    name, parts = _parts(value)
    inside = [(f"{key}=" if key else "") + _line(each) for key, each in parts]
    return f"{name}({', '.join(inside)}{',' if len(inside) == 1 and not name else ''})"


def _quoted(text: str) -> str:
    """A string as a formatter would write it: in double quotes, if that needs no escapes."""
    return repr(text) if '"' in text or "'" in text else f'"{repr(text)[1:-1]}"'


def _text(value: Any, indent: int, before: int) -> str:
    """A value as an expression that begins at a column: on one line if it fits, else one part per line."""
    line = _line(value)
    if before + len(line) < _WIDTH or isinstance(value, str):
        return line
    return _laid_out(*_parts(value), indent)


def _laid_out(name: str, parts: list[_Part], indent: int) -> str:
    inner = indent + 4
    lines: list[str] = []
    for key, each in parts:
        head = f"{key}=" if key else ""
        lines.append(head + _text(each, inner, inner + len(head)))
    return _several_lines(name, lines, indent)


def _several_lines(name: str, parts: list[str], indent: int) -> str:
    space = " " * indent
    return f"{name}(\n" + "".join(f"{space}    {part},\n" for part in parts) + f"{space})"


def _parts(value: Any) -> tuple[str, list[_Part]]:
    """The parts of a value, with their names; parts that have their default values are left out."""
    match value:
        case tuple():
            return "", [("", each) for each in value]  # pyright: ignore[reportUnknownVariableType] - of nodes and texts
        case wire.Seq(items) | wire.Alt(items):
            return type(value).__name__, [("", item) for item in items]
        case wire.Chain(items, join, closes):
            closing = [("closes", closes)] if closes else []
            return "Chain", [*(("", item) for item in items), ("join", join), *closing]
        case wire.Lenient(item, others):
            return "Lenient", [("", item), *(("", other) for other in others)]
        case wire.Object(members):
            laid = [("layout", value.layout)] if value.layout else []
            return "Object", [*(("", member) for member in members), *laid]
        case _:
            return type(value).__name__, list(_given(value))


def _given(value: Any) -> Iterator[_Part]:
    """The fields of a dataclass that differ from their defaults: the first by position, the others by keyword."""
    for at, each in enumerate(fields(value)):
        given = getattr(value, each.name)
        if each.default is MISSING or given != each.default:
            yield (each.name if at else ""), given
