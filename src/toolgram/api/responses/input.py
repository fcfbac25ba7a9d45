"""The items of a conversation: those that a body brings, behind those that it names of earlier responses.

A body names what the server kept by the id of a response, whose whole conversation comes first, or by that of an item::

    {"previous_response_id": "resp_1", "input": [{"type": "item_reference", "id": "msg_0"}, {"role": "user", …}]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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


def references(body: ResponsesBody) -> list[tuple[int, str]]:
    """The items of its input that a body names, by their places in it and their ids."""
    items = () if isinstance(body.input, str) else body.input
    return [(i, item.id) for i, item in enumerate(items) if isinstance(item, ReferenceItem)]


def empty_thoughts(body: ResponsesBody) -> list[tuple[int, str]]:
    """The reasoning in its input that has an id alone, as LangChain sends back what it streamed, by place and id."""
    items = () if isinstance(body.input, str) else body.input
    thoughts = [(i, item) for i, item in enumerate(items) if isinstance(item, ReasoningItem)]
    return [
        (i, item.id) for i, item in thoughts if item.id and not (item.content or item.summary or item.encrypted_content)
    ]


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
    named = {i: _named(earlier, id_, f"{_INPUT}/{i}") for i, id_ in (*references(body), *_remembered(body, earlier))}
    items = (*before, *(named.get(i, item) for i, item in enumerate(body.input)))
    return Input(items, (*(_PREVIOUS for _ in before), *(f"{_INPUT}/{i}" for i in range(len(body.input)))))


def new_items(body: ResponsesBody, given: Json, earlier: Earlier) -> list[Json]:
    """The items of a body's own input as JSON, those that it names in their places."""
    if isinstance(body.input, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": body.input}]}]
    named = dict((*references(body), *_remembered(body, earlier)))
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


def _remembered(body: ResponsesBody, earlier: Earlier) -> list[tuple[int, str]]:
    """The reasoning in its input of which what was thought is kept."""
    return [(i, id_) for i, id_ in empty_thoughts(body) if id_ in earlier.items]


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
