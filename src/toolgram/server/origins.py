"""What pages of other sites may do to a server that the browser before them can reach: nothing, unless it is allowed.

A page may point a name of its own at this machine, and is then of one origin with the server (DNS rebinding); only the
`Host` header tells. And it may send bodies without seeing the answers; browsers tell that in `Sec-Fetch-Site`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address

from toolgram.api.errors import ApiError

_OTHERS = ("cross-site", "same-site")


def check_host(headers: Mapping[bytes, str], hosts: Sequence[str]) -> None:
    """Raises ApiError, a 403, where the name that the client asked for is not one of `hosts`.

    `*.example.com` stands for the names below it, "*" for every one. Addresses and `localhost` always go: no page can
    point them elsewhere. Nor can one leave the name out.
    """
    if (given := headers.get(b"host")) is None or "*" in hosts:
        return
    name = _name(given)
    if not (_is_fixed(name) or any(_fits(name, host.lower()) for host in hosts)):
        told = f"this server does not go by the name {name!r}; `toolgram serve --allowed-hosts` gives it names"
        raise ApiError(403, "host_not_allowed", told)


def check_origin(method: str, headers: Mapping[bytes, str], origins: Sequence[str]) -> None:
    """Raises ApiError, a 403, where a page that is of none of `origins` sends a body; "*" is every origin."""
    if method != "POST" or headers.get(b"sec-fetch-site") not in _OTHERS or "*" in origins:
        return
    origin = headers.get(b"origin", "null")
    if origin not in origins:
        told = f"pages of {origin} may not call this server; `toolgram serve --allowed-origins` lets them"
        raise ApiError(403, "origin_not_allowed", told)


def _name(host: str) -> str:
    """The name without the port."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).strip().lower().removesuffix(".")


def _is_fixed(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _fits(name: str, host: str) -> bool:
    return name.endswith(host[1:]) if host.startswith("*.") else name == host
