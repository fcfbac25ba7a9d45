"""The tools of a `/v1/messages` body: those of the client's own, and those that Anthropic defined and a client runs.

A typed tool has no schema in the body, since Anthropic's models were trained on it; another model is shown the one that
the documentation gives (docs.anthropic.com, Bash tool, Text editor tool, Memory tool). What Anthropic runs itself
(`web_search_20250305`, …) is left out, and named.
"""

from __future__ import annotations

from typing import Any

from toolgram.api.messages.body import AnthropicTool, OtherTool
from toolgram.conversation.request import Tool, tool_of
from toolgram.conversation.tool_shapes import Function

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_LINES: Json = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_VIEW: Json = {"path": _TEXT, "view_range": _LINES}


def _commands(*commands: str, **arguments: Json) -> Json:
    properties = {"command": {"type": "string", "enum": list(commands)}, **arguments}
    return {"type": "object", "properties": properties, "required": ["command"], "additionalProperties": False}


_EDITS: Json = {**_VIEW, "file_text": _TEXT, "old_str": _TEXT, "new_str": _TEXT, "insert_line": {"type": "integer"}}
_TYPED: dict[str, tuple[str, Json]] = {
    "bash_": (
        "Runs a command in a bash session that goes on from call to call; `restart` begins another one.",
        {
            "type": "object",
            "properties": {"command": _TEXT, "restart": {"type": "boolean"}},
            "additionalProperties": False,
        },
    ),
    "text_editor_": (
        "Views, creates and edits text files: `str_replace` replaces `old_str`, which stands in the file once, by "
        "`new_str`; `insert` puts `insert_text` (or `new_str`) after a line.",
        _commands("view", "create", "str_replace", "insert", "undo_edit", **_EDITS, insert_text=_TEXT),
    ),
    "memory_": (
        "Keeps notes in files under /memories.",
        _commands(
            *("view", "create", "str_replace", "insert", "delete", "rename"),
            **_EDITS,
            insert_text=_TEXT,
            old_path=_TEXT,
            new_path=_TEXT,
        ),
    ),
}


def tool_for(tool: AnthropicTool | OtherTool, pointer: str) -> Tool | None:
    """The tool as a model is shown it; None for one that Anthropic runs itself."""
    if isinstance(tool, AnthropicTool):
        function = Function(
            name=tool.name, description=tool.description, parameters=tool.input_schema, strict=tool.strict
        )
        return tool_of(function, pointer, f"{pointer}/input_schema")
    for prefix, (about, schema) in _TYPED.items():
        if tool.type.startswith(prefix) and tool.name:
            function = Function(name=tool.name, description=about, parameters=schema)
            return tool_of(function, pointer, f"{pointer}/type")
    return None
