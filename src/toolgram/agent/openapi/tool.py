"""An operation as a tool that runs: the request that its arguments make, and the answer as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgram.errors import needing

with needing("agent", "an operation that runs"):
    import httpx2

from toolgram.agent.calls import CallFailed, object_of
from toolgram.agent.openapi.places import Place, Sent
from toolgram.engines.remote.http import takes_proxies, trusted

Json = Mapping[str, Any]

_READ = ("get", "head", "options", "query")
_MAX_ANSWER = 1_000_000  # bytes that are read of an answer


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
                httpx2.AsyncClient(timeout=None, verify=trusted(), trust_env=takes_proxies(url)) as client,
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
