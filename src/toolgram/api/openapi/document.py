"""The document itself: the routes, what each takes, and every status that it may answer with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version

from toolgram.api.openapi import anthropic, chat, examples, ollama, others, responses
from toolgram.api.openapi.bodies import body_schemas
from toolgram.api.openapi.shapes import STRING, Json, any_of, one_word, ref

_ABOUT = """The APIs of OpenAI, Anthropic and Ollama over any model. Fields that are not named here are let be: those
that change nothing are ignored in silence, others are told in `x-toolgram-ignored`. A field may be null where it may
be absent. Text after `data:` is an event of a stream; comments between them show that it lives."""

_WHY = {
    400: "Something is wrong with the body: `param` and `pointer` say where.",
    401: "The key is not one of the server's.",
    403: "The name in `Host`, or the site of the page that calls, is not one that the server allows.",
    404: "There is no such model, or no such response or item is kept.",
    405: "The route is not for this method.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    429: "Too many requests wait already: come back.",
    502: "The engine failed.",
    503: "The engine cannot be reached now: come back.",
    504: "The answer took too long.",
}
_READ = (400, 401, 404, 408, 413)
_PLAN = (*_READ, 429)
_TOLD = (401,)
_RUN = (*_PLAN, 502, 503, 504)

_SCHEMAS: dict[str, Json] = {
    "Error": others.ERROR,
    "AnthropicError": others.ANTHROPIC_ERROR,
    "OllamaError": ollama.ERROR,
    "EitherError": any_of(ref("Error"), ref("AnthropicError")),
    "AnthropicMessage": anthropic.ANSWER,
    "AnthropicEvent": anthropic.EVENT,
    "ChatCompletion": chat.ANSWER,
    "ChatCompletionChunk": chat.CHUNK,
    "Completion": others.COMPLETION,
    "CompletionChunk": others.COMPLETION_CHUNK,
    "Explanation": chat.EXPLANATION,
    "OllamaChat": ollama.CHAT,
    "OllamaChatObject": ollama.CHAT_OBJECT,
    "OllamaGenerate": ollama.GENERATE,
    "OllamaGenerateObject": ollama.GENERATE_OBJECT,
    "Relaxation": chat.RELAXATION,
    "Response": responses.ANSWER,
    "ResponseEvent": responses.EVENT,
}

_HEADERS: dict[str, Json] = {
    "x-request-id": {"description": "The client's own id, if it gave one, else one of the server's.", "schema": STRING},
    "x-toolgram-relaxations": {
        "description": "Schema keywords that are not enforced exactly, as JSON: pointer, keyword, enforced, kind.",
        "schema": STRING,
    },
    "x-toolgram-divergences": {
        "description": "Numbers and bounded strings that the model was about to write otherwise, as JSON: choice, call "
        "(null: the answer), pointer, what it preferred, how much of its probability the grammar ruled out, "
        "how many characters of raw text stand before it.",
        "schema": STRING,
    },
    "x-toolgram-ignored": {"description": "Fields that are not known here.", "schema": STRING},
    "retry-after": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
}
OF_BODIES = ("x-toolgram-relaxations", "x-toolgram-divergences", "x-toolgram-ignored")


@dataclass(frozen=True)
class _Route:
    """A route: a POST if it takes a body, else a GET; a stream of it has an `event` after the other, or a `line`.

    With `own_503` such an answer has the form of the others. `deleted` is the answer of a DELETE, where there is one.
    """

    about: str
    answer: Json
    errors: tuple[int, ...]
    body: Json | None = None
    event: Json | None = None
    examples: Mapping[str, Json] = field(default_factory=dict[str, Json])
    error: str = "Error"
    media: str = "application/json"
    parameters: tuple[Json, ...] = ()
    own_503: bool = False
    deleted: Json | None = None
    line: Json | None = None


_VERSION: Json = {
    "name": "anthropic-version",
    "in": "header",
    "description": "With it the answer is in Anthropic's shape.",
    "schema": STRING,
}
_NAME: Json = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_ID: Json = {**_NAME, "name": "id"}
_PAGE: tuple[Json, ...] = (
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}},
    {"name": "order", "in": "query", "schema": {**one_word("asc", "desc"), "default": "desc"}},
    {"name": "after", "in": "query", "description": "The id of an item: those behind it.", "schema": STRING},
)

_ROUTES = {
    "/v1/chat/completions": _Route(
        "Answer a conversation, in OpenAI's shape.",
        ref("ChatCompletion"),
        _RUN,
        ref("ChatCompletionBody"),
        ref("ChatCompletionChunk"),
        examples.CHAT,
    ),
    "/v1/completions": _Route(
        "Go on with raw texts.",
        ref("Completion"),
        _RUN,
        ref("CompletionBody"),
        ref("CompletionChunk"),
        examples.COMPLETIONS,
    ),
    "/v1/responses": _Route(
        "Answer a conversation, in the shape of OpenAI's responses; it is kept for a while unless `store` is false.",
        ref("Response"),
        _RUN,
        ref("ResponsesBody"),
        ref("ResponseEvent"),
        examples.RESPONSES,
    ),
    "/v1/responses/input_tokens": _Route(
        "How long the prompt of a conversation would be, in the shape of OpenAI's responses.",
        responses.COUNTED,
        _PLAN,
        ref("ResponsesBody"),
        examples=examples.INPUT_TOKENS,
    ),
    "/v1/responses/{id}": _Route(
        "A response that is kept.",
        ref("Response"),
        (400, *_TOLD, 404),
        parameters=(_ID,),
        deleted=responses.FORGOTTEN,
    ),
    "/v1/responses/{id}/input_items": _Route(
        "What a response was given for, with what stood before it in the conversation.",
        responses.INPUT_ITEMS,
        (400, *_TOLD, 404),
        parameters=(_ID, *_PAGE),
    ),
    "/v1/messages": _Route(
        "Answer a conversation, in Anthropic's shape.",
        ref("AnthropicMessage"),
        _RUN,
        ref("MessagesBody"),
        ref("AnthropicEvent"),
        examples.MESSAGES,
        "AnthropicError",
    ),
    "/v1/messages/count_tokens": _Route(
        "How long the prompt of a conversation would be.",
        anthropic.COUNTED,
        _PLAN,
        ref("CountBody"),
        examples=examples.COUNT_TOKENS,
        error="AnthropicError",
    ),
    "/v1/explain": _Route(
        "What would be sent to the engine for a conversation.",
        ref("Explanation"),
        _PLAN,
        ref("ExplainBody"),
        examples=examples.CHAT,
    ),
    "/v1/tools/import": _Route(
        "The tools of an OpenAPI document, of an MCP server's answer, or of another API; nothing is run or fetched.",
        others.TOOLS,
        _PLAN,
        ref("ImportBody"),
        examples=examples.IMPORT,
    ),
    "/api/chat": _Route(
        "Answer a conversation, in Ollama's shape; unless `stream` is false in lines of JSON.",
        ref("OllamaChat"),
        _RUN,
        ref("OllamaChatBody"),
        line=ref("OllamaChatObject"),
        examples=examples.OLLAMA_CHAT,
        error="OllamaError",
    ),
    "/api/generate": _Route(
        "Answer a prompt, in Ollama's shape, or go on with it as it is.",
        ref("OllamaGenerate"),
        _RUN,
        ref("OllamaGenerateBody"),
        line=ref("OllamaGenerateObject"),
        examples=examples.OLLAMA_GENERATE,
        error="OllamaError",
    ),
    "/api/show": _Route(
        "What is known of a model, in Ollama's shape.",
        ollama.SHOWN,
        _PLAN,
        ref("OllamaShowBody"),
        examples=examples.OLLAMA_SHOW,
        error="OllamaError",
    ),
    "/api/tags": _Route(
        "The models by all of their names, in Ollama's shape.", ollama.TAGS, _TOLD, error="OllamaError"
    ),
    "/api/ps": _Route("The models that are loaded, in Ollama's shape.", ollama.RUNNING, _TOLD, error="OllamaError"),
    "/api/version": _Route("Of which version of Ollama its API is.", ollama.VERSION, _TOLD, error="OllamaError"),
    "/tokenize": _Route(
        "The tokens of a text, or of a conversation as it would be prompted.",
        others.TOKENS,
        _PLAN,
        any_of(ref("ChatCompletionBody"), ref("TextBody")),
        examples=examples.TOKENIZE,
    ),
    "/detokenize": _Route("The text of tokens.", others.TEXT, _READ, ref("TokensBody"), examples=examples.DETOKENIZE),
    "/v1/models": _Route("The models.", others.MODELS, _TOLD, parameters=(_VERSION,), error="EitherError"),
    "/v1/models/{name}": _Route(
        "A model.", others.MODEL, (*_TOLD, 404), parameters=(_NAME, _VERSION), error="EitherError"
    ),
    "/v1/mcp/call": _Route(
        "Call a tool of a configured MCP server; one that may change something needs `approve`.",
        others.MCP_CALL,
        _RUN,
        ref("McpCallBody"),
        examples=examples.MCP_CALL,
    ),
    "/v1/mcp/servers": _Route(
        "The MCP servers of the configuration, and the tools of each.", others.MCP_SERVERS, _TOLD
    ),
    "/health": _Route(
        "Whether the server lives, and reaches the servers that run its models.", others.HEALTH, (503,), own_503=True
    ),
    "/metrics": _Route("Counts in the format of Prometheus.", STRING, (), media="text/plain"),
    "/openapi.json": _Route("This document.", {"type": "object"}, ()),
}


@cache
def document() -> Json:
    """The document, in OpenAPI 3.2."""
    return {
        "openapi": "3.2.0",
        "info": {"title": "toolgram", "version": version("toolgram"), "description": " ".join(_ABOUT.split())},
        "security": [{}, {"bearer": []}, {"key": []}],
        "paths": {path: _path(route) for path, route in _ROUTES.items()},
        "components": {
            "schemas": {**_SCHEMAS, **body_schemas()},
            "headers": _HEADERS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _path(route: _Route) -> Json:
    operation: Json = {"summary": route.about, "responses": _responses(route)}
    if route.parameters:
        operation["parameters"] = list(route.parameters)
    if route.deleted is not None:
        forget = {**operation, "summary": "Forget it.", "responses": _responses(replace(route, answer=route.deleted))}
        return {"get": operation, "delete": forget}
    if route.body is None:
        return {"get": operation}
    content = {"schema": route.body, "examples": {name: {"value": value} for name, value in route.examples.items()}}
    return {"post": {**operation, "requestBody": {"required": True, "content": {"application/json": content}}}}


def _responses(route: _Route) -> Json:
    content: Json = {route.media: {"schema": route.answer}}
    if route.event is not None:
        content["text/event-stream"] = {"itemSchema": _event(route.event)}
    if route.line is not None:
        content["application/x-ndjson"] = {"itemSchema": route.line}
    told = ("x-request-id", *(OF_BODIES if route.body else ()))
    answers: Json = {"200": {"description": "The answer.", "headers": _headers(told), "content": content}}
    for status in sorted((*route.errors, 403, 405)):
        headers = ("x-request-id", "retry-after") if status in (429, 503) else ("x-request-id",)
        answers[str(status)] = {
            "description": _WHY[status],
            "headers": _headers(headers),
            "content": {
                "application/json": {"schema": route.answer if status == 503 and route.own_503 else ref(route.error)}
            },
        }
    return answers


def _event(schema: Json) -> Json:
    """An event of a stream, whose data is JSON, except the last of OpenAI's."""
    data = any_of(one_word("[DONE]"), {"contentMediaType": "application/json", "contentSchema": schema})
    return {"type": "object", "properties": {"data": {"type": "string", **data}}, "required": ["data"]}


def _headers(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
