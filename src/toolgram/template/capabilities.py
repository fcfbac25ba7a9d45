"""What a chat template can express, found by rendering small conversations and looking for what was put in them.

The source is never searched: a template may mention what it does not do, and do what it does not mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import product
from typing import Any, Literal, Protocol, get_args

from toolgram.errors import TemplateError
from toolgram.json_texts import listed, pretty
from toolgram.template.bounds import TooMuch
from toolgram.template.probe_turns import (
    ANSWER,
    CALL_ID,
    CALL_ID_2,
    KEY,
    LATE,
    LONG_ID,
    MORE,
    NAME,
    OTHER,
    REASONING,
    RESULT,
    SECOND,
    SENDER,
    SYSTEM,
    TOOLS,
    USER,
    VALUE,
    Message,
    assistant,
    call,
    result,
    system,
    user,
)
from toolgram.template.turn_ends import Draw, prompt_for_a_turn, turn_ends

_PARTS: Mapping[str, Message] = {
    "image_url": {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    "image": {"type": "image", "image": "zqimage.png"},
    "input_audio": {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    "audio": {"type": "audio", "audio": "zqaudio.wav"},
    "video": {"type": "video", "video": "zqvideo.mp4"},
}
_NOW = datetime(2024, 1, 2, 3, 4, 5)

ToolsVariable = Literal["tools", "functions", "xml_tools"]
ArgumentsForm = Literal["object", "text"]
ReasoningField = Literal["reasoning_content", "reasoning", "thinking", "thought", "tool_plan", "content"]

# Arguments that were encoded twice, or printed as Python does.
_TWICE = (f'{KEY}\\\\": \\\\"{VALUE}', f'{KEY}\\": \\"{VALUE}', f"'{KEY}': '{VALUE}'")
# Quotes as HTML has them: Jinja escapes a text to which `arguments | tojson | safe` is added.
_ESCAPED = ("&#34;", "&quot;")


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
    requires_user: bool  # a system message alone is refused, or shown without tools
    supports_typed_content: bool  # content as a list of parts
    requires_typed_content: bool  # and only as such a list
    part_types: frozenset[str]  # the parts other than text that leave a trace in the prompt
    supports_null_content: bool  # `content: null` beside tool calls; else it must be ""
    supports_tools: bool  # the tools given are shown
    supports_tools_without_system: bool
    supports_tools_with_empty_system: bool
    tools_variable: ToolsVariable  # `functions` holds them as JSON text
    requires_tool_list: bool  # no tools must be an empty list, not None
    supports_tool_calls: bool
    supports_tool_calls_without_tools: bool  # in a conversation that has no tools, or no more
    tool_call_arguments: ArgumentsForm | None  # the form in which the template takes arguments
    supports_content_with_calls: bool
    supports_content_with_calls_and_reasoning: bool
    supports_parallel_tool_calls: bool
    requires_short_ids: bool  # of nine letters and digits
    supports_tool_results: bool  # messages of role `tool`
    supports_results_without_calls: bool  # even if no turn has `tool_calls`
    supports_tool_names_in_results: bool
    supports_tool_ids_in_results: bool
    supports_empty_answers: bool  # of the assistant: neither content nor calls
    reasoning_field: ReasoningField | None  # where an assistant's reasoning stands, if it is shown in some turn
    generation_prompt: str  # what `add_generation_prompt` adds
    turn_end: str  # what follows an assistant's content, before the next turn
    stop: tuple[str, ...]  # where a turn of the model ends

    @property
    def supports_reasoning(self) -> bool:
        return self.reasoning_field is not None

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
    typed = _shows(draw([user([{"type": "text", "text": USER}])]), [USER], ["'text'", '"text"'])
    requires_typed = typed and not _shows(draw([user()]), [USER])
    if requires_typed:
        draw = _typed(draw)
    calls = _Calls(draw, variable is not None)
    if typed and not requires_typed:
        # Some take the content of calls and results as parts alone, and would spell a text letter by letter.
        in_parts = _Calls(_typed(draw), variable is not None)
        if (in_parts.form is not None, in_parts.results) > (calls.form is not None, calls.results):
            requires_typed, draw, calls = True, _typed(draw), in_parts
    reasoning_field = _reasoning_field(draw, calls)
    generation_prompt = prompt_for_a_turn(draw, template.eos_token)
    turn_end, stop = turn_ends(draw, calls.calling(), template.eos_token)
    supports_system = _shows(draw([system(), user()]), [SYSTEM, USER])
    tools = _Tools(draw, variable is not None)
    return Capabilities(
        supports_system=supports_system,
        supports_late_system=all(
            _shows(draw([*first, user(), assistant(), system(LATE), user(MORE)]), [LATE, *texts])
            for first, texts in (([], []), ([system()], [SYSTEM]))
        ),
        requires_alternation=draw([user()]) is not None and draw([user(), user(MORE)]) is None,
        requires_user_first=tools.not_in([assistant(), user()]),
        requires_user=supports_system and tools.not_in([system()]),
        supports_typed_content=typed,
        requires_typed_content=requires_typed,
        part_types=_part_types(draw) if typed else frozenset(),
        supports_null_content=calls.null,
        supports_tools=tools.shown,
        supports_tools_without_system=tools.without_system,
        supports_tools_with_empty_system=tools.with_empty_system,
        tools_variable=variable or "tools",
        requires_tool_list=requires_list,
        supports_tool_calls=calls.form is not None,
        supports_tool_calls_without_tools=calls.without_tools(),
        tool_call_arguments=calls.form,
        supports_content_with_calls=calls.shows([calls.turn(content=ANSWER)], [ANSWER, NAME, VALUE]),
        supports_content_with_calls_and_reasoning=calls.shows(
            [with_reasoning(calls.turn(content=ANSWER), REASONING, reasoning_field)], [ANSWER, NAME, VALUE]
        ),
        supports_parallel_tool_calls=calls.parallel(),
        requires_short_ids=calls.form is not None
        and calls.draw([calls.turn(id_=LONG_ID), result(id_=LONG_ID)]) is None,
        supports_tool_results=calls.results,
        supports_results_without_calls=_shows_results_alone(draw),
        supports_tool_names_in_results=calls.results
        and any(calls.shows([calls.turn(id_=id_), result(name=SENDER)], [SENDER]) for id_ in (CALL_ID, CALL_ID_2)),
        supports_tool_ids_in_results=calls.results and calls.shows([calls.turn(id_=CALL_ID_2), result()], [CALL_ID]),
        supports_empty_answers=draw([user(), assistant(content=""), user(MORE)]) is not None,
        reasoning_field=reasoning_field,
        generation_prompt=generation_prompt,
        turn_end=turn_end,
        stop=stop,
    )


# Rendering a probe ---------------------------------------------------------------------------------------------------


def _tool_variables(
    tools: Sequence[Mapping[str, Any]] | None, variable: str, requires_list: bool, now: datetime
) -> dict[str, Any]:
    """The variables that give a template the tools; `functions` comes with a date, which such templates expect.

    It tells no time of day: each turn's prompt is to begin as the one before.
    """
    if variable == "functions":
        text = listed([pretty(tool) for tool in tools], 2) if tools else ""
        return {"functions": text, "datetime": now.strftime("%b %d %Y")}
    return {variable: tools if tools or not requires_list else []}


def _renderer(template: Renderer, variable: str, requires_list: bool, endless: list[TemplateError]) -> Draw:
    """Makes a renderer that gives None on failure; after one probe exceeds the limits, the others are not tried."""

    def draw(messages: list[Message], tools: bool = False, add_generation_prompt: bool = False) -> str | None:
        variables = _tool_variables(TOOLS if tools else None, variable, requires_list, _NOW)
        if endless:
            return None
        try:
            return template.render(messages, add_generation_prompt=add_generation_prompt, now=_NOW, **variables)
        except TemplateError as error:
            endless.extend([error] if isinstance(error.__cause__, TooMuch) else [])
            return None

    return draw


def _part_types(draw: Draw) -> frozenset[str]:
    """The types of parts that the template does not ignore."""
    text = {"type": "text", "text": USER}
    plain = draw([user([text])])
    shown = {kind: draw([user([text, part])]) for kind, part in _PARTS.items()}
    return frozenset(kind for kind, prompt in shown.items() if prompt not in (None, plain) and _shows(prompt, [USER]))


def _typed(draw: Draw) -> Draw:
    def typed(messages: list[Message], **options: bool) -> str | None:
        return draw([_parts(message) for message in messages], **options)

    return typed


def _parts(message: Message) -> Message:
    content = message.get("content")
    return {**message, "content": [{"type": "text", "text": content}]} if isinstance(content, str) else message


def _requires_tool_list(template: Renderer, endless: list[TemplateError]) -> bool:
    draws = (_renderer(template, "tools", listed, endless) for listed in (False, True))
    return [bool(draw([user()]) or _typed(draw)([user()])) for draw in draws] == [False, True]


def _tools_variable(template: Renderer, requires_list: bool, endless: list[TemplateError]) -> ToolsVariable | None:
    """The variable in which the template takes the tools, None if it shows no tools."""
    conversations = ([user()], [system(), user()])
    for variable in get_args(ToolsVariable):
        draw = _renderer(template, variable, requires_list, endless)
        shown = (way(messages, tools=True) for way in (draw, _typed(draw)) for messages in conversations)
        if any(_shows(text, [NAME, OTHER]) for text in shown):
            return variable
    return None


def _shows(text: str | None, wanted: Sequence[str], unwanted: Sequence[str] = ()) -> bool:
    return text is not None and all(word in text for word in wanted) and not any(word in text for word in unwanted)


class _Tools:
    """Where the template shows tools."""

    def __init__(self, draw: Draw, tools: bool) -> None:
        self._draw = draw
        self.without_system = tools and self._in([user()])
        self.with_empty_system = tools and self._in([system(""), user()])
        self.shown = self.without_system or self.with_empty_system

    def not_in(self, messages: list[Message]) -> bool:
        """Whether the template refuses these messages, or shows no tools with them, though it does with others."""
        if self._draw(messages) is None:
            return True
        first = [] if self.without_system or messages[0]["role"] == "system" else [system("")]
        return self.shown and not self._in([*first, *messages])

    def _in(self, messages: list[Message]) -> bool:
        return _shows(self._draw(messages, tools=True), [NAME, OTHER])


# Calls ---------------------------------------------------------------------------------------------------------------


class _Calls:
    """How the template takes tool calls; each answer narrows down the conversations used for the next question."""

    def __init__(self, draw: Draw, tools: bool) -> None:
        self._draw, self._tools = draw, tools
        self.form: ArgumentsForm | None = None
        self.null = False
        ways = product((_TWICE + _ESCAPED, _TWICE), get_args(ArgumentsForm))
        self.form = next((form for unwanted, form in ways if self._takes(form, unwanted)), None)
        self.null = self._takes_null()
        self.results = self.shows([self.turn(), result()], [RESULT]) or (
            self.form is None and _shows(draw([user(), assistant(), result()]), [RESULT])
        )

    def turn(self, content: str | None = None, id_: str = CALL_ID, **fields: Any) -> Message:
        """An assistant's turn with one call."""
        content = content if content is not None or self.null else ""
        return {"role": "assistant", "content": content, "tool_calls": [call(VALUE, self.form, id_=id_)], **fields}

    def draw(self, turns: list[Message]) -> str | None:
        """A conversation with these turns, and with a result after the last call if the template takes it."""
        return next((text for text in self._endings(turns, self._tools) if text is not None), None)

    def without_tools(self) -> bool:
        """Whether a call is shown where the conversation has no tools."""
        shown = (text for text in self._endings([self.turn()], tools=False) if text is not None)
        return self.form is not None and _shows(next(shown, None), [NAME, KEY, VALUE])

    def _endings(self, turns: list[Message], tools: bool) -> Iterator[str | None]:
        endings: list[list[Message]] = [[]]
        if "tool_calls" in turns[-1]:
            endings = [[result()], [], [result(), assistant(content=MORE), user(MORE)]]
        return (self._draw([user(), *turns, *ending], tools=tools) for ending in endings)

    def shows(self, turns: list[Message], wanted: Sequence[str], unwanted: Sequence[str] = ()) -> bool:
        return self.form is not None and _shows(self.draw(turns), wanted, unwanted)

    def calling(self) -> list[Message]:
        """Turns of one call and of two, as far as the template takes calls."""
        return [self.turn(), self._two()] if self.form is not None else []

    def _two(self) -> Message:
        return {**self.turn(), "tool_calls": [call(VALUE, self.form), call(SECOND, self.form, OTHER, CALL_ID_2)]}

    def parallel(self) -> bool:
        wanted = [NAME, OTHER, VALUE, SECOND]
        turn = self._two()
        return self.shows([turn, result(), result(name=OTHER, id_=CALL_ID_2)], wanted) or self.shows([turn], wanted)

    def _takes(self, form: ArgumentsForm, unwanted: Sequence[str]) -> bool:
        """Whether arguments in this form are encoded once: not as JSON within JSON, nor as Python, nor for HTML."""
        for content in ("", None):
            turn = {"role": "assistant", "content": content, "tool_calls": [call(VALUE, form)]}
            if _shows(self.draw([turn]), [NAME, KEY, VALUE], unwanted):
                return True
        return False

    def _takes_null(self) -> bool:
        """Whether the content beside a call may be None: it neither fails, nor is printed, nor loses anything."""
        if self.form is None:
            return False
        blank = list(self._endings([{**self.turn(), "content": ""}], self._tools))
        null = list(self._endings([{**self.turn(), "content": None}], self._tools))
        return any(null) and all(_no_worse(text, than) for text, than in zip(null, blank, strict=True))


def _shows_results_alone(draw: Draw) -> bool:
    """Whether a result whose call the template was not shown stands under no number that it counted itself."""
    text = draw([user(), assistant(), result()])
    return text is not None and RESULT in text and not re.search(rf"{NAME}\W?[0-9]", text)


def _no_worse(null: str | None, blank: str | None) -> bool:
    if null is None:
        return blank is None
    return VALUE in null and (blank is None or null.count("None") <= blank.count("None"))


# Reasoning -----------------------------------------------------------------------------------------------------------


def with_reasoning(turn: Message, reasoning: str, field: ReasoningField | None) -> Message:
    """An assistant's turn with its reasoning in the field, `reasoning_content` without one; in `content` as a part."""
    if field != "content":
        return {**turn, field or "reasoning_content": reasoning}
    content: Any = turn["content"]
    parts = [{"type": "text", "text": content}] if content and isinstance(content, str) else content or []
    return {**turn, "content": [{"type": "thinking", "thinking": reasoning}, *parts]}


def _reasoning_field(draw: Draw, calls: _Calls) -> ReasoningField | None:
    """Where the reasoning of some assistant's turn must stand to be shown; parts printed as lists do not count."""

    def shown(field: ReasoningField) -> bool:
        answer, called = (with_reasoning(turn, REASONING, field) for turn in (assistant(), calls.turn()))
        texts = (draw([user(), answer]), calls.draw([called]) if calls.form is not None else None)
        return any(_shows(text, [REASONING], ["'thinking'", '"thinking"']) for text in texts)

    return next((field for field in get_args(ReasoningField) if shown(field)), None)
