"""How responses get into the store, and out of it: what a request goes on from, and what is kept of its answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolgram.api.errors import ApiError
from toolgram.api.json_text import json_bytes, kept_bytes
from toolgram.api.responses.input import Earlier, Reference, new_items, references
from toolgram.api.responses.request import SentBody
from toolgram.server.bodies import parsed
from toolgram.server.middleware import too_large
from toolgram.server.settings import Settings
from toolgram.server.store import Client, Kept, Store, Turn

Json = dict[str, Any]

_ITEM_ID = re.compile(r"[a-z]+_(?P<response>[\da-f]{32})_(?P<sent>in)?(?P<number>\d{1,6})", re.ASCII)
_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "function_call_output": "fco",
    "custom_tool_call_output": "ctco",
}
_EVERY = 60.0  # seconds
_LONG = 1 << 16  # bytes of a response that is kept in a thread, since it may take the place of many
_LONGEST_ID = 100  # characters of one in an error


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be kept of a request when its response is there."""

    id: str
    client: Client
    before: Turn | None
    input: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a request goes on from: the items that it names, and the turn that its own is behind."""

    earlier: Earlier
    before: Turn | None


def found(store: Store, client: Client, sent: SentBody, settings: Settings) -> Found:
    """What a body names of what is kept, and reasoning that it leaves out. It may be as large as a body that brings it.

    Raises ApiError: 404 for what is not kept, 413 where it is too large.
    """
    before, conversation = None, list[bytes]()
    size = 0
    if previous := sent.body.previous_response_id:
        if (kept := store.find(client.reader, previous)) is None:
            reason = f"no response {_short(previous)} is kept: {_why(settings)}; give the whole conversation as input"
            raise ApiError(404, "previous_response_not_found", reason, "/previous_response_id")
        before, size = kept.turn, kept.turn.size
        if size > settings.max_body:
            raise too_large(settings)
        conversation = before.conversation
    named = dict[str, bytes]()
    for each in references(sent.body):
        item = named.get(each.id) or _item(store, client, each, settings)
        if item is None:
            continue
        named[each.id] = item
        size += len(item)
        if size > settings.max_body:
            raise too_large(settings)
    values = parsed(bytearray(b"[%b]" % b",".join((*conversation, *named.values()))))
    items = dict(zip(named, values[len(conversation) :], strict=True))
    return Found(Earlier(values[: len(conversation)], items), before)


def _item(store: Store, client: Client, named: Reference, settings: Settings) -> bytes | None:
    """An item by its id, which says where it is kept; None for one that is not, and is not needed. Else it raises
    ApiError 404."""
    place = _ITEM_ID.fullmatch(named.id)
    kept = None if place is None else store.find(client.reader, f"resp_{place['response']}")
    if kept is not None and place is not None:
        items, number = kept.turn.input if place["sent"] else kept.turn.output, int(place["number"])
        if number < len(items) and items[number].startswith(b'{"id":%b,' % json_bytes(named.id)):
            return items[number]
    if not named.needed:
        return None
    reason = f"no item {_short(named.id)} is kept: {_why(settings)}; send the item itself, as clients do"
    raise ApiError(404, "item_not_found", f"{reason} with `store` false", f"/input/{named.at}/id")


def drafted(store: Store, client: Client, sent: SentBody, before: Found, id_: str) -> Draft | None:
    """What is to be kept with the response of this id; None for nothing: the body asks for that, or is too large."""
    if not store.largest or sent.body.store is False:
        return None
    items = new_items(sent.body, sent.given, before.earlier)
    packed = tuple(kept_bytes(_with_id(item, id_, number)) for number, item in enumerate(items))
    size = sum(map(len, packed)) + (0 if before.before is None else before.before.size)
    return Draft(id_, client, before.before, packed) if size <= store.largest else None


def _with_id(item: Mapping[str, Any], id_: str, number: int) -> Json:
    """An item with an id, which is made of that of its response where it has none."""
    kind = item.get("type") or "message"
    own = item.get("id") or f"{_PREFIXES.get(kind, 'item')}_{id_.removeprefix('resp_')}_in{number}"
    return {"id": own, "type": kind, **{name: value for name, value in item.items() if name not in ("id", "type")}}


async def keep(store: Store, draft: Draft, response: Json) -> bool:
    """Keep a response; whether there is room for it."""
    output = tuple(map(kept_bytes, response["output"]))
    turn = Turn.after(draft.before, draft.client.holder, draft.input, output)
    fields = kept_bytes({name: value for name, value in response.items() if name != "output"})
    kept = Kept(draft.id, draft.client.reader, turn, fields)
    if kept.weight + turn.weight > _LONG:
        return await asyncio.to_thread(store.put, kept)
    return store.put(kept)


def response_of(kept: Kept) -> bytes:
    """A response as it was given."""
    return b'%b,"output":[%b]}' % (kept.fields[:-1], b",".join(kept.turn.output))


def input_of(kept: Kept) -> Iterator[Json]:
    """The items that a response was given for, the last one first, those of earlier responses too."""
    items = kept.turn.conversation
    return (parsed(bytearray(item)) for item in reversed(items[: len(items) - len(kept.turn.output)]))


def known(store: Store, client: Client, id_: str, settings: Settings) -> Kept:
    """A response that a client asks for. Raises ApiError 404 where it is not kept."""
    if (kept := store.find(client.reader, id_)) is None:
        raise not_kept(id_, settings)
    return kept


def not_kept(id_: str, settings: Settings) -> ApiError:
    """What a client is told that asks for a response which is not kept."""
    return ApiError(404, "response_not_found", f"no response {_short(id_)} is kept: {_why(settings)}")


def _why(settings: Settings) -> str:
    if settings.workers > 1:
        return "this server keeps none, since it has several workers (`--workers`)"
    if not settings.max_store:
        return "this server keeps none (`--max-store 0`)"
    size = f"{settings.max_store >> 20} MB" if settings.max_store >> 20 else f"{settings.max_store} bytes"
    return (
        f"a server of one worker keeps responses for an hour after they were last used, up to {size} together "
        "(`--max-store`), but none with `store` false, of another key, or from before it was started"
    )


def _short(id_: str) -> str:
    return repr(id_ if len(id_) <= _LONGEST_ID else f"{id_[:_LONGEST_ID]}…")


async def forgetting(store: Store, every: float = _EVERY) -> None:
    """Forget what is too old, until this is cancelled, also where nobody asks."""
    while True:
        await asyncio.sleep(0 if store.forget_old() else every)
