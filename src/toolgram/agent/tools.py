"""Python functions as tools: a typed signature and a docstring become a tool, and a call's arguments Python values."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin

from pydantic import Field

from toolgram.agent.docstrings import described
from toolgram.errors import InvalidOutput, ToolgramError
from toolgram.schema.python_types import NoSchema, PythonType

Function = Callable[..., Any]
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_UNTYPED = "Any JSON value"
_WRITES = "__toolgram_writes__"
_LAMBDA = "<lambda>"
_INSIDE = ("func", "__func__", "__wrapped__")  # of partials, bound methods and decorators
_F = TypeVar("_F", bound=Callable[..., Any])


class InvalidTool(ToolgramError):
    """A function, or a module, that cannot be made a tool; the message names the parameter."""


@dataclass(frozen=True)
class FunctionTool:
    """A function as a tool: what a model is told of it, and what turns the arguments of a call into Python values.

    `tool.function(**tool.arguments(call.arguments))` runs a call; of an async function that is a coroutine. One that
    `writes` changes something: an agent asks before it runs.
    """

    name: str
    description: str
    function: Function
    _arguments: PythonType
    writes: bool = False

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments."""
        return self._arguments.schema

    def to_openai(self) -> dict[str, Any]:
        """The tool in the shape of a chat-completions request."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def arguments(self, text: str) -> dict[str, Any]:
        """The arguments of a call, from JSON text to values of the parameters' types, defaults included.

        Raises InvalidOutput, which says what is wrong and where, so that a model can mend it.
        """
        if text.lstrip()[:1] == "[":  # which pydantic takes for arguments by position
            raise InvalidOutput(("", "Arguments must be an object"))
        return self._arguments.read(text)


def tool_of(function: Function) -> FunctionTool:
    """A function, async or not, a method of an object or a `functools.partial` of these as a tool.

    A parameter may have any type that pydantic validates; without one it takes any JSON value. Its description is that
    of its `Field`, a text in its `Annotated`, or what the docstring says of it in Google's, NumPy's or Sphinx's style.
    A parameter with a default is not required; one that a partial gives by name is no parameter of the tool. Raises
    InvalidTool.
    """
    name = _name(function)
    does, documented = described(inspect.getdoc(_own(function)) or "")
    parameters = [_documented(each, documented) for each in _parameters(function, name)]
    return FunctionTool(name, does, function, _arguments(parameters, name), _is_marked(function))


def _is_marked(function: Any) -> bool:
    """Whether it writes: by its own mark, or that of what it wraps."""
    inside = (getattr(function, name, None) for name in _INSIDE)
    return bool(getattr(function, _WRITES, False)) or any(_is_marked(each) for each in inside if each is not None)


def writes(function: _F) -> _F:
    """Marks a function that changes something: an agent asks before it runs it."""
    setattr(function, _WRITES, True)
    return function


def tools_of(module_path: str | Path) -> list[FunctionTool]:
    """The public functions of a Python file as tools, in the order they are written; the file is run.

    Public is what `__all__` lists, else every function defined there whose name has no leading underscore. Raises
    InvalidTool.
    """
    functions = list(_public_functions(module_of(Path(module_path))))
    if not functions:
        raise InvalidTool(f"{module_path}: no public function")
    return [tool_of(function) for function in functions]


def module_of(path: Path) -> types.ModuleType:
    """The module that a Python file is; the file is run, and may import what is beside it. Raises InvalidTool."""
    if not path.is_file():
        raise InvalidTool(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(f"toolgram_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidTool(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses and type hints look for names
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.append(folder)  # not first, as Python has it for a script: nothing there hides a library of ours
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        raise InvalidTool(f"{path}: it cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _public_functions(module: types.ModuleType) -> Iterator[Function]:
    """The functions of a module, decorated ones too, each once. Raises InvalidTool for a listed name that is none."""
    listed: Sequence[str] | None = getattr(module, "__all__", None)
    if missing := [name for name in listed or () if name not in vars(module)]:
        raise InvalidTool(f"{module.__file__}: __all__ has the name {missing[0]!r}, which is not there")
    seen: list[Function] = []
    for name, value in vars(module).items():
        if not (inspect.isroutine(value) and inspect.isfunction(inspect.unwrap(value))) or value in seen:
            continue
        is_public = name in listed if listed is not None else _is_own(name, value, module)
        if is_public:
            seen.append(value)
            yield value


def _is_own(name: str, function: Function, module: types.ModuleType) -> bool:
    """Whether a function of a module is its own, and public."""
    return not name.startswith("_") and function.__module__ == module.__name__ and function.__name__ != _LAMBDA


def _own(function: Function) -> Any:
    """The function that has the name and the docstring."""
    return cast("Function", function.func) if isinstance(function, partial) else function


def _innermost(function: Any) -> Function:
    """The function that has the annotations: below partials, the binding of methods and decorators."""
    for inside in _INSIDE:
        if (found := getattr(function, inside, None)) is not None:
            return _innermost(found)
    return function


def _name(function: Function) -> str:
    own = _own(function)
    if not inspect.isroutine(own) or own.__name__ == _LAMBDA:
        raise InvalidTool(f"{own!r}: a tool is a function with a name, or a method of an object")
    try:
        first = next(iter(inspect.signature(function).parameters), "")
    except ValueError as error:  # as some of those that are written in C
        raise InvalidTool(f"{own.__name__}: its parameters are not known: {error}") from error
    qualified = own.__qualname__.split(".")
    if first in ("self", "cls") and len(qualified) > 1 and qualified[-2] != "<locals>":
        raise InvalidTool(f"{own.__name__}: a method needs its object: give it as object.{own.__name__}")
    return own.__name__


def _parameters(function: Function, name: str) -> Iterator[inspect.Parameter]:
    """The parameters that a model is to give, with types that are no longer text."""
    try:
        hints = typing.get_type_hints(_innermost(function), include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise InvalidTool(f"{name}: its types cannot be resolved: {error}") from error
    given: Mapping[str, Any] = getattr(function, "keywords", {})  # of a partial
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _NAMED:
            raise InvalidTool(f"{name}, parameter {parameter.name!r}: a tool is called with named arguments only")
        if parameter.name not in given:
            hint = hints.get(parameter.name, Annotated[Any, _UNTYPED])
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint)


def _documented(parameter: inspect.Parameter, documented: Mapping[str, str]) -> inspect.Parameter:
    """The parameter with a description, to which one in a Field of its own is preferred."""
    hint: Any = parameter.annotation
    base, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if parameter.default is None:
        base = _or_none(base)  # as `count: int = None` means it
    texts = [note for note in notes if isinstance(note, str) and note is not _UNTYPED]
    description = " ".join(texts) or documented.get(parameter.name) or (_UNTYPED if _UNTYPED in notes else None)
    if description is not None:
        notes.insert(0, Field(description=description))
    annotated: Any = Annotated
    return parameter.replace(annotation=annotated[(base, *notes)] if notes else base)


def _or_none(hint: Any) -> Any:
    try:
        return hint if hint is Any else hint | None
    except TypeError:  # it is no type, as pydantic will say
        return hint


def _arguments(parameters: Sequence[inspect.Parameter], name: str) -> PythonType:
    """What validates the arguments of a call: pydantic calls this for the function, and gets them back."""

    def collect(**arguments: Any) -> dict[str, Any]:
        return arguments

    vars(collect)["__signature__"] = inspect.Signature(parameters)
    collect.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    try:
        return PythonType.of(collect)
    except NoSchema as error:
        for parameter in parameters if len(parameters) > 1 else ():
            _arguments([parameter], name)  # says which one it is
        at = f"{name}, parameter {parameters[0].name!r}" if parameters else name
        raise InvalidTool(f"{at}: {error}") from error
