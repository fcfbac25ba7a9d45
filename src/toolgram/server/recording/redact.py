"""A recording without what was said: words become x, digits 1; what the format and the schemas say stays."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

from toolgram.server.recording.values import Recording, Written

# What the request is made of, and not what is said in it.
_KEPT_FIELDS = frozenset(
    (
        *("model", "tools", "functions", "tool_choice", "function_call", "response_format", "text", "output_config"),
        *("style", "grammar", "regex", "choice", "structured_outputs", "json_schema", "ebnf"),
        *("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
        *("chat_template", "reasoning", "reasoning_effort", "stream_options"),
    )
)
_KEPT_KEYS = frozenset(("role", "type", "name", "id", "call_id", "tool_call_id", "tool_use_id", "status", "format"))
_WORD = re.compile(r"\w+")
_TEXT = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|\w+", re.DOTALL)  # what is escaped in JSON stays so
# An image in base64, alone or in an address; in its place stands the smallest one, which an engine is shown as well.
_IMAGE = re.compile(r"(data:[^,]{0,200};base64,)?(?:iVBORw0KGgo|/9j/|R0lGOD)[A-Za-z0-9+/=\s]*")
_SMALLEST = "R0lGODdhAQABAAAAACwAAAAAAQABAAACAkQBADs="
_QUOTED = re.compile(r"'[^']*'")
_ALWAYS = frozenset(("true", "false", "null", "user", "assistant", "system", "tool", "u", "n", "t"))


def redacted(recording: Recording) -> Recording:
    """The recording, with those words masked that are neither of its tools and schemas nor of template and format."""
    given: Any = recording.body
    body = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    kept = {key: value for key, value in body.items() if key in _KEPT_FIELDS}
    source = recording.model.source if recording.model else ""
    known = frozenset(_WORD.findall(json.dumps(kept, ensure_ascii=False) + source + recording.format)) | _ALWAYS
    end = recording.end
    return replace(
        recording,
        body={key: value if key in kept else _masked(value, known) for key, value in body.items()},
        calls=tuple(tuple(_written(call, known) for call in choice) for choice in recording.calls),
        end=replace(
            end,
            message=_QUOTED.sub(lambda quoted: _mask(quoted[0], known), end.message),
            answers=tuple(_masked(answer, known) for answer in end.answers),
        ),
    )


def _written(call: Written, known: Collection[str]) -> Written:
    """Words may go over the ends of pieces: the whole is masked, and cut where it was."""
    whole = _mask("".join(call.pieces), known)
    pieces: list[str] = []
    at = 0
    for piece in call.pieces:
        pieces.append(whole[at : at + len(piece)])
        at += len(piece)
    return replace(call, pieces=tuple(pieces), tokens=(), trace=())


def _masked(value: Any, known: Collection[str]) -> Any:
    match value:
        case str():
            image = _IMAGE.fullmatch(value)
            return _mask(value, known) if image is None else f"{image[1] or ''}{_SMALLEST}"
        case list():
            return [_masked(item, known) for item in cast("list[Any]", value)]
        case dict():
            members = cast("dict[str, Any]", value)
            return {
                key: member if key in _KEPT_KEYS and isinstance(member, str) else _masked(member, known)
                for key, member in members.items()
            }
        case _:
            return value


def _mask(text: str, known: Collection[str]) -> str:
    def word(found: re.Match[str]) -> str:
        said = found[0]
        if said in known or said.startswith("\\"):
            return said
        return "".join("1" if c.isdigit() else c if c == "_" else "x" for c in said)

    return _TEXT.sub(word, text)
