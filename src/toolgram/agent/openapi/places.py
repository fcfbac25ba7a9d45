"""Where an argument goes in an HTTP request, and how it is written there, as OpenAPI's parameters say.

The styles are those of "Style Values" in the OpenAPI Specification 3.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

Json = Mapping[str, Any]

PLACES = ("path", "query", "header", "cookie")
_STYLES = {"query": "form", "cookie": "form", "path": "simple", "header": "simple"}  # where none is said
_BETWEEN = {"spaceDelimited": " ", "pipeDelimited": "|"}
_BEFORE = {"label": ".", "matrix": ";"}


@dataclass(slots=True)
class Sent:
    """A request as it comes together: of the path, what stands for each of its names."""

    path: dict[str, str] = field(default_factory=dict[str, str])
    query: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cookies: list[str] = field(default_factory=list[str])
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where one argument goes, and the name it has there; of a body the name is its media type."""

    where: str
    name: str
    style: str = ""
    explode: bool = False
    as_json: bool = False

    @staticmethod
    def of(parameter: Json) -> Place:
        """The place of a parameter object that has a name and a place."""
        where, name = str(parameter["in"]), str(parameter["name"])
        style = str(parameter.get("style") or _STYLES.get(where, "form"))
        return Place(where, name, style, bool(parameter.get("explode", style == "form")), "content" in parameter)

    def put(self, value: Any, sent: Sent) -> None:
        """Put the argument there; null is what is not sent, as in URI templates, but for a body."""
        if value is None and self.where in ("query", "header", "cookie") and not self.as_json:
            return
        match self.where:
            case "path":
                sent.path[self.name] = self._in_path(value)
            case "query":
                for name, text in self._members(value):
                    sent.query.setdefault(name, []).append(text)
            case "header":
                sent.headers[self.name] = self._simple(value, ",", str)
            case "cookie":
                sent.cookies += (f"{name}={quote(text, safe='')}" for name, text in self._members(value))
            case _:
                sent.headers["Content-Type"] = self.name
                sent.content = json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")

    def _in_path(self, value: Any) -> str:
        before = _BEFORE.get(self.style, "")
        between = before if before and self.explode else ","
        if self.style != "matrix" or self.as_json:
            return before + self._simple(value, between, _quoted)
        if not self.explode:
            return f";{self.name}={self._simple(value, ',', _quoted)}"
        members = [(self._own(key), text) for key, text in _pairs(value)]
        return "".join(f";{_quoted(key)}={_quoted(text)}" for key, text in members)

    def _simple(self, value: Any, between: str, said: Callable[[str], str]) -> str:
        """The value as one text: what is in a list or an object with something between."""
        if self.as_json or not isinstance(value, list | dict):
            return said(plain(value))
        pairs = [(key, said(text)) for key, text in _pairs(value)]
        equals = "=" if self.explode else between
        return between.join(text if key is None else f"{said(key)}{equals}{text}" for key, text in pairs)

    def _members(self, value: Any) -> list[tuple[str, str]]:
        """The value as names and texts, as they stand in a query."""
        if self.as_json or not isinstance(value, list | dict):
            return [(self.name, plain(value))]
        pairs = _pairs(value)
        if self.style == "deepObject":
            return [(self.name if key is None else f"{self.name}[{key}]", text) for key, text in pairs]
        if self.explode:
            return [(self._own(key), text) for key, text in pairs]
        return [(self.name, self._simple(value, _BETWEEN.get(self.style, ","), str))]

    def _own(self, key: str | None) -> str:
        return self.name if key is None else key


def _pairs(value: Any) -> list[tuple[str | None, str]]:
    """The items of a list, without keys, or the members of an object."""
    match value:
        case list():
            return [(None, plain(each)) for each in cast("list[Any]", value)]
        case dict():
            return [(key, plain(each)) for key, each in cast("dict[str, Any]", value).items()]
        case _:
            return [(None, plain(value))]


def _quoted(text: str) -> str:
    return quote(text, safe="")


def plain(value: Any) -> str:
    """Text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
