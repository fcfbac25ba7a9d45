"""Turns with calls, and the results that answer them: which belongs to which, in an order that templates can show."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from operator import itemgetter
from typing import Any, NamedTuple, cast

Message = dict[str, Any]
IdForm = Callable[[str, str, int], str]
"""Which id a template is shown: from the name of the tool, the id of the call, and its place among all calls."""

_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_NO_RESULT = "[no result]"


class _Open(NamedTuple):
    """A call that has no result yet: its tool, its turn, and its place there."""

    name: str
    turn: int
    place: int


def named(turns: list[Message]) -> list[Message]:
    """The conversation with each result behind its call, in the order of the calls, whenever it came.

    Each call has an id, and each result the id and name of its call; those that lack them are matched in order. What
    answers no call stays where it is. A call without a result, before one that has one, gets a text that says so:
    templates that show no ids would give it the result of the other.
    """
    groups: list[list[tuple[int, Message]]] = []  # each turn, and the results of its calls by their places
    open_calls: dict[str, list[_Open]] = {}  # by their ids, of which a turn may have one twice
    count = 0
    for turn in turns:
        if "tool_calls" in turn:
            calls: list[Message] = [
                {**call, "id": call.get("id") or f"call_{count + at}"}
                for at, call in enumerate(cast("list[Message]", turn["tool_calls"]))
            ]
            count += len(calls)
            of_turn: dict[str, list[_Open]] = {}
            for at, call in enumerate(calls):
                of_turn.setdefault(call["id"], []).append(_Open(call["function"]["name"], len(groups), at))
            open_calls |= of_turn
            turn = {**turn, "tool_calls": calls}
        elif turn["role"] == "tool":
            turn, answered = _answering(turn, open_calls)
            if answered is not None:
                groups[answered.turn].append((answered.place, turn))
                continue
        groups.append([(-1, turn)])
    return [turn for group in groups for turn in _in_order(group)]


def _in_order(group: list[tuple[int, Message]]) -> list[Message]:
    """A turn and the results of its calls, as far as there are some, in the order of the calls."""
    places = {place for place, _ in group}
    calls: list[Message] = group[0][1].get("tool_calls", [])
    missing = [(place, _no_result(call)) for place, call in enumerate(calls[: max(places) + 1]) if place not in places]
    return [turn for _, turn in sorted([*group, *missing], key=itemgetter(0))]


def _no_result(call: Message) -> Message:
    return {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": _NO_RESULT}


def _answering(turn: Message, open_calls: dict[str, list[_Open]]) -> tuple[Message, _Open | None]:
    """The result with its call's id and name, and that call, which is then no longer open."""
    id_, name = turn.get("tool_call_id"), turn.get("name")
    if id_ is None:
        id_ = next((call for call, of in open_calls.items() if name in (None, of[0].name)), None)
    of_id = open_calls.get(id_ or "", [])
    answered = of_id.pop(0) if of_id else None
    if id_ in open_calls and not of_id:
        del open_calls[id_]
    name = name or (answered.name if answered else None)
    return {**turn, **({"tool_call_id": id_} if id_ else {}), **({"name": name} if name else {})}, answered


def with_ids(turns: list[Message], form: IdForm) -> list[Message]:
    """The conversation with ids of this form; results, which stand behind their calls, have those of their calls."""
    count = 0
    shown: dict[str, list[str]] = {}  # of the last turn with calls, in which two may have one id
    made: list[Message] = []
    for turn in turns:
        if "tool_calls" in turn:
            calls: list[Message] = turn["tool_calls"]
            ids = [form(call["function"]["name"], call["id"], count + at) for at, call in enumerate(calls)]
            count += len(calls)
            shown = {}
            for call, id_ in zip(calls, ids, strict=True):
                shown.setdefault(call["id"], []).append(id_)
            turn = {**turn, "tool_calls": [{**call, "id": id_} for call, id_ in zip(calls, ids, strict=True)]}
        elif turn["role"] == "tool":
            id_ = turn.get("tool_call_id", "")
            of_call = shown.get(id_)
            told = form(turn.get("name", ""), id_, count) if not of_call else of_call.pop(0)
            turn = {**turn, "tool_call_id": told}
        made.append(turn)
    return made


def short_id(name: str, id_: str, place: int) -> str:
    """An id of nine letters and digits: a digest of one that is none."""
    del name, place
    return id_ if _SHORT_ID.fullmatch(id_) else sha256(id_.encode()).hexdigest()[:9]


def one_call_a_turn(turns: list[Message]) -> list[Message]:
    """Several calls in one turn become several turns, each before its own result."""
    single: list[Message] = []
    at = 0
    while at < len(turns):
        turn, at = turns[at], at + 1
        calls: list[Message] = turn.get("tool_calls", [])
        if len(calls) < 2:
            single.append(turn)
            continue
        results: list[Message] = []
        while at < len(turns) and turns[at]["role"] == "tool":
            results.append(turns[at])
            at += 1
        for index, call in enumerate(calls):
            first = turn if index == 0 else {"role": "assistant", "content": ""}
            own = [result for result in results if result.get("tool_call_id") == call["id"]]
            single += [{**first, "tool_calls": [call]}, *own]
            results = [result for result in results if result not in own]
        single += results
    return single
