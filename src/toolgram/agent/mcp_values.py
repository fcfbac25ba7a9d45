"""What MCP servers send, in our words: names, results, and what is wrong with an answer."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from mcp import types
from pydantic import ValidationError

from toolgram.agent.results import illustrated, image_kind
from toolgram.errors import ToolgramError, json_pointer
from toolgram.planning.images import data_url
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


def result_of(blocks: Sequence[types.ContentBlock]) -> str:
    """What a server answers with, as text, and its images for a model that sees."""
    images = [_image(block) for block in blocks]
    seen = (_text(block, shown=image is not None) for block, image in zip(blocks, images, strict=True))
    return illustrated("\n".join(map(_text, blocks)), "\n".join(seen), [image for image in images if image is not None])


def _image(block: types.ContentBlock) -> str | None:
    """The URL that holds an image; None for what cannot be shown."""
    if not isinstance(block, types.ImageContent):
        return None
    try:
        data = b64decode(block.data, validate=True)
    except ValueError:
        return None
    return data_url(data, kind) if (kind := image_kind(data)) else None


def _text(block: types.ContentBlock, *, shown: bool = False) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text
        case types.ResourceLink():
            return f"({block.name}: {block.uri})"
        case types.ImageContent() | types.AudioContent():
            return f"({block.mime_type}, {len(block.data) * 3 // 4} bytes{'' if shown else ', which is not shown'})"
        case _:
            return "(binary data, which is not shown)"
