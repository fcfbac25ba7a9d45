"""The body of Anthropic's `/v1/messages` (docs.anthropic.com, Messages)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from toolgram.api.sampling import Limit, SamplingFields, Stops
from toolgram.conversation.fields import (
    Count,
    Fields,
    Filled,
    Held,
    Many,
    Number,
    Schema,
    Turns,
    by,
    of,
    type_of,
    unlike,
    whole,
)
from toolgram.conversation.thinking import SaidEffort

# What Anthropic has and a text does not change for.
WITHOUT_EFFECT = frozenset(("metadata", "service_tier", "cache_control", "inference_geo"))


class TextBlock(Fields):
    """Text."""

    type: Literal["text"]
    text: str


class UrlSource(Fields):
    """An image by its address."""

    type: Literal["url"]
    url: str


class Base64Source(Fields):
    """An image in the body."""

    type: Literal["base64"]
    media_type: str
    data: str


class FileSource(Fields):
    """An image that Anthropic keeps."""

    type: Literal["file"]
    file_id: str


class ImageBlock(Fields):
    """An image."""

    type: Literal["image"]
    source: Annotated[UrlSource | Base64Source | FileSource, whole("must be an image by url or base64")]


class ThinkingBlock(Fields):
    """Reasoning of the assistant, as it was given."""

    type: Literal["thinking"]
    thinking: str


class ToolUseBlock(Fields):
    """A call."""

    type: Literal["tool_use"]
    id: str
    name: Filled
    input: Held


class TextSource(Fields):
    """A document's text."""

    type: Literal["text"]
    data: str


class ContentSource(Fields):
    """A document as blocks."""

    type: Literal["content"]
    content: Blocks


class OtherSource(Fields):
    """A document in a form that cannot be shown here."""

    type: Annotated[str, unlike("text", "content")]


_SOURCES = ("text", "content")


class DocumentBlock(Fields):
    """A document."""

    type: Literal["document"]
    title: str | None = None
    context: str | None = None
    source: Annotated[
        Annotated[TextSource, of("text")]
        | Annotated[ContentSource, of("content")]
        | Annotated[OtherSource, of("other")],
        by(lambda value: named if (named := type_of(value)) in _SOURCES else "other", "must be a source"),
    ]


class SearchResultBlock(Fields):
    """A piece of a source that was searched."""

    type: Literal["search_result"]
    source: str
    title: str
    content: Many[TextBlock]


class ToolReferenceBlock(Fields):
    """A tool that a search of the client's found."""

    type: Literal["tool_reference"]
    tool_name: str


class ReferredTool(Fields):
    """A tool that is in the request's list, or was defined in the conversation."""

    type: Literal["tool_reference"]
    name: Filled


class DefinedTool(Fields):
    """A tool that the conversation itself defines."""

    type: Literal["tool_definition"]
    definition: Tool


class ToolAdditionBlock(Fields):
    """From here on a tool may be called."""

    type: Literal["tool_addition"]
    tool: Annotated[
        Annotated[ReferredTool, of("tool_reference")] | Annotated[DefinedTool, of("tool_definition")],
        by(type_of, "must refer to a tool, or define one"),
    ]


class ToolRemovalBlock(Fields):
    """From here on a tool may not be called."""

    type: Literal["tool_removal"]
    tool: ReferredTool


class ToolResultBlock(Fields):
    """What a tool answered."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: Blocks | None = None
    is_error: bool | None = None


_BLOCKS = (
    *("text", "image", "thinking", "tool_use", "tool_result"),
    *("document", "search_result", "tool_reference", "tool_addition", "tool_removal"),
)


class OtherBlock(Fields):
    """What is not known here, or says nothing to a model."""

    type: Annotated[str, unlike(*_BLOCKS)]


def _block(value: Any) -> str:
    named = type_of(value)
    return named if named in _BLOCKS else "other"


Block = Annotated[
    Annotated[TextBlock, of("text")]
    | Annotated[ImageBlock, of("image")]
    | Annotated[ThinkingBlock, of("thinking")]
    | Annotated[ToolUseBlock, of("tool_use")]
    | Annotated[ToolResultBlock, of("tool_result")]
    | Annotated[DocumentBlock, of("document")]
    | Annotated[SearchResultBlock, of("search_result")]
    | Annotated[ToolReferenceBlock, of("tool_reference")]
    | Annotated[ToolAdditionBlock, of("tool_addition")]
    | Annotated[ToolRemovalBlock, of("tool_removal")]
    | Annotated[OtherBlock, of("other")],
    by(_block, "must be a block"),
]
Blocks = Annotated[
    Annotated[str, of("string")] | Annotated[Many[Block], of("blocks")],
    by(lambda value: "string" if isinstance(value, str) else "blocks", "must be a string or a list of blocks"),
]


class ChangedEffort(Fields):
    """How long the model is to reason from then on."""

    effort: SaidEffort = None


class Turn(Fields):
    """One turn of the conversation; one of the system may change the effort, so that what stands before it stays."""

    role: Literal["user", "assistant", "system"]
    content: Blocks
    output_config: ChangedEffort | None = None


class AnthropicTool(Fields):
    """A tool of the client's own."""

    type: Literal["custom"] | None = None
    name: Filled
    description: str | None = None
    input_schema: Held
    strict: bool | None = None
    defer_loading: bool | None = None


class OtherTool(Fields):
    """A tool of Anthropic's own: some are for the client to run, the others Anthropic runs itself."""

    type: Annotated[str, unlike("custom")]
    name: str | None = None
    defer_loading: bool | None = None


Tool = Annotated[
    Annotated[AnthropicTool, of("client")] | Annotated[OtherTool, of("other")],
    by(lambda value: "client" if type_of(value) in (None, "custom") else "other", "must be a tool"),
]


class AnthropicChoice(Fields):
    """Whether tools may or must be called, and whether several at once."""

    type: Literal["auto", "any", "none"]
    disable_parallel_tool_use: bool | None = None


class AnthropicNamed(Fields):
    """The tool that must be called."""

    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool | None = None


class OutputFormat(Fields):
    """A schema for the answer."""

    type: Literal["json_schema"]
    schema_: Schema = Field(alias="schema")


class OutputConfig(Fields):
    """A schema for the answer, and how long the model is to reason."""

    format: OutputFormat | None = None
    effort: SaidEffort = None


class Reasons(Fields):
    """Whether the model is to reason."""

    type: Literal["disabled", "adaptive", "between_tools"]


class ReasonsUpTo(Fields):
    """The model is to reason, in so many tokens."""

    type: Literal["enabled"]
    budget_tokens: Count | None = None


_CHOICE = 'must be {"type": "auto"}, {"type": "any"}, {"type": "none"} or one with a name'
_CHOICES = {"auto": "mode", "any": "mode", "none": "mode", "tool": "named"}
ToolChoice = Annotated[
    Annotated[AnthropicChoice, of("mode")] | Annotated[AnthropicNamed, of("named")],
    by(lambda value: _CHOICES.get(type_of(value) or ""), _CHOICE),
]
_REASONS = {"disabled": "yes or no", "adaptive": "yes or no", "between_tools": "yes or no", "enabled": "so many"}
Reasoning = Annotated[
    Annotated[Reasons, of("yes or no")] | Annotated[ReasonsUpTo, of("so many")],
    by(lambda value: _REASONS.get(type_of(value) or ""), "must say enabled, adaptive or disabled"),
]


class CountBody(SamplingFields):
    """A body of `/v1/messages/count_tokens`: all that a message has, except how long it may be."""

    messages: Turns[Turn]
    system: Blocks | None = None
    model: str | None = None
    stop_sequences: Stops | None = None
    seed: Annotated[int, Number(0, whole=True)] | None = None
    tools: Many[Tool] | None = None
    tool_choice: ToolChoice | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    thinking: Reasoning | None = None
    thread: dict[str, Any] | None = None
    style: str | None = None


class MessagesBody(CountBody):
    """A body of `/v1/messages`."""

    max_tokens: Limit
    stream: bool | None = None
