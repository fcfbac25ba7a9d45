"""A body of OpenAI's `/v1/responses`, read as a conversation of ours, with what it names of earlier responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolgram.api.generation import Generation
from toolgram.api.responses.body import (
    ENCRYPTED,
    LOGPROBS,
    WITHOUT_EFFECT,
    ConfigurationItem,
    Content,
    CustomCallItem,
    FunctionCallItem,
    Item,
    MessageItem,
    OutputItem,
    Part,
    ReasoningItem,
    ResponseImage,
    ResponseOther,
    ResponseRefusal,
    ResponsesBody,
    ResponseText,
    SchemaFormat,
    ToolsItem,
)
from toolgram.api.responses.conversation import Conversation
from toolgram.api.responses.input import Earlier, Input, input_of, references
from toolgram.api.responses.mcp import NOT_OFFERED, UNANSWERED, Answers, ApprovedCall, Asked, Listing, McpPlace, denial
from toolgram.api.responses.mcp_body import (
    McpApprovalRequestItem,
    McpApprovalResponseItem,
    McpCallItem,
    McpListItem,
)
from toolgram.api.responses.sealed import unsealed
from toolgram.api.responses.tools import Offer, Place, asked_of, choice, offer
from toolgram.api.sampling import sampling_of, unsaid
from toolgram.api.unsupported import refuse_constraints
from toolgram.conversation.answers import ResponseFormat, described
from toolgram.conversation.custom_tools import call_as_function, with_inputs
from toolgram.conversation.fields import Json, further_of, json_of, validated
from toolgram.conversation.json_text import arguments_meant
from toolgram.conversation.request import Request, names_of_custom, template_kwargs
from toolgram.errors import InvalidRequest

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """A body of `/v1/responses`; `echo` are the fields of it that its answer repeats.

    `places` are the tools of namespaces, by the names that the model knows them by, and `mcp` those of MCP servers. The
    `listings` are told first, then the `approved` calls run, and of all calls at most `max_tool_calls` do. With
    `encrypts` reasoning is given in a form that is handed back, too, and with `summarizes` as its own summary.
    """

    generation: Generation
    echo: Message
    places: Mapping[str, Place]
    mcp: Mapping[str, McpPlace]
    listings: tuple[Listing, ...]
    approved: tuple[ApprovedCall, ...]
    max_tool_calls: int | None
    encrypts: bool
    summarizes: bool


@dataclass(frozen=True, slots=True)
class CheckedBody:
    """A body of `/v1/responses` that is read when the MCP servers that it `asked` have listed their tools.

    Where there `is_mcp` here, what servers did in earlier responses is part of the conversation.
    """

    body: ResponsesBody
    input: Input
    given: Json
    is_mcp: bool
    asked: tuple[Asked, ...]

    def request(self, listings: Sequence[Listing] = ()) -> ResponsesRequest:
        """The request that it makes with what they listed. Raises InvalidRequest with a pointer into it."""
        offered = offer(self.body, self.input, listings)
        said = _said(self.body, self.input, offered, is_mcp=self.is_mcp)
        told = tuple(listing for listing in listings if listing.is_told)
        generation, approved = _generation(self.body, offered, said), said.approved
        echo = _echo(self.body, self.given)
        return ResponsesRequest(
            generation=generation,
            echo=echo,
            places=offered.places,
            mcp=offered.mcp,
            listings=told,
            approved=approved,
            max_tool_calls=self.body.max_tool_calls,
            encrypts=ENCRYPTED in (self.body.include or ()),
            summarizes=_summary(self.body) is not None,
        )


# Items of what OpenAI runs or keeps itself: a client sends them back, and to another model they say nothing.
_OF_THE_SERVER = frozenset(
    (
        *("web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call"),
        *("computer_call", "computer_call_output", "local_shell_call", "local_shell_call_output"),
        *("shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output"),
        *("tool_search_call", "compaction", "compaction_summary", "ghost_snapshot"),
        *("program", "program_output"),
    )
)


_OF_MCP = (McpListItem, McpCallItem, McpApprovalRequestItem, McpApprovalResponseItem)


@dataclass(frozen=True, slots=True)
class SentBody:
    """A body of `/v1/responses` as it was sent, which may name what was kept of earlier responses."""

    body: ResponsesBody
    given: Json

    @property
    def goes_on(self) -> bool:
        """Whether it names any."""
        return bool(self.body.previous_response_id or references(self.body))

    def checked(self, servers: Mapping[str, str], earlier: Earlier) -> CheckedBody:
        """It before the MCP servers of a configuration, their names and addresses, list what it asks them for.

        Raises InvalidRequest with a pointer into it, for what it names and is not there too.
        """
        said = input_of(self.body, earlier)
        asked = asked_of(self.body, said, servers) if servers else ()
        return CheckedBody(self.body, said, self.given, bool(servers), asked)


def sent_body(body: Any) -> SentBody:
    """A body as it was sent. Raises InvalidRequest with a pointer into it."""
    given = json_of(body)
    checked = validated(ResponsesBody, given)
    refuse_constraints(checked, "text.format")
    return SentBody(checked, given)


def read_responses_request(body: Any) -> ResponsesRequest:
    """The request that a body makes where there are no MCP servers, and nothing is kept.

    Raises InvalidRequest with a pointer into it.
    """
    return sent_body(body).checked({}, Earlier()).request()


def _generation(body: ResponsesBody, offered: Offer, said: Conversation) -> Generation:
    return Generation(
        request=_request(body, offered, said),
        sampling=sampling_of(
            body, max_tokens=body.max_output_tokens, stop=body.stop, seed=body.seed, logprobs=_logprobs(body)
        ),
        unsaid=unsaid(body),
        limit="max_output_tokens",
        model=body.model,
        style=body.style,
        stream=body.stream or False,
        ignored=(
            *(name for name in body.further if name not in WITHOUT_EFFECT),
            *further_of("reasoning", body.reasoning),
            *further_of("text", body.text),
            *(f"include.{name}" for name in body.include or () if name not in (ENCRYPTED, LOGPROBS)),
            *offered.left_out,
            *dict.fromkeys(said.left_out),
        ),
    )


def _summary(body: ResponsesBody) -> str | None:
    """The summary of the reasoning that is asked for."""
    return None if body.reasoning is None else body.reasoning.summary or body.reasoning.generate_summary


def _logprobs(body: ResponsesBody) -> int | None:
    """How many likely tokens are to be given beside each token of the text; None: they are not asked for."""
    asked = body.top_logprobs or LOGPROBS in (body.include or ())
    return body.top_logprobs or 0 if asked else None


def _said(body: ResponsesBody, items: Input, offered: Offer, *, is_mcp: bool) -> Conversation:
    """The conversation of a body, and the types of the items that are left out of it."""
    said = Conversation(Answers.of(items.items))
    if body.instructions is not None:
        said.add("system", body.instructions, "/instructions")
    for item, place in zip(items.items, items.places, strict=True):
        if is_mcp or not isinstance(item, _OF_MCP):
            _item(said, item, place, offered)
        else:
            said.left_out.append(f"input.{item.type}")
    if not said.messages:
        raise InvalidRequest("/input", "must hold at least one message")
    return said


def _request(body: ResponsesBody, offered: Offer, said: Conversation) -> Request:
    effort = said.effort or (None if body.reasoning is None else body.reasoning.effort)
    return Request(
        messages=with_inputs(said.messages, names_of_custom(offered.tools)),
        tools=offered.tools,
        tool_choice=choice(body, offered),
        parallel_tool_calls=body.parallel_tool_calls,
        response_format=_format(body),
        reasoning_max_tokens=body.reasoning_max_tokens,
        calls_close_reasoning=body.calls_close_reasoning,
        end_repetitions=body.end_repetitions is not False,
        chat_template_kwargs=template_kwargs(body.chat_template_kwargs or {}, effort),
        places=said.places,
    )


def _item(said: Conversation, item: Item, pointer: str, offered: Offer) -> None:
    match item:
        case MessageItem():
            said.add(item.role, _content(item.content, f"{pointer}/content"), pointer)
        case FunctionCallItem():
            said.call(_call(item.call_id, offered.name(item.name, item.namespace), item.arguments), pointer)
        case McpListItem():
            pass  # its tools are asked of the server
        case McpCallItem():
            name = offered.name_of_call(item.server_label, item.name)
            said.call(_call(item.id, name, item.arguments), pointer)
            said.result(item.id, item.told, pointer)
        case McpApprovalRequestItem():
            if item.id not in said.answers.ran:  # else its call follows
                _asked(said, item, pointer, offered)
        case McpApprovalResponseItem():
            said.answers.check(item, pointer)
        case CustomCallItem():
            name = offered.name(item.name, item.namespace)
            said.call({"id": item.call_id, **call_as_function(name, item.input)}, pointer)
        case OutputItem():
            said.result(item.call_id, _output(said, item.output), pointer)
        case ReasoningItem():
            said.reason(_reasoning(item), pointer)
        case ToolsItem():
            pass  # its tools are among those offered
        case ConfigurationItem():
            said.effort = (item.reasoning and item.reasoning.effort) or said.effort
            said.left_out += [f"input.{item.type}.{name}" for name in item.further]
        case _ if item.type in _OF_THE_SERVER:
            said.left_out.append(f"input.{item.type}")
        case _:
            raise InvalidRequest(f"{pointer}/type", f"an item of type {item.type!r} cannot be shown to a model here")


def _reasoning(item: ReasoningItem) -> str:
    content, summary = ("\n".join(part.text for part in parts or ()) for parts in (item.content, item.summary))
    return content or unsealed(item.encrypted_content) or summary


def _call(id_: str, name: str, arguments: str) -> Message:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments_meant(arguments)}}


def _asked(said: Conversation, item: McpApprovalRequestItem, pointer: str, offered: Offer) -> None:
    """A call that waited for an approval, with what is known of its result: one that may run has none yet."""
    name = offered.name_of_call(item.server_label, item.name)
    said.call(_call(item.id, name, item.arguments), pointer)
    answer, approved = said.answers.given.get(item.id), None
    if answer is None:
        result = UNANSWERED
    elif not answer.approve:
        result = denial(answer)
    elif name in offered.mcp:
        result = ""
        approved = ApprovedCall(0, 0, name, item.arguments, item.id)  # counted when all are known
    else:
        result = NOT_OFFERED
    said.result(item.id, result, pointer, approved)


def _content(value: Content, pointer: str) -> Any:
    """Text; or parts, where there is more than text."""
    if isinstance(value, str):
        return value
    parts = [_part(part, f"{pointer}/{i}") for i, part in enumerate(value)]
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _output(said: Conversation, value: Content) -> Any:
    """What a tool answered: of what cannot be shown a text says so."""
    if isinstance(value, str):
        return value
    parts: list[Message] = []
    for part in value:
        if isinstance(part, ResponseOther) or (isinstance(part, ResponseImage) and part.image_url is None):
            said.left_out.append(f"output.{part.type}")
            parts.append({"type": "text", "text": f"[{part.type}: it cannot be shown here]"})
        else:
            parts.append(_part(part, ""))
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _part(part: Part, pointer: str) -> Message:
    match part:
        case ResponseText(text=said) | ResponseRefusal(refusal=said):
            return {"type": "text", "text": said}
        case ResponseImage(image_url=str(url)):
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            raise InvalidRequest(f"{pointer}/type", f"a part of type {part.type!r} cannot be shown to a model here")


def _format(body: ResponsesBody) -> ResponseFormat | None:
    format_ = None if body.text is None else body.text.format
    at = "/text/format"
    match format_:
        case SchemaFormat():
            schema = described(format_.schema_, format_.description)
            return ResponseFormat(schema, format_.strict or False, f"{at}/schema")
        case None:
            return None
        case _:
            return None if format_.type == "text" else ResponseFormat({"type": "object"}, strict=False, pointer=at)


def _echo(body: ResponsesBody, given: Json) -> Message:
    """What an answer says of its request: every field that clients look for, given or not, but those of sampling."""
    effort = None if body.reasoning is None else body.reasoning.effort
    return {
        "background": False,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": body.max_tool_calls,
        "metadata": body.metadata or {},
        "parallel_tool_calls": True if body.parallel_tool_calls is None else body.parallel_tool_calls,
        "previous_response_id": body.previous_response_id or None,
        "reasoning": {"effort": effort, "summary": _summary(body)},
        "service_tier": "default",
        "store": False,
        "top_logprobs": body.top_logprobs or 0,
        "text": {"format": {"type": "text"}, **(given.get("text") or {})},
        "tool_choice": given.get("tool_choice") or "auto",
        "tools": given.get("tools") or [],
        "truncation": "disabled",
        "user": given.get("user"),
    }
