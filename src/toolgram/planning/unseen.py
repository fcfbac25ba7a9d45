"""What is sent, and no word of which the prompt has: a text is told of, and tools are announced another way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from toolgram.planning.rendering import text_of
from toolgram.work import give_way

_WORD = re.compile(r"[A-Za-z0-9]{4,}")  # no template writes these otherwise
_LOOKED_AT = 1000  # characters at each end of a text: of a long one that is lost each word is looked for in the prompt
_TOLD_BY = 64  # words of tools
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?', re.DOTALL)  # a key, with its colon, or a text
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_FOREIGN = re.compile(r"[^\x00-\x7f]+")  # which some write as escapes


def unseen(messages: Sequence[Mapping[str, Any]], prompt: str) -> Iterator[str]:
    """Pointers to the texts and the calls of which a template shows nothing."""
    place = 0  # turns stand in their order, so that each is looked for behind the one before

    def is_lost(text: str) -> bool:
        nonlocal place
        give_way()
        text = text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]} {text[-_LOOKED_AT:]}"
        for word in _words(text):
            at = prompt.find(word, place)
            if at >= 0 or word in prompt:
                place = max(place, at)
                return False
        return _WORD.search(text) is not None

    for number, message in enumerate(messages):
        if is_lost(text_of(message.get("content"))):
            yield f"/messages/{number}/content"
        calls = message.get("tool_calls") or ()
        if calls and is_lost(" ".join(chain.from_iterable(map(_texts_of, calls)))):
            yield f"/messages/{number}/tool_calls"


def hides(tools: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]], prompt: str) -> bool:
    """Whether a template shows nothing of tools in this conversation, as some do behind a result: none of their words,
    but for those that the conversation has itself."""
    said = [text for message in messages for text in _said(message)]
    words = (word for tool in tools for word in _words_of(tool["function"]) if not any(word in text for text in said))
    looked_for = False
    for word in islice(words, _TOLD_BY):
        looked_for = True
        if word in prompt:
            return False
    return looked_for


def _said(message: Mapping[str, Any]) -> Iterator[str]:
    yield text_of(message.get("content"))
    for call in message.get("tool_calls") or ():
        yield call["function"]["name"]
        yield _arguments_of(call)


def _words_of(function: Mapping[str, Any]) -> Iterator[str]:
    """The words of a tool's name, its description, and the names of its arguments."""
    match function:
        case {"parameters": {"properties": {**named}}}:
            names = tuple(named)
        case _:
            names = ()
    return chain.from_iterable(map(_words, (function["name"], function.get("description") or "", *names)))


def _words(text: str) -> Iterator[str]:
    return (found[0] for pattern in (_WORD, _FOREIGN) for found in pattern.finditer(text))


def _texts_of(call: Mapping[str, Any]) -> Iterator[str]:
    """The texts in the arguments of a call, whose name and keys the prompt may have where the tool is announced.

    They are looked for in the JSON as it stands: it may nest without end, or be broken.
    """
    return (_ESCAPE.sub(" ", text) for text, colon in _STRING.findall(_arguments_of(call)) if not colon)


def _arguments_of(call: Mapping[str, Any]) -> str:
    arguments = call["function"].get("arguments") or ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
