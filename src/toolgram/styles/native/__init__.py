"""Styles that model families were trained on; their templates announce the tools. A file here is one family."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from toolgram.styles.base import ToolStyle


def _collected() -> tuple[ToolStyle, ...]:
    """The styles of all files, in the order of their names; where two fit a template equally, the first is taken."""
    modules = (import_module(f"{__name__}.{each.name}") for each in sorted(iter_modules(__path__)))
    styles = (value for module in modules for value in vars(module).values() if isinstance(value, ToolStyle))
    return tuple(dict.fromkeys(styles))


NATIVE = _collected()
