"""The tools of a `/v1/responses` body: those that a model can be shown, and their names there.

A namespace holds tools that the client runs (those of an MCP server, say). The model sees each under a name that says
where it belongs, and the client is given name and namespace apart, as it sent them::

    {"type": "namespace", "name": "mcp__files", "tools": [{"type": "function", "name": "read", …}]}
    mcp__files__read                                                  what the model calls
    {"type": "function_call", "name": "read", "namespace": "mcp__files", …}      what the client is given

Tools of MCP servers are listed by those, and run here; the model sees each by a name with its server in it. What OpenAI
runs itself (`web_search`, `image_generation`, …) is left out, and named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolgram.api.errors import ApiError
from toolgram.api.responses.body import (
    AllowedNames,
    AnyNamed,
    HostedChoice,
    NamedTool,
    Namespace,
    ResponsesBody,
    ToolsItem,
)
from toolgram.api.responses.body import Tool as AnyTool
from toolgram.api.responses.input import Input
from toolgram.api.responses.mcp import Asked, Listing, McpPlace
from toolgram.api.responses.mcp_body import McpChoice, McpListItem, McpTools
from toolgram.conversation.request import Tool, ToolChoice, distinct, flat_tool, required, some
from toolgram.conversation.tool_shapes import FlatCustom, FlatFunction
from toolgram.errors import InvalidRequest

_WITHOUT_EFFECT = ("server_description", "allowed_callers", "defer_loading")  # of a server's tools

Place = tuple[str, str]
"""A namespace, and the name of a tool in it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a model is shown; `places` are those of the ones in a namespace, by the names that the model sees.

    `left_out` are the types of those that it is not shown, and what of them is not heeded. `mcp` are the places of the
    tools of MCP servers, by the same names, and `failed` is where a server stands that did not list its own, and why.
    """

    tools: tuple[Tool, ...]
    places: Mapping[str, Place]
    left_out: tuple[str, ...]
    mcp: Mapping[str, McpPlace] = field(default_factory=dict[str, McpPlace])
    failed: tuple[str, str] | None = None

    def name(self, name: str, namespace: str | None) -> str:
        """The name by which the model knows a tool of the client's."""
        if namespace is None:
            return name
        known = (seen for seen, place in self.places.items() if place == (namespace, name))
        return next(known, _joined(namespace, name))

    def name_of_call(self, label: str, name: str) -> str:
        """The name by which the model knows, or once knew, a tool of an MCP server."""
        return next(iter(self.names_of(label, name)), f"{label}_{name}")

    def names_of(self, label: str | None, name: str | None) -> tuple[str, ...]:
        """The names by which the model knows tools of MCP servers: None is any server, or any tool."""
        return tuple(
            seen
            for seen, place in self.mcp.items()
            if label in (None, place.label) and name in (None, place.tool.own_name)
        )


def asked_of(body: ResponsesBody, said: Input, servers: Mapping[str, str]) -> tuple[Asked, ...]:
    """The MCP servers whose tools a body asks for, of those of the configuration: names and addresses, "" for none.

    Raises InvalidRequest for one that there is not, and for two of one label.
    """
    listed = {item.server_label for item in said.items if isinstance(item, McpListItem) and item.error is None}
    made: dict[str, Asked] = {}
    for tool, pointer, _ in _all(body, said):
        if isinstance(tool, McpTools):
            label, at = tool.server_label, f"{pointer}/server_label"
            if label in made:
                raise InvalidRequest(at, f"two servers have the label {label!r}")
            made[label] = Asked(tool, _server(tool, servers, at), pointer, label in listed)
    return tuple(made.values())


def _server(tool: McpTools, servers: Mapping[str, str], pointer: str) -> str:
    if tool.server_label in servers:
        return tool.server_label
    if (name := next((name for name, url in servers.items() if url and url == tool.server_url), None)) is not None:
        return name
    known = ", ".join(map(repr, servers))
    raise InvalidRequest(
        pointer, f"there is no MCP server {tool.server_label!r} in the configuration, which has {known}"
    )


def offer(body: ResponsesBody, said: Input, listings: Sequence[Listing] = ()) -> Offer:
    """The tools of a body, and those that MCP servers list for it; of those that items of the input add under one name
    the last one holds.

    Raises InvalidRequest for two of one name, and for a grammar that cannot be enforced.
    """
    tools: list[Tool] = []
    places: dict[str, Place] = {}
    left_out: list[str] = []
    plain = {tool.name for tool in body.tools or () if isinstance(tool, FlatFunction | FlatCustom)}
    for tool, pointer, namespace in _all(body, said):
        if isinstance(tool, McpTools) and listings:
            left_out += [f"tools.mcp.{name}" for name in tool.further if name not in _WITHOUT_EFFECT]
            continue
        if not isinstance(tool, FlatFunction | FlatCustom):
            left_out.append(f"tools.{tool.type}")
            continue
        made = flat_tool(tool, pointer)
        if namespace is not None:
            seen = _joined(namespace, tool.name)
            while seen in plain:
                seen += "_"
            made = _renamed(made, seen)
            places[seen] = (namespace, tool.name)
        tools.append(made)
    distinct([tool for tool in tools if tool.pointer.startswith("/tools/")])
    own = tuple({tool.name: tool for tool in tools}.values())
    mcp = _of_servers(listings, {tool.name for tool in own})
    more = tuple(_of_server(seen, place, pointer) for seen, (place, pointer) in mcp.items())
    failed = next(((listing.asked.pointer, listing.error) for listing in listings if listing.error is not None), None)
    in_place = {seen: place for seen, (place, _) in mcp.items()}
    return Offer((*own, *more), places, tuple(dict.fromkeys(left_out)), in_place, failed)


def _of_servers(listings: Sequence[Listing], taken: set[str]) -> dict[str, tuple[McpPlace, str]]:
    """The places of what servers list, and where each stands in the body, by names that no other tool has."""
    made: dict[str, tuple[McpPlace, str]] = {}
    for listing in listings:
        asked = listing.asked.tools
        for tool in listing.tools:
            seen = tool.name
            while seen in taken:
                seen += "_"
            taken.add(seen)
            place = McpPlace(asked.server_label, tool, asked.asks(tool.own_name, writes=tool.writes))
            made[seen] = (place, f"{listing.asked.pointer}/{seen}")
    return made


def _of_server(seen: str, place: McpPlace, pointer: str) -> Tool:
    """A tool of an MCP server; what is said of its schema stands behind where the body asks for the server."""
    function = {**place.tool.to_openai()["function"], "name": seen}
    source = {"type": "function", "function": function}
    about, schema, at = function["description"], function["parameters"], f"{pointer}/input_schema"
    return Tool(seen, about, schema, strict=False, source=source, pointer=pointer, schema_pointer=at)


def choice(body: ResponsesBody, offered: Offer) -> ToolChoice:
    """What may or must be called. Raises InvalidRequest for a tool that there is not, or that is not run here."""
    match body.tool_choice:
        case None:
            return ToolChoice("auto")
        case "none" | "auto" as mode:
            return ToolChoice(mode)
        case "required":
            _check_failed(offered, offered.tools)
            return required(offered.tools, "/tool_choice")
        case AllowedNames() as allowed:
            tools = enumerate(allowed.tools)
            named = [each for i, tool in tools for each in _named(tool, offered, f"/tool_choice/tools/{i}")]
            if not named:
                _check_failed(offered, named)
                raise InvalidRequest("/tool_choice/tools", "all of these are tools of OpenAI's own: there is none here")
            return some(offered.tools, allowed.mode, named)
        case tool:
            named = _named(tool, offered, "/tool_choice")
            if not named and not isinstance(tool, NamedTool):
                _check_failed(offered, named)
                raise InvalidRequest("/tool_choice", _none_of(tool, offered))
            return required(offered.tools, "/tool_choice", *named)


def _none_of(tool: McpChoice | HostedChoice, offered: Offer) -> str:
    if isinstance(tool, McpChoice) and offered.mcp:
        known = ", ".join(dict.fromkeys(f"{place.label!r}" for place in offered.mcp.values()))
        return f"no tool of an MCP server is meant by this: the request has tools of {known}"
    return f"{tool.type!r} is a tool of OpenAI's own: there is none here"


def _check_failed(offered: Offer, tools: Sequence[object]) -> None:
    """Raises ApiError where a call is demanded that no tool is there for, since a server has failed."""
    if not tools and offered.failed is not None:
        pointer, why = offered.failed
        raise ApiError(503, "mcp_server_failed", f"a call is required, but {why}", pointer)


def _all(body: ResponsesBody, said: Input) -> Iterator[tuple[AnyTool, str, str | None]]:
    """Every tool, where it stands, and the namespace that holds it; some are added by an item of the input."""
    lists: list[tuple[Sequence[AnyTool], str]] = [(body.tools or (), "/tools")]
    items = zip(said.items, said.places, strict=True)
    lists += [(item.tools or (), f"{place}/tools") for item, place in items if isinstance(item, ToolsItem)]
    for tools, at in lists:
        for i, tool in enumerate(tools):
            if isinstance(tool, Namespace):
                yield from ((inner, f"{at}/{i}/tools/{j}", tool.name) for j, inner in enumerate(tool.tools))
            else:
                yield tool, f"{at}/{i}", None


def _renamed(tool: Tool, name: str) -> Tool:
    return replace(tool, name=name, source={**tool.source, "function": {**tool.function, "name": name}})


def _joined(namespace: str, name: str) -> str:
    return f"{namespace}{name}" if namespace.endswith(("_", ".", "-", "/")) else f"{namespace}__{name}"


def _named(tool: AnyNamed, offered: Offer, pointer: str) -> list[tuple[str, str]]:
    """The tools that a choice names, as the model knows them, and where; none for what OpenAI runs itself."""
    match tool:
        case NamedTool():
            return [(offered.name(tool.name, tool.namespace), f"{pointer}/name")]
        case McpChoice():
            return [(seen, pointer) for seen in offered.names_of(tool.server_label, tool.name)]
        case _:
            return []
