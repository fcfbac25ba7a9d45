"""The playground and the page of the API: their files, served as they are in this folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_PATHS = {"index.html": "/", "docs.html": "/docs"}
# The page runs only its own files and talks only to its own server. Nothing in a prompt is ever run; images that stand
# in a request itself are shown.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class Page:
    """A file of a page; `etag` is a hash of its content."""

    content: bytes
    media_type: str
    etag: str


@cache
def pages() -> Mapping[str, Page]:
    """The files, by the paths under which they are served."""
    found: dict[str, Page] = {}
    for place, file in _files(files(__name__), ""):
        media_type = _TYPES.get(f".{file.name.rpartition('.')[2]}")
        if media_type is not None:
            content = file.read_bytes()
            path = _PATHS.get(place, f"/playground/{place}")
            found[path] = Page(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


def _files(folder: Traversable, place: str) -> Iterator[tuple[str, Traversable]]:
    """All files in a folder and its subfolders, with their relative paths."""
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files(each, f"{place}{each.name}/")
        else:
            yield place + each.name, each


def page(request: Request) -> Response:
    """Serves a file; 304 if the browser has it. Browsers ask each time, since another version may be installed."""
    asked = pages()[request.scope["path"]]
    headers = {
        "etag": asked.etag,
        "cache-control": "no-cache",
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
    }
    if asked.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(asked.content, 200, headers, asked.media_type)
