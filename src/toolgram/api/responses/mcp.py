"""MCP servers in a response: what they list, the calls that are run here, and those that wait for an approval.

A server is one of the configuration, and everything that is told of it bears the label that the request has for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolgram.api.responses.mcp_body import McpApprovalRequestItem, McpApprovalResponseItem, McpCallItem, McpTools
from toolgram.conversation.fields import Json
from toolgram.errors import InvalidRequest

UNANSWERED = "The user has not said whether this call may run: it was not run."
NOT_OFFERED = "This tool is no longer offered: it was not run."
_DENIED = "The user did not allow this call."


class ServerTool(Protocol):
    """A tool of an MCP server, as `toolgram.agent.mcp` has it."""

    @property
    def name(self) -> str:
        """A name with the server in it."""
        ...

    @property
    def own_name(self) -> str:
        """The server's own."""
        ...

    @property
    def writes(self) -> bool:
        """Whether a call changes something."""
        ...

    def listed(self) -> dict[str, Any]:
        """The tool in a list of tools."""
        ...

    def to_openai(self) -> dict[str, Any]:
        """The tool as the model is shown it."""
        ...

    async def call(self, arguments: str) -> Any:
        """What comes of a call."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A server whose tools a body asks for at `pointer`; `server` is its name in the configuration.

    With `replayed` the body brings a list of its tools, so that none is told.
    """

    tools: McpTools
    server: str
    pointer: str
    replayed: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server listed of what it was asked for, or the `error` in the place of it."""

    asked: Asked
    tools: Sequence[ServerTool] = ()
    error: str | None = None

    @property
    def is_told(self) -> bool:
        """Whether the response has an item of it."""
        return self.error is not None or not self.asked.replayed


@dataclass(frozen=True, slots=True)
class McpPlace:
    """Where a tool that the model sees belongs: a server, by its label; and whether a call of it waits for a yes."""

    label: str
    tool: ServerTool
    asks: bool


@dataclass(frozen=True, slots=True)
class ApprovedCall:
    """A call that was asked for in an earlier response and may run now; its result is to stand in message `at`.

    `index` counts those of a request; `name` is the one that the model knows the tool by.
    """

    index: int
    at: int
    name: str
    arguments: str
    approval: str


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of call `index` of the model's last turn, or of the approved calls."""

    index: int
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Answers:
    """What an input says of the approvals that it `asked` for: the answers `given`, and which of the calls `ran`."""

    asked: frozenset[str]
    given: Mapping[str, McpApprovalResponseItem]
    ran: frozenset[str]

    @staticmethod
    def of(items: Sequence[Any]) -> Answers:
        """Those of the items of an input."""
        given = {item.approval_request_id: item for item in items if isinstance(item, McpApprovalResponseItem)}
        calls = (item.approval_request_id for item in items if isinstance(item, McpCallItem))
        asked = frozenset(item.id for item in items if isinstance(item, McpApprovalRequestItem))
        return Answers(asked, given, frozenset(id_ for id_ in calls if id_ is not None))

    def check(self, answer: McpApprovalResponseItem, pointer: str) -> None:
        """Raises InvalidRequest for an answer to what was not asked."""
        if answer.approval_request_id not in self.asked | self.ran:
            reason = "no mcp_approval_request has this id, in the input or in a previous response"
            raise InvalidRequest(f"{pointer}/approval_request_id", reason)


def denial(answer: McpApprovalResponseItem) -> str:
    """What the model is told of a call that may not run."""
    return f"{_DENIED} {answer.reason}" if answer.reason else _DENIED


def item_of_list(listing: Listing) -> Json:
    """The item of a list, but for its id."""
    tools = [tool.listed() for tool in listing.tools]
    return {
        "type": "mcp_list_tools",
        "server_label": listing.asked.tools.server_label,
        "tools": tools,
        "error": listing.error,
    }
