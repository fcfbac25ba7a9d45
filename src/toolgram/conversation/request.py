"""A chat-completions request, checked and frozen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from toolgram.conversation.custom_tools import as_function, call_as_function
from toolgram.errors import InvalidRequest

Json = Mapping[str, Any]

# What a template is given anyway, or stands for a date that is an argument of its own.
_GIVEN_VARIABLES = ("messages", "tools", "add_generation_prompt", "template", "control_tokens", "now", "self")

MAX_DEPTH = 200

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


@dataclass(frozen=True)
class Tool:
    """A function that the model may call. `parameters` is a JSON Schema, None where the tool declares none.

    `pointer` is where the tool stands in the request. A `custom` tool is told to the model as a function.
    """

    name: str
    description: str
    parameters: Any
    strict: bool
    source: Json
    pointer: str
    custom: bool = False

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
class ResponseFormat:
    """A schema that the answer must match; `pointer` is where the schema stands in the request.

    A `plain` answer is not JSON but the text itself, which the schema describes as a string.
    """

    schema: Any
    strict: bool
    pointer: str
    plain: bool = False


@dataclass(frozen=True)
class Request:
    """A request after checking; `messages` are as given."""

    messages: tuple[Json, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice("auto")
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    reasoning_format: Literal["auto", "none"] = "auto"
    reasoning_max_tokens: int | None = None
    continue_final_message: bool = False
    add_generation_prompt: bool = True
    chat_template_kwargs: Json = field(default_factory=dict[str, Any])

    @property
    def callable_tools(self) -> tuple[Tool, ...]:
        """The tools that the model may call in this turn."""
        if self.tool_choice.mode == "none":
            return ()
        only = self.tool_choice.only
        return self.tools if only is None else tuple(tool for tool in self.tools if tool.name in only)


def parse_request(body: Any) -> Request:
    """A checked request from a body in the shape of `/v1/chat/completions`.

    Raises InvalidRequest with a JSON pointer into the body. Fields that say nothing of prompt or grammar (sampling,
    model, …) are not looked at.
    """
    body = _object(body, "")
    _check_json(body)
    tools = _tools(body)
    choice = _tool_choice(body, tools)
    parallel = body.get("parallel_tool_calls")
    if not (parallel is None or isinstance(parallel, bool)):
        raise InvalidRequest("/parallel_tool_calls", "must be true or false")
    reasoning_format = body.get("reasoning_format", "auto")
    if reasoning_format not in ("auto", "none"):
        raise InvalidRequest("/reasoning_format", 'must be "auto" or "none"')
    messages = _messages(body)
    continues = _flag(body, "continue_final_message", default=False)
    if continues and messages[-1]["role"] != "assistant":
        raise InvalidRequest("/continue_final_message", "the last message must be the assistant's, to be continued")
    if continues and messages[-1].get("tool_calls"):
        raise InvalidRequest(f"/messages/{len(messages) - 1}/tool_calls", "a turn with calls cannot be continued")
    return Request(
        messages=messages,
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=_response_format(body),
        reasoning_format=reasoning_format,
        reasoning_max_tokens=_reasoning_max_tokens(body, reasoning_format),
        continue_final_message=continues,
        add_generation_prompt=_flag(body, "add_generation_prompt", default=not continues),
        chat_template_kwargs=_template_kwargs(body),
    )


_SCALARS = frozenset((str, int, float, bool, type(None)))  # most of what a body holds; others may derive from them


def _check_json(body: Json) -> None:
    """Refuse what is not JSON, or nested so deep that no template or schema means it."""
    waiting: list[tuple[Any, str, int]] = [(body, "", 0)]
    while waiting:
        value, pointer, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InvalidRequest(pointer[:200], f"nested more than {MAX_DEPTH} deep")
        inside: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict | Mapping):  # a dict is found sooner than by what a Mapping is
            members = cast("Mapping[Any, Any]", value)
            if wrong := [key for key in members if not isinstance(key, str)]:
                raise InvalidRequest(pointer, f"the key {wrong[0]!r} is not a string")
            inside = members.items()
        elif isinstance(value, list | tuple):
            inside = enumerate(cast("Sequence[Any]", value))
        elif not isinstance(value, str | int | float):
            raise InvalidRequest(pointer, f"{type(value).__name__} is no type of JSON")
        waiting += [(each, f"{pointer}/{key}", depth + 1) for key, each in inside if type(each) not in _SCALARS]


def _object(value: Any, pointer: str) -> Json:
    if not isinstance(value, Mapping):
        raise InvalidRequest(pointer, "must be an object")
    return cast("Json", value)


def _list(value: Any, pointer: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidRequest(pointer, "must be a list")
    return cast("Sequence[Any]", value)


def _listed(body: Json, key: str, at: str = "") -> Sequence[Any]:
    value = body.get(key)
    return () if value is None else _list(value, f"{at}/{key}")


def _template_kwargs(body: Json) -> Json:
    given = body.get("chat_template_kwargs")
    kwargs: Json = {} if given is None else _object(given, "/chat_template_kwargs")
    for name in kwargs:
        if name in _GIVEN_VARIABLES:
            raise InvalidRequest(f"/chat_template_kwargs/{name}", "the template is given this from the request itself")
    return kwargs


def _flag(body: Json, key: str, *, default: bool) -> bool:
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InvalidRequest(f"/{key}", "must be true or false")
    return value


def _reasoning_max_tokens(body: Json, reasoning_format: str) -> int | None:
    value = body.get("reasoning_max_tokens")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidRequest("/reasoning_max_tokens", "must be a whole number of tokens, 0 or more")
    if reasoning_format == "none":
        raise InvalidRequest("/reasoning_max_tokens", 'with reasoning_format "none" thoughts are not told from content')
    return value


def _name(function: Json, pointer: str) -> str:
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"{pointer}/name", "a tool needs a name, a string that is not empty")
    return name


def _kind(value: Json, pointer: str) -> str:
    """The type of a tool, or of a call; "function" where none is told."""
    kind = value.get("type")
    if kind is None:
        return "function"
    if kind not in ("function", "custom"):
        raise InvalidRequest(f"{pointer}/type", f'unknown type {kind!r}: must be "function" or "custom"')
    return kind


def _messages(body: Json) -> tuple[Json, ...]:
    messages = _list(body.get("messages"), "/messages")
    if not messages:
        raise InvalidRequest("/messages", "must hold at least one message")
    return tuple(_message(message, f"/messages/{i}") for i, message in enumerate(messages))


def _message(value: Any, pointer: str) -> Json:
    message = _object(value, pointer)
    role = message.get("role")
    if role not in ROLES:
        raise InvalidRequest(f"{pointer}/role", f"unknown role {role!r}: must be one of {', '.join(ROLES)}")
    _content(message.get("content"), f"{pointer}/content")
    for key in ("name", "tool_call_id", "reasoning_content", "reasoning"):
        _text(message.get(key), f"{pointer}/{key}")
    calls: list[Json] = []
    for i, call in enumerate(_listed(message, "tool_calls", pointer)):
        at = f"{pointer}/tool_calls/{i}"
        call = _object(call, at)
        if _kind(call, at) == "custom":
            call = call_as_function(call, at)
        calls.append(call)
        function = _object(call.get("function"), f"{at}/function")
        _name(function, f"{at}/function")
        _text(call.get("id"), f"{at}/id")
        if not isinstance(function.get("arguments", {}), str | Mapping):
            raise InvalidRequest(f"{at}/function/arguments", "must be JSON text or an object")
    if any(isinstance(call, Mapping) and "custom" in call for call in message.get("tool_calls") or ()):
        message = {**message, "tool_calls": calls}
    if message.get("reasoning") and not message.get("reasoning_content"):
        return {**message, "reasoning_content": message["reasoning"]}
    return message


def _text(value: Any, pointer: str) -> None:
    if not (value is None or isinstance(value, str)):
        raise InvalidRequest(pointer, "must be a string")


def _content(content: Any, pointer: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list | tuple):
        raise InvalidRequest(pointer, "must be a string or a list of parts")
    for i, part in enumerate(cast("Sequence[Any]", content)):
        part = _object(part, f"{pointer}/{i}")
        if not isinstance(part.get("type"), str):
            raise InvalidRequest(f"{pointer}/{i}/type", "a content part needs a type")
        if part["type"] == "text" and not isinstance(part.get("text"), str):
            raise InvalidRequest(f"{pointer}/{i}/text", "must be a string")


def _tools(body: Json) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    seen: set[str] = set()
    for i, value in enumerate(_listed(body, "tools")):
        pointer = f"/tools/{i}"
        source = _object(value, pointer)
        kind = _kind(source, pointer)
        at = f"{pointer}/{kind}"
        function = _object(source.get(kind), at)
        name = _name(function, at)
        if name in seen:
            raise InvalidRequest(f"{at}/name", f"two tools are named {name!r}")
        seen.add(name)
        _text(function.get("description"), f"{at}/description")
        description = function.get("description") or ""
        if custom := kind == "custom":
            function = as_function(function, at)
            source = {"type": "function", "function": function}
        strict = custom or _flag(function, "strict", default=False)
        tools.append(Tool(name, description, function.get("parameters"), strict, source, pointer, custom))
    return tuple(tools)


def _tool_choice(body: Json, tools: tuple[Tool, ...]) -> ToolChoice:
    value = body.get("tool_choice")
    match value:
        case None:
            return ToolChoice("auto")
        case "none" | "auto":
            return ToolChoice(value)
        case "required":
            _need_tools(tools, "/tool_choice")
            return ToolChoice("required")
        case {"type": "function", "function": {"name": str(name)}} | {"type": "custom", "custom": {"name": str(name)}}:
            _need_tools(tools, "/tool_choice")
            return ToolChoice("required", _known((name,), tools, f"/tool_choice/{value['type']}/name"))
        case {"type": "allowed_tools", "allowed_tools": {"mode": "auto" | "required" as mode, "tools": [*allowed]}}:
            return ToolChoice(mode, _allowed(allowed, tools))
        case _:
            raise InvalidRequest(
                "/tool_choice",
                'must be "none", "auto", "required", {"type": "function", "function": {"name": …}} '
                'or {"type": "allowed_tools", "allowed_tools": {"mode": …, "tools": […]}}',
            )


def _allowed(allowed: Sequence[Any], tools: tuple[Tool, ...]) -> tuple[str, ...]:
    pointer = "/tool_choice/allowed_tools/tools"
    names: list[str] = []
    for i, entry in enumerate(allowed):
        match entry:
            case {"type": "function" | "custom" as kind, **rest}:
                match rest.get(kind):
                    case {"name": str(name)}:
                        names.extend(_known((name,), tools, f"{pointer}/{i}/{kind}/name"))
                    case _:
                        raise InvalidRequest(f"{pointer}/{i}/{kind}", "must be an object with a name")
            case _:
                raise InvalidRequest(f"{pointer}/{i}", 'must be {"type": "function", "function": {"name": …}}')
    if not names:
        raise InvalidRequest(pointer, "must name at least one tool")
    return tuple(names)


def _need_tools(tools: tuple[Tool, ...], pointer: str) -> None:
    if not tools:
        raise InvalidRequest(pointer, "a call is required, but the request has no tools")


def _known(names: tuple[str, ...], tools: tuple[Tool, ...], pointer: str) -> tuple[str, ...]:
    known = [tool.name for tool in tools]
    for name in names:
        if name not in known:
            raise InvalidRequest(pointer, f"there is no tool named {name!r}; there are: {', '.join(known)}")
    return names


def _response_format(body: Json) -> ResponseFormat | None:
    value = body.get("response_format")
    match value:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return ResponseFormat({"type": "object"}, strict=False, pointer="/response_format")
        case {"type": "json_schema", "json_schema": {"schema": schema, **rest}}:
            _text(rest.get("name"), "/response_format/json_schema/name")
            strict = _flag(rest, "strict", default=False)
            return ResponseFormat(schema, strict, "/response_format/json_schema/schema")
        case {"type": "regex", "regex": str(pattern)}:
            whole = {"type": "string", "pattern": f"^(?:{pattern})$"}
            return ResponseFormat(whole, strict=True, pointer="/response_format/regex", plain=True)
        case {"type": "choice", "choice": [_, *_] as texts} if all(isinstance(text, str) and text for text in texts):
            return ResponseFormat({"enum": list(texts)}, strict=True, pointer="/response_format/choice", plain=True)
        case _:
            raise InvalidRequest(
                "/response_format",
                'must be {"type": "text"}, {"type": "json_object"}, '
                '{"type": "json_schema", "json_schema": {"schema": …}}, {"type": "regex", "regex": "…"} '
                'or {"type": "choice", "choice": ["…", …]}, of texts that are not empty',
            )
