"""The body of `/v1/chat/completions`: what a plan depends on, and how its answer is made and told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import WithJsonSchema

from toolgram.api.sampling import MAX_TOP_LOGPROBS, MostTokens, OpenAISampling
from toolgram.conversation.body import ChatBody
from toolgram.conversation.fields import Fields, Labels, Many, Number, absent, by, further_of, of, whole

MAX_CHOICES = 128

# What OpenAI has and a text does not change for: its accounts, caches and tiers.
WITHOUT_EFFECT = frozenset(
    (
        *("user", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_options"),
        *("prompt_cache_retention", "prediction"),
    )
)

Nothing = Annotated[Any, absent("there is no such thing here: leave it out"), WithJsonSchema({"type": "null"})]


class StreamOptions(Fields):
    """What a stream says besides the answer: what it cost, and its tokens; nothing is added to hide how long it is."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None
    include_tokens: bool | None = None


def unused_options(options: StreamOptions | None, stream: bool | None) -> tuple[str, ...]:
    """What of the options of a stream has no effect, as it is told: all of them, where there is no stream."""
    if options is None or stream:
        return further_of("stream_options", options)
    return ("stream_options",)


class ChatOptions(Fields):
    """What a body of `/v1/responses` that is answered as a chat may say of chat completions."""

    max_tokens: MostTokens = None
    max_completion_tokens: MostTokens = None
    stream_options: StreamOptions | None = None


class BroughtTemplate(Fields):
    """A chat template in the place of the model's, and the texts of two tokens beside it."""

    template: str
    bos_token: str | None = None
    eos_token: str | None = None


BodyTemplate = Annotated[
    Annotated[str, of("source")] | Annotated[BroughtTemplate, of("object")],
    by(lambda value: "source" if isinstance(value, str) else "object", "must be a string or an object"),
]


class ChatCompletionBody(ChatBody, OpenAISampling):
    """A body of `/v1/chat/completions`."""

    model: str | None = None
    n: Annotated[int, Number(1, MAX_CHOICES, whole=True)] | None = None
    max_tokens: MostTokens = None
    max_completion_tokens: MostTokens = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Number(0, MAX_TOP_LOGPROBS, whole=True)] | None = None
    style: str | None = None
    chat_template: BodyTemplate | None = None
    modalities: Annotated[Many[Literal["text"]], whole("only text is written here")] | None = None
    audio: Nothing = None
    web_search_options: Nothing = None
    metadata: Labels | None = None


class ExplainBody(ChatCompletionBody):
    """A body of `/v1/explain`; `dialect` is that in which the grammar is shown."""

    dialect: str | None = None
