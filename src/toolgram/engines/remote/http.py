"""JSON over HTTP, as the engines that talk to a server need it: one answer, or a stream of events."""

from __future__ import annotations

import asyncio
import json
import math
import re
import ssl
import time
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import aclosing, contextmanager
from functools import cache
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx2

from toolgram.errors import EngineError, PromptTooLong

Json = dict[str, Any]
CHECK_SECONDS = 2.0  # that a server has to say whether it is well
_LATELY = 15.0  # seconds; one that spoke to us since then and is silent now is busy
_KEPT_SECONDS = 3.0  # vLLM and SGLang (uvicorn) close what is idle for 5, and a request may be on its way by then
_CONNECT_SECONDS = 10.0
_MOST_SHOWN = 1000  # characters of a server's complaint
_LONGEST_LINE = 1 << 24  # bytes
_MOST_READ = 1 << 20  # bytes of a complaint
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_BUSY = frozenset({408, 425, 429})
_WRONG = frozenset({400, 422})
_LENGTHS = ("maximum context length", "the maximum model length", "longer than the model's context length")
_NOT_LOADED = "model is not loaded"  # as a llama-server says that has several, and loads none by itself
_NOT_THERE = frozenset({400, 404, 405, 410, 501})


class Unavailable(EngineError):
    """A server that cannot be reached, fails, is too busy, or falls silent: another one may do what it cannot."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status  # that it answered with


class Silent(Unavailable):
    """A server that does not answer in time: it may be at work."""


class Refused(EngineError):
    """A server that answers that the request is wrong."""


@cache
def trusted() -> ssl.SSLContext:
    """The certificates that servers are trusted by, read once: a client of httpx2 does so by itself, for 20 ms."""
    return httpx2.create_ssl_context()


def is_local(host: str) -> bool:
    """Whether a host is this machine, as only it is known by."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def takes_proxies(url: str) -> bool:
    """Whether the proxies that variables name (`HTTP_PROXY`) are to be asked for an address; this machine's own servers
    are not behind them, and few people say so in `NO_PROXY`."""
    try:
        return not is_local(urlsplit(url).hostname or "")
    except ValueError:  # it is no address, which whoever asks for it says
        return True


class Http:
    """One server at `url`.

    `timeout` is how many seconds it may be silent; `idle` is how many connections are kept for later. It may be used
    from several event loops, one after the other or at once: each has its own connections. Raises EngineError for what
    is no address.
    """

    def __init__(self, url: str, *, api_key: str | None = None, timeout: float = 120.0, idle: int = 32) -> None:
        if not url.startswith(("http://", "https://")):
            raise EngineError(f"{url!r} is not the address of a server: it begins with neither http:// nor https://")
        self.url = url.rstrip("/")
        self._limits = httpx2.Limits(max_keepalive_connections=idle, keepalive_expiry=_KEPT_SECONDS)
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._timeout = httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS), pool=None)
        self._clients = WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient]()
        self._heard = -math.inf

    async def check(self, path: str) -> None:
        """Raises EngineError unless the server says at `path` that it is well, or is at work: it answered lately."""
        try:
            await self.get(path, timeout=CHECK_SECONDS)
        except Silent:
            if time.monotonic() - self._heard > _LATELY:
                raise

    async def get(self, path: str, *, timeout: float) -> bytes:
        """What the server has at `path`. Raises EngineError unless it says that all is well."""
        response = await self._got(path, timeout)
        if response.is_error:
            raise self._refusal(response.status_code, response.content)
        return response.content

    async def look(self, path: str, *, timeout: float) -> Json | None:
        """The JSON object at `path`, None where the server has no such thing. Raises as `get` does otherwise."""
        response = await self._got(path, timeout)
        if response.is_error and response.status_code not in _NOT_THERE:
            raise self._refusal(response.status_code, response.content)
        try:
            found = json.loads(response.content)
        except ValueError:
            return None
        return found if isinstance(found, dict) and not response.is_error else None  # pyright: ignore[reportUnknownVariableType] - JSON

    async def told(self, path: str, *, timeout: float) -> Json:
        """The JSON object at `path`. Raises EngineError where the server refuses, or has none."""
        return self._object(await self.get(path, timeout=timeout))

    async def _got(self, path: str, timeout: float) -> httpx2.Response:
        try:
            response = await self._client.get(self.url + path, timeout=timeout)
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error
        if response.is_success:
            self._heard = time.monotonic()
        return response

    async def post(self, path: str, body: Mapping[str, Any]) -> Json:
        """The server's answer. Raises Unavailable, or EngineError where it refuses."""
        try:
            response = await self._client.post(self.url + path, json=body)
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error
        if response.is_error:
            raise self._refusal(response.status_code, response.content)
        self._heard = time.monotonic()
        return self._object(response.content)

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Json, None]:
        """The server-sent events of the answer, up to `[DONE]` or its end; closing the generator disconnects.

        Raises as `post` does, also in the middle.
        """
        try:
            async with self._client.stream("POST", self.url + path, json=body) as response:
                if response.is_error:
                    raise self._refusal(response.status_code, await _beginning(response.aiter_bytes()))
                async with aclosing(_lines(response.aiter_bytes())) as lines:
                    async for line in lines:
                        self._heard = time.monotonic()
                        name, _, data = line.partition(b":")
                        if name == b"data" and data.strip() == b"[DONE]":
                            return
                        if name in (b"data", b"error") and data:
                            yield self._event(data, failed=name == b"error")
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    async def aclose(self) -> None:
        """Close the connections of this event loop; those of loops that have ended ended with them."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    @property
    def _client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = httpx2.AsyncClient(
                headers=self._headers,
                timeout=self._timeout,
                limits=self._limits,
                verify=trusted(),
                trust_env=takes_proxies(self.url),
            )
        return self._clients[loop]

    def _event(self, data: bytes, *, failed: bool) -> Json:
        event = self._object(data)
        if failed or event.get("error"):
            code = event.get("code") or (event["error"].get("code") if isinstance(event.get("error"), dict) else None)
            raise self._refusal(code if isinstance(code, int) else 500, data)
        return event

    def _object(self, data: bytes) -> Json:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"{self.url} sends what is no JSON: {_shown(data)}") from error
        if not isinstance(value, dict):
            raise Unavailable(f"{self.url} sends what is no JSON object: {_shown(data)}")
        # Half of a character, which JSON can spell, is no text that could be passed on.
        return _whole(value) if _SURROGATE.search(data) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON

    def _unreachable(self, error: httpx2.HTTPError) -> Unavailable:
        said = str(error) or type(error).__name__
        if isinstance(error, httpx2.ReadTimeout):
            return Silent(f"{self.url} is silent: {said}")
        return Unavailable(f"{self.url} cannot be reached, or broke off: {said}")

    def _refusal(self, status: int, body: bytes) -> EngineError:
        said = _complaint(body)
        if (too_long := _too_long(body, said)) is not None:
            return too_long
        if status >= 500 or status in _BUSY or said == _NOT_LOADED:
            return Unavailable(f"{self.url} fails with status {status}: {said}", status)
        if status in _WRONG:
            return Refused(f"{self.url} refuses the request with status {status}: {said}")
        return EngineError(f"{self.url} refuses the request with status {status}: {said}")


@contextmanager
def understood(url: str) -> Generator[None]:
    """What a server says is read inside. Raises Unavailable where it is not of the form that it should have."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise Unavailable(f"{url} sends what cannot be understood: {_shown(str(error).encode())}") from error


async def _lines(blocks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Lines, ended by line feeds alone: inside JSON text U+2028 and its like do not end one.

    A byte order mark before the first one is none of it, as the specification of server-sent events says.
    """
    rest = bytearray()
    mark = BOM_UTF8
    async for block in blocks:
        first, *others = block.split(b"\n")
        rest += first
        if len(rest) > _LONGEST_LINE:
            raise Unavailable(f"a line of the answer has more than {_LONGEST_LINE} bytes")
        for line in others:
            yield bytes(rest).removeprefix(mark).removesuffix(b"\r")
            rest, mark = bytearray(line), b""
    if rest:
        yield bytes(rest).removeprefix(mark)


def text_of(value: Any) -> str:
    """The value, if it is a string. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"a text is {type(value).__name__}")
    return value


def _whole(value: Any) -> Any:
    """JSON with what is left of half characters replaced."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_whole(each) for each in cast("list[Any]", value)]
        case dict():
            return {_whole(key): _whole(each) for key, each in cast("Json", value).items()}
        case _:
            return value


async def _beginning(blocks: AsyncIterator[bytes]) -> bytes:
    """As much as a complaint may have."""
    read = bytearray()
    async for block in blocks:
        read += block
        if len(read) > _MOST_READ:
            break
    return bytes(read)


def _complaint(body: bytes) -> str:
    """What an error says: `error.message` of OpenAI's form, or one of those that others have."""
    try:
        found = json.loads(body)
    except ValueError:
        return _shown(body)
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and key in found:
            found = found[key]  # pyright: ignore[reportUnknownVariableType] - JSON
    return found if isinstance(found, str) else _shown(body)


def _too_long(body: bytes, said: str) -> PromptTooLong | None:
    """What a complaint of a prompt's length tells; its forms are those of llama-server, OpenAI, vLLM and SGLang."""
    try:
        match json.loads(body):
            case {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": int(tokens), "n_ctx": int(limit)}}:
                return PromptTooLong(tokens, limit)
            case {"error": {"code": "context_length_exceeded"} | {"type": "exceed_context_size_error"}}:
                return PromptTooLong(None, None, said)
            case _:
                pass
    except ValueError:
        return None
    return PromptTooLong(None, None, said) if any(words in said for words in _LENGTHS) else None


def _shown(data: bytes) -> str:
    return data.decode(errors="replace").strip()[:_MOST_SHOWN] or "(nothing)"
