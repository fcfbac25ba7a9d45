"""The form that an answer must have: a schema or a grammar, by whichever name a body states it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from toolgram.conversation.fields import Json
from toolgram.conversation.formats import ChoiceFormat, Forms, GrammarFormat, JsonFormat, RegexFormat, TextFormat
from toolgram.conversation.lark_patterns import as_pattern
from toolgram.conversation.patterns import as_a_whole
from toolgram.conversation.schema_meant import schema_meant
from toolgram.errors import GrammarError, InvalidRequest


@dataclass(frozen=True)
class ResponseFormat:
    """A schema that the answer must match; `pointer` is where the schema stands in the request.

    A `plain` answer is not JSON but the text itself, which the schema describes as a string.
    """

    schema: Any
    strict: bool
    pointer: str
    plain: bool = False


@dataclass(frozen=True)
class GivenGrammar:
    """A grammar in GBNF that the whole answer must keep to; `pointer` is where it stands in the request."""

    gbnf: str
    pointer: str


Form = ResponseFormat | GivenGrammar


def form_of(body: Forms) -> Form | None:
    """The form of the answer; None where any text is one. Raises InvalidRequest where two are stated."""
    stated = list(_stated(body))
    if len(stated) > 1:
        (first, *_), (second, *_) = stated[:2]
        raise InvalidRequest(f"/{second}", f"does not go with {first}: give one of them")
    return next((_meant(read(value, f"/{name}")) for name, value, read in stated), None)


def _meant(form: Form) -> Form:
    return replace(form, schema=schema_meant(form.schema)) if isinstance(form, ResponseFormat) else form


def _stated(body: Forms) -> Iterator[tuple[str, Any, Callable[[Any, str], Form]]]:
    """What states a form: its name, what it says, and how that is read."""
    if not isinstance(body.response_format, TextFormat | None):
        yield "response_format", body.response_format, _by_format
    for name, read in _READ.items():
        if (value := getattr(body, name)) is not None:
            yield name, value, read
    inside = {} if body.structured_outputs is None else body.structured_outputs.given
    for name, read in _READ_INSIDE.items():
        if (value := inside.get(name)) is not None:
            yield f"structured_outputs/{name}", value, read
    if inside.get("json_object"):
        yield "structured_outputs/json_object", True, lambda _, pointer: any_object(pointer)


def _by_format(value: Any, pointer: str) -> Form:
    match value:
        case RegexFormat(regex=str(pattern)):
            return regex_format(pattern, f"{pointer}/regex")
        case RegexFormat(value=str(pattern)):
            return regex_format(pattern, f"{pointer}/value")
        case ChoiceFormat(choice=texts):
            return choice_format(texts, f"{pointer}/choice")
        case GrammarFormat(grammar=gbnf):
            return GivenGrammar(gbnf, f"{pointer}/grammar")
        case JsonFormat(json_schema=inner) if inner is not None:
            schema = described(inner.schema_, inner.description)
            return ResponseFormat(schema, inner.strict or False, f"{pointer}/json_schema/schema")
        case JsonFormat(schema_=schema, strict=strict) if schema is not None:
            return ResponseFormat(schema, strict or False, f"{pointer}/schema")
        case JsonFormat(type="json_schema", value={"schema": schema}, strict=strict):
            return replace(_schema_format(schema, f"{pointer}/value/schema"), strict=strict or False)
        case JsonFormat(value=schema, strict=strict) if schema is not None:
            return replace(_schema_format(schema, f"{pointer}/value"), strict=strict or False)
        case _:
            return any_object(pointer)


def described(schema: Any, description: str | None) -> Any:
    """The schema with what a format says of it besides: the model is shown the schema alone."""
    if not description or not isinstance(schema, Mapping):
        return schema
    given = cast("Json", schema)
    own = given.get("description")
    if own is not None and not isinstance(own, str):  # no text, to which more could be added
        return given
    return {**given, "description": description if own in (None, "", description) else f"{description}\n{own}"}


def any_object(pointer: str) -> ResponseFormat:
    """An answer that is any object in JSON."""
    return ResponseFormat({"type": "object"}, strict=False, pointer=pointer)


def regex_format(pattern: str, pointer: str) -> ResponseFormat:
    """An answer that matches a regular expression as a whole."""
    schema = {"type": "string", "pattern": as_a_whole(pattern, pointer)}
    return ResponseFormat(schema, strict=True, pointer=pointer, plain=True)


def choice_format(texts: Sequence[str], pointer: str) -> ResponseFormat:
    """An answer that is one of some texts."""
    return ResponseFormat({"enum": list(texts)}, strict=True, pointer=pointer, plain=True)


def _schema_format(schema: Any, pointer: str) -> ResponseFormat:
    """An answer of a schema, which may be given as its JSON text."""
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):
            raise InvalidRequest(pointer, "must be a JSON Schema, or its JSON text") from None
    return ResponseFormat(schema, strict=False, pointer=pointer)


def _grammar_or_lark(text: str, pointer: str) -> Form:
    """A grammar as vLLM takes it: GBNF, or Lark, as Outlines sends it (https://github.com/vllm-project/vllm/pull/10870)."""
    if "::=" in text:
        return GivenGrammar(text, pointer)
    try:
        pattern = as_pattern(text)
    except GrammarError as error:
        raise InvalidRequest(pointer, f"has no rule as GBNF has them (`::=`), and read as Lark: {error}") from error
    return ResponseFormat({"type": "string", "pattern": f"^{pattern}$"}, strict=True, pointer=pointer, plain=True)


_READ_INSIDE: Mapping[str, Callable[[Any, str], Form]] = {
    "regex": regex_format,
    "choice": choice_format,
    "grammar": _grammar_or_lark,
    "json": _schema_format,
}
_READ: Mapping[str, Callable[[Any, str], Form]] = {
    "regex": regex_format,
    "choice": choice_format,
    "grammar": GivenGrammar,
    "guided_regex": regex_format,
    "guided_choice": choice_format,
    "guided_grammar": _grammar_or_lark,
    "guided_json": _schema_format,
    "json_schema": _schema_format,
    "ebnf": GivenGrammar,
}
"""By the names that vLLM, SGLang and llama-server have for the form of an answer."""
