"""Operations of an OpenAPI document as tools: 3.0, 3.1 and 3.2, from a mapping, a file or a URL.

A tool takes the parameters of its operation by their names, and a JSON body as `body`. Of the components only what an
operation refers to stands in its schema, under `$defs`, so that types which refer to themselves stay as they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, cast
from urllib.parse import urljoin

from toolgram.errors import json_pointer, needing

with needing("agent", "an operation that runs"):
    import httpx2

from toolgram.agent.calls import CallFailed, object_of
from toolgram.agent.openapi_places import PLACES, Place, Sent
from toolgram.agent.tools import InvalidTool
from toolgram.engines.remote.http import trusted
from toolgram.work import spend

Json = Mapping[str, Any]

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "query")
_READ = ("get", "head", "options", "query")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME = 64
_MAX_ANSWER = 1_000_000  # bytes that are read of an answer
_MAX_HOPS = 20  # references to references
_CHARACTERS = 16  # of a text that cost a step
_SECONDS = 60.0  # that a document has to be fetched
_COMPONENT = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class OpenApiTool:
    """An operation as a tool; it writes unless its method only reads."""

    name: str
    description: str
    parameters: Json
    method: str
    url: str
    headers: Json = field(default_factory=dict[str, Any], repr=False)
    query: Json = field(default_factory=dict[str, Any], repr=False)
    _places: Mapping[str, Place] = field(default_factory=dict[str, Place], repr=False)  # of each argument

    @property
    def writes(self) -> bool:
        """Whether a call changes something on the server."""
        return self.method not in _READ

    def to_openai(self) -> dict[str, Any]:
        """The tool in the shape of a chat-completions request."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    async def call(self, arguments: str) -> str:
        """What the server answers, as text. Raises CallFailed for what it says is wrong, or if it is not reached."""
        sent = Sent()
        given = object_of(arguments)
        if missing := [key for key in self.parameters["required"] if key not in given]:
            raise CallFailed(f"There is no argument {missing[0]!r}.")
        for key, value in given.items():
            if key not in self.parameters["properties"]:
                raise CallFailed(f"There is no parameter {key!r}.")
            self._places[key].put(value, sent)
        url = self.url
        for name, said in sent.path.items():
            if said in ("", ".", ".."):  # which would be another operation's path
                raise CallFailed(f"{name}: {said!r} cannot stand in a path.")
            url = url.replace("{" + name + "}", said)
        if bad := [name for name, said in sent.headers.items() if not (said.isascii() and said.isprintable())]:
            raise CallFailed(f"{bad[0]}: {sent.headers[bad[0]]!r} cannot stand in a header.")
        # Secrets last: no argument stands in their place.
        query, headers = {**sent.query, **self.query}, {**sent.headers, **self.headers}
        if sent.cookies:
            headers["Cookie"] = "; ".join((*sent.cookies, *filter(None, (headers.get("Cookie"),))))
        try:
            async with (
                # A call has the time that its agent gives it.
                httpx2.AsyncClient(timeout=None, verify=trusted()) as client,
                client.stream(
                    self.method.upper(), url, params=query or None, headers=headers, content=sent.content
                ) as answer,
            ):
                text = await _read(answer)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise CallFailed(f"The server cannot be reached: {type(error).__name__}: {error}") from error
        if answer.status_code >= 400:
            raise CallFailed(f"{answer.status_code} {answer.reason_phrase}: {text}")
        return text or f"{answer.status_code} {answer.reason_phrase}"


def openapi_tools(
    document: Any,
    base_url: str | None = None,
    *,
    only: Collection[str] | None = None,
    headers: Mapping[str, str] | None = None,
    auth: Mapping[str, str] | None = None,
) -> list[OpenApiTool]:
    """The operations of a document, or `only` those of these names, as tools.

    `base_url` is where the document is, to which a relative server is joined. `headers` go with every call,
    and `auth` has the secret of each security scheme by its name. Raises InvalidTool with a JSON pointer for what is
    no OpenAPI document, and for an operation whose parameters cannot be read; one with a body other than JSON is left
    out. Counts its steps, as `toolgram.work` does.
    """
    if not isinstance(document, Mapping) or not str(cast("Json", document).get("openapi", "")).startswith("3."):
        raise InvalidTool('not an OpenAPI 3 document: it has no "openapi": "3.…"')
    api = _Document(cast("Json", document), dict(auth or {}))
    try:
        tools = list(api.tools(base_url, headers or {}))
    except (TypeError, AttributeError, RecursionError) as error:  # of what stands where something else is meant
        raise InvalidTool(f"the document cannot be read: {error}") from error
    tools = [tool for tool in tools if only is None or tool.name in only]
    if missing := sorted(set(only or ()) - {tool.name for tool in tools}):
        raise InvalidTool(f"the document has no operation {', '.join(missing)}")
    return tools


@dataclass(frozen=True)
class _Document:
    root: Json
    auth: Mapping[str, str]

    def server(self, base_url: str | None, *owners: tuple[str, Any]) -> str:
        """The first server of the first that names any: the operation, its path or the document, with their places."""
        owned = ((pointer, _object(of).get("servers")) for pointer, of in (*owners, ("", self.root)))
        named = (
            (pointer, cast("list[Any]", servers)[0])
            for pointer, servers in owned
            if servers and isinstance(servers, list)
        )
        pointer, listed = next(named, ("", None))
        first = _object(listed)
        url = str(first.get("url", ""))
        for name, variable in _object(first.get("variables")).items():
            url = url.replace("{" + name + "}", str(_object(variable).get("default", "")))
        if base_url:  # a server that is not said is the root of where the document is
            url = urljoin(base_url, url or "/")
        if not url.startswith(("http://", "https://")):
            raise InvalidTool(f"{pointer}/servers/0/url: {url!r} is no address: give a base URL")
        return url.rstrip("/")

    def tools(self, base_url: str | None, headers: Json) -> Iterator[OpenApiTool]:
        """All operations as tools; names that are alike are told apart by a number."""
        taken: set[str] = set()
        numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
        for path, method, pointer, item in self.operations():
            operation, common = item[method], item.get("parameters") or ()
            server = self.server(base_url, (pointer, operation), (json_pointer("paths", path), item))
            tool = self.tool(path, method, pointer, common, operation, server, headers)
            if tool is not None:
                name, stem = tool.name, tool.name[: _MAX_NAME - 5]
                while name in taken:
                    name = f"{stem}_{next(numbers[stem])}"
                taken.add(name)
                yield replace(tool, name=name)

    def operations(self) -> Iterator[tuple[str, str, str, Json]]:
        """Path, method, JSON pointer, and what stands under the path: the operation is there under its method."""
        for path, item in _members(self.root.get("paths"), "/paths"):
            item = self.resolved(item, json_pointer("paths", path))
            for method in _METHODS:
                if isinstance(item.get(method), Mapping):
                    yield path, method, json_pointer("paths", path, method), item

    def tool(
        self, path: str, method: str, pointer: str, common: Sequence[Any], operation: Json, server: str, headers: Json
    ) -> OpenApiTool | None:
        about = "\n\n".join(str(operation[key]) for key in ("summary", "description") if operation.get(key))
        called = str(operation.get("operationId") or f"{method}_{path.strip('/')}")
        spend(_steps(about) + _steps(called))
        name = _NOT_IN_NAMES.sub("_", called).strip("_")[:_MAX_NAME]
        properties: dict[str, Any] = {}
        required: list[str] = []
        places: dict[str, Place] = {}
        for parameter in self.parameters((*common, *(operation.get("parameters") or ())), pointer):
            key = parameter["name"]
            if key in places or (key == "body" and operation.get("requestBody") is not None):
                key = f"{parameter['in']}_{key}"
            places[key] = Place.of(parameter)
            properties[key] = _described(_schema_of(parameter), parameter.get("description"))
            if parameter.get("required") or parameter["in"] == "path":
                required.append(key)
        if operation.get("requestBody") is not None:
            body = self.resolved(operation["requestBody"], f"{pointer}/requestBody")
            content = _object(body.get("content"))
            kind, as_json = next((each for each in content.items() if "json" in each[0]), ("", None))
            if as_json is None:
                return None
            places["body"] = Place("body", kind if "*" not in kind else "application/json")
            properties["body"] = _described(_object(as_json).get("schema", {}), body.get("description"))
            if body.get("required", True):
                required.append("body")
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        extra_headers, extra_query = self.secrets(operation)
        parameters = self.with_components(schema, pointer)
        return OpenApiTool(
            name, about, parameters, method, server + path, {**headers, **extra_headers}, extra_query, places
        )

    def parameters(self, given: Sequence[Any], pointer: str) -> list[Json]:
        """Those that have a place in a request; an operation's own replace those of its path."""
        known: dict[tuple[str, str], Json] = {}
        for at, each in enumerate(given):
            spend(1)
            parameter = self.resolved(each, f"{pointer}/parameters/{at}")
            if not isinstance(parameter.get("name"), str) or not isinstance(parameter.get("in"), str):
                raise InvalidTool(f"{pointer}/parameters/{at}: a parameter needs a name and a place")
            # A cookie is what a browser has and a model does not know, unless nothing goes without it.
            if parameter["in"] in PLACES and (parameter["in"] != "cookie" or parameter.get("required")):
                known[(parameter["in"], parameter["name"])] = parameter
        return list(known.values())

    def resolved(self, given: Any, pointer: str) -> Json:
        """What stands there, or where its reference leads inside of the document."""
        for _ in range(_MAX_HOPS):
            if not isinstance(given, Mapping):
                raise InvalidTool(f"{pointer}: must be an object")
            reference = cast("Json", given).get("$ref")
            if not isinstance(reference, str):
                return cast("Json", given)
            given = self.at(reference, pointer)
        raise InvalidTool(f"{pointer}: its references go in a circle")

    def at(self, reference: str, pointer: str) -> Any:
        value: Any = self.root
        if not reference.startswith("#/"):
            raise InvalidTool(f"{pointer}: {reference!r} is in another document, which is not fetched")
        for step in reference[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(value, Mapping) or step not in value:
                raise InvalidTool(f"{pointer}: {reference!r} leads nowhere")
            value = cast("Json", value)[step]
        return value

    def with_components(self, schema: Json, pointer: str) -> Json:
        """The schema with the components that it refers to, directly or through others, as definitions of its own."""
        needed: dict[str, Any] = {}
        waiting = list(_references(schema))
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed[name] = self.at(_COMPONENT + name, pointer)
                waiting += _references(needed[name])
        definitions = {name: _own(part) for name, part in needed.items()}
        return {**_own(schema), **({"$defs": definitions} if definitions else {})}

    def secrets(self, operation: Json) -> tuple[dict[str, str], dict[str, str]]:
        """The headers and the query that authenticate the operation, of the schemes that there are secrets for."""
        headers: dict[str, str] = {}
        query: dict[str, str] = {}
        schemes = _object(_components(self.root).get("securitySchemes"))
        wanted = operation.get("security", self.root.get("security")) or ()
        for name in (name for one in wanted for name in one):
            secret = self.auth.get(name)
            if secret is None:
                continue
            match schemes.get(name):
                case {"type": "apiKey", "in": "header", "name": str(key)}:
                    headers[key] = secret
                case {"type": "apiKey", "in": "query", "name": str(key)}:
                    query[key] = secret
                case {"type": "apiKey", "in": "cookie", "name": str(key)}:
                    headers["Cookie"] = f"{key}={secret}"
                case {"type": "http", "scheme": str(kind)} if kind.lower() == "basic":
                    headers["Authorization"] = f"Basic {secret}"
                case {"type": _}:
                    headers["Authorization"] = f"Bearer {secret}"
                case _:
                    pass
        return headers, query


def _steps(value: Any) -> int:
    """What a value costs without its parts: it stands in each tool that refers to it."""
    return 1 + len(value) // _CHARACTERS if isinstance(value, str) else 1


def _members(value: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise InvalidTool(f"{pointer}: must be an object")
    yield from cast("Json", value).items()


def _schema_of(parameter: Json) -> Any:
    """The schema of a parameter, which may stand in a kind of content."""
    content = _object(parameter.get("content"))
    inside = _object(next(iter(content.values()), None))
    return parameter.get("schema", inside.get("schema", {}))


def _described(schema: Any, description: Any) -> Any:
    if not isinstance(schema, Mapping) or not description or "description" in schema or "$ref" in schema:
        return cast("Any", schema)
    return {**cast("Json", schema), "description": description}


def _references(value: Any) -> Iterator[str]:
    """The names of the components that a schema refers to."""
    spend(1)
    if isinstance(value, Mapping):
        here = cast("Json", value)
        reference = here.get("$ref")
        if isinstance(reference, str) and reference.startswith(_COMPONENT):
            yield reference[len(_COMPONENT) :].split("/")[0]
        for each in here.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _references(each)


def _own(value: Any) -> Any:
    """The schema with references into the components as references to its own definitions, in words of today."""
    spend(_steps(value))
    if isinstance(value, Mapping):
        made = {key: _own(each) for key, each in cast("Json", value).items()}
        reference = made.get("$ref")
        if isinstance(reference, str) and reference.startswith(_COMPONENT):
            made["$ref"] = "#/$defs/" + reference[len(_COMPONENT) :]
        return _since_3_1(_sent(made))
    if isinstance(value, list):
        return [_own(each) for each in cast("list[Any]", value)]
    return value


def _sent(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of what is sent to a server: what only the server says is no part of it, required or not."""
    properties = _object(schema.get("properties"))
    said = [name for name, each in properties.items() if _object(each).get("readOnly") is True]
    if said:
        schema["properties"] = {name: each for name, each in properties.items() if name not in said}
        if isinstance(required := schema.get("required"), list):
            schema["required"] = [name for name in cast("list[Any]", required) if name not in said]
    return schema


def _since_3_1(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of version 3.0 as later ones have it: null as a type, exclusive bounds as numbers."""
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        del schema["nullable"]
        schema["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    return schema


async def _read(answer: httpx2.Response) -> str:
    """The body as text, as far as anybody reads it."""
    pieces, size = list[bytes](), 0
    async for piece in answer.aiter_bytes():
        pieces.append(piece)
        size += len(piece)
        if size > _MAX_ANSWER:
            break
    body = b"".join(pieces)[:_MAX_ANSWER]
    if b"\0" in body[:1000]:
        return f"({size} bytes of binary data)"
    return body.decode(answer.encoding or "utf-8", errors="replace")


def secrets_in(environment: Mapping[str, str], document: Any) -> dict[str, str]:
    """The secrets of the document's security schemes: `TOOLGRAM_AUTH_` and the name of the scheme in capitals."""
    names = [name for name, _ in _members(_components(document).get("securitySchemes"), "/components/securitySchemes")]
    known = {name: environment.get(f"TOOLGRAM_AUTH_{re.sub('[^A-Z0-9]', '_', name.upper())}") for name in names}
    return {name: secret for name, secret in known.items() if secret}


def _components(document: Any) -> Json:
    return _object(_object(document).get("components"))


def _object(value: Any) -> Json:
    """The value, or nothing where it is no object."""
    return cast("Json", value) if isinstance(value, Mapping) else {}


def fetched(url: str) -> Any:
    """The document at an address. Raises InvalidTool."""
    try:
        answer = httpx2.get(url, follow_redirects=True, timeout=_SECONDS, verify=trusted()).raise_for_status()
        return answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise InvalidTool(f"{url}: it cannot be fetched: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidTool(f"{url}: not JSON: {error}") from error
