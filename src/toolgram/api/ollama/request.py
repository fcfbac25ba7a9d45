"""Bodies of Ollama's `/api/chat` and `/api/generate`, read as those of the other APIs are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolgram.api.completions import CompletionRequest
from toolgram.api.generation import Generation
from toolgram.api.ollama.body import OllamaChatBody, OllamaFields, OllamaGenerateBody, OllamaOptions
from toolgram.api.sampling import sampling_of, unsaid
from toolgram.api.unsupported import refuse_constraints
from toolgram.conversation.answers import ResponseFormat, any_object
from toolgram.conversation.fields import Json, further_of, json_of, validated
from toolgram.conversation.request import (
    Request,
    Tool,
    choice_of,
    distinct,
    function_tool,
    message_json,
    template_kwargs,
    with_brought,
)
from toolgram.conversation.schema_meant import schema_meant
from toolgram.conversation.thinking import as_variables
from toolgram.engines.base import Sampling
from toolgram.errors import InvalidRequest, InvalidSchema

_NO_TIME = re.compile(r"[+-]?0*\.?0*(ns|us|µs|ms|s|m|h)?")
_OWN = frozenset(("thinking", "images", "tool_name"))  # fields of messages that are told under other names


@dataclass(frozen=True, slots=True)
class Load:
    """A body that says nothing: it has the model loaded, or with `ends` unloaded."""

    model: str | None
    ends: bool


def read_chat_request(body: Any) -> Generation | Load:
    """What a body of `/api/chat` asks for. Raises InvalidRequest, or InvalidSchema, with a pointer into it."""
    given = json_of(body)
    checked = validated(OllamaChatBody, given)
    if not checked.messages:
        for tool in _tools(checked, given):
            if not isinstance(tool.parameters, Mapping | bool | None):  # no grammar is made, which would tell
                raise InvalidSchema(tool.schema_pointer, "", "a schema is an object or a boolean")
        return _load(checked)
    refuse_constraints(checked, "format")
    messages, places = _messages(checked, given["messages"])
    tools = _tools(checked, given)
    request = _request(
        checked,
        messages,
        tools=tools,
        tool_choice=choice_of(checked.tool_choice, tools),
        parallel_tool_calls=checked.parallel_tool_calls,
        places=places,
    )
    return _generation(checked, request)


def read_generate_request(body: Any) -> Generation | CompletionRequest | Load:
    """What a body of `/api/generate` asks for: an answer to its prompt, or with `raw` what follows that.

    Raises InvalidRequest with a pointer into it.
    """
    checked = validated(OllamaGenerateBody, json_of(body))
    if not checked.prompt and not checked.images:
        return _load(checked)
    refuse_constraints(checked, "format")
    if checked.raw:
        return _raw(checked)
    system = [{"role": "system", "content": checked.system}] if checked.system else []
    prompt, shown = _with_images({"role": "user", "content": checked.prompt}, checked.images or ())
    at = f"/messages/{len(system)}"
    places = {
        "/messages/0": "/system",
        at: "/prompt",
        **{f"{at}/{part}": f"/images/{i}" for i, part in enumerate(shown)},
    }
    return _generation(checked, _request(checked, [*system, prompt], places=places))


def _load(body: OllamaFields) -> Load:
    kept = body.keep_alive
    return Load(body.model, ends=kept == 0 or (isinstance(kept, str) and _NO_TIME.fullmatch(kept) is not None))


def _generation(body: OllamaFields, request: Request) -> Generation:
    sampling, said_by_model = _sampling(body)
    return Generation(
        request=request,
        sampling=sampling,
        unsaid=said_by_model,
        limit="options/num_predict",
        model=body.model,
        style=body.style,
        stream=_streams(body),
        ignored=_ignored(body),
    )


def _raw(body: OllamaGenerateBody) -> CompletionRequest:
    for name in ("system", "images"):
        if getattr(body, name):
            raise InvalidRequest(f"/{name}", "does not go with raw, where the prompt is all that there is")
    sampling, said_by_model = _sampling(body)
    return CompletionRequest(
        prompts=(body.prompt or "",),
        sampling=sampling,
        unsaid=said_by_model,
        form=_form(body),
        model=body.model,
        n=1,
        echo=False,
        stream=_streams(body),
        include_usage=False,
        ignored=(*_ignored(body), *(() if body.think is None else ("think",))),
    )


def _streams(body: OllamaFields) -> bool:
    return body.stream is not False


def _ignored(body: OllamaFields) -> tuple[str, ...]:
    """Fields that are not known here, and options that say how Ollama is to run a model."""
    return (*body.further, *further_of("options", body.options))


def _sampling(body: OllamaFields) -> tuple[Sampling, frozenset[str]]:
    """The sampling, and what of it is left to the model."""
    options = OllamaOptions() if body.options is None else body.options
    sampling = sampling_of(
        options,
        max_tokens=options.num_predict if (options.num_predict or 0) > 0 else None,
        stop=options.stop,
        seed=options.seed if (options.seed or 0) >= 0 else None,  # below 0 it is another one each time
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )
    return sampling, unsaid(options)


def _request(body: OllamaFields, messages: Sequence[Json], **further: Any) -> Request:
    last = messages[-1]
    continues = last["role"] == "assistant" and not last.get("tool_calls")
    return Request(
        messages=tuple(messages),
        response_format=_form(body),
        continue_final_message=continues,
        add_generation_prompt=not continues,
        chat_template_kwargs=_thinking(body),
        **further,
    )


def _form(body: OllamaFields) -> ResponseFormat | None:
    """Ollama leaves out what it cannot enforce: a schema is not strict."""
    match body.format:
        case None | "":
            return None
        case "json":
            return any_object("/format")
        case schema:
            return ResponseFormat(schema_meant(schema), strict=False, pointer="/format")


def _thinking(body: OllamaFields) -> Json:
    """Whether and how much the model is to think, as templates are told."""
    match body.think:
        case None:
            return {}
        case bool(on):
            return template_kwargs(as_variables(on=on), None)
        case effort:
            return template_kwargs(as_variables(on=True), effort)


def _tools(body: OllamaChatBody, given: Json) -> tuple[Tool, ...]:
    tools = zip(body.tools or (), given.get("tools") or (), strict=True)
    own = [function_tool(tool.function, source, f"/tools/{at}/function") for at, (tool, source) in enumerate(tools)]
    return with_brought(distinct(own), body.messages or (), given.get("messages") or ())


def _messages(body: OllamaChatBody, given: Sequence[Json]) -> tuple[list[Json], Mapping[str, str]]:
    """The messages in the shape of chat completions, and where in the body each part of them stands.

    Results that answer no call are let be: clients cut off the beginning of a history (Home Assistant's). Calls have no
    ids in most clients: each result is matched with its call where the template is given both.
    """
    messages: list[Json] = []
    places: dict[str, str] = {}
    for i, (message, source) in enumerate(zip(body.messages or (), given, strict=True)):
        at = f"/messages/{i}"
        said = message_json(message, source)
        told = {key: value for key, value in said.items() if key not in _OWN}
        if message.thinking:
            told["reasoning_content"] = message.thinking
            places[f"{at}/reasoning_content"] = f"{at}/thinking"
        if message.tool_name:
            told.setdefault("name", message.tool_name)
        told, shown = _with_images(told, message.images or ())
        places |= {f"{at}/{part}": f"{at}/images/{n}" for n, part in enumerate(shown)}
        messages.append(told)
    return messages, places


def _with_images(message: Json, images: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The message with its images as parts of its content, and where there each image stands."""
    if not images:
        return {**message}, []
    content: Any = message.get("content") or []
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    shown = [f"content/{len(parts) + n}" for n in range(len(images))]
    parts += [{"type": "image_url", "image_url": {"url": f"data:;base64,{image}"}} for image in images]
    return {**message, "content": parts}, shown
