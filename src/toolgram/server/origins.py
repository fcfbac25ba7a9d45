"""What pages of other sites may do to a server that the user's browser can reach: nothing, unless allowed.

A page may point its own host name at this machine, and then shares the server's origin (DNS rebinding); only the `Host`
header reveals it. And it may send bodies without seeing the answers, which browsers report in `Sec-Fetch-Site`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address

from toolgram.api.errors import ApiError

_OTHERS = ("cross-site", "same-site")


def check_host(headers: Mapping[bytes, str], hosts: Sequence[str]) -> None:
    """Raises ApiError 403 if the host name that the client used is not one of `hosts`.

    `*.example.com` stands for the names below it, "*" for any name. Addresses and `localhost` always work, since no
    page can point them elsewhere; nor can a page leave the name out.
    """
    if (given := headers.get(b"host")) is None or "*" in hosts:
        return
    name = _name(given)
    if not (_is_fixed(name) or any(_fits(name, host.lower()) for host in hosts)):
        message = f"this server does not answer to the name {name!r}: allow it with `toolgram serve --allowed-hosts`"
        raise ApiError(403, "host_not_allowed", message)


def check_origin(method: str, headers: Mapping[bytes, str], origins: Sequence[str]) -> None:
    """Raises ApiError 403 if a page that belongs to none of `origins` sends a body, or asks whether it may.

    "*" is any origin. Where there are some, what asks is answered before it comes here.
    """
    sends = method == "POST" and headers.get(b"sec-fetch-site") in _OTHERS
    asks = method == "OPTIONS" and b"access-control-request-method" in headers
    if not (sends or asks) or "*" in origins:
        return
    origin = headers.get(b"origin", "null")
    if origin not in origins:
        reason = (
            f"pages of {origin} may not call this server: allow them with `toolgram serve --allowed-origins {origin}`"
        )
        raise ApiError(403, "origin_not_allowed", reason)


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
