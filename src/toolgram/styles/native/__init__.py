"""The native styles, which model families were trained on; their templates announce the tools. One file per family."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from toolgram.styles.base import ToolStyle


def _collected() -> tuple[ToolStyle, ...]:
    """The styles of all files, ordered by file name; if two fit a template equally, the first is chosen."""
    modules = (import_module(f"{__name__}.{each.name}") for each in sorted(iter_modules(__path__)))
    styles = (value for module in modules for value in vars(module).values() if isinstance(value, ToolStyle))
    return tuple(dict.fromkeys(styles))


NATIVE = _collected()
