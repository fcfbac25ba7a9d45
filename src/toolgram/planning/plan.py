"""From a request and a chat template to all that is needed to run it and to read what the model says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from toolgram.caching import unchanged, weighed
from toolgram.conversation.body import ChatBody
from toolgram.conversation.media import Media, lasting, with_media
from toolgram.conversation.message import Message
from toolgram.conversation.request import Request, parse_request, placed
from toolgram.errors import GrammarError, GrammarRefused, InvalidRequest, Relaxation
from toolgram.grammar.constraint import Constraint
from toolgram.planning.after_reasoning import grammar_after_reasoning
from toolgram.planning.another_call import AnotherCall, another_call_of
from toolgram.planning.brought_tools import with_tools_in_place
from toolgram.planning.call_ids import CallIds, IdMaker
from toolgram.planning.decision import Decision, decision_of
from toolgram.planning.images import marked, refuse_end, unseen
from toolgram.planning.lazy import lazy_grammar
from toolgram.planning.profile import Profile
from toolgram.planning.prompt import Parts, Prompt, build_prompt
from toolgram.planning.turn import CompiledTurn, compile_turn
from toolgram.planning.turn_spec import TurnSpec, light, turn_spec, weight
from toolgram.planning.typed_answer import answer_of, typed_answer
from toolgram.styles.base import ToolStyle
from toolgram.styles.choose import choose_style
from toolgram.styles.detect import opens_reasoning, reasons, rules_out_reasoning, speaks, tail
from toolgram.styles.own_calls import with_own_answers
from toolgram.styles.turn_edges import opens_results, promise, stops
from toolgram.template.adapt import unshown_results
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.after_words import with_calls_after_words
from toolgram.wire.allowed import read_reasoning_alone
from toolgram.wire.asides import with_asides
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.ended import ended
from toolgram.wire.forgotten import without_forgotten
from toolgram.wire.format import WireFormat
from toolgram.wire.reader import Reader
from toolgram.wire.reader.unconstrained import LenientReader
from toolgram.wire.unclosed import closed_by_calls
from toolgram.work import undisturbed

if TYPE_CHECKING:
    from toolgram.schema.python_types import PythonType


@dataclass(frozen=True)
class Plan:
    """A request made ready: what to give the engine, what constrains its output, and what reads it. Immutable.

    `left_out` are pointers to what the prompt does not show: what tools answered and the template cannot show, in whose
    place the prompt says so, and what the assistant said or thought beside calls and the style has no place for.
    """

    request: Request
    style: ToolStyle
    why: str
    constraint: Constraint | None
    stop: tuple[str, ...]
    left_out: tuple[str, ...]
    _prompt: Prompt
    _turn: CompiledTurn
    _ids: CallIds
    answer_type: PythonType | None = None

    @property
    def prompt(self) -> str:
        """What the engine is given."""
        return self._prompt.text

    @property
    def prompt_parts(self) -> tuple[tuple[str, bool], ...]:
        """The prompt in pieces, (text, trusted); untrusted text came from the conversation and holds no control."""
        return self._prompt.parts

    @property
    def control_strings(self) -> re.Pattern[str]:
        """What is likely a control token: untrusted text that an engine takes as text alone must not spell it."""
        return self._prompt.control

    @property
    def format_prompt(self) -> str | None:
        """What a generic style, or a response schema, adds to the system message."""
        return self._prompt.format_prompt

    @property
    def relaxations(self) -> tuple[Relaxation, ...]:
        """The schema keywords that the grammar does not enforce exactly."""
        return self._turn.relaxations

    @property
    def expected(self) -> Mapping[str, Expected]:
        """What the arguments of each tool must be that can be called, by its name."""
        return self._turn.expected

    @property
    def format(self) -> WireFormat:
        """The wire format of this turn: that of the style, or of its turns where no tools are announced."""
        return self._turn.spec.format

    @property
    def parallel(self) -> bool:
        """Whether the turn may have several calls."""
        return self._turn.spec.parallel

    @property
    def after_reasoning(self) -> int | None:
        """How many characters must follow the reasoning at least: the shortest call or answer that is asked for.

        None where nothing must follow, or there is no place for reasoning.
        """
        spec = self._turn.spec
        must_follow = spec.calls == "only" or spec.form is not None
        return self._turn.grammar.shortest if spec.format.reasoning and must_follow else None

    @property
    def decision(self) -> Decision | None:
        """Where the model chooses whether to call, the texts that open a call; None where it must, or must not."""
        return decision_of(self._turn.spec)

    @property
    def another_call(self) -> AnotherCall | None:
        """Where the model chooses whether to call once more; None where no text of its own ends a call."""
        return another_call_of(self._turn.spec)

    def at_fault(self, use: Callable[[Constraint], object]) -> str:
        """A pointer to what `use` refuses of the constraint: a tool that it refuses by itself, or all together."""
        spec = self._turn.spec
        for tool in spec.tools:
            try:
                use(_constraint(compile_turn(replace(spec, tools=(tool,), answer=None))))
            except (GrammarError, GrammarRefused, InvalidRequest):
                return placed(self.request.places, tool.schema_pointer)
        return placed(self.request.places, "/tools" if spec.form is None else spec.form.pointer)

    def call_ids(self, seed: int | None = None) -> IdMaker:
        """Makes ids, in the family's form, for calls that carry none on the wire; with a seed always the same ones."""
        return self._ids.maker(seed, lambda: lasting(self.prompt_parts))

    def constraint_after(self, text: str) -> Constraint | None:
        """What constrains the output after this beginning of it. Raises GrammarError where nothing may follow."""
        return None if self.constraint is None else Constraint(self.constraint.grammar.after(text))

    def constraint_after_reasoning(self, text: str) -> Constraint | None:
        """What constrains the output after this beginning of it, in which the reasoning was closed: no more of it.

        Raises GrammarError where nothing may follow.
        """
        if self.constraint is None:
            return None
        return Constraint(grammar_after_reasoning(self._turn.spec, text))

    def reader(self, *, lenient: bool = False) -> Reader | LenientReader:
        """A new reader for one output of the model.

        With `lenient`, for output that no grammar constrained, it takes for calls also those that are plain JSON.
        """
        turn = self._turn
        custom = frozenset(tool.name for tool in self.request.tools if tool.custom)
        reader = Reader(
            turn.program,
            value=turn.answer is not None,
            trims=turn.plain_ends,
            opened=self._prompt.opened,
            expected=turn.expected,
            opens_reasoning=not (turn.spec.reasoning_apart or self.request.continue_final_message),
            custom=custom,
        )
        tools = [tool.name for tool in self.request.callable_tools]
        return LenientReader(reader, tools, custom) if lenient and tools else reader

    def parse(self, text: str, *, lenient: bool = False) -> Message:
        """The message that a whole output says, read as `reader` does; never raises, whatever the text."""
        reader = self.reader(lenient=lenient)
        return Message.from_events([*reader.feed(text), *reader.finish()])

    def value(self, message: Message) -> Any:
        """The answer as a Python object: of the type that the response format is, as pydantic validates it.

        Where the format is an object it is what JSON means, matches the schema as the grammar enforces it, and is a str
        for a regex or a choice. Raises InvalidOutput where the message is no such answer: a call, cut off, or with a
        value that the type refuses; InvalidRequest where the request has no response format.
        """
        return answer_of(message, self.answer_type, self._turn)

    def write(self, message: Message) -> str | None:
        """The message as the model would write it after this prompt; None where the format or a schema forbids it."""
        return self._turn.write(message)

    def writable(self, message: Message) -> bool:
        """Whether the message can be written in the style and reads back equal: no marker in its free text, for one."""
        text = self.write(message)
        return text is not None and same_message(self.parse(text), message, json_content=self._turn.answer is not None)


@unchanged()
def plan(
    request: Mapping[str, Any] | ChatBody,
    template: ChatTemplate,
    style: str | ToolStyle | None = None,
    now: datetime | None = None,
    profile: Profile | None = None,
    *,
    sees: bool = False,
) -> Plan:
    """The plan for a chat-completions body, a mapping or a `ChatBody`, with a chat template.

    Its `response_format` may be a type: a BaseModel, a dataclass, a TypedDict, or any other that pydantic validates.
    The answer has its JSON Schema, relaxed where a grammar cannot enforce it; `Plan.value` checks the rest.

    `style` is a name or a ToolStyle, else the best is chosen; `now` is the date that prompts tell, else today's. The
    `profile` of the model fills in what the request leaves open, unless a style is named. A model that `sees` is shown
    the images of the request (`image_url`, in base64), by an engine that does so. Raises InvalidRequest with a pointer
    into the request, InvalidSchema, UnsupportedSchema (for what is `strict`), TemplateError, and ProfileError for a
    profile of another chat template.
    """
    request, answer_type = typed_answer(request)
    parsed = parse_request(request)
    parsed, media = marked(parsed, template) if sees else (parsed, None)
    made = plan_of(parsed, template, style, now, profile, media=media)
    return made if answer_type is None else replace(made, answer_type=answer_type)


@undisturbed()
@unchanged()
def plan_of(
    request: Request,
    template: ChatTemplate,
    style: str | ToolStyle | None = None,
    now: datetime | None = None,
    profile: Profile | None = None,
    fits: Callable[[Parts], object] | None = None,
    media: Mapping[str, Media] | None = None,
) -> Plan:
    """As `plan`, of a request that was checked; what is wrong with a message is told with its place in the body.

    `fits` looks at the parts of the prompt, and may raise: a grammar is made only of what it lets pass. Texts of the
    request that are marks of `media` stand for these.
    """
    shown = template.with_tools if request.tools else template
    request = with_tools_in_place(request, shown)
    try:
        if profile is None or style is not None:
            made = _plan_of(request, shown, choose_style(shown, style), now, fits, media or {})
        else:
            profile.check(template)
            made = _plan_of(profile.filling(request), shown, profile.choose_style(shown), now, fits, media or {})
            made = _without_idle_bias(made, request)
    except InvalidRequest as error:
        raise InvalidRequest(placed(request.places, error.pointer), error.reason) from error
    refuse_end(made.prompt_parts)
    return made


def _without_idle_bias(made: Plan, request: Request) -> Plan:
    """Without a profile's bias that has no place, as where an answer may begin as a call does.

    It would be told as one that is left out, to who never asked for it.
    """
    if made.request.tool_bias == request.tool_bias or ((decision := made.decision) is not None and decision.at_once):
        return made
    return replace(made, request=replace(made.request, tool_bias=request.tool_bias))


def _plan_of(
    checked: Request,
    template: ChatTemplate,
    style: tuple[ToolStyle, str],
    now: datetime | None,
    fits: Callable[[Parts], object] | None,
    media: Mapping[str, Media],
) -> Plan:
    chosen, why = style
    prompt = build_prompt(checked, template, chosen, now or datetime.now())
    prompt = replace(prompt, parts=with_media(prompt.parts, media)) if media else prompt
    if fits is not None:
        fits(prompt.parts)
    capabilities = template.capabilities
    parallel = checked.parallel_tool_calls
    if parallel is None:
        parallel = capabilities.supports_parallel_tool_calls or not speaks(template, chosen)
    format_ = _format(checked, template, chosen, prompt)
    unshown = unshown_results(checked.messages, capabilities)
    ends = (*capabilities.stop, *(opens_results(template, chosen) if checked.tools else ()))
    spec = turn_spec(checked, format_, ends, parallel=parallel, opened=prompt.opened, tail=tail(template))
    turn = compile_turn(spec)
    constrained = bool(checked.tools) or spec.form is not None
    return Plan(
        request=checked,
        style=chosen,
        why=why,
        constraint=_constraint(turn) if constrained else None,
        stop=ends if spec.calls == "none" else stops(template, chosen, ends),
        left_out=(*(placed(checked.places, at) for at in (*unshown, *prompt.left_out)), *unseen(media, prompt.parts)),
        _prompt=prompt,
        _turn=turn,
        _ids=CallIds.of(checked, format_, short=capabilities.requires_short_ids),
    )


def _format(request: Request, template: ChatTemplate, style: ToolStyle, prompt: Prompt) -> WireFormat:
    """The wire format of the turn: that of the style, with what the request and the prompt make of it."""
    mode, tools = request.tool_choice.mode, tuple(tool.name for tool in request.callable_tools)
    format_ = style.format(with_tools=bool(request.tools), tools=tools, may_call=mode != "none")
    if request.response_format is not None and not request.response_format.plain:
        format_ = with_own_answers(format_)
    may_reason = reasons(template, style) or _shows_reasoning(request) or opens_reasoning(style, prompt.opened)
    if not may_reason or rules_out_reasoning(template, style, prompt.opened, prompt.end):
        format_ = read_reasoning_alone(format_)
    if _calls_close_reasoning(request, style):
        format_ = closed_by_calls(format_, tools)
    if (promised := promise(template, style)) is not None:
        format_ = ended(format_, *promised)
    if mode in ("auto", "none") and request.form is None:
        format_ = with_asides(format_)
    if mode != "auto":
        return format_
    format_ = without_forgotten(format_)
    if style.calls_after_words is None or request.form is not None:
        return format_
    return with_calls_after_words(format_, style.calls_after_words, tools)


def _calls_close_reasoning(request: Request, style: ToolStyle) -> bool:
    """Whether a call may close the reasoning: as the request says, or else the style."""
    asked = request.calls_close_reasoning
    return bool(request.callable_tools) and (style.calls_close_reasoning if asked is None else asked)


def _shows_reasoning(request: Request) -> bool:
    """Whether the request bounds the reasoning, or holds some: agents ask every model for an effort, which is none."""
    return request.reasoning_max_tokens is not None or any(
        message["role"] == "assistant" and message.get("reasoning_content") for message in request.messages
    )


def _light(turn: CompiledTurn) -> int:
    return light(turn.spec)


@weighed(_light)
def _constraint(turn: CompiledTurn) -> Constraint:
    """One constraint for all plans of a turn, so that its grammar is written but once."""
    return Constraint(turn.grammar, _lazy=partial(_lazy, turn.spec))


@weighed(weight)
def _lazy(spec: TurnSpec) -> Constraint:
    trigger, grammar = lazy_grammar(spec)
    return Constraint(grammar, trigger)


def same_message(one: Message, other: Message, *, json_content: bool = False) -> bool:
    """Whether two messages say the same: arguments (and content, if it is) as JSON, an absent text as an empty one."""
    content, other_content = one.content or "", other.content or ""
    same_content = _same_json(content, other_content) if json_content else content == other_content
    if not same_content or (one.reasoning or "") != (other.reasoning or ""):
        return False
    return len(one.tool_calls) == len(other.tool_calls) and all(
        (a.name, a.id) == (b.name, b.id) and _same_json(a.arguments, b.arguments)
        for a, b in zip(one.tool_calls, other.tool_calls, strict=True)
    )


def _same_json(one: str, other: str) -> bool:
    try:
        return _exactly(json.loads(one)) == _exactly(json.loads(other))
    except (ValueError, RecursionError):
        return one == other


def _exactly(value: Any) -> Any:
    """The value so that True is not 1, while 1 is 1.0 as JSON has it."""
    match value:
        case bool():
            return ("boolean", value)
        case dict():
            return {key: _exactly(member) for key, member in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
        case list():
            return [_exactly(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
        case _:
            return value
