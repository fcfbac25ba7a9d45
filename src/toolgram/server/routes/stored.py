"""Responses that are kept: OpenAI's `/v1/responses/{id}`, to read or forget, and `/v1/responses/{id}/input_items`."""

from __future__ import annotations

from itertools import islice
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from toolgram.api.errors import ApiError
from toolgram.api.responses.input import listed
from toolgram.server.context import Desk, json_response
from toolgram.server.keeping import input_of, known, not_kept, response_of
from toolgram.server.request_log import record_of
from toolgram.server.store import Kept
from toolgram.work import in_thread

_PAGE, _LARGEST_PAGE = 20, 100  # items, as OpenAI has them
_ORDERS = ("asc", "desc")


async def response(desk: Desk, request: Request) -> ASGIApp:
    """A response that is kept; what was streamed is not streamed again."""
    if request.query_params.get("stream") == "true":
        raise ApiError(400, "not_supported", "a response that is kept is given whole: leave it out", "/stream")
    kept = _kept(desk, request)
    return Response(response_of(kept), 200, record_of(request.scope).headers, "application/json")


async def forget(desk: Desk, request: Request) -> ASGIApp:
    """Forget a response; those that went on from it stay."""
    id_ = request.path_params["id"]
    if not desk.store.forget(record_of(request.scope).client.reader, id_):
        raise not_kept(id_, desk.settings)
    return json_response(request, {"id": id_, "object": "response", "deleted": True})


async def input_items(desk: Desk, request: Request) -> ASGIApp:
    """The items that a response was given for, those of earlier responses too."""
    kept, asked = _kept(desk, request), request.query_params
    limit, order = asked.get("limit", str(_PAGE)), asked.get("order", "desc")
    if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:4]) <= _LARGEST_PAGE:
        raise ApiError(400, "invalid_value", f"must be a number from 1 to {_LARGEST_PAGE}", "/limit")
    if order not in _ORDERS:
        raise ApiError(400, "invalid_value", f"must be one of {', '.join(_ORDERS)}", "/order")
    return json_response(request, await in_thread(_page, kept, int(limit), order, asked.get("after")))


def _page(kept: Kept, limit: int, order: str, after: str | None) -> dict[str, Any]:
    items = list(input_of(kept))
    if order == "asc":
        items.reverse()
    rest = iter(items)
    if after is not None and not any(item["id"] == after for item in rest):
        raise ApiError(400, "invalid_value", "no item has this id", "/after")
    page = [listed(item) for item in islice(rest, limit)]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return {"object": "list", "data": page, **ends, "has_more": next(rest, None) is not None}


def _kept(desk: Desk, request: Request) -> Kept:
    id_ = request.path_params["id"]
    if request.url.path.endswith("/input_tokens"):  # which is no id, and a route of its own for another method
        raise HTTPException(405, headers={"allow": "POST"})
    return known(desk.store, record_of(request.scope).client, id_, desk.settings)
