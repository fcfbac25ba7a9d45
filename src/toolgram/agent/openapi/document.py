"""The operations of an OpenAPI document: their servers, parameters, bodies and secrets, with references followed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, cast
from urllib.parse import urljoin

from toolgram.agent.openapi.places import PLACES, Place
from toolgram.agent.openapi.schemas import COMPONENT, described, object_or_nothing, own, references, schema_of, steps
from toolgram.agent.openapi.tool import OpenApiTool
from toolgram.agent.tools import InvalidTool
from toolgram.errors import json_pointer
from toolgram.work import spend

Json = Mapping[str, Any]

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "query")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME = 64
_MAX_HOPS = 20  # references to references


@dataclass(frozen=True)
class Document:
    """A document, with the secret of each of its security schemes that there is one for."""

    root: Json
    auth: Mapping[str, str]

    def server(self, base_url: str | None, *owners: tuple[str, Any]) -> str:
        """The first server of the first that names any: the operation, its path or the document, with their places."""
        owned = ((pointer, object_or_nothing(of).get("servers")) for pointer, of in (*owners, ("", self.root)))
        named = (
            (pointer, cast("list[Any]", servers)[0])
            for pointer, servers in owned
            if servers and isinstance(servers, list)
        )
        pointer, listed = next(named, ("", None))
        first = object_or_nothing(listed)
        url = str(first.get("url", ""))
        for name, variable in object_or_nothing(first.get("variables")).items():
            url = url.replace("{" + name + "}", str(object_or_nothing(variable).get("default", "")))
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
        """The operation as a tool; None for one with a body that is no JSON."""
        about = "\n\n".join(str(operation[key]) for key in ("summary", "description") if operation.get(key))
        called = str(operation.get("operationId") or f"{method}_{path.strip('/')}")
        spend(steps(about) + steps(called))
        name = _NOT_IN_NAMES.sub("_", called).strip("_")[:_MAX_NAME]
        properties: dict[str, Any] = {}
        required: list[str] = []
        places: dict[str, Place] = {}
        for parameter in self.parameters((*common, *(operation.get("parameters") or ())), pointer):
            key = parameter["name"]
            if key in places or (key == "body" and operation.get("requestBody") is not None):
                key = f"{parameter['in']}_{key}"
            places[key] = Place.of(parameter)
            properties[key] = described(schema_of(parameter), parameter.get("description"))
            if parameter.get("required") or parameter["in"] == "path":
                required.append(key)
        if operation.get("requestBody") is not None:
            body = self.resolved(operation["requestBody"], f"{pointer}/requestBody")
            content = object_or_nothing(body.get("content"))
            kind, as_json = next((each for each in content.items() if "json" in each[0]), ("", None))
            if as_json is None:
                return None
            places["body"] = Place("body", kind if "*" not in kind else "application/json")
            properties["body"] = described(object_or_nothing(as_json).get("schema", {}), body.get("description"))
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
        """What a reference leads to. Raises InvalidTool where that is nothing, or in another document."""
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
        waiting = list(references(schema))
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed[name] = self.at(COMPONENT + name, pointer)
                waiting += references(needed[name])
        definitions = {name: own(part) for name, part in needed.items()}
        return {**own(schema), **({"$defs": definitions} if definitions else {})}

    def secrets(self, operation: Json) -> tuple[dict[str, str], dict[str, str]]:
        """The headers and the query that authenticate the operation, of the schemes that there are secrets for."""
        headers: dict[str, str] = {}
        query: dict[str, str] = {}
        schemes = object_or_nothing(_components(self.root).get("securitySchemes"))
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


def _members(value: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise InvalidTool(f"{pointer}: must be an object")
    yield from cast("Json", value).items()


def _components(document: Any) -> Json:
    return object_or_nothing(object_or_nothing(document).get("components"))


def secret_names(document: Any) -> list[str]:
    """The names of a document's security schemes."""
    return [name for name, _ in _members(_components(document).get("securitySchemes"), "/components/securitySchemes")]
