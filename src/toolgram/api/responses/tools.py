"""The tools of a `/v1/responses` body: those that a model can be shown, and their names there.

A namespace holds tools that the client runs (those of an MCP server, say). The model sees each under a name that says
where it belongs, and the client is given name and namespace apart, as it sent them::

    {"type": "namespace", "name": "mcp__files", "tools": [{"type": "function", "name": "read", …}]}
    mcp__files__read                                                  what the model calls
    {"type": "function_call", "name": "read", "namespace": "mcp__files", …}      what the client is given

What OpenAI runs itself (`web_search`, `image_generation`, …) is left out, and named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from toolgram.api.responses.body import (
    AllowedNames,
    FlatGrammar,
    HostedChoice,
    NamedTool,
    Namespace,
    ResponsesBody,
    ResponsesCustom,
    ResponsesFunction,
    ToolsItem,
)
from toolgram.api.responses.body import Tool as AnyTool
from toolgram.conversation import body as chat
from toolgram.conversation.request import Tool, ToolChoice, custom_tool, distinct, required, some, tool_of
from toolgram.errors import InvalidRequest

Place = tuple[str, str]
"""A namespace, and the name of a tool in it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a model is shown; `places` are those of the ones in a namespace, by the names that the model sees.

    `left_out` are the types of those that it is not shown.
    """

    tools: tuple[Tool, ...]
    places: Mapping[str, Place]
    left_out: tuple[str, ...]

    def name(self, name: str, namespace: str | None) -> str:
        """The name by which the model knows a tool of the client's."""
        if namespace is None:
            return name
        known = (seen for seen, place in self.places.items() if place == (namespace, name))
        return next(known, _joined(namespace, name))


def offer(body: ResponsesBody) -> Offer:
    """The tools of a body. Raises InvalidRequest for two of one name, and for a grammar that cannot be enforced."""
    tools: list[Tool] = []
    places: dict[str, Place] = {}
    left_out: list[str] = []
    plain = {tool.name for tool in body.tools or () if isinstance(tool, ResponsesFunction | ResponsesCustom)}
    for tool, pointer, namespace in _all(body):
        if not isinstance(tool, ResponsesFunction | ResponsesCustom):
            left_out.append(f"tools.{tool.type}")
            continue
        made = _made(tool, pointer)
        if namespace is not None:
            seen = _joined(namespace, tool.name)
            while seen in plain:
                seen += "_"
            made = _renamed(made, seen)
            places[seen] = (namespace, tool.name)
        tools.append(made)
    return Offer(distinct(tools), places, tuple(dict.fromkeys(left_out)))


def choice(body: ResponsesBody, offered: Offer) -> ToolChoice:
    """What may or must be called. Raises InvalidRequest for a tool that there is not, or that is not run here."""
    match body.tool_choice:
        case None:
            return ToolChoice("auto")
        case "none" | "auto" as mode:
            return ToolChoice(mode)
        case "required":
            return required(offered.tools, "/tool_choice")
        case NamedTool() as tool:
            return required(offered.tools, "/tool_choice", (_seen(tool, offered), "/tool_choice/name"))
        case HostedChoice(type=type_):
            raise InvalidRequest("/tool_choice", f"{type_!r} is a tool of OpenAI's own: there is none here")
        case AllowedNames() as allowed:
            named = [
                (_seen(tool, offered), f"/tool_choice/tools/{i}/name")
                for i, tool in enumerate(allowed.tools)
                if isinstance(tool, NamedTool)
            ]
            if not named:
                raise InvalidRequest("/tool_choice/tools", "all of these are tools of OpenAI's own: there is none here")
            return some(offered.tools, allowed.mode, named)


def _all(body: ResponsesBody) -> Iterator[tuple[AnyTool, str, str | None]]:
    """Every tool, where it stands, and the namespace that holds it; some are added by an item of the input."""
    lists: list[tuple[Sequence[AnyTool], str]] = [(body.tools or (), "/tools")]
    if not isinstance(body.input, str):
        items = enumerate(body.input)
        lists += [(item.tools, f"/input/{i}/tools") for i, item in items if isinstance(item, ToolsItem)]
    for tools, at in lists:
        for i, tool in enumerate(tools):
            if isinstance(tool, Namespace):
                yield from ((inner, f"{at}/{i}/tools/{j}", tool.name) for j, inner in enumerate(tool.tools))
            else:
                yield tool, f"{at}/{i}", None


def _made(tool: ResponsesFunction | ResponsesCustom, pointer: str) -> Tool:
    if isinstance(tool, ResponsesFunction):
        return tool_of(tool, pointer, f"{pointer}/parameters")
    grammar = None
    if isinstance(tool.format, FlatGrammar):
        within = chat.CustomGrammar(syntax=tool.format.syntax, definition=tool.format.definition)
        grammar = chat.GrammarInput(type="grammar", grammar=within)
    custom = chat.Custom(name=tool.name, description=tool.description, format=grammar)
    return custom_tool(custom, pointer, "format/definition")


def _renamed(tool: Tool, name: str) -> Tool:
    return replace(tool, name=name, source={**tool.source, "function": {**tool.function, "name": name}})


def _joined(namespace: str, name: str) -> str:
    return f"{namespace}{name}" if namespace.endswith(("_", ".", "-", "/")) else f"{namespace}__{name}"


def _seen(tool: NamedTool, offered: Offer) -> str:
    return offered.name(tool.name, tool.namespace)
