"""The items of a conversation: those that a body brings, behind those that it names of earlier responses.

A body names what the server kept by the id of a response, whose whole conversation comes first, or by that of an item::

    {"previous_response_id": "resp_1", "input": [{"type": "item_reference", "id": "msg_0"}, {"role": "user", …}]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from toolgram.api.responses.body import Item, MessageItem, ReasoningItem, ReferenceItem, ResponsesBody
from toolgram.api.responses.parts import MESSAGE
from toolgram.conversation.fields import MAX_TURNS, Fields, Json, Many, validated
from toolgram.errors import InvalidRequest

_PREVIOUS = "/previous_response_id"
_INPUT = "/input"
_WITH_STATUS = ("message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")


class KeptItems(Fields):
    """Items of earlier responses."""

    items: Many[Item]


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a body names, as JSON: the `conversation` up to its previous response, and `items` by their ids."""

    conversation: Sequence[Json] = ()
    items: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Input:
    """The items of a conversation, and for each a pointer to where it stands, or is named, in the body."""

    items: tuple[Item, ...]
    places: tuple[str, ...]


class Reference(NamedTuple):
    """An item of the input that is named by its id: its place there, and whether it is nothing without what is kept."""

    at: int
    id: str
    needed: bool


def references(body: ResponsesBody) -> list[Reference]:
    """The items of its input that a body names, and reasoning that has an id alone: so LangChain sends back what it
    streamed."""
    found: list[Reference] = []
    for at, item in enumerate(() if isinstance(body.input, str) else body.input):
        if isinstance(item, ReferenceItem):
            found.append(Reference(at, item.id, needed=True))
        elif isinstance(item, ReasoningItem) and item.id and not item.holds_anything:
            found.append(Reference(at, item.id, needed=False))
    return found


def input_of(body: ResponsesBody, earlier: Earlier) -> Input:
    """The conversation of a body. Raises InvalidRequest for too many items, and for what it names and is not there."""
    if body.previous_response_id and not earlier.conversation:
        raise InvalidRequest(_PREVIOUS, "no state is kept here: give the whole conversation as input")
    count = len(earlier.conversation) + (1 if isinstance(body.input, str) else len(body.input))
    if count > MAX_TURNS:
        raise InvalidRequest(_PREVIOUS, f"a conversation has at most {MAX_TURNS} items, not {count}")
    before = _read(earlier.conversation, _PREVIOUS)
    if isinstance(body.input, str):
        return Input((*before, MessageItem(role="user", content=body.input)), (*(_PREVIOUS for _ in before), _INPUT))
    named = {at: _named(earlier, id_, f"{_INPUT}/{at}") for at, id_ in _named_in(body, earlier).items()}
    items = (*before, *(named.get(i, item) for i, item in enumerate(body.input)))
    return Input(items, (*(_PREVIOUS for _ in before), *(f"{_INPUT}/{i}" for i in range(len(body.input)))))


def new_items(body: ResponsesBody, given: Json, earlier: Earlier) -> list[Json]:
    """The items of a body's own input as JSON, those that it names in their places."""
    if isinstance(body.input, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": body.input}]}]
    named = _named_in(body, earlier)
    return [earlier.items[named[i]] if i in named else item for i, item in enumerate(given["input"])]


def listed(item: Json) -> Json:
    """An item as OpenAI lists it, which typed clients rely on: a message's text in parts, and a status."""
    item = dict(item)
    if item["type"] == "message" and isinstance(text := item.get("content"), str):
        said = item.get("role") == "assistant"
        item["content"] = [MESSAGE.part_of(text) if said else {"type": "input_text", "text": text}]
    if item["type"] in _WITH_STATUS and item.get("status") is None:
        item["status"] = "completed"
    return item


def _named_in(body: ResponsesBody, earlier: Earlier) -> dict[int, str]:
    """The ids of the items that stand for those of its input, by their places in it."""
    return {each.at: each.id for each in references(body) if each.needed or each.id in earlier.items}


def _named(earlier: Earlier, id_: str, pointer: str) -> Item:
    if id_ not in earlier.items:
        raise InvalidRequest(f"{pointer}/id", "no items are stored here: send the item itself")
    return _read([earlier.items[id_]], pointer)[0]


def _read(items: Sequence[Json], pointer: str) -> list[Item]:
    """Items of ours as a body's are read."""
    try:
        return validated(KeptItems, {"items": list(items)}).items
    except InvalidRequest as error:  # at its place among these, which the client does not see
        raise InvalidRequest(pointer, f"what was kept of it cannot be read: {error}") from error
