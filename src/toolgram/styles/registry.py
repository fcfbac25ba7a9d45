"""The styles there are: ours, those of entry points, and those registered at run time."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from typing import Literal

from toolgram.styles.base import ToolStyle
from toolgram.styles.generic import GENERIC
from toolgram.styles.native import NATIVE

ENTRY_POINTS = "toolgram.styles"

_registered: dict[str, ToolStyle] = {}


def register_style(style: ToolStyle) -> None:
    """Make a style known by its name; a later one of the same name replaces it."""
    _registered[style.name] = style


@cache
def _known() -> dict[str, ToolStyle]:
    """Our own styles and those of installed packages: entry points of the group "toolgram.styles", each a ToolStyle."""
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
    """The names of the styles there are."""
    return tuple(style.name for style in all_styles())


def find_style(name: str) -> ToolStyle | None:
    """The style of a name, if there is one."""
    return _registered.get(name) or _known().get(name)


def no_such_style(name: str) -> str:
    """What to say of a name that no style has."""
    near = get_close_matches(name, style_names(), n=3, cutoff=0.5)
    meant = f"did you mean {' or '.join(map(repr, near))}? There are" if near else "there are"
    return f"there is no style {name!r}; {meant}: {', '.join(style_names())}"


def kind_of(style: ToolStyle) -> Literal["generic", "native", "discovered"]:
    """What a style is: one that announces tools itself, one that is known by its name, or neither."""
    if style.is_generic:
        return "generic"
    return "native" if find_style(style.name) else "discovered"
