"""A body of `/v1/chat/completions`, read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolgram.api.chat.body import WITHOUT_EFFECT, BroughtTemplate, ChatCompletionBody, ExplainBody
from toolgram.api.generation import Generation, GivenTemplate
from toolgram.api.results import check_results
from toolgram.api.sampling import sampling_of, unsaid
from toolgram.conversation.fields import Json, further_of, json_of, validated
from toolgram.conversation.request import request_of
from toolgram.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat-completions body; `legacy`: its tools are `functions`, and its answer has a `function_call`.

    `include_usage` and `include_tokens`: the stream tells what it cost, and its tokens.
    """

    generation: Generation
    include_usage: bool = False
    include_tokens: bool = False
    legacy: bool = False


def read_chat_request(body: Any) -> ChatRequest:
    """The request that a body makes. Raises InvalidRequest with a pointer into it.

    Unknown fields are ignored, since clients of other servers send theirs: the generation names them.
    """
    given = json_of(body)
    return _chat_request(validated(ChatCompletionBody, given), given)


def read_explain_request(body: Any) -> tuple[ChatRequest, str]:
    """The request that a body of `/v1/explain` makes, and the dialect of its grammar. Raises InvalidRequest."""
    given = json_of(body)
    checked = validated(ExplainBody, given)
    return _chat_request(checked, given), checked.dialect or "gbnf"


def _chat_request(body: ChatCompletionBody, given: Json) -> ChatRequest:
    options = body.stream_options
    if options is not None and not body.stream:
        raise InvalidRequest("/stream_options", "is only allowed where stream is true")
    limit = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    request = request_of(body, given)
    check_results(request)
    generation = Generation(
        request=request,
        sampling=sampling_of(body, max_tokens=limit, stop=body.stop, seed=body.seed, logprobs=_logprobs(body)),
        unsaid=unsaid(body),
        limit="max_tokens" if body.max_completion_tokens is None else "max_completion_tokens",
        model=body.model,
        style=body.style,
        chat_template=_template(body),
        n=body.n or 1,
        stream=body.stream or False,
        ignored=(
            *(name for name in body.further if name not in WITHOUT_EFFECT),
            *further_of("stream_options", options),
            *further_of("structured_outputs", body.structured_outputs),
        ),
    )
    usage, tokens = (options.include_usage, options.include_tokens) if options else (None, None)
    return ChatRequest(generation, usage or False, tokens or False, body.functions is not None)


def _logprobs(body: ChatCompletionBody) -> int | None:
    """How many likely tokens are to be given beside each token that is written; None: they are not asked for."""
    if body.logprobs:
        return body.top_logprobs or 0
    if body.top_logprobs:
        raise InvalidRequest("/top_logprobs", "needs logprobs to be true")
    return None


def _template(body: ChatCompletionBody) -> GivenTemplate | None:
    match body.chat_template:
        case None:
            return None
        case BroughtTemplate() as given:
            return GivenTemplate(given.template, "/chat_template/template", given.bos_token, given.eos_token)
        case source:
            return GivenTemplate(source, "/chat_template")
