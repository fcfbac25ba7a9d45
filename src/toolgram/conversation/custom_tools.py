"""Custom tools of the chat-completions API: their input is text, not JSON.

To a model such a tool is a function of one string::

    {"type": "custom", "custom": {"name": "run", "format": {"type": "grammar", "grammar": {
        "syntax": "regex", "definition": "[a-z]+"}}}}
    {"name": "run", "parameters": {"type": "object", "properties": {"input": {"type": "string", "pattern": "…"}}, …}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from toolgram.conversation.lark_patterns import as_pattern
from toolgram.errors import GrammarError, InvalidRequest

INPUT = "input"
_HALF_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$")
_BEGINNING = re.compile(r'\s*(\{\s*("(i(n(p(u(t("\s*(:\s*)?)?)?)?)?)?)?)?)?')


def as_function(custom: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """The function that stands for a custom tool, whose `custom` object is at this pointer.

    Raises InvalidRequest for a format that is not known, or that cannot be enforced: grammars in Lark that are no
    regular expressions.
    """
    schema = {"type": "string", **_restriction(custom.get("format"), f"{pointer}/format")}
    parameters = {"type": "object", "properties": {INPUT: schema}, "required": [INPUT], "additionalProperties": False}
    described = {key: custom[key] for key in ("name", "description") if key in custom}
    return {**described, "parameters": parameters}


def _restriction(given: Any, pointer: str) -> dict[str, str]:
    match given:
        case None | {"type": "text"}:
            return {}
        case {"type": "grammar", "grammar": {"syntax": "regex", "definition": str(pattern)}}:
            return {"pattern": f"^(?:{pattern})$"}
        case {"type": "grammar", "grammar": {"syntax": "lark", "definition": str(grammar)}}:
            try:
                return {"pattern": f"^{as_pattern(grammar)}$"}
            except GrammarError as error:
                raise InvalidRequest(f"{pointer}/grammar/definition", str(error)) from error
        case _:
            raise InvalidRequest(
                pointer,
                'must be {"type": "text"} or {"type": "grammar", "grammar": {"syntax": "regex" or "lark", '
                '"definition": "…"}}',
            )


def call_as_function(call: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """A call of a custom tool, as in the history of a conversation, as the call of its function."""
    custom = call.get("custom")
    if not isinstance(custom, Mapping):
        raise InvalidRequest(f"{pointer}/custom", "must be an object")
    said = cast("Mapping[str, Any]", custom)
    for key in ("name", INPUT):
        if not isinstance(said.get(key), str):
            raise InvalidRequest(f"{pointer}/custom/{key}", "must be a string")
    arguments = json.dumps({INPUT: said[INPUT]}, ensure_ascii=False)
    kept = {key: value for key, value in call.items() if key != "custom"}
    return {**kept, "type": "function", "function": {"name": said.get("name"), "arguments": arguments}}


def input_of(arguments: str) -> str:
    """The input that the arguments of a call say; of a call that was cut off, what had come of it.

    Other arguments are given as they are.
    """
    begun = _HALF_ESCAPE.sub(r"\1", arguments)
    for whole in (arguments, begun + '"}', arguments + "}"):
        try:
            value = json.loads(whole, strict=False)
        except (ValueError, RecursionError):
            continue
        match value:
            case {"input": str(said)}:
                return said
            case _:
                return arguments
    return "" if _BEGINNING.fullmatch(arguments) else arguments
