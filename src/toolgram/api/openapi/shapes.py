"""A few words for writing the JSON Schemas of answers."""

from __future__ import annotations

from typing import Any

from toolgram.conversation.fields import MAX_INTEGER

Json = dict[str, Any]

STRING: Json = {"type": "string"}
NAME: Json = {"type": "string", "minLength": 1}
BOOLEAN: Json = {"type": "boolean"}
INTEGER: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}
COUNT: Json = {"type": "integer", "minimum": 0}
ESTIMATED: Json = {"estimated": {"const": True}}
OBJECT: Json = {"type": "object"}
NULL: Json = {"type": "null"}


def given(maybe: Json | None = None, /, **always: Json) -> Json:
    """An object of an answer: these fields are always there, those of `maybe` at times, and no others."""
    return {
        "type": "object",
        "properties": {**always, **(maybe or {})},
        "required": list(always),
        "additionalProperties": False,
    }


def nullable(schema: Json) -> Json:
    """That, or null."""
    return any_of(schema, NULL)


def any_of(*schemas: Json) -> Json:
    """One of these."""
    return {"anyOf": [each for schema in schemas for each in schema.get("anyOf", (schema,))]}


def one_word(*words: str) -> Json:
    """One of these strings."""
    return {"type": "string", "enum": list(words)}


def always(value: str) -> Json:
    """This string."""
    return {"type": "string", "const": value}


def array(items: Json, least: int = 0, most: int | None = None) -> Json:
    """A list."""
    return {
        "type": "array",
        "items": items,
        **({"minItems": least} if least else {}),
        **({} if most is None else {"maxItems": most}),
    }


def number(low: float, high: float | None = None) -> Json:
    """A number from `low` to `high`, both included."""
    return {"type": "number", "minimum": low, **({} if high is None else {"maximum": high})}


def whole(low: int, high: int = MAX_INTEGER) -> Json:
    """A whole number from `low` to `high`, both included."""
    return {"type": "integer", "minimum": low, "maximum": high}


def ref(name: str) -> Json:
    """A schema of the document's components."""
    return {"$ref": f"#/components/schemas/{name}"}


_LIKELY: Json = {"token": STRING, "logprob": NUMBER, "bytes": array(whole(0, 255))}
LOGPROBS = array(given(**_LIKELY, top_logprobs=array(given(**_LIKELY))))
"""How likely tokens were, and the likeliest beside each."""
_DIVERGENCE = given(call=nullable(COUNT), pointer=STRING, preferred=STRING, removed=NUMBER, offset=COUNT)
_ENDED = given(call=nullable(COUNT), pointer=STRING)
_BROKEN = given(call=COUNT, pointer=STRING, keyword=STRING)
NOTED: Json = {
    "valid": BOOLEAN,
    "dropped_tool_calls": COUNT,
    "divergences": array(_DIVERGENCE, 1),
    "ended_repetitions": array(_ENDED, 1),
    "broken_bounds": array(_BROKEN, 1),
    "call_log_odds": NUMBER,
    "another_call_log_odds": NUMBER,
}
"""What answers say beside their message, where there is something to say."""
