"""OpenAI's custom tools, whose argument is plain text: as functions of one string, and back."""

from __future__ import annotations

import json
import re
from typing import Any

from toolgram.api.fields import Body, listed, mapping, string, text
from toolgram.errors import InvalidRequest

INPUT = "input"

_CUT_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$")
_BEGINNING = re.compile(r'\s*(\{\s*("(i(n(p(u(t("\s*(:\s*)?)?)?)?)?)?)?)?)?')


def tool_as_function(tool: Body, pointer: str) -> tuple[Body, str]:
    """A custom tool as a function tool, and its name. Raises InvalidRequest."""
    custom = mapping(tool.get("custom"), f"{pointer}/custom")
    name = text(custom.get("name"), f"{pointer}/custom/name")
    schema = _schema(custom.get("format"), f"{pointer}/custom/format")
    parameters = {"type": "object", "properties": {INPUT: schema}, "required": [INPUT], "additionalProperties": False}
    function = {
        "name": name,
        "description": string(custom, "description", f"{pointer}/custom") or "",
        "parameters": parameters,
        "strict": "pattern" in schema,
    }
    return {"type": "function", "function": function}, name


def _schema(format_: Any, pointer: str) -> dict[str, Any]:
    match format_:
        case None | {"type": "text"}:
            return {"type": "string"}
        case {"type": "grammar", "grammar": {"syntax": "regex", "definition": str(pattern)}}:
            return {"type": "string", "pattern": f"^(?:{pattern})$"}
        case {"type": "grammar", "grammar": {"syntax": "lark"}}:
            raise InvalidRequest(f"{pointer}/grammar/syntax", "Lark is not read here: write a regex")
        case _:
            raise InvalidRequest(
                pointer,
                'must be {"type": "text"} or {"type": "grammar", "grammar": {"syntax": "regex", "definition": "…"}}',
            )


def choice_as_function(choice: Body) -> Body:
    """A choice of tools in which custom tools are functions."""
    match choice:
        case {"type": "custom", "custom": custom}:
            return {"type": "function", "function": custom}
        case {"type": "allowed_tools", "allowed_tools": {"tools": [*tools], **rest}}:
            tools = listed(tools, "/tool_choice/allowed_tools/tools")
            return {**choice, "allowed_tools": {**rest, "tools": [_allowed(tool) for tool in tools]}}
        case _:
            return choice


def _allowed(tool: Any) -> Any:
    match tool:
        case {"type": "custom", "custom": custom}:
            return {"type": "function", "function": custom}
        case _:
            return tool


def call_as_function(call: Body, pointer: str) -> Body:
    """A call of the conversation's history, of a custom tool or not, as that of a function."""
    if call.get("type") != "custom":
        return call
    custom = mapping(call.get("custom"), f"{pointer}/custom")
    arguments = json.dumps({INPUT: text(custom.get(INPUT), f"{pointer}/custom/input")}, ensure_ascii=False)
    rest = {key: value for key, value in call.items() if key not in ("type", "custom")}
    return {**rest, "type": "function", "function": {"name": custom.get("name"), "arguments": arguments}}


def input_of(arguments: str) -> str:
    """The text that a call of a custom tool carries; of a call that was cut off, what had come of it."""
    begun = _CUT_ESCAPE.sub(r"\1", arguments)
    for whole in (arguments, begun + '"}', arguments + "}"):
        try:
            value = json.loads(whole, strict=False)
        except ValueError:
            continue
        match value:
            case {"input": str(said)}:
                return said
            case _:
                return arguments
    return "" if _BEGINNING.fullmatch(arguments) else arguments
