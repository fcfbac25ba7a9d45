"""The form of an answer, as the body of a chat-completions request states it.

`response_format` is OpenAI's, with the types that other servers have beside; vLLM, SGLang and llama-server have names
of their own for the same: https://docs.vllm.ai/en/latest/features/structured_outputs.html
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.config import JsonDict, JsonValue

from toolgram.conversation.fields import Fields, Filled, Schema, Some, absent, by, of, type_of, whole, wrong

_FORMAT = (
    'must be {"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {"schema": …}}, '
    '{"type": "regex", "regex": "…"}, {"type": "choice", "choice": ["…", …]}, of texts that are not empty, '
    'or {"type": "grammar", "grammar": "…"}'
)


SchemaOrText = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "boolean"}, {"type": "string"}]})]
"""A JSON Schema, or its JSON text."""


class TextFormat(Fields):
    """An answer without a form."""

    type: Literal["text"]


class NamedSchema(Fields):
    """A JSON Schema for the answer, and what it is for; `strict`: a keyword that cannot be enforced is refused."""

    name: str | None = None
    description: str | None = None
    schema_: Schema = Field(alias="schema")
    strict: bool | None = None


_OF_ANY_OBJECT: JsonDict = {"properties": {"type": {"const": "json_object"}}}


def _with(*names: str) -> list[JsonValue]:
    """What the document says of a format that needs one of these fields."""
    return [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in names]


class JsonFormat(Fields):
    """An answer in JSON: any object, or what a schema admits.

    llama.cpp's server takes the schema beside `type`, and Text Generation Inference, with Hugging Face's clients, as
    its `value` (https://huggingface.co/docs/text-generation-inference/basic_tutorials/using_guidance).
    """

    type: Literal["json_object", "json_schema", "json"]
    model_config = ConfigDict(json_schema_extra={"anyOf": [_OF_ANY_OBJECT, *_with("json_schema", "schema", "value")]})

    json_schema: NamedSchema | None = None
    schema_: Schema | None = Field(default=None, alias="schema")
    value: SchemaOrText | None = None
    name: str | None = None
    strict: bool | None = None

    @model_validator(mode="after")
    def _has_a_schema(self) -> Self:
        if self.type != "json_object" and all(each is None for each in (self.json_schema, self.schema_, self.value)):
            raise wrong(_FORMAT)
        return self


class RegexFormat(Fields):
    """An answer that matches a regular expression as a whole (ECMA-262), which also may be its `value`."""

    type: Literal["regex"]
    model_config = ConfigDict(json_schema_extra={"anyOf": _with("regex", "value")})

    regex: str | None = None
    value: str | None = None

    @model_validator(mode="after")
    def _has_a_pattern(self) -> Self:
        if self.regex is None and self.value is None:
            raise wrong(_FORMAT)
        return self


Texts = Annotated[Some[Filled], whole("must be a list of texts, none of them empty")]


class ChoiceFormat(Fields):
    """An answer that is one of some texts."""

    type: Literal["choice"]
    choice: Texts


class GrammarFormat(Fields):
    """An answer of a grammar in GBNF."""

    type: Literal["grammar"]
    grammar: str


def _format(value: Any) -> str | None:
    named = type_of(value)
    kinds = {"json_object": "json", "json_schema": "json"}
    return kinds.get(named, named) if named in ("text", "regex", "choice", "grammar", "json", *kinds) else None


ResponseFormat = Annotated[
    Annotated[TextFormat, of("text")]
    | Annotated[JsonFormat, of("json")]
    | Annotated[RegexFormat, whole(_FORMAT), of("regex")]
    | Annotated[ChoiceFormat, whole(_FORMAT), of("choice")]
    | Annotated[GrammarFormat, whole(_FORMAT), of("grammar")],
    by(_format, _FORMAT),
]


# Other servers' -----------------------------------------------------------------------------------------------------

_NOT_HERE = "is not known here: give tools, or one of json, regex, choice and grammar"


class StructuredOutputs(Fields):
    """What vLLM calls the form of an answer: one of these, and how its own engines keep to it."""

    json_: SchemaOrText | None = Field(default=None, alias="json")
    json_object: bool | None = None
    regex: str | None = None
    choice: Texts | None = None
    grammar: str | None = None
    structural_tag: Annotated[Any, absent(_NOT_HERE)] = None


class Forms(Fields):
    """The names under which a body may state the form of an answer: OpenAI's, and those of other servers."""

    response_format: ResponseFormat | None = None
    regex: str | None = None
    choice: Texts | None = None
    grammar: str | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: SchemaOrText | None = None
    guided_regex: str | None = None
    guided_choice: Texts | None = None
    guided_grammar: str | None = None
    json_schema: SchemaOrText | None = None
    ebnf: str | None = None
