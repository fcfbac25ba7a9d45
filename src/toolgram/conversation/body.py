"""The body of a chat-completions request, as far as a plan depends on it: what `toolgram.plan` takes.

The fields are those of OpenAI's API reference, the legacy ones included, and those that vLLM and llama-server have
beside them. What says how tokens are chosen and told is added where an answer is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    ConfigDict,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
)
from pydantic.config import JsonDict

from toolgram.conversation.fields import (
    Count,
    Fields,
    Filled,
    Held,
    Json,
    Many,
    Number,
    Some,
    Turns,
    by,
    kind,
    of,
    type_of,
    unlike,
    whole,
    wrong,
)
from toolgram.conversation.formats import Forms
from toolgram.conversation.thinking import SaidEffort, Thinking, thinking_of
from toolgram.conversation.tool_shapes import Function, FunctionType, Tool, function_or_custom

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
OF_TOOLS = ("tool", "function")
"""The roles of what a tool answered."""
OF_SYSTEM = ("system", "developer")

# Messages -----------------------------------------------------------------------------------------------------------


class TextPart(Fields):
    """Text."""

    type: Literal["text"]
    text: str


class RefusalPart(Fields):
    """What the assistant said in place of an answer."""

    type: Literal["refusal"]
    refusal: str


class OtherPart(Fields):
    """An image, a sound, a file, …: the chat template says whether it takes it."""

    type: Annotated[str, unlike("text", "refusal")]


def _part(value: Any) -> str:
    named = type_of(value)
    return named if named in ("text", "refusal") else "other"


Part = Annotated[
    Annotated[TextPart, of("text")] | Annotated[RefusalPart, of("refusal")] | Annotated[OtherPart, of("other")],
    by(_part, "must be a part"),
]
_CONTENT = "must be a string or a list of parts"


def _content(value: Any) -> str | None:
    if isinstance(value, str):
        return "string"
    return "parts" if isinstance(value, list | tuple) else "object" if isinstance(value, Mapping) else None


Content = Annotated[
    Annotated[str, of("string")] | Annotated[Many[Part], of("parts")] | Annotated[Json, of("object")],
    by(_content, _CONTENT),
]


def _arguments(value: Any) -> Any:
    if value is not None and not isinstance(value, str | Mapping):
        raise wrong(f"must be JSON text or an object, not {kind(value)}")
    return cast("Any", value)


Arguments = Annotated[Any, AfterValidator(_arguments), WithJsonSchema({"type": ["string", "object", "null"]})]


class CalledFunction(Fields):
    """What a call says: a function's name, and its arguments as JSON text or as an object."""

    name: Filled
    arguments: Arguments = "{}"


class FunctionCall(Fields):
    """A call of a function in the history."""

    type: FunctionType | None = None
    id: str | None = None
    function: CalledFunction


class CustomInput(Fields):
    """What a call of a custom tool says."""

    name: str
    input: str


class CustomCall(Fields):
    """A call of a custom tool in the history."""

    type: Literal["custom"]
    id: str | None = None
    custom: CustomInput


Call = Annotated[
    Annotated[FunctionCall, of("function")] | Annotated[CustomCall, of("custom")], by(function_or_custom, "is no call")
]


class LegacyCall(Fields):
    """`function_call` of a message, as calls were before there were tools."""

    name: Filled
    arguments: str


_OF_A_TOOL: JsonDict = {"properties": {"role": {"enum": list(OF_TOOLS)}}}
_NO_OBJECT: JsonDict = {"properties": {"content": {"not": {"type": "object"}}}}
_OF_THE_SYSTEM: JsonDict = {"properties": {"role": {"enum": list(OF_SYSTEM)}}}


def _by_role(schema: JsonDict) -> None:
    """Says what depends on the role of a message."""
    fields = cast("JsonDict", schema["properties"])
    brought, fields["tools"] = fields["tools"], {}
    schema |= {"anyOf": [_OF_A_TOOL, _NO_OBJECT], "if": _OF_THE_SYSTEM, "then": {"properties": {"tools": brought}}}


class ChatMessage(Fields):
    """One message of the conversation; further fields are the template's to read.

    What a tool answered may be an object, which is shown as its JSON text. One of the system may bring tools that can
    be called from then on, as in Kimi's API.
    """

    model_config = ConfigDict(json_schema_extra=_by_role)

    role: Role
    content: Content | None = None
    refusal: str | None = None
    name: str | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: Many[Call] | None = None
    function_call: LegacyCall | None = None
    tools: Many[Tool] | None = None

    @field_validator("tools", mode="wrap")
    @classmethod
    def _are_offered(cls, value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        """Beside what others say they are the template's to read."""
        return check(value) if info.data.get("role") in OF_SYSTEM else None

    @field_validator("content")
    @classmethod
    def _is_text(cls, value: Any, info: ValidationInfo) -> Any:
        """Home Assistant's Local LLMs may send results as objects (acon96/home-llm, `get_oai_formatted_messages`)."""
        if isinstance(value, Mapping) and info.data.get("role") not in OF_TOOLS:
            raise wrong(_CONTENT)
        return cast("Any", value)


# Tools --------------------------------------------------------------------------------------------------------------


class Named(Fields):
    """The name of a tool."""

    name: str


class NamedFunction(Fields):
    """A function that is to be called; Hugging Face's clients leave out what it is."""

    type: Literal["function"] | None = None
    function: Named


class NamedCustom(Fields):
    """A custom tool that is to be called."""

    type: Literal["custom"]
    custom: Named


def _named(value: Any) -> str | None:
    if (named := type_of(value)) in ("function", "custom"):
        return named
    is_one = "function" in value if isinstance(value, Mapping) else isinstance(value, NamedFunction)
    return "function" if named is None and is_one else None


AnyNamed = Annotated[
    Annotated[NamedFunction, of("function")] | Annotated[NamedCustom, of("custom")],
    by(_named, 'must be {"type": "function", "function": {"name": …}}'),
]


class FlatNamed(Fields):
    """The tool that is to be called, as `/v1/responses` has it."""

    type: Literal["function", "custom"]
    name: str


class Mode(Fields):
    """Whether a call is to be made, in an object, as Cursor and Anthropic's API have it."""

    type: Literal["none", "auto", "required", "any"]


class SomeTools(Fields):
    """The tools that may be called in this turn."""

    mode: Literal["auto", "required"]
    tools: Some[AnyNamed]


class AllowedTools(Fields):
    """A choice among some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: SomeTools


_CHOICE = (
    'must be "none", "auto", "required", {"type": "function", "function": {"name": …}} '
    'or {"type": "allowed_tools", "allowed_tools": {"mode": …, "tools": […]}}'
)


def _choice(value: Any) -> str | None:
    if isinstance(value, str):
        return "mode"
    if (named := _named(value)) is not None:
        is_flat = named not in value if isinstance(value, Mapping) else isinstance(value, FlatNamed)
        return "flat" if is_flat else "named"
    kind = type_of(value)
    return "allowed" if kind == "allowed_tools" else None if kind is None else "object"


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required", "any"], whole(_CHOICE), of("mode")]
    | Annotated[NamedFunction | NamedCustom, whole(_CHOICE), of("named")]
    | Annotated[FlatNamed, whole(_CHOICE), of("flat")]
    | Annotated[Mode, whole(_CHOICE), of("object")]
    | Annotated[AllowedTools, of("allowed")],
    by(_choice, _CHOICE),
]


class ChosenFunction(Fields):
    """`function_call` of a body: the function that is to be called."""

    name: str


LegacyChoice = Annotated[Literal["none", "auto"] | ChosenFunction, whole('must be "none", "auto" or {"name": …}')]


# The body -----------------------------------------------------------------------------------------------------------


class Conversation(Fields):
    """What was said, and what may be called."""

    messages: Turns[ChatMessage]
    tools: Many[Tool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    functions: Many[Function] | None = None
    function_call: LegacyChoice | None = None


class ChatBody(Forms, Conversation):
    """A chat-completions body, as far as its prompt, its grammar and its reader depend on it.

    `regex` and `choice` are short for response formats, as vLLM's, SGLang's and llama-server's names are, and `grammar`
    is GBNF for the whole answer; `functions` and `function_call` are short for tools and a choice of them. The
    `reasoning_format` "deepseek" is what llama-server calls that of "auto" here: reasoning told apart from the answer.
    """

    reasoning_effort: SaidEffort = None
    reasoning_format: Literal["auto", "deepseek", "none"] | None = None
    reasoning_max_tokens: Count | None = None
    calls_close_reasoning: bool | None = None
    end_repetitions: bool | None = None
    tool_bias: Annotated[float, Number(-100, 100)] | None = None
    parallel_tool_bias: Annotated[float, Number(-100, 100)] | None = None
    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None
    chat_template_kwargs: Held | None = None

    @cached_property
    def thoughts(self) -> Thinking:
        """What further fields say of reasoning."""
        return thinking_of(self.model_extra or {})
