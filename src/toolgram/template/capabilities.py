"""What a chat template can express, found by rendering small conversations and looking for what was put in them.

The source is never searched: a template may mention what it does not do, and do what it does not mention.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, Protocol

from toolgram.errors import TemplateError
from toolgram.template.markers import MARKER
from toolgram.template.sandbox import TooMuch

Message = dict[str, Any]

# Words that occur in no template.
_SYSTEM, _USER, _MORE, _ANSWER, _RESULT = "zqsystem", "zquser", "zqmore", "zqanswer", "zqresult"
_REASONING, _NAME, _OTHER, _KEY, _VALUE, _SECOND = "zqreason", "zqname", "zqother", "zqkey", "zqvalue", "zqsecond"
_SENDER = "zqsender"
_CALL_ID, _CALL_ID_2 = "zqcall001", "zqcall002"  # nine letters and digits: Mistral's templates take nothing else
_LONG_ID = "call_zqcall0000000000001"
_PARTS: Mapping[str, Message] = {
    "image_url": {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    "image": {"type": "image", "image": "zqimage.png"},
    "input_audio": {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    "audio": {"type": "audio", "audio": "zqaudio.wav"},
    "video": {"type": "video", "video": "zqvideo.mp4"},
}
_NOW = datetime(2024, 1, 2, 3, 4, 5)

# Arguments that were encoded twice, or printed as Python does.
_TWICE = (f'{_KEY}\\\\": \\\\"{_VALUE}', f'{_KEY}\\": \\"{_VALUE}', f"'{_KEY}': '{_VALUE}'")


class Renderer(Protocol):
    """What is needed of a chat template here: it renders conversations, and names the token that ends them."""

    @property
    def eos_token(self) -> str: ...

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        *,
        now: datetime | None = None,
        **kwargs: Any,
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a chat template can express."""

    supports_system: bool  # a system message first
    supports_late_system: bool  # and later ones
    requires_alternation: bool  # of user and assistant: two consecutive turns of one role are refused
    requires_user_first: bool
    supports_typed_content: bool  # content as a list of parts
    requires_typed_content: bool  # and only as such a list
    part_types: frozenset[str]  # the parts other than text that leave a trace in the prompt
    supports_null_content: bool  # `content: null` beside tool calls; else it must be ""
    supports_tools: bool  # the tools given are shown
    tools_variable: Literal["tools", "functions"]  # `functions` holds them as JSON text
    requires_tool_list: bool  # no tools must be an empty list, not None
    supports_tool_calls: bool
    tool_call_arguments: Literal["object", "text"] | None  # the form in which the template takes arguments
    supports_content_with_calls: bool
    supports_content_with_calls_and_reasoning: bool
    supports_parallel_tool_calls: bool
    requires_short_ids: bool  # of nine letters and digits
    supports_tool_results: bool  # messages of role `tool`
    supports_results_without_calls: bool  # even if no turn has `tool_calls`
    supports_tool_names_in_results: bool
    supports_tool_ids_in_results: bool
    supports_reasoning: bool  # `reasoning_content` of some assistant turn
    generation_prompt: str  # what `add_generation_prompt` adds
    turn_end: str  # what follows an assistant's content, before the next turn
    stop: tuple[str, ...]  # where a turn of the model ends

    @property
    def supports_generation_prompt(self) -> bool:
        return bool(self.generation_prompt)

    def tool_variables(self, tools: Sequence[Mapping[str, Any]] | None, now: datetime) -> dict[str, Any]:
        """What to give to `render` for these tools: `render(messages, **capabilities.tool_variables(tools, now))`."""
        return _tool_variables(tools, self.tools_variable, self.requires_tool_list, now)


@lru_cache(maxsize=256)
def capabilities(template: Renderer) -> Capabilities:
    """The capabilities of a template, found by probing it. Never raises: what fails to render is not supported."""
    endless: list[TemplateError] = []
    requires_list = _requires_tool_list(template, endless)
    variable = _tools_variable(template, requires_list, endless)
    draw = _renderer(template, variable or "tools", requires_list, endless)
    typed = _shows(draw([_user([{"type": "text", "text": _USER}])]), [_USER], ["'text'", '"text"'])
    requires_typed = typed and not _shows(draw([_user()]), [_USER])
    if requires_typed:
        draw = _typed(draw)
    calls = _Calls(draw, variable is not None)
    generation_prompt = _generation_prompt(draw, template.eos_token)
    turn_end, stop = _turn_end(draw, calls, template.eos_token)
    return Capabilities(
        supports_system=_shows(draw([_system(), _user()]), [_SYSTEM, _USER]),
        supports_late_system=_shows(draw([_user(), _assistant(), _system(), _user(_MORE)]), [_SYSTEM]),
        requires_alternation=draw([_user()]) is not None and draw([_user(), _user(_MORE)]) is None,
        requires_user_first=draw([_assistant(), _user()]) is None,
        supports_typed_content=typed,
        requires_typed_content=requires_typed,
        part_types=_part_types(draw) if typed else frozenset(),
        supports_null_content=calls.null,
        supports_tools=variable is not None,
        tools_variable=variable or "tools",
        requires_tool_list=requires_list,
        supports_tool_calls=calls.form is not None,
        tool_call_arguments=calls.form,
        supports_content_with_calls=calls.shows([calls.turn(content=_ANSWER)], [_ANSWER, _NAME, _VALUE]),
        supports_content_with_calls_and_reasoning=calls.shows(
            [calls.turn(content=_ANSWER, reasoning_content=_REASONING)], [_ANSWER, _NAME, _VALUE]
        ),
        supports_parallel_tool_calls=calls.parallel(),
        requires_short_ids=calls.form is not None
        and calls.draw([calls.turn(id_=_LONG_ID), _result(id_=_LONG_ID)]) is None,
        supports_tool_results=calls.results,
        supports_results_without_calls=_shows(draw([_user(), _assistant(), _result()]), [_RESULT]),
        supports_tool_names_in_results=calls.results
        and any(calls.shows([calls.turn(id_=id_), _result(name=_SENDER)], [_SENDER]) for id_ in (_CALL_ID, _CALL_ID_2)),
        supports_tool_ids_in_results=calls.results and calls.shows([calls.turn(id_=_CALL_ID_2), _result()], [_CALL_ID]),
        supports_reasoning=_supports_reasoning(draw, calls),
        generation_prompt=generation_prompt,
        turn_end=turn_end,
        stop=stop,
    )


# Rendering a probe ---------------------------------------------------------------------------------------------------

_Draw = Callable[..., str | None]


def _tool_variables(
    tools: Sequence[Mapping[str, Any]] | None, variable: str, requires_list: bool, now: datetime
) -> dict[str, Any]:
    """The variables that give a template the tools; `functions` comes with a date, which such templates expect."""
    if variable == "functions":
        text = json.dumps(list(tools), indent=2, ensure_ascii=False) if tools else ""
        return {"functions": text, "datetime": now.strftime("%b %d %Y %H:%M:%S GMT")}
    return {"tools": tools if tools or not requires_list else []}


def _renderer(template: Renderer, variable: str, requires_list: bool, endless: list[TemplateError]) -> _Draw:
    """Makes a renderer that gives None on failure; after one probe exceeds the limits, the others are not tried."""

    def draw(messages: list[Message], tools: bool = False, add_generation_prompt: bool = False) -> str | None:
        variables = _tool_variables(_TOOLS if tools else None, variable, requires_list, _NOW)
        if endless:
            return None
        try:
            return template.render(messages, add_generation_prompt=add_generation_prompt, now=_NOW, **variables)
        except TemplateError as error:
            endless.extend([error] if isinstance(error.__cause__, TooMuch) else [])
            return None

    return draw


def _part_types(draw: _Draw) -> frozenset[str]:
    """The types of parts that the template does not ignore."""
    text = {"type": "text", "text": _USER}
    plain = draw([_user([text])])
    shown = {kind: draw([_user([text, part])]) for kind, part in _PARTS.items()}
    return frozenset(kind for kind, prompt in shown.items() if prompt not in (None, plain) and _shows(prompt, [_USER]))


def _typed(draw: _Draw) -> _Draw:
    def typed(messages: list[Message], **options: bool) -> str | None:
        return draw([_parts(message) for message in messages], **options)

    return typed


def _parts(message: Message) -> Message:
    content = message.get("content")
    return {**message, "content": [{"type": "text", "text": content}]} if isinstance(content, str) else message


def _requires_tool_list(template: Renderer, endless: list[TemplateError]) -> bool:
    plain, listed = (_renderer(template, "tools", requires_list, endless)([_user()]) for requires_list in (False, True))
    return plain is None and listed is not None


def _tools_variable(
    template: Renderer, requires_list: bool, endless: list[TemplateError]
) -> Literal["tools", "functions"] | None:
    """The variable in which the template takes the tools, None if it shows no tools."""
    conversations = ([_user()], [_system(), _user()])
    for variable in ("tools", "functions"):
        draw = _renderer(template, variable, requires_list, endless)
        if any(_shows(draw(messages, tools=True), [_NAME, _OTHER]) for messages in conversations):
            return variable
    return None


def _shows(text: str | None, wanted: Sequence[str], unwanted: Sequence[str] = ()) -> bool:
    return text is not None and all(word in text for word in wanted) and not any(word in text for word in unwanted)


# Conversations -------------------------------------------------------------------------------------------------------


def _tool(name: str) -> Message:
    properties = {_KEY: {"type": "string", "description": "A text."}}
    parameters = {"type": "object", "properties": properties, "required": [_KEY]}
    return {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": parameters}}


_TOOLS = [_tool(_NAME), _tool(_OTHER)]


def _system() -> Message:
    return {"role": "system", "content": _SYSTEM}


def _user(content: Any = _USER) -> Message:
    return {"role": "user", "content": content}


def _assistant(**fields: Any) -> Message:
    return {"role": "assistant", "content": _ANSWER, **fields}


def _result(content: str = _RESULT, name: str = _NAME, id_: str = _CALL_ID) -> Message:
    return {"role": "tool", "name": name, "tool_call_id": id_, "content": content}


def _call(value: str, form: str | None, name: str = _NAME, id_: str = _CALL_ID) -> Message:
    arguments = {_KEY: value}
    function = {"name": name, "arguments": json.dumps(arguments) if form == "text" else arguments}
    return {"id": id_, "type": "function", "function": function}


class _Calls:
    """How the template takes tool calls; each answer narrows down the conversations used for the next question."""

    def __init__(self, draw: _Draw, tools: bool) -> None:
        self._draw, self._tools = draw, tools
        self.form: Literal["object", "text"] | None = None
        self.null = False
        self.form = next((form for form in ("object", "text") if self._takes(form)), None)
        self.null = self._takes_null()
        self.results = self.shows([self.turn(), _result()], [_RESULT]) or (
            self.form is None and _shows(draw([_user(), _assistant(), _result()]), [_RESULT])
        )

    def turn(self, content: str | None = None, id_: str = _CALL_ID, **fields: Any) -> Message:
        """An assistant's turn with one call."""
        content = content if content is not None or self.null else ""
        return {"role": "assistant", "content": content, "tool_calls": [_call(_VALUE, self.form, id_=id_)], **fields}

    def draw(self, turns: list[Message]) -> str | None:
        """A conversation with these turns, and with a result after the last call if the template takes it."""
        return next((text for text in self._endings(turns) if text is not None), None)

    def _endings(self, turns: list[Message]) -> Iterator[str | None]:
        endings: list[list[Message]] = [[]]
        if "tool_calls" in turns[-1]:
            endings = [[_result()], [], [_result(), _assistant(content=_MORE), _user(_MORE)]]
        return (self._draw([_user(), *turns, *ending], tools=self._tools) for ending in endings)

    def shows(self, turns: list[Message], wanted: Sequence[str], unwanted: Sequence[str] = ()) -> bool:
        return self.form is not None and _shows(self.draw(turns), wanted, unwanted)

    def parallel(self) -> bool:
        calls = [_call(_VALUE, self.form), _call(_SECOND, self.form, _OTHER, _CALL_ID_2)]
        wanted = [_NAME, _OTHER, _VALUE, _SECOND]
        turn = {**self.turn(), "tool_calls": calls}
        return self.shows([turn, _result(), _result(name=_OTHER, id_=_CALL_ID_2)], wanted) or self.shows([turn], wanted)

    def _takes(self, form: Literal["object", "text"]) -> bool:
        """Whether arguments in this form are encoded once: not as JSON within JSON, nor as Python."""
        for content in ("", None):
            turn = {"role": "assistant", "content": content, "tool_calls": [_call(_VALUE, form)]}
            if _shows(self.draw([turn]), [_NAME, _KEY, _VALUE], _TWICE):
                return True
        return False

    def _takes_null(self) -> bool:
        """Whether the content beside a call may be None: it neither fails, nor is printed, nor loses anything."""
        if self.form is None:
            return False
        blank = list(self._endings([{**self.turn(), "content": ""}]))
        null = list(self._endings([{**self.turn(), "content": None}]))
        return any(null) and all(_no_worse(text, than) for text, than in zip(null, blank, strict=True))


def _no_worse(null: str | None, blank: str | None) -> bool:
    if null is None:
        return blank is None
    return _VALUE in null and (blank is None or null.count("None") <= blank.count("None"))


# What stands around a turn -------------------------------------------------------------------------------------------


def _generation_prompt(draw: _Draw, eos_token: str) -> str:
    without, with_ = draw([_user()]), draw([_user()], add_generation_prompt=True)
    if with_ is None or without is None:
        return ""
    ended = without.removesuffix(eos_token) if eos_token else without
    for text in (without, ended):
        if with_.startswith(text):
            return with_[len(text) :]
    # If it changes the text before the question as well, it is what it adds after it.
    after, more = without.rpartition(_USER)[2], with_.rpartition(_USER)[2]
    if _USER in without and len(after) < len(more) and more.startswith(after):
        return more[len(after) :]
    shared = len(_shared(with_, without))
    # If both continue with a marker, they share its first characters: go back to where it begins.
    begins = [match.start() for match in MARKER.finditer(with_) if match.start() <= shared < match.end()]
    return with_[min([shared, *begins]) :]


def _supports_reasoning(draw: _Draw, calls: _Calls) -> bool:
    answer = _assistant(reasoning_content=_REASONING)
    return _shows(draw([_user(), answer]), [_REASONING]) or calls.shows(
        [calls.turn(reasoning_content=_REASONING)], [_REASONING]
    )


def _turn_end(draw: _Draw, calls: _Calls, eos_token: str) -> tuple[str, tuple[str, ...]]:
    """What follows an assistant's content, and the strings at which a turn of the model ends."""
    whole = draw([_user(), _assistant()])
    last = _after(whole, _ANSWER)
    middle = _after(draw([_user(), _assistant(), _user(_MORE)]), _ANSWER, _MORE)
    turn_end = _before_next_turn(_shared(last, middle), whole or "")
    ends = [_stop(turn_end, last, middle), eos_token]
    if calls.form is not None:
        called = _after(draw([_user(), calls.turn()], tools=True), _VALUE)
        # A marker right after the arguments' own brackets, and then nothing, ends the turn, like harmony's <|call|>.
        if match := re.fullmatch(rf"[\"'\]}})]*\s*({MARKER.pattern})\s*", called):
            ends.append(match[1])
    return turn_end, tuple(dict.fromkeys(end for end in ends if end.strip()))


def _before_next_turn(text: str, conversation: str) -> str:
    """Cuts a text where the next turn begins: at the marker with which conversations begin, or inside a marker."""
    first = MARKER.match(conversation)
    for match in MARKER.finditer(text):
        if first is not None and match[0] == first[0]:
            return text[: match.start()]
    return re.sub(r"<[|｜]?\Z", "", text)


def _stop(turn_end: str, last: str, middle: str) -> str:
    """The last marker of what ends a turn; if nothing ends it, the first marker of what follows, or that text."""
    if markers := MARKER.findall(turn_end):
        return markers[-1]
    if turn_end.strip():
        return turn_end.strip()
    for text in (last, middle):
        if match := MARKER.match(text.lstrip()):
            return match[0]
    return middle.rstrip()


def _shared(first: str, second: str) -> str:
    """The common prefix of two texts."""
    length = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    return first[:length] if length is not None else min(first, second, key=len)


def _after(text: str | None, word: str, before: str | None = None) -> str:
    rest = (text or "").rpartition(word)[2] if before is None else (text or "").partition(word)[2]
    return rest.partition(before)[0] if before is not None else rest
