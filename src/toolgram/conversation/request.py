"""A chat-completions request, checked and frozen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolgram.conversation.answers import Form, GivenGrammar, ResponseFormat, form_of
from toolgram.conversation.body import (
    AllowedTools,
    ChatBody,
    ChatMessage,
    ChosenFunction,
    CustomCall,
    FlatNamed,
    LegacyChoice,
    Mode,
    NamedCustom,
    NamedFunction,
    RefusalPart,
)
from toolgram.conversation.body import ToolChoice as Choice
from toolgram.conversation.custom_tools import DEFINITION, as_function, call_as_function, with_inputs
from toolgram.conversation.fields import Fields, Json, json_of, validated
from toolgram.conversation.json_text import arguments_meant
from toolgram.conversation.schema_meant import schema_meant
from toolgram.conversation.thinking import as_variables
from toolgram.conversation.tool_shapes import (
    Custom,
    CustomGrammar,
    CustomTool,
    FlatCustom,
    FlatFunction,
    FlatGrammar,
    Function,
    FunctionTool,
    GrammarInput,
)
from toolgram.errors import InvalidRequest, nearest

# What a template is given anyway, or stands for a date that is an argument of its own.
_GIVEN_VARIABLES = ("messages", "tools", "add_generation_prompt", "template", "control_tokens", "now", "self")


@dataclass(frozen=True)
class Tool:
    """A function that the model may call. `parameters` is a JSON Schema, None where the tool declares none.

    `pointer` is where its name and description stand in the request, `schema_pointer` where its parameters do. To the
    model a `custom` tool is a function; `source` is the tool as templates print it. One that is not `announced` is
    shown in the conversation, by the API that it came through, and not before it.
    """

    name: str
    description: str
    parameters: Any
    strict: bool
    source: Json
    pointer: str
    schema_pointer: str
    custom: bool = False
    announced: bool = True

    @property
    def function(self) -> Json:
        """The tool's `function` object, as the request gives it."""
        return self.source["function"]


@dataclass(frozen=True)
class ToolChoice:
    """Whether the model may, must or must not call; `only` names the tools that it may call (None: all of them)."""

    mode: Literal["none", "auto", "required"]
    only: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Request:
    """A request after checking; `messages` are as given, which is how templates print them.

    Where `calls_close_reasoning`, a call that begins in the reasoning ends it, whatever the style says of that.

    `tool_bias` is added to the logarithm of the odds of a call, where the model chooses whether to call, and
    `parallel_tool_bias` to that of another one, behind each call. `places` tells where a message, or a part of it,
    stands in a body of another API: "/messages/1" → "/input/0".
    """

    messages: tuple[Json, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice("auto")
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    grammar: GivenGrammar | None = None
    reasoning_format: Literal["auto", "none"] = "auto"
    reasoning_max_tokens: int | None = None
    calls_close_reasoning: bool | None = None
    end_repetitions: bool = True
    tool_bias: float | None = None
    parallel_tool_bias: float | None = None
    continue_final_message: bool = False
    add_generation_prompt: bool = True
    chat_template_kwargs: Json = field(default_factory=dict[str, Any])
    places: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def form(self) -> Form | None:
        """What the answer must be; None where any text will do."""
        return self.response_format or self.grammar

    @property
    def announced_tools(self) -> tuple[Tool, ...]:
        """The tools that the model is shown before the conversation."""
        return tuple(tool for tool in self.tools if tool.announced)

    @property
    def callable_tools(self) -> tuple[Tool, ...]:
        """The tools that the model may call in this turn."""
        if self.tool_choice.mode == "none":
            return ()
        if self.tool_choice.only is None:
            return self.tools
        only = frozenset(self.tool_choice.only)
        return tuple(tool for tool in self.tools if tool.name in only)


def parse_request(body: Mapping[str, Any] | ChatBody) -> Request:
    """The request of a body in the shape of `/v1/chat/completions`.

    Raises InvalidRequest with a JSON pointer into the body. Fields that say nothing of prompt or grammar (sampling,
    model, …) are not looked at.
    """
    if isinstance(body, ChatBody):
        return request_of(body, body.given)
    given = json_of(body)
    return request_of(validated(ChatBody, given), given)


def request_of(body: ChatBody, given: Json) -> Request:
    """The request of a body that was checked, `given` as JSON, which is held by reference.

    Raises InvalidRequest for what does not go together.
    """
    tools = with_brought(tools_of(body, given), body.messages, given["messages"])
    continues = body.continue_final_message or False
    last, at = body.messages[-1], f"/messages/{len(body.messages) - 1}"
    if continues and last.role != "assistant":
        raise InvalidRequest("/continue_final_message", "the last message must be the assistant's, to be continued")
    if continues and last.tool_calls:
        raise InvalidRequest(f"{at}/tool_calls", "a turn with calls cannot be continued")
    if body.reasoning_max_tokens is not None and body.reasoning_format == "none":
        told = 'with reasoning_format "none" reasoning is not told from content'
        raise InvalidRequest("/reasoning_max_tokens", told)
    form = form_of(body)
    thinking = body.thoughts
    if isinstance(form, GivenGrammar) and tools:
        raise InvalidRequest(form.pointer, "does not go with tools, which have a grammar of theirs")
    adds = body.add_generation_prompt
    return Request(
        messages=with_inputs(map(message_json, body.messages, given["messages"]), names_of_custom(tools)),
        tools=tools,
        tool_choice=_choice(body, tools),
        parallel_tool_calls=body.parallel_tool_calls if body.functions is None else False,
        response_format=form if isinstance(form, ResponseFormat) else None,
        grammar=form if isinstance(form, GivenGrammar) else None,
        reasoning_format="none" if body.reasoning_format == "none" else "auto",
        reasoning_max_tokens=thinking.most if body.reasoning_max_tokens is None else body.reasoning_max_tokens,
        calls_close_reasoning=body.calls_close_reasoning,
        end_repetitions=body.end_repetitions is not False,
        tool_bias=body.tool_bias,
        parallel_tool_bias=body.parallel_tool_bias,
        continue_final_message=continues,
        add_generation_prompt=not continues if adds is None else adds,
        chat_template_kwargs={
            **({} if thinking.on is None else as_variables(on=thinking.on)),
            **template_kwargs(body.chat_template_kwargs or {}, body.reasoning_effort or thinking.effort),
        },
    )


def template_kwargs(given: Json, effort: str | None) -> Json:
    """The variables of a template: those given, and the effort under the names by which templates know it.

    Raises InvalidRequest for a name that the request itself fills.
    """
    for name in given:
        if name in _GIVEN_VARIABLES:
            raise InvalidRequest(f"/chat_template_kwargs/{name}", "the template is given this from the request itself")
    if effort is None:
        return given
    return {**(as_variables(on=False) if effort == "none" else {"reasoning_effort": effort}), **given}


def placed(places: Mapping[str, str], pointer: str) -> str:
    """A pointer as the longest of `places` that it begins with has it."""
    for end in (at for at in range(len(pointer), 0, -1) if at == len(pointer) or pointer[at] == "/"):
        if (place := places.get(pointer[:end])) is not None:
            return place + pointer[end:]
    return pointer


# Messages -----------------------------------------------------------------------------------------------------------


def message_json(message: ChatMessage, given: Json) -> Json:
    """The message as templates print it: as given, with refusals and objects as text, every call that of a function,
    and reasoning under one name.
    """
    changed = dict[str, Any]()
    if isinstance(message.content, Mapping):
        changed["content"] = json.dumps(given["content"], ensure_ascii=False)
    elif isinstance(message.content, list) and any(isinstance(part, RefusalPart) for part in message.content):
        changed["content"] = [_part_json(*each) for each in zip(message.content, given["content"], strict=True)]
    elif message.refusal and not message.content:
        changed["content"] = message.refusal
    if message.function_call is not None:
        call = {"type": "function", "function": _function_json(given["function_call"])}
        changed |= {"tool_calls": [call], "function_call": None}
    elif message.tool_calls:
        calls = [_call_json(*each) for each in zip(message.tool_calls, given["tool_calls"], strict=True)]
        changed |= {"tool_calls": calls} if calls != given["tool_calls"] else {}
    if message.reasoning and not message.reasoning_content:
        changed["reasoning_content"] = message.reasoning
    return {**given, **changed} if changed else given


def _part_json(part: Fields, given: Json) -> Json:
    return {"type": "text", "text": part.refusal} if isinstance(part, RefusalPart) else given


def _function_json(given: Json) -> Json:
    arguments = given.get("arguments")
    return {**given, "arguments": arguments_meant(arguments or "{}")} if isinstance(arguments, str | None) else given


def _call_json(call: Fields, given: Json) -> Json:
    if not isinstance(call, CustomCall):
        return {**given, "function": _function_json(given["function"])}
    kept = {key: value for key, value in given.items() if key != "custom"}
    return {**kept, **call_as_function(call.custom.name, call.custom.input)}


# Tools --------------------------------------------------------------------------------------------------------------


def tools_of(body: ChatBody, given: Json) -> tuple[Tool, ...]:
    """The tools of a body. Raises InvalidRequest for two of one name, and a grammar that cannot be enforced."""
    if body.functions is None:
        if body.function_call is not None:
            raise InvalidRequest("/function_call", "is only allowed where functions are given")
        tools = enumerate(zip(body.tools or (), given.get("tools") or (), strict=True))
        return distinct([_tool(tool, source, f"/tools/{at}") for at, (tool, source) in tools])
    if body.tools is not None:
        raise InvalidRequest("/functions", "give tools or functions, not both")
    functions = enumerate(zip(body.functions, given["functions"], strict=True))
    return distinct(
        [
            function_tool(function, {"type": "function", "function": source}, f"/functions/{at}")
            for at, (function, source) in functions
        ]
    )


def with_brought(tools: tuple[Tool, ...], messages: Sequence[ChatMessage], given: Sequence[Json]) -> tuple[Tool, ...]:
    """The tools with those that messages of the system bring, of which the last one of a name holds."""
    known = {tool.name: tool for tool in tools}
    for at, (message, source) in enumerate(zip(messages, given, strict=True)):
        if message.tools:
            brought = enumerate(zip(message.tools, source["tools"], strict=True))
            told = [_tool(tool, shown, f"/messages/{at}/tools/{number}") for number, (tool, shown) in brought]
            known |= {tool.name: tool for tool in distinct(told)}
    return tuple(known.values())


def names_of_custom(tools: Iterable[Tool]) -> frozenset[str]:
    """The names of those of the tools that are custom."""
    return frozenset(tool.name for tool in tools if tool.custom)


def _tool(tool: FunctionTool | CustomTool | FlatFunction | FlatCustom, source: Json, pointer: str) -> Tool:
    match tool:
        case FunctionTool():
            return function_tool(tool.function, source, f"{pointer}/function")
        case CustomTool():
            return custom_tool(tool.custom, f"{pointer}/custom", DEFINITION)
        case _:
            return flat_tool(tool, pointer)


def flat_tool(tool: FlatFunction | FlatCustom, pointer: str) -> Tool:
    """A tool of `/v1/responses`: templates print it in the shape of chat completions."""
    if isinstance(tool, FlatFunction):
        return tool_of(tool, pointer, f"{pointer}/parameters")
    grammar = None
    if isinstance(tool.format, FlatGrammar):
        within = CustomGrammar(syntax=tool.format.syntax, definition=tool.format.definition)
        grammar = GrammarInput(type="grammar", grammar=within)
    custom = Custom(name=tool.name, description=tool.description, format=grammar)
    return custom_tool(custom, pointer, "format/definition")


def function_tool(function: Function, source: Json, pointer: str) -> Tool:
    """A function as a tool; `source` is how templates print it."""
    strict, description = function.strict or False, function.description or ""
    if (parameters := schema_meant(function.parameters)) is not function.parameters:
        source = {**source, "function": {**source["function"], "parameters": parameters}}
    return Tool(function.name, description, parameters, strict, source, pointer, f"{pointer}/parameters")


def tool_of(function: Function, pointer: str, schema_pointer: str) -> Tool:
    """A function of another API as a tool: templates print what there is of it in the shape of chat completions."""
    fields = ("name", "description", "parameters", "strict")
    said = {key: value for key in fields if (value := getattr(function, key)) is not None}
    source = {"type": "function", "function": said}
    return replace(function_tool(function, source, pointer), schema_pointer=schema_pointer)


def custom_tool(custom: Custom, pointer: str, definition: str) -> Tool:
    """A custom tool as the function that stands for it, strict where it restricts its input.

    Its grammar stands at `definition`. Raises InvalidRequest for one that cannot be enforced.
    """
    function = as_function(custom, f"{pointer}/{definition}")
    strict = isinstance(custom.format, GrammarInput)
    at = f"{pointer}/{definition if strict else 'format'}"
    source = {"type": "function", "function": function}
    return Tool(custom.name, custom.description or "", function["parameters"], strict, source, pointer, at, custom=True)


def distinct(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """The tools. Raises InvalidRequest for two of one name."""
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise InvalidRequest(f"{tool.pointer}/name", f"two tools are named {tool.name!r}")
        seen.add(tool.name)
    return tuple(tools)


def _choice(body: ChatBody, tools: tuple[Tool, ...]) -> ToolChoice:
    return choice_of(body.tool_choice if body.functions is None else body.function_call, tools)


def choice_of(choice: Choice | LegacyChoice | None, tools: tuple[Tool, ...]) -> ToolChoice:
    """The choice that a body's `tool_choice` or `function_call` is. Raises InvalidRequest for a tool there is not."""
    match choice.type if isinstance(choice, Mode) else choice:
        case None:
            return ToolChoice("auto")
        case "none" | "auto" as mode:
            return ToolChoice(mode)
        case "required" | "any":  # as Mistral's API has it
            return required(tools, "/tool_choice")
        case ChosenFunction(name=name):
            return required(tools, "/function_call", (name, "/function_call/name"))
        case NamedFunction() | NamedCustom() as tool:
            return required(tools, "/tool_choice", _named(tool, "/tool_choice"))
        case FlatNamed(name=name):
            return required(tools, "/tool_choice", (name, "/tool_choice/name"))
        case AllowedTools(allowed_tools=allowed):
            at = "/tool_choice/allowed_tools/tools"
            named = [_named(tool, f"{at}/{i}") for i, tool in enumerate(allowed.tools)]
            return some(tools, allowed.mode, named)


def _named(tool: NamedFunction | NamedCustom, pointer: str) -> tuple[str, str]:
    if isinstance(tool, NamedFunction):
        return tool.function.name, f"{pointer}/function/name"
    return tool.custom.name, f"{pointer}/custom/name"


def required(tools: tuple[Tool, ...], pointer: str, *named: tuple[str, str]) -> ToolChoice:
    """A call must be made, of a `named` tool (its name, and where that stands) if there is one."""
    if not tools:
        raise InvalidRequest(pointer, "a call is required, but the request has no tools")
    return some(tools, "required", named) if named else ToolChoice("required")


def some(tools: tuple[Tool, ...], mode: Literal["auto", "required"], named: Sequence[tuple[str, str]]) -> ToolChoice:
    """Of these tools alone calls may or must be made. Raises InvalidRequest for a name that no tool has."""
    known = dict.fromkeys(tool.name for tool in tools)
    for name, pointer in named:
        if name not in known:
            raise InvalidRequest(pointer, f"there is no tool named {name!r}; {nearest(name, known)}")
    return ToolChoice(mode, tuple(name for name, _ in named))
