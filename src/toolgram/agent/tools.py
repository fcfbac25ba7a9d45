"""Python functions as tools: a typed signature and a docstring become a tool's name, description and JSON Schema."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, is_typeddict

from toolgram.errors import ToolgramError

Schema = dict[str, Any]
_SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    types.NoneType: {"type": "null"},
    list: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
}
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class InvalidTool(ToolgramError):
    """A function, or a module, that cannot be made a tool; the message names the parameter."""


class _NoSchema(Exception):
    """A type that JSON Schema cannot express."""


def tool_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The tool that a typed function is, in the shape of a chat-completions request.

    Each parameter needs a type: str, int, float, bool, None, Any, list, dict with str keys, Literal, Optional, Union,
    Enum, TypedDict, a dataclass, or Annotated one of these with a text, which becomes its description. A parameter
    with a default is not required. The docstring is the tool's description. Raises InvalidTool.
    """
    name = getattr(function, "__name__", repr(function))
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidTool(f"{name}: its types cannot be resolved: {error}") from error
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        at = f"{name}, parameter {parameter.name!r}"
        if parameter.kind not in _NAMED:
            raise InvalidTool(f"{at}: a tool is called with named arguments only")
        if parameter.name not in hints:
            raise InvalidTool(f"{at}: it needs a type")
        try:
            properties[parameter.name] = _schema(hints[parameter.name], ()) | _default(parameter.default)
        except _NoSchema as error:
            raise InvalidTool(f"{at}: {error}") from error
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    parameters = _object(properties, required)
    return {
        "type": "function",
        "function": {"name": name, "description": inspect.getdoc(function) or "", "parameters": parameters},
    }


def tools_of(module_path: str | Path) -> list[dict[str, Any]]:
    """The public functions of a Python file as tools, in the order they are written; the file is run.

    Public is what `__all__` lists, else every function defined there whose name has no leading underscore. Raises
    InvalidTool.
    """
    functions = list(_public_functions(_load(Path(module_path))))
    if not functions:
        raise InvalidTool(f"{module_path}: no public function")
    return [tool_of(function) for function in functions]


def _load(path: Path) -> types.ModuleType:
    if not path.is_file():
        raise InvalidTool(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(f"toolgram_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidTool(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses and type hints look for names
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's own code may raise anything
        raise InvalidTool(f"{path}: it cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _public_functions(module: types.ModuleType) -> Iterator[Callable[..., Any]]:
    listed: Sequence[str] | None = getattr(module, "__all__", None)
    for name, value in vars(module).items():
        if not inspect.isfunction(value):
            continue
        is_public = name in listed if listed is not None else not name.startswith("_")
        if is_public and (listed is not None or value.__module__ == module.__name__):
            yield value


def _schema(hint: Any, inside: tuple[type, ...]) -> Schema:
    """The schema of a type; `inside` are the classes that we are in the middle of."""
    origin, arguments = get_origin(hint), get_args(hint)
    match origin:
        case None if hint is None or hint is Any or isinstance(hint, type):
            return _class(hint, inside)
        case _ if origin is Annotated:
            texts = [text for text in arguments[1:] if isinstance(text, str)]
            return _schema(arguments[0], inside) | ({"description": " ".join(texts)} if texts else {})
        case _ if origin is Required or origin is NotRequired:
            return _schema(arguments[0], inside)
        case _ if origin is Literal:
            return _enumeration(arguments)
        case _ if origin is Union or origin is types.UnionType:
            return {"anyOf": [_schema(option, inside) for option in arguments]}
        case _ if origin is list:
            return {"type": "array", "items": _schema(arguments[0] if arguments else Any, inside)}
        case _ if origin is dict:
            if not arguments:
                return {"type": "object"}
            if arguments[0] is not str:
                raise _NoSchema(f"the keys of a JSON object are str, not {_name(arguments[0])}")
            return {"type": "object", "additionalProperties": _schema(arguments[1], inside)}
        case _:
            raise _NoSchema(f"JSON Schema has no {_name(hint)}")


def _class(hint: Any, inside: tuple[type, ...]) -> Schema:
    if hint in _SIMPLE:
        return dict(_SIMPLE[hint])
    if hint in inside:
        raise _NoSchema(f"{_name(hint)} refers to itself, and a tool's types must end somewhere")
    inside = (*inside, hint)
    if issubclass(hint, Enum):
        return _enumeration([member.value for member in hint])
    if is_typeddict(hint):
        members = _members(hint)
        required = [name for name, member in members.items() if _is_required(member, name in hint.__required_keys__)]
        return _object({name: _schema(member, inside) for name, member in members.items()}, required)
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint, inside)
    raise _NoSchema(f"JSON Schema has no {_name(hint)}")


def _members(hint: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(hint, include_extras=True)
    except (NameError, TypeError) as error:
        raise _NoSchema(f"the types of {_name(hint)} cannot be resolved: {error}") from error


def _is_required(member: Any, by_totality: bool) -> bool:
    """What a TypedDict says of a key; its own `__required_keys__` misses what stands in annotations that are text."""
    match get_origin(member):
        case origin if origin is Annotated:
            return _is_required(get_args(member)[0], by_totality)
        case origin if origin is Required or origin is NotRequired:
            return origin is Required
        case _:
            return by_totality


def _dataclass(hint: Any, inside: tuple[type, ...]) -> Schema:
    hints = _members(hint)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field in dataclasses.fields(hint):
        if not field.init:
            continue
        properties[field.name] = _schema(hints[field.name], inside)
        if field.default is not dataclasses.MISSING:
            properties[field.name] |= _default(field.default)
        elif field.default_factory is dataclasses.MISSING:
            required.append(field.name)
    return _object(properties, required)


def _object(properties: dict[str, Schema], required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _enumeration(values: Sequence[Any]) -> Schema:
    values = [value.value if isinstance(value, Enum) else value for value in values]
    for value in values:
        if not isinstance(value, str | int | float | bool | None):
            raise _NoSchema(f"{value!r} is not a JSON value")
    kinds: set[Any] = {type(value) for value in values}
    return {**(_SIMPLE[kinds.pop()] if len(kinds) == 1 else {}), "enum": values}


def _default(value: Any) -> Schema:
    """What a schema says of a default: nothing where there is none, or where it is not JSON."""
    if value is inspect.Parameter.empty or value is None:
        return {}
    value = value.value if isinstance(value, Enum) else value
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return {}
    return {"default": value}


def _name(hint: Any) -> str:
    return getattr(hint, "__qualname__", None) or str(hint)
