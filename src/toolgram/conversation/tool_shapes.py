"""Tools as bodies have them: those of chat completions, and those of `/v1/responses`, which Cursor mixes with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

from pydantic import WithJsonSchema, model_validator

from toolgram.conversation.fields import Fields, Filled, Schema, among, by, of, type_of, whole, wrong

FunctionType = Annotated[str, among("function", "custom"), WithJsonSchema({"type": "string", "const": "function"})]

_PARAMETERS_ELSEWHERE = ("input_schema", "inputSchema", "parametersJsonSchema", "arguments", "args_schema")


class Function(Fields):
    """A function that the model may call; `parameters` is a JSON Schema."""

    name: Filled
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None

    @model_validator(mode="after")
    def _has_its_parameters(self) -> Self:
        """Under another name they would be shown to the model, which could give none."""
        further = self.model_extra or {}
        for name in _PARAMETERS_ELSEWHERE if self.parameters is None else ():
            if further.get(name):
                raise wrong(f"has {name}, but no parameters, as OpenAI's API names its schema")
        return self


def _of_openai(value: Any) -> Any:
    if isinstance(value, Mapping) and "name" in value and "function" not in value:
        shape = '{"type": "function", "function": {"name": …, "parameters": …}}'
        raise wrong(f"is a tool of another API: must be {shape}")
    return cast("Any", value)


class FunctionTool(Fields):
    """A tool that is a function."""

    type: FunctionType | None = None
    function: Function

    _of_this_api = model_validator(mode="before")(_of_openai)


class CustomGrammar(Fields):
    """A grammar for the input of a custom tool."""

    syntax: Literal["regex", "lark"]
    definition: str


class PlainInput(Fields):
    """Any text."""

    type: Literal["text"]


class GrammarInput(Fields):
    """Text that a grammar admits."""

    type: Literal["grammar"]
    grammar: CustomGrammar


CustomFormat = Annotated[
    PlainInput | GrammarInput,
    whole(
        'must be {"type": "text"} or {"type": "grammar", "grammar": {"syntax": "regex" or "lark", "definition": "…"}}'
    ),
]


class Custom(Fields):
    """A tool whose input is text."""

    name: Filled
    description: str | None = None
    format: CustomFormat | None = None


class CustomTool(Fields):
    """A tool whose input is text, not JSON."""

    type: Literal["custom"]
    custom: Custom


class FlatFunction(Function):
    """A function as `/v1/responses` has it."""

    type: Literal["function"]


class FlatGrammar(Fields):
    """Text that a grammar admits."""

    type: Literal["grammar"]
    syntax: Literal["regex", "lark"]
    definition: str


class FlatCustom(Fields):
    """A custom tool as `/v1/responses` has it."""

    type: Literal["custom"]
    name: Filled
    description: str | None = None
    format: (
        Annotated[
            PlainInput | FlatGrammar,
            whole('must be {"type": "text"} or {"type": "grammar", "syntax": "regex" or "lark", "definition": "…"}'),
        ]
        | None
    ) = None


def function_or_custom(value: Any) -> str:
    """The kind of a tool, or of a call."""
    return "custom" if type_of(value) == "custom" else "function"


def _shape(value: Any) -> str:
    named = function_or_custom(value)
    is_flat = isinstance(value, Mapping) and type_of(value) == named and "name" in value and named not in value
    return f"flat-{named}" if is_flat else named


Tool = Annotated[
    Annotated[FunctionTool, of("function")]
    | Annotated[CustomTool, of("custom")]
    | Annotated[FlatFunction, of("flat-function")]
    | Annotated[FlatCustom, of("flat-custom")],
    by(_shape, "is no tool"),
]
