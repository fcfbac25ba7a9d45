"""What a body of `/v1/responses` says of MCP servers: their tools, when to ask for an approval, what they did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from toolgram.conversation.fields import Fields, Filled, Json, Many, by, of


class ToolFilter(Fields):
    """Some of a server's tools: those of these names, and those that only read, or that do not; both where both are."""

    tool_names: Many[str] | None = None
    read_only: bool | None = None

    def takes(self, name: str, *, writes: bool) -> bool:
        """Whether a tool is among them."""
        named = self.tool_names is None or name in self.tool_names
        return named and self.read_only in (None, not writes)


class Approvals(Fields):
    """Which tools are always and never asked for; one that neither names is, and so is one that both do."""

    always: ToolFilter | None = None
    never: ToolFilter | None = None


_NAMES_OR_FILTER = 'must be a list of names, or {"tool_names": […], "read_only": …}'
_WORD_OR_FILTERS = 'must be "always", "never", or {"always": {…}, "never": {…}} of tools'


class McpTools(Fields):
    """Tools of an MCP server that this server is configured with, which are run here.

    The server is the one of that label, else the one of that address. An address is never dialled.
    """

    type: Literal["mcp"]
    server_label: Filled
    server_url: str | None = None
    allowed_tools: (
        Annotated[
            Annotated[Many[str], of("names")] | Annotated[ToolFilter, of("filter")],
            by(lambda value: "names" if isinstance(value, list) else "filter", _NAMES_OR_FILTER),
        ]
        | None
    ) = None
    require_approval: (
        Annotated[
            Annotated[Literal["always", "never"], of("word")] | Annotated[Approvals, of("filters")],
            by(lambda value: "word" if isinstance(value, str) else "filters", _WORD_OR_FILTERS),
        ]
        | None
    ) = None

    def takes(self, name: str, *, writes: bool) -> bool:
        """Whether a tool of the server may be called."""
        match self.allowed_tools:
            case None:
                return True
            case ToolFilter() as some:
                return some.takes(name, writes=writes)
            case names:
                return name in names

    def asks(self, name: str, *, writes: bool) -> bool:
        """Whether a call of a tool needs an approval."""
        match self.require_approval:
            case Approvals(always=always, never=never):
                asked = always is not None and always.takes(name, writes=writes)
                return asked or never is None or not never.takes(name, writes=writes)
            case word:
                return word != "never"


class McpChoice(Fields):
    """A tool of an MCP server, any where no name is given; without a label of any of them."""

    type: Literal["mcp"]
    server_label: str | None = None
    name: str | None = None


class McpListItem(Fields):
    """The tools that a server listed."""

    type: Literal["mcp_list_tools"]
    server_label: str
    error: Any = None


class McpCallItem(Fields):
    """A call of a server's tool, and what came of it."""

    type: Literal["mcp_call"]
    id: Filled
    server_label: str
    name: Filled
    arguments: str
    output: str | None = None
    error: Any = None
    approval_request_id: str | None = None

    @property
    def told(self) -> str:
        """What came of it, as text."""
        return self.output if self.output is not None else _text_of(self.error)


class McpApprovalRequestItem(Fields):
    """A call that waits for an approval."""

    type: Literal["mcp_approval_request"]
    id: Filled
    server_label: str
    name: Filled
    arguments: str


class McpApprovalResponseItem(Fields):
    """Whether a call may run."""

    type: Literal["mcp_approval_response"]
    approval_request_id: str
    approve: bool
    reason: str | None = None


def error_of(text: str) -> Json:
    """What went wrong with a call, as OpenAI has it."""
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


def _text_of(error: Any) -> str:
    """What went wrong with a call: an object as of `error_of`, or of another server, or a text."""
    match error:
        case {"message": str(message)}:
            return message
        case {"content": list()}:
            parts = cast("list[Any]", error["content"])
            return "\n".join(str(cast("Json", part).get("text", "")) for part in parts if isinstance(part, Mapping))
        case str():
            return error
        case _:
            return "What came of this call was not kept."
