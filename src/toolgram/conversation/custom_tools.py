"""Custom tools of the chat-completions API: their input is text, not JSON.

To a model such a tool is a function of one string::

    {"type": "custom", "custom": {"name": "run", "format": {"type": "grammar", "grammar": {
        "syntax": "regex", "definition": "[a-z]+"}}}}
    {"name": "run", "parameters": {"type": "object", "properties": {"input": {"type": "string", "pattern": "…"}}, …}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any, TypeGuard

from toolgram.conversation.fields import Json
from toolgram.conversation.lark_patterns import as_pattern
from toolgram.conversation.patterns import as_a_whole
from toolgram.conversation.tool_shapes import Custom, CustomGrammar, GrammarInput, PlainInput
from toolgram.errors import GrammarError, InvalidRequest

INPUT = "input"
DEFINITION = "format/grammar/definition"
"""Where a custom tool has its grammar."""
_HALF_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$")
_BEGINNING = re.compile(r'\s*(\{\s*("(i(n(p(u(t("\s*(:\s*)?)?)?)?)?)?)?)?)?')


def as_function(custom: Custom, pointer: str) -> dict[str, Any]:
    """The function that stands for a custom tool; `pointer` is where its grammar stands, if it has one.

    Raises InvalidRequest for a grammar that cannot be enforced: one in Lark that is no regular expression.
    """
    schema = {"type": "string", **_restriction(custom.format, pointer)}
    parameters = {"type": "object", "properties": {INPUT: schema}, "required": [INPUT], "additionalProperties": False}
    described = {key: value for key in ("name", "description") if (value := getattr(custom, key)) is not None}
    return {**described, "parameters": parameters}


def _restriction(given: PlainInput | GrammarInput | None, pointer: str) -> dict[str, str]:
    match given:
        case GrammarInput(grammar=CustomGrammar(syntax="regex", definition=pattern)):
            return {"pattern": as_a_whole(pattern, pointer)}
        case GrammarInput(grammar=CustomGrammar(definition=grammar)):
            try:
                return {"pattern": f"^{as_pattern(grammar)}$"}
            except GrammarError as error:
                raise InvalidRequest(pointer, str(error)) from error
        case _:
            return {}


def call_as_function(name: str, said: str) -> dict[str, Any]:
    """A call of a custom tool, as in the history of a conversation, as the call of its function."""
    arguments = json.dumps({INPUT: said}, ensure_ascii=False)
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def with_inputs(messages: Iterable[Json], custom: Collection[str]) -> tuple[Json, ...]:
    """The messages, in whose calls of these custom tools what is said may stand as it is, in the place of arguments.

    Cursor sends calls of its ApplyPatch so, as those of a function.
    """
    return tuple(_with_inputs(each, custom) if custom and each.get("tool_calls") else each for each in messages)


def _with_inputs(message: Json, custom: Collection[str]) -> Json:
    calls = [
        {**call, **call_as_function(name, said)}
        if (name := call["function"]["name"]) in custom and _is_input(said := call["function"].get("arguments"))
        else call
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def _is_input(arguments: Any) -> TypeGuard[str]:
    """Whether the arguments of a call are an input as it is."""
    return isinstance(arguments, str) and not arguments.lstrip().startswith("{")


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
