"""What MCP servers send, in our words: names, results, and what is wrong with an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from mcp import types
from pydantic import ValidationError

from toolgram.agent.illustrated import Illustrated, about_image, with_images
from toolgram.errors import ToolgramError, json_pointer
from toolgram.schema import schema_grammar

MAX_NAME = 64  # characters of a name that every API takes
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """`server_tool`, in characters that every API takes; one that is too long ends in a digest of the whole."""
    name = _NOT_IN_NAMES.sub("_", f"{server}_{tool}")
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 9]}_{sha256(name.encode()).hexdigest()[:8]}"


def wrong_at(error: ValidationError) -> str:
    """Where something is first wrong, and what."""
    first, *_ = error.errors(include_url=False, include_context=False, include_input=False)
    return f"{''.join(map(json_pointer, first['loc']))}: {first['msg']}"


def problem_of(schema: Mapping[str, Any]) -> str:
    """Why no tool can have this schema, which one tool among many must not tell all others' users; else ""."""
    try:
        schema_grammar(schema, mode="relaxed")
    except (ToolgramError, RecursionError) as error:
        return str(error)
    return ""


def writes(tool: types.Tool) -> bool:
    return tool.annotations is None or tool.annotations.read_only_hint is not True


def result_of(blocks: Sequence[types.ContentBlock]) -> str | Illustrated:
    """What a server answers with, as text, and the images in it for a model that sees."""
    given = {at: data for at, block in enumerate(blocks) for _, data in _images(block)}
    return with_images([_text(block) for block in blocks], given)


def _images(block: types.ContentBlock) -> list[tuple[str, str]]:
    """What image a block is, and its data in base64; nothing for any other."""
    match block:
        case types.ImageContent(mime_type=kind, data=data):
            return [(kind, data)]
        case types.EmbeddedResource(resource=types.BlobResourceContents(mime_type=str(kind), blob=data)):
            return [(kind, data)] if kind.startswith("image/") else []
        case _:
            return []


def _text(block: types.ContentBlock) -> str:
    for kind, data in _images(block):
        return about_image(kind, len(data) * 3 // 4)
    match block:
        case types.TextContent(text=text):
            return text
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text
        case types.ResourceLink():
            return f"({block.name}: {block.uri})"
        case types.AudioContent():
            return f"({block.mime_type}, {len(block.data) * 3 // 4} bytes, which is not shown)"
        case _:
            return "(binary data, which is not shown)"
