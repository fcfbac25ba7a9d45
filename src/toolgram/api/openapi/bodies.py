"""The schemas of bodies, from the models that check them."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from toolgram.api.chat.body import ChatCompletionBody, ExplainBody
from toolgram.api.completions import CompletionBody
from toolgram.api.messages.body import CountBody, MessagesBody
from toolgram.api.ollama.body import OllamaChatBody, OllamaGenerateBody, OllamaShowBody
from toolgram.api.openapi.shapes import Json
from toolgram.api.responses.body import ResponsesBody
from toolgram.api.tokens import TextBody, TokensBody
from toolgram.api.tools import ImportBody, McpCallBody

BODIES = (
    *(ChatCompletionBody, ExplainBody, CompletionBody, ResponsesBody, MessagesBody, CountBody, TextBody, TokensBody),
    *(ImportBody, McpCallBody, OllamaChatBody, OllamaGenerateBody, OllamaShowBody),
)


class _Generator(GenerateJsonSchema):
    """As Pydantic writes them, without titles and defaults of null, and unions as `anyOf`: their kinds overlap."""

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        made = super().tagged_union_schema(schema)
        return {"anyOf": made["oneOf"]} if "oneOf" in made else made

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - Pydantic's own signature
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        if made.get("default", "") is None:
            made.pop("default")
        return made


def body_schemas() -> Json:
    """The schemas of all bodies and of their parts, by name."""
    _, made = models_json_schema(
        [(model, "validation") for model in BODIES],
        ref_template="#/components/schemas/{model}",
        schema_generator=_Generator,
    )
    return {
        name: {key: value for key, value in schema.items() if key != "title"} for name, schema in made["$defs"].items()
    }
