"""Lists and objects that a template writes down itself, and may change: `{% set _ = seen.append(id) %}`.

transformers' sandbox lets a template change nothing. llama.cpp lets it, and templates in use there keep ids of calls in
a list: as transformers renders them, they show no calls. What a template is given stays as it is: others have it too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.utils import Namespace

_CHANGES = frozenset({"append", "pop", "update"})  # none can make more than it is given


class OwnList(list[Any]):
    """A list that a template made."""

    __slots__ = ()


class OwnDict(dict[Any, Any]):
    """An object that a template made."""

    __slots__ = ()


def may_change(value: object, attribute: str) -> bool:
    """Whether this is a method by which a template changes what it made itself."""
    return attribute in _CHANGES and isinstance(value, (OwnList, OwnDict))


def own(value: list[Any] | dict[Any, Any]) -> OwnList | OwnDict:
    """What a template writes down as a list or object; what is in it may be what it was given."""
    return OwnDict(value) if isinstance(value, dict) else OwnList(value)


class CodeWithOwnValues(CodeGenerator):
    """Python code for a template, whose lists and objects are its own; `context.own` makes them."""

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802  Jinja names it
        self.write("context.own(")
        super().visit_List(node, frame)
        self.write(")")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802  Jinja names it
        self.write("context.own(")
        super().visit_Dict(node, frame)
        self.write(")")

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:  # noqa: N802  Jinja names it
        value: object = node.value
        if isinstance(value, (list, dict)):
            self.visit(_written(cast("list[Any] | dict[Any, Any]", value)), frame)
        else:
            super().visit_Const(node, frame)


def _written(value: Any) -> nodes.Expr:
    """A constant that Jinja put together from what a template writes down, taken apart again."""
    if isinstance(value, list):
        return nodes.List([_written(item) for item in cast("list[Any]", value)])
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return nodes.Dict([nodes.Pair(nodes.Const(key), _written(item)) for key, item in items])
    return nodes.Const(value)


class DictFunction:
    """`dict` as a function: the class would be a way to Python's internals."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return OwnDict(*args, **kwargs)

    def fromkeys(self, keys: Iterable[Any], value: Any = None) -> dict[Any, Any]:
        return OwnDict.fromkeys(keys, value)


class PlainNamespace(Namespace):
    """`namespace` that takes no underscored names."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, values = args[0], dict[str, Any](*args[1:], **kwargs)
        for name in values:
            _refuse_private(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)


def _refuse_private(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace takes no underscored name, but got {name!r}")
