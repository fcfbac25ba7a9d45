"""Rewrites a conversation in OpenAI's shape to what a chat template can express."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast

from toolgram.conversation.fields import is_json
from toolgram.errors import InvalidRequest
from toolgram.template.call_turns import IdForm, named, one_call_a_turn, short_id, with_ids
from toolgram.template.capabilities import Capabilities, ReasoningField, with_reasoning

Message = dict[str, Any]
CallText = Callable[[Message], str]

_ROLES = {"developer": "system", "function": "tool"} | {role: role for role in ("system", "user", "assistant", "tool")}
_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_BLANK_LINE = "\n\n"
_FORGED = re.compile(r"\[(?=TOOL\(|/TOOL\])")


def adapt(
    messages: Sequence[Mapping[str, Any]],
    capabilities: Capabilities,
    *,
    tools: bool = False,
    extra_system: str | None = None,
    call_text: CallText | None = None,
    call_ids: IdForm | None = None,
) -> list[Message]:
    """The conversation as the template takes it; the input is not changed.

    `tools` tells whether the template is to show some. `extra_system` is appended to the system message. `call_text`
    makes the content of an assistant's turn with tool calls (their arguments are objects), for a style that writes them
    as text; without it the template writes them, with the ids that `call_ids` makes of theirs.
    Raises `InvalidRequest`, with a pointer into the request, for what the template cannot express at all.
    """
    native = call_text is None
    plain = [_plain(message, capabilities, native, f"/messages/{at}") for at, message in enumerate(messages)]
    turns = named(plain)
    if call_text is None:
        turns = _native(turns, capabilities, call_ids)
    else:
        turns = [_as_text(turn, call_text) for turn in turns]
    # Templates that count turns skip calls and results together: results alone would throw the count off.
    alone = capabilities.supports_results_without_calls and not capabilities.requires_alternation
    if not (capabilities.supports_tool_results if native else alone):
        turns = [_result_as_text(turn) for turn in turns]
    elif native:
        turns = _orphans_as_text(turns, capabilities)
    turns = [_reasoned(turn, capabilities.reasoning_field) for turn in turns]
    if not capabilities.supports_empty_answers:
        said = ("content", "tool_calls", capabilities.reasoning_field or "content")
        turns = [turn for turn in turns if turn["role"] != "assistant" or any(turn.get(key) for key in said)]
    if capabilities.requires_user and not any(turn["role"] == "user" for turn in turns):
        capabilities = replace(capabilities, supports_system=False)
    turns = _with_system(turns, capabilities, tools, extra_system)
    if capabilities.requires_alternation:
        turns = _merged(turns)
    if capabilities.requires_user_first:
        turns = _user_first(turns)
    return [_typed(turn) for turn in turns] if capabilities.requires_typed_content else turns


class BesideText(NamedTuple):
    """A part of a message that is not text: which message, by whom, its place in it, and its kind."""

    message: int
    role: str | None
    pointer: str
    kind: str


def parts_beside_text(messages: Sequence[Mapping[str, Any]]) -> Iterator[BesideText]:
    """Where a conversation holds what is not text, an image say."""
    for at, message in enumerate(messages):
        if isinstance(content := message.get("content"), list):
            role = _ROLES.get(message.get("role", ""))
            for i, part in enumerate(cast("list[Any]", content)):
                if _part_text(part) is None:
                    yield BesideText(at, role, f"/messages/{at}/content/{i}", _kind(part))


def unshown_results(messages: Sequence[Mapping[str, Any]], capabilities: Capabilities) -> tuple[str, ...]:
    """Where results hold what the template does not show, an image say; the model is shown a text that says so."""
    parts = parts_beside_text(messages)
    return tuple(each.pointer for each in parts if each.role == "tool" and each.kind not in capabilities.part_types)


def _kind(part: Any) -> str:
    return str(cast("Message", part).get("type")) if isinstance(part, dict) else type(part).__name__


def shown_result(content: Any, kinds: frozenset[str] = frozenset()) -> Any:
    """What a tool answered, with a text in the place of what is neither text nor of the `kinds` that are shown."""
    if not isinstance(content, list):
        return content
    return [
        {"type": "text", "text": f"[{_kind(part)}: it cannot be shown to this model]"}
        if _part_text(part) is None and _kind(part) not in kinds
        else part
        for part in cast("list[Any]", content)
    ]


def neutralised(content: str | Sequence[Mapping[str, Any]], marks: re.Pattern[str]) -> Any:
    r"""The content with each mark broken by a backslash: <tool_call> becomes <\tool_call>. Its parts are one text."""
    if isinstance(content, str):
        return _broken([content], marks)[0]
    texts = [text if isinstance(text := part.get("text"), str) else None for part in content]
    broken = zip(content, texts, _broken([text or "" for text in texts], marks), strict=True)
    return [part if text is None else {**part, "text": new} for part, text, new in broken]


def _broken(texts: Sequence[str], marks: re.Pattern[str]) -> Sequence[str]:
    """The texts, with a backslash after the first character of each mark that stands in what they are together."""
    places = [match.start() + 1 for match in marks.finditer("".join(texts))]
    if not places:
        return texts
    broken: list[str] = []
    start = 0
    for text in texts:
        here = places[bisect_right(places, start) : bisect_right(places, start + len(text))]
        cuts = (0, *(place - start for place in here), len(text))
        broken.append("\\".join(text[begin:end] for begin, end in pairwise(cuts)))
        start += len(text)
    return broken


# One message ---------------------------------------------------------------------------------------------------------


def _plain(message: Mapping[str, Any], capabilities: Capabilities, native: bool, pointer: str) -> Message:
    """A message with a current role, content as text (or parts, if there is more than text), and no empty fields."""
    role = _ROLES.get(message.get("role", ""))
    if role is None:
        raise InvalidRequest(f"{pointer}/role", f"must be one of {', '.join(sorted(_ROLES))}")
    fields = {key: value for key, value in message.items() if value is not None and key != "function_call"}
    kinds = capabilities.part_types if role in ("user", "tool") else frozenset[str]()
    content = shown_result(message.get("content"), kinds) if role == "tool" else message.get("content")
    plain = {**fields, "role": role, "content": _content(content, kinds, f"{pointer}/content")}
    calls: list[Message] = fields.get("tool_calls") or []
    if legacy := message.get("function_call"):
        calls = [{"type": "function", "function": legacy}]
    plain.pop("tool_calls", None)
    if not calls:
        return plain
    if native and not capabilities.supports_tool_calls:
        raise InvalidRequest(f"{pointer}/tool_calls", "the chat template cannot write tool calls")
    form = capabilities.tool_call_arguments if native else "object"
    places = ((call, f"{pointer}/tool_calls/{at}") for at, call in enumerate(calls))
    return {**plain, "tool_calls": [_call(call, form or "object", place) for call, place in places]}


def _content(content: Any, kinds: frozenset[str], pointer: str) -> str | list[Message]:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise InvalidRequest(pointer, "must be a text or a list of parts")
    parts = cast("list[Any]", content)
    texts = [_part_text(part) for part in parts]
    if None not in texts:
        return "".join(text for text in texts if text is not None)
    for at, part in enumerate(parts):
        kind = _kind(part)
        if texts[at] is None and kind not in kinds:
            shown = ", ".join(("text", *sorted(kinds)))
            raise InvalidRequest(f"{pointer}/{at}", f"the chat template shows no part of type {kind!r} here: {shown}")
    return [
        {"type": "text", "text": text} if text is not None else part for part, text in zip(parts, texts, strict=True)
    ]


def _part_text(part: Any) -> str | None:
    """A part's text; None for an image, a sound, or anything else that is not text."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return None
    fields = cast("Message", part)
    text = fields.get(_TEXT_PARTS.get(fields.get("type", ""), ""))
    return text if isinstance(text, str) else None


def _call(call: Mapping[str, Any], form: Literal["object", "text"], pointer: str) -> Message:
    function: object = call.get("function")
    fields = cast("Message", function) if isinstance(function, dict) else {}
    if not isinstance(fields.get("name"), str):
        raise InvalidRequest(f"{pointer}/function", "must be an object with a name")
    arguments = _arguments(fields.get("arguments"), form, f"{pointer}/function/arguments")
    return {**call, "type": "function", "function": {**fields, "arguments": arguments}}


def _arguments(arguments: Any, form: Literal["object", "text"], pointer: str) -> Any:
    """Arguments in the form that the template takes; a text is left as it is where it takes text."""
    if isinstance(arguments, str) and arguments.strip() and form == "text":
        return arguments
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        arguments = {}
    if isinstance(arguments, str):
        try:
            read: object = json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments  # a call that was cut off: a template that takes only objects refuses it
        if isinstance(read, dict) and not is_json(cast("Message", read)):
            return arguments  # nobody reads what is nested so deep
        arguments = cast("Any", read)
    if not isinstance(arguments, dict):
        raise InvalidRequest(pointer, "an object is expected")
    return json.dumps(arguments, ensure_ascii=False) if form == "text" else cast("Message", arguments)


# Tool calls and their results ----------------------------------------------------------------------------------------


def _as_text(turn: Message, call_text: CallText) -> Message:
    if "tool_calls" not in turn:
        return turn
    content = call_text(turn)
    # What the text holds of the reasoning, the template need not show once more.
    told = ("tool_calls", *(("reasoning_content",) if turn.get("reasoning_content", "") in content else ()))
    return {**{key: value for key, value in turn.items() if key not in told}, "content": content}


def _native(turns: list[Message], capabilities: Capabilities, call_ids: IdForm | None) -> list[Message]:
    """Calls and results as the template writes them."""
    for form in (call_ids, short_id if capabilities.requires_short_ids else None):
        turns = turns if form is None else with_ids(turns, form)
    if not capabilities.supports_parallel_tool_calls:
        turns = one_call_a_turn(turns)
    parts = (part for turn in turns for part in _content_apart(turn, capabilities))
    blank = None if capabilities.supports_null_content else ""
    return [{**turn, "content": turn["content"] or blank} if "tool_calls" in turn else turn for turn in parts]


def _content_apart(turn: Message, capabilities: Capabilities) -> list[Message]:
    """A separate turn for content that the template would drop or refuse beside calls."""
    if "tool_calls" not in turn or not turn["content"] or capabilities.requires_alternation:
        return [turn]
    if capabilities.supports_content_with_calls_and_reasoning:
        return [turn]
    if capabilities.supports_content_with_calls and not any(
        turn.get(key) for key in ("reasoning_content", "reasoning")
    ):
        return [turn]
    return [{"role": "assistant", "content": turn["content"]}, {**turn, "content": ""}]


def _result_as_text(turn: Message) -> Message:
    """A tool's result as a user's turn; text that looks like one is marked by a backslash."""
    if turn["role"] not in ("tool", "user"):
        return turn
    content = neutralised(turn["content"], _FORGED)
    if turn["role"] == "user":
        return {**turn, "content": content}
    about = ", ".join(
        f"{key}={turn[field]}" for key, field in (("name", "name"), ("id", "tool_call_id")) if field in turn
    )
    return {"role": "user", "content": _joined([f"[TOOL({neutralised(about, _FORGED)})]", content, "[/TOOL]"], "")}


def _orphans_as_text(turns: list[Message], capabilities: Capabilities) -> list[Message]:
    """Results that follow neither a call nor its other results as the user's turns, where a template would drop them,
    or refuse them for their names, which nobody knows."""

    def is_orphan(turn: Message, last: Message) -> bool:
        shown = capabilities.supports_results_without_calls and "name" in turn
        return turn["role"] == "tool" and last.get("role") != "tool" and "tool_calls" not in last and not shown

    orphans = [is_orphan(turn, last) for last, turn in zip([{}, *turns], turns, strict=False)]
    if not any(orphans):
        return turns
    return [
        _result_as_text(turn) if orphan or turn["role"] == "user" else turn
        for turn, orphan in zip(turns, orphans, strict=True)
    ]


# Whose turn it is ----------------------------------------------------------------------------------------------------


def _with_system(turns: list[Message], capabilities: Capabilities, tools: bool, extra: str | None) -> list[Message]:
    """Joins all leading system messages and the extra text in one message, or in the first user's turn.

    Where tools need such a message, there is one, be it empty; where they need one that is not, there is none.
    """
    count = next((at for at, turn in enumerate(turns) if turn["role"] != "system"), len(turns))
    texts = [turn["content"] for turn in turns[:count]] + ([extra] if extra else [])
    rest = turns[count:]
    if not (capabilities.supports_system and capabilities.supports_late_system):
        rest = [{**turn, "role": "user"} if turn["role"] == "system" else turn for turn in rest]
    if not texts and (not tools or capabilities.supports_tools_without_system):
        return rest
    text = _BLANK_LINE.join(text for text in texts if text)
    hides_tools = tools and not text and not capabilities.supports_tools_with_empty_system
    if capabilities.supports_system and not hides_tools:
        first = turns[0] if count else {"role": "system"}
        return [{**first, "content": text}, *rest]
    if not text:
        return rest
    if rest and rest[0]["role"] == "user":
        return [{**rest[0], "content": _joined([text, rest[0]["content"]], _BLANK_LINE)}, *rest[1:]]
    return [{"role": "user", "content": text}, *rest]


def _merged(turns: list[Message]) -> list[Message]:
    """Joins consecutive turns of one role."""
    merged: list[Message] = []
    for turn in turns:
        last = merged[-1] if merged else None
        if last is None or last["role"] != turn["role"] or turn["role"] == "tool" or {"tool_calls"} & {*last, *turn}:
            merged.append(turn)
            continue
        both_results = _is_result(last["content"], first=False) and _is_result(turn["content"], first=True)
        separator = "\n" if both_results else _BLANK_LINE
        merged[-1] = {**last, **turn, "content": _joined([last["content"], turn["content"]], separator)}
    return merged


def _is_result(content: Any, first: bool) -> bool:
    return isinstance(content, str) and (content.startswith("[TOOL(") if first else content.endswith("[/TOOL]"))


def _user_first(turns: list[Message]) -> list[Message]:
    first = next((at for at, turn in enumerate(turns) if turn["role"] != "system"), len(turns))
    if first == len(turns) or turns[first]["role"] == "user":
        return turns
    return [*turns[:first], {"role": "user", "content": ""}, *turns[first:]]


def _joined(contents: Sequence[str | list[Message]], separator: str) -> str | list[Message]:
    """Joins contents: as one text if all are texts, else as parts; empty ones leave no separator."""
    contents = [content for content in contents if content]
    if all(isinstance(content, str) for content in contents):
        return separator.join(cast("list[str]", contents))
    parts: list[Message] = []
    for content in contents:
        if parts and separator:
            parts.append({"type": "text", "text": separator})
        parts += _parts(content)
    return parts


def _parts(content: str | list[Message]) -> list[Message]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _reasoned(turn: Message, field: ReasoningField | None) -> Message:
    """A turn with its reasoning where the template looks for it."""
    reasoning = turn.get("reasoning_content")
    if not reasoning or field in (None, "reasoning_content") or turn["role"] != "assistant":
        return turn
    return with_reasoning({key: value for key, value in turn.items() if key != "reasoning_content"}, reasoning, field)


def _typed(turn: Message) -> Message:
    return turn if turn["content"] is None else {**turn, "content": _parts(turn["content"])}
