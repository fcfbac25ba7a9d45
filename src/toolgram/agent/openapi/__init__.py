"""Operations of an OpenAPI document as tools: 3.0, 3.1 and 3.2, from a mapping, a file or a URL.

A tool takes the parameters of its operation by their names, and a JSON body as `body`. Of the components only what an
operation refers to stands in its schema, under `$defs`, so that types which refer to themselves stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from toolgram.errors import needing

with needing("agent", "an operation that runs"):
    import httpx2

from toolgram.agent.openapi.document import Document, secret_names
from toolgram.agent.openapi.tool import OpenApiTool
from toolgram.agent.tools import InvalidTool
from toolgram.engines.remote.http import takes_proxies, trusted

__all__ = ["OpenApiTool", "fetched", "openapi_tools", "secrets_in"]

_SECONDS = 60.0  # that a document has to be fetched


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
    if not isinstance(document, Mapping) or not str(cast("Mapping[str, Any]", document).get("openapi", "")).startswith(
        "3."
    ):
        raise InvalidTool('not an OpenAPI 3 document: it has no "openapi": "3.…"')
    api = Document(cast("Mapping[str, Any]", document), dict(auth or {}))
    try:
        tools = list(api.tools(base_url, headers or {}))
    except (TypeError, AttributeError, RecursionError) as error:  # of what stands where something else is meant
        raise InvalidTool(f"the document cannot be read: {error}") from error
    tools = [tool for tool in tools if only is None or tool.name in only]
    if missing := sorted(set(only or ()) - {tool.name for tool in tools}):
        raise InvalidTool(f"the document has no operation {', '.join(missing)}")
    return tools


def secrets_in(environment: Mapping[str, str], document: Any) -> dict[str, str]:
    """The secrets of the document's security schemes: `TOOLGRAM_AUTH_` and the name of the scheme in capitals."""
    names = secret_names(document)
    known = {name: environment.get(f"TOOLGRAM_AUTH_{re.sub('[^A-Z0-9]', '_', name.upper())}") for name in names}
    return {name: secret for name, secret in known.items() if secret}


def fetched(url: str) -> Any:
    """The document at an address. Raises InvalidTool."""
    try:
        answer = httpx2.get(
            url, follow_redirects=True, timeout=_SECONDS, verify=trusted(), trust_env=takes_proxies(url)
        ).raise_for_status()
        return answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise InvalidTool(f"{url}: it cannot be fetched: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidTool(f"{url}: not JSON: {error}") from error
