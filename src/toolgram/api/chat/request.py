"""A body of `/v1/chat/completions`, read.

Cursor's agent sends bodies of `/v1/responses` there, and reads chat completions; in its other modes custom tools of the
one API stand beside functions of the other. It takes every call for one of a function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from toolgram.api.chat.body import (
    WITHOUT_EFFECT,
    BroughtTemplate,
    ChatCompletionBody,
    ChatOptions,
    ExplainBody,
    StreamOptions,
    unused_options,
)
from toolgram.api.generation import Generation, GivenTemplate
from toolgram.api.responses.request import read_responses_request
from toolgram.api.results import check_results
from toolgram.api.sampling import sampling_of, unsaid
from toolgram.conversation.fields import Json, further_of, json_of, validated
from toolgram.conversation.request import names_of_custom, request_of
from toolgram.conversation.tool_shapes import FlatCustom
from toolgram.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat-completions body; `legacy`: its tools are `functions`, and its answer has a `function_call`.

    `include_usage` and `include_tokens`: the stream tells what it cost, and its tokens. `as_functions` are the custom
    tools whose calls are told as those of functions.
    """

    generation: Generation
    include_usage: bool = False
    include_tokens: bool = False
    legacy: bool = False
    as_functions: frozenset[str] = frozenset()


def read_chat_request(body: Any) -> ChatRequest:
    """The request that a body makes. Raises InvalidRequest with a pointer into it.

    Unknown fields are ignored, since clients of other servers send theirs: the generation names them.
    """
    given = json_of(body)
    if _has_input(given):
        return _of_responses(given)
    return _chat_request(validated(ChatCompletionBody, given), given)


def read_explain_request(body: Any) -> tuple[ChatRequest, str]:
    """The request that a body of `/v1/explain` makes, and the dialect of its grammar. Raises InvalidRequest."""
    given = json_of(body)
    checked = validated(ExplainBody, given)
    return _chat_request(checked, given), checked.dialect or "gbnf"


def _chat_request(body: ChatCompletionBody, given: Json) -> ChatRequest:
    options = body.stream_options
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
            *(name for name in body.further if name not in WITHOUT_EFFECT | body.thoughts.heeded),
            *unused_options(options, body.stream),
            *further_of("structured_outputs", body.structured_outputs),
            *further_of("response_format", body.response_format),
        ),
    )
    flat = frozenset(tool.name for tool in body.tools or () if isinstance(tool, FlatCustom))
    return ChatRequest(generation, *_told(options), legacy=body.functions is not None, as_functions=flat)


def _told(options: StreamOptions | None) -> tuple[bool, bool]:
    """Whether a stream tells what it cost, and its tokens."""
    return (False, False) if options is None else (options.include_usage or False, options.include_tokens or False)


def _has_input(given: Any) -> TypeGuard[Json]:
    """Whether a body says its conversation as `/v1/responses` has it."""
    return isinstance(given, dict) and "input" in given and not cast("Json", given).get("messages")


def _of_responses(given: Json) -> ChatRequest:
    """The request of a body of `/v1/responses`, which is answered as a chat."""
    own = validated(ChatOptions, {key: given[key] for key in ChatOptions.model_fields if key in given})
    rest = {key: value for key, value in given.items() if key not in ("messages", *ChatOptions.model_fields)}
    limit = own.max_tokens if own.max_completion_tokens is None else own.max_completion_tokens
    generation = read_responses_request(rest if limit is None else {"max_output_tokens": limit, **rest}).generation
    return ChatRequest(generation, *_told(own.stream_options), as_functions=names_of_custom(generation.request.tools))


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
