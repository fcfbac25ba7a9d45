"""What only a grammar can guarantee of an answer."""

from __future__ import annotations

from toolgram.conversation.request import Request
from toolgram.engines.base import Engine
from toolgram.errors import InvalidRequest

_WHY = "nothing can guarantee it: this model's server takes no grammar (--allow-unenforced asks it all the same)"


def refuse_unenforced(request: Request, engine: Engine) -> None:
    """Raises InvalidRequest where a call is required, or a schema is strict, before an engine that enforces nothing."""
    if not engine.capabilities.unenforced:
        return
    if request.tool_choice.mode == "required":
        raise InvalidRequest("/tool_choice", f"a call is required, but {_WHY}")
    for tool in request.callable_tools:
        if tool.strict:
            raise InvalidRequest(tool.pointer, f"the tool is strict, but {_WHY}")
    if request.response_format is not None and request.response_format.strict:
        raise InvalidRequest(request.response_format.pointer, f"the schema is strict, but {_WHY}")
