"""OpenAI's custom tools, whose argument is plain text: as functions of one string, and back."""

from __future__ import annotations

from typing import Any

from toolgram.api.fields import Body, listed, mapping, string, text
from toolgram.conversation.custom_tools import INPUT, as_function


def tool_as_function(tool: Body, pointer: str) -> tuple[Body, str]:
    """A custom tool as a function tool, strict where it restricts its input, and its name. Raises InvalidRequest."""
    pointer = f"{pointer}/custom"
    custom = mapping(tool.get("custom"), pointer)
    name = text(custom.get("name"), f"{pointer}/name")
    description = string(custom, "description", pointer) or ""
    function = as_function(custom, pointer)
    strict = "pattern" in function["parameters"]["properties"][INPUT]
    return {"type": "function", "function": {**function, "description": description, "strict": strict}}, name


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
