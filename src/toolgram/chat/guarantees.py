"""What a request asks for and an engine cannot do, which nothing then says: it is refused."""

from __future__ import annotations

from collections.abc import Collection

from toolgram.conversation.request import Request, placed
from toolgram.engines.base import Engine
from toolgram.errors import InvalidRequest
from toolgram.template.adapt import parts_beside_text

_WHY = "nothing can guarantee it: this model's server takes no grammar (--allow-unenforced asks it all the same)"
_IMAGES = ("image_url", "image")
_KINDS = {**dict.fromkeys(_IMAGES, "an image"), "input_audio": "a sound", "audio": "a sound"}
"""What they are, since each API has its own name for the same."""


def refuse_unenforced(request: Request, engine: Engine) -> None:
    """Raises InvalidRequest for a call that is required, a strict schema, or a grammar, if the engine enforces none."""
    if not engine.capabilities.unenforced:
        return
    if request.tool_choice.mode == "required":
        raise InvalidRequest("/tool_choice", f"a call is required, but {_WHY}")
    for tool in request.callable_tools:
        if tool.strict:
            raise InvalidRequest(tool.pointer, f"the tool is strict, but {_WHY}")
    if request.response_format is not None and request.response_format.strict:
        raise InvalidRequest(request.response_format.pointer, f"the schema is strict, but {_WHY}")
    if request.grammar is not None:
        raise InvalidRequest(request.grammar.pointer, f"the answer has a grammar, but {_WHY}")


def refuse_parts(request: Request, left_out: Collection[str]) -> None:
    """Raises InvalidRequest for an image or a sound that stands in a message: no engine is given one so.

    `left_out` are the pointers to those in whose place a text stands.
    """
    for part in parts_beside_text(request.messages):
        if (at := placed(request.places, part.pointer)) not in left_out:
            what = _KINDS.get(part.kind, f"a part of type {part.kind!r}")
            but = ", or an image_url to a model that sees (docs/guides/images.md)" if part.kind in _IMAGES else ""
            raise InvalidRequest(at, f"{what} cannot be given to the model: send text alone{but}")
