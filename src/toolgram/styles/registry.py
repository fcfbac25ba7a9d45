"""All styles: the built-in ones, those of entry points, and those registered at run time."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Literal

from toolgram.errors import nearest
from toolgram.styles.base import ToolStyle
from toolgram.styles.generic import GENERIC
from toolgram.styles.native import NATIVE

ENTRY_POINTS = "toolgram.styles"

_registered: dict[str, ToolStyle] = {}


def register_style(style: ToolStyle) -> None:
    """Register a style under its name; it replaces an earlier one of the same name."""
    _registered[style.name] = style


@cache
def _known() -> dict[str, ToolStyle]:
    """The built-in styles and those of installed packages: entry points of "toolgram.styles", each a ToolStyle."""
    found = {style.name: style for style in (*NATIVE, *GENERIC)}
    for entry in entry_points(group=ENTRY_POINTS):
        style = entry.load()
        if not isinstance(style, ToolStyle):
            raise TypeError(f"the entry point {entry.name!r} of {ENTRY_POINTS} is not a ToolStyle")
        found[style.name] = style
    return found


def all_styles() -> tuple[ToolStyle, ...]:
    """Every style, native ones first."""
    return tuple({**_known(), **_registered}.values())


def style_names() -> tuple[str, ...]:
    """The names of all styles."""
    return tuple(style.name for style in all_styles())


def find_style(name: str) -> ToolStyle | None:
    """The style with a name, or None."""
    return _registered.get(name) or _known().get(name)


def no_such_style(name: str) -> str:
    """The error message for a name that no style has."""
    return f"there is no style {name!r}; {nearest(name, style_names())}"


def kind_of(style: ToolStyle) -> Literal["generic", "native", "discovered"]:
    """What a style is: one that announces the tools itself, one that is registered under its name, or neither."""
    if style.is_generic:
        return "generic"
    return "native" if find_style(style.name) else "discovered"
