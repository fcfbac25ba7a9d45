"""The body of OpenAI's `/v1/responses` (platform.openai.com/docs/api-reference/responses)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from toolgram.api.responses.mcp_body import (
    McpApprovalRequestItem,
    McpApprovalResponseItem,
    McpCallItem,
    McpChoice,
    McpListItem,
    McpTools,
)
from toolgram.api.sampling import MAX_TOP_LOGPROBS, Limit, OpenAISampling
from toolgram.conversation.fields import (
    Count,
    Fields,
    Filled,
    Held,
    Labels,
    Many,
    Number,
    Schema,
    Some,
    Turns,
    absent,
    by,
    of,
    type_of,
    unlike,
    whole,
)
from toolgram.conversation.thinking import SaidEffort
from toolgram.conversation.tool_shapes import FlatCustom, FlatFunction

# What OpenAI has and a text does not change for.
WITHOUT_EFFECT = frozenset(
    (
        *("service_tier", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_options"),
        *("prompt_cache_retention", "stream_options", "truncation"),
        "client_metadata",
    )
)
ENCRYPTED = "reasoning.encrypted_content"
"""What an answer may include besides: its reasoning in a form that is handed back."""
LOGPROBS = "message.output_text.logprobs"
"""What it may include, too: how likely the tokens of its text were."""
InBackground = Annotated[
    Any, absent("no answer is made in the background here: leave it out, or stream the answer", empty=True)
]
State = Annotated[Any, absent("this is not kept here: give a previous response, or all of it as input", empty=True)]


class ResponseText(Fields):
    """Text."""

    type: Literal["input_text", "output_text", "text"]
    text: str


class ResponseRefusal(Fields):
    """What the assistant said in place of an answer."""

    type: Literal["refusal"]
    refusal: str


class ResponseImage(Fields):
    """An image by its address, or in a `data:` URL; one that has neither is a file that OpenAI keeps."""

    type: Literal["input_image"]
    image_url: str | None = None


_PARTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal", "input_image": "image"}


class ResponseOther(Fields):
    """What cannot be shown to a model here."""

    type: Annotated[str, unlike(*_PARTS)]


Part = Annotated[
    Annotated[ResponseText, of("text")]
    | Annotated[ResponseRefusal, of("refusal")]
    | Annotated[ResponseImage, of("image")]
    | Annotated[ResponseOther, of("other")],
    by(lambda value: _PARTS.get(type_of(value) or "", "other"), "must be a part"),
]
Content = Annotated[
    Annotated[str, of("string")] | Annotated[Many[Part], of("parts")],
    by(lambda value: "string" if isinstance(value, str) else "parts", "must be a string or a list of parts"),
]


class HostedTool(Fields):
    """A tool that OpenAI runs."""

    type: Annotated[str, unlike("function", "custom", "namespace", "mcp")]


def _tool(value: Any) -> str:
    named = type_of(value)
    return named if named in ("function", "custom", "namespace", "mcp") else "other"


InnerTool = Annotated[
    Annotated[FlatFunction, of("function")] | Annotated[FlatCustom, of("custom")] | Annotated[HostedTool, of("other")],
    by(lambda value: named if (named := _tool(value)) in ("function", "custom") else "other", "must be a tool"),
]


class Namespace(Fields):
    """Tools that the client keeps under a name, such as those of one MCP server."""

    type: Literal["namespace"]
    name: Filled
    description: str | None = None
    tools: Many[InnerTool]


Tool = Annotated[
    Annotated[FlatFunction, of("function")]
    | Annotated[FlatCustom, of("custom")]
    | Annotated[Namespace, of("namespace")]
    | Annotated[McpTools, of("mcp")]
    | Annotated[HostedTool, of("other")],
    by(_tool, "must be a tool"),
]


class MessageItem(Fields):
    """A message."""

    type: Literal["message"] | None = None
    role: Literal["system", "developer", "user", "assistant"]
    content: Content


class FunctionCallItem(Fields):
    """A call of a function."""

    type: Literal["function_call"]
    call_id: str
    name: Filled
    namespace: str | None = None
    arguments: str


class CustomCallItem(Fields):
    """A call of a custom tool."""

    type: Literal["custom_tool_call"]
    call_id: str
    name: Filled
    namespace: str | None = None
    input: str


class OutputItem(Fields):
    """What a tool answered."""

    type: Literal["function_call_output", "custom_tool_call_output"]
    call_id: str
    output: Content


class ReasoningPart(Fields):
    """A part of the model's reasoning."""

    text: str


class ReasoningItem(Fields):
    """Reasoning of the assistant; of its content, what we encrypted and its summary the first that holds anything is
    read. Where none of them is there, it is what is kept by its id.
    """

    type: Literal["reasoning"]
    id: str | None = None
    content: Many[ReasoningPart] | None = None
    summary: Many[ReasoningPart] | None = None
    encrypted_content: str | None = None

    @property
    def holds_anything(self) -> bool:
        """Whether there is any of that."""
        return bool(self.content or self.summary or self.encrypted_content)


class ReferenceItem(Fields):
    """An item of an earlier response."""

    type: Literal["item_reference"] | None = None
    id: str


_ITEMS = {
    "message": "message",
    "item_reference": "reference",
    "function_call": "call",
    "custom_tool_call": "custom",
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "reasoning": "reasoning",
    "additional_tools": "tools",
    "tool_search_output": "tools",
    "configuration_update": "configuration",
    **{kind: kind for kind in ("mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response")},
}


class ToolsItem(Fields):
    """Tools that were added in the course of the conversation, or found by a client's search."""

    type: Literal["additional_tools", "tool_search_output"]
    tools: Many[Tool] | None = None


class ChangedReasoning(Fields):
    """How long the model is to reason from then on."""

    effort: SaidEffort = None


class ConfigurationItem(Fields):
    """A change of what the body says, so that what stands before it stays as it was."""

    type: Literal["configuration_update"]
    reasoning: ChangedReasoning | None = None


class OtherItem(Fields):
    """What says nothing to a model, or cannot be shown to one here."""

    type: Annotated[str, unlike(*_ITEMS)]


def _item(value: Any) -> str:
    if (named := type_of(value)) is not None:
        return _ITEMS.get(named, "other")
    fields = cast("Mapping[str, Any]", value if isinstance(value, Mapping) else {})
    return "reference" if "id" in fields and not {"role", "content"} & fields.keys() else "message"


Item = Annotated[
    Annotated[MessageItem, of("message")]
    | Annotated[FunctionCallItem, of("call")]
    | Annotated[CustomCallItem, of("custom")]
    | Annotated[OutputItem, of("output")]
    | Annotated[ReasoningItem, of("reasoning")]
    | Annotated[ToolsItem, of("tools")]
    | Annotated[ConfigurationItem, of("configuration")]
    | Annotated[ReferenceItem, of("reference")]
    | Annotated[McpListItem, of("mcp_list_tools")]
    | Annotated[McpCallItem, of("mcp_call")]
    | Annotated[McpApprovalRequestItem, of("mcp_approval_request")]
    | Annotated[McpApprovalResponseItem, of("mcp_approval_response")]
    | Annotated[OtherItem, of("other")],
    by(_item, "must be an item"),
]


class NamedTool(Fields):
    """A tool that may or must be called."""

    type: Literal["function", "custom"]
    name: str
    namespace: str | None = None


class HostedChoice(Fields):
    """A tool that OpenAI runs."""

    type: Annotated[str, unlike("function", "custom", "mcp", "allowed_tools")]


_KINDS = {"function": "named", "custom": "named", "mcp": "mcp"}
AnyNamed = Annotated[
    Annotated[NamedTool, of("named")] | Annotated[McpChoice, of("mcp")] | Annotated[HostedChoice, of("hosted")],
    by(lambda value: _KINDS.get(type_of(value) or "", "hosted"), "must name a tool"),
]


class AllowedNames(Fields):
    """A choice among some of the tools."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Some[AnyNamed]


_CHOICE = "must be none, auto, required, or an object that names tools"
_CHOICES = {**_KINDS, "allowed_tools": "allowed"}


def _choice(value: Any) -> str | None:
    named = type_of(value)
    return "mode" if isinstance(value, str) else None if named is None else _CHOICES.get(named, "hosted")


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], whole(_CHOICE), of("mode")]
    | Annotated[NamedTool, whole(_CHOICE), of("named")]
    | Annotated[McpChoice, whole(_CHOICE), of("mcp")]
    | Annotated[AllowedNames, of("allowed")]
    | Annotated[HostedChoice, of("hosted")],
    by(_choice, _CHOICE),
]


class PlainFormat(Fields):
    """An answer without a schema: text, or any JSON object."""

    type: Literal["text", "json_object"]


class SchemaFormat(Fields):
    """An answer that a schema admits."""

    type: Literal["json_schema"]
    name: str | None = None
    description: str | None = None
    schema_: Schema = Field(alias="schema")
    strict: bool | None = None


_FORMATS = {"text": "plain", "json_object": "plain", "json_schema": "schema"}


class TextOptions(Fields):
    """What form the answer has."""

    format: (
        Annotated[
            Annotated[PlainFormat, of("plain")] | Annotated[SchemaFormat, of("schema")],
            by(lambda value: _FORMATS.get(type_of(value) or ""), "must be text, json_object or json_schema"),
        ]
        | None
    ) = None


Summary = Literal["auto", "concise", "detailed"]


class ReasoningOptions(Fields):
    """How long the model is to reason, and whether its reasoning is told as a summary: it is not made shorter."""

    effort: SaidEffort = None
    summary: Summary | None = None
    generate_summary: Summary | None = None  # its name of old


class ResponsesBody(OpenAISampling):
    """A body of `/v1/responses`, whose response is kept for later ones unless `store` is false."""

    input: Annotated[
        Annotated[str, of("string")] | Annotated[Turns[Item], of("items")],
        by(
            lambda value: "string" if isinstance(value, str) else "items",
            "must be a string or a list of items",
        ),
    ]
    include: Many[str] | None = None
    instructions: str | None = None
    model: str | None = None
    max_output_tokens: Limit | None = None
    top_logprobs: Annotated[int, Number(0, MAX_TOP_LOGPROBS, whole=True)] | None = None
    tools: Many[Tool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: Count | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    reasoning_max_tokens: Count | None = None
    calls_close_reasoning: bool | None = None
    end_repetitions: bool | None = None
    chat_template_kwargs: Held | None = None
    style: str | None = None
    stream: bool | None = None
    metadata: Labels | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    conversation: State = None
    prompt: State = None
    background: InBackground = None
