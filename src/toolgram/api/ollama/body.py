"""The bodies of Ollama's `/api/chat`, `/api/generate` and `/api/show` (github.com/ollama/ollama, docs/api.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, WithJsonSchema

from toolgram.api.sampling import MAX_SEED, MAX_TOP_LOGPROBS, SamplingFields, Stop
from toolgram.conversation.body import ChatMessage, ToolChoice
from toolgram.conversation.fields import MAX_TURNS, Fields, Many, Number, kind, whole, wrong
from toolgram.conversation.tool_shapes import FunctionTool
from toolgram.engines.base import LEAST_REPETITION_PENALTY, MOST_REPETITION_PENALTY

_UNLIMITED = -2
"""The least of what is no limit to Ollama: -1 goes on for ever, -2 to the end of the context, and 0 is not heeded."""


def _format(value: Any) -> Any:
    if value not in ("", "json") and not isinstance(value, Mapping):
        raise wrong('must be "json" or a JSON Schema')
    return cast("Any", value)


def _keep_alive(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong(f"must be a duration or a number of seconds, not {kind(value)}")
    return value


Format = Annotated[
    Any, AfterValidator(_format), WithJsonSchema({"anyOf": [{"enum": ["", "json"]}, {"type": "object"}]})
]
KeepAlive = Annotated[Any, AfterValidator(_keep_alive), WithJsonSchema({"type": ["number", "string"]})]
_THINK = 'must be true, false, "low", "medium", "high" or "max"'
Think = Annotated[bool | Literal["low", "medium", "high", "max"], whole(_THINK)]
Images = Many[str]


def _left_out(sentence: str) -> AfterValidator:
    """A text that is not taken here; clients send it empty."""

    def check(value: Any) -> Any:
        if value != "":
            raise wrong(sentence)
        return value

    return AfterValidator(check)


_EMPTY = WithJsonSchema({"const": ""})
Suffix = Annotated[Any, _left_out("no engine here fills in the middle: leave it out"), _EMPTY]
GoTemplate = Annotated[Any, _left_out("the model's own chat template is used: leave it out"), _EMPTY]


class OllamaOptions(SamplingFields):
    """How tokens are chosen. What Ollama has besides says how it runs a model (`num_ctx`, `num_gpu`, …)."""

    repetition_penalty: Annotated[float, Number(LEAST_REPETITION_PENALTY, MOST_REPETITION_PENALTY)] | None = Field(
        default=None, alias="repeat_penalty"
    )
    num_predict: Annotated[int, Number(_UNLIMITED, whole=True)] | None = None
    seed: Annotated[int, Number(-MAX_SEED - 1, MAX_SEED, whole=True)] | None = None
    stop: Stop | None = None


class OllamaFields(Fields):
    """What both kinds of bodies say. A model stays loaded here, so that `keep_alive` says nothing."""

    model: str | None = None
    stream: bool | None = None
    format: Format | None = None
    think: Think | None = None
    options: OllamaOptions | None = None
    keep_alive: KeepAlive | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Number(0, MAX_TOP_LOGPROBS, whole=True)] | None = None
    style: str | None = None


class OllamaMessage(ChatMessage):
    """One message: a result names its tool, and need not name its call."""

    thinking: str | None = None
    images: Images | None = None
    tool_name: str | None = None


class OllamaChatBody(OllamaFields):
    """A body of `/api/chat`; without messages it only has the model loaded. Ollama has no `tool_choice`."""

    messages: Annotated[Many[OllamaMessage], Field(max_length=MAX_TURNS)] | None = None
    tools: Many[FunctionTool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None


class OllamaGenerateBody(OllamaFields):
    """A body of `/api/generate`; without a prompt it only has the model loaded."""

    prompt: str | None = None
    system: str | None = None
    images: Images | None = None
    raw: bool | None = None
    suffix: Suffix | None = None
    template: GoTemplate | None = None


class OllamaShowBody(Fields):
    """A body of `/api/show`, which may name the model by either name."""

    model: str | None = None
    name: str | None = None
