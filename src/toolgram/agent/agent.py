"""An agent: a goal, tools that run, and an answer of a given type, on any model."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from inspect import isawaitable
from typing import Any, Generic, Literal, TypeVar, cast

import anyio.to_thread

from toolgram.agent.answers import AnswerType
from toolgram.agent.calls import DENIED, Called, Tool, results
from toolgram.agent.runs import (
    AgentEvent,
    ApprovalAsked,
    Call,
    JsonMessage,
    Limits,
    NoAnswer,
    Reasoning,
    Result,
    Run,
    Step,
    StepUsage,
    Text,
)
from toolgram.agent.tools import FunctionTool, InvalidTool, tool_of
from toolgram.chat import Reply, stream
from toolgram.conversation.events import ContentDelta, ReasoningDelta
from toolgram.conversation.message import Message, ToolCall
from toolgram.engines.base import Engine, Sampling, Usage
from toolgram.errors import InvalidOutput
from toolgram.planning.plan import Plan, plan
from toolgram.styles.base import ToolStyle
from toolgram.template.chat_template import ChatTemplate

T = TypeVar("T")
Approval = Callable[[ToolCall], bool | Awaitable[bool]]
Conversation = Sequence[JsonMessage]
Ask = Literal["never", "writes", "always"]

_CUT = "Your last turn was too long and was cut off. Be shorter."
_ID = 9  # characters of an id, which is what the strictest templates take
_TIGHTER = (1, 4, 16)  # by what the room of the last answer is divided, when it was cut off


@dataclass(frozen=True)
class Agent(Generic[T]):
    """Calls tools until it has an answer.

    `tools` are functions, `FunctionTool`s or objects with the methods of `Tool`. `answer` is a type that pydantic
    takes, or a JSON Schema: then every turn is calls or this answer, by its grammar, and the last step is this answer
    alone; without one the answer is text. `ask` says for which tools an approval is asked: `approve` gives it, and
    without one the run ends and waits. `sampling` is that of each step, but for `max_tokens`, which `limits` sets.
    """

    engine: Engine
    template: ChatTemplate
    tools: Iterable[Callable[..., Any] | FunctionTool | Tool] = ()
    answer: type[T] | Any = None
    instructions: str | None = None
    limits: Limits = field(default_factory=Limits)
    ask: Ask = "writes"
    approve: Approval | None = None
    style: str | ToolStyle | None = None
    sampling: Sampling = field(default_factory=Sampling)
    _tools: Mapping[str, Tool] = field(init=False, repr=False)
    _answer: AnswerType | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # A frozen value is completed by these alone: what was given stays as it was, for dataclasses.replace.
        object.__setattr__(self, "_tools", _by_name(self.tools, self.limits))
        object.__setattr__(self, "_answer", None if self.answer is None else AnswerType.of(self.answer))

    async def run(
        self,
        goal: str | None = None,
        *,
        messages: Conversation = (),
        approved: Mapping[str, bool] | None = None,
    ) -> Run[T]:
        """How the run ends. Arguments and errors are those of `stream`."""
        async with aclosing(self.stream(goal, messages=messages, approved=approved)) as events:
            async for event in events:
                if isinstance(event, Run):
                    return event
        raise AssertionError("a stream ends with a run or raises")

    async def stream(
        self,
        goal: str | None = None,
        *,
        messages: Conversation = (),
        approved: Mapping[str, bool] | None = None,
    ) -> AsyncGenerator[AgentEvent | Run[T], None]:
        """What happens, as it happens; at last the run. Closing the generator stops the engine and the tools.

        `messages` is a conversation to go on with, as a `Run` has it. Calls in it that have no results are run first,
        with `approved` saying yes or no to them by their ids, and then the goal is told. Raises EngineError where the
        engine fails or the context is full, NoAnswer where not even a short answer was whole or taken by its type, and
        what `toolgram.plan` raises.
        """
        turn = _Progress(list(messages), approved or {})
        calls = _unanswered(turn.messages)
        while True:
            async with aclosing(self._run_calls(calls, turn)) as events:
                async for event in events:
                    yield event
            if turn.waiting:
                yield turn.ended(None)
                return
            if turn.number == 0:
                self._begin(goal, turn)
            turn.number += 1
            last = self._is_last(turn)
            yield Step(turn.number, last)
            reply: Reply | None = None
            async with aclosing(self._step(turn, last)) as events:
                async for event in events:
                    if isinstance(event, Reply):
                        reply = event
                    else:
                        yield event
            assert reply is not None  # noqa: S101 - a stream ends with a reply or raises
            turn.count(reply)
            yield StepUsage(reply.usage)
            calls = _with_own_ids(_whole(reply.message), turn.messages)
            if calls:
                turn.called(calls)
                turn.messages.append(replace(reply.message, tool_calls=calls).to_openai())
                for call in calls:
                    yield Call(call)
            elif self._is_answer(reply, turn, last):
                yield turn.ended(turn.answer)
                return

    def _begin(self, goal: str | None, turn: _Progress) -> None:
        turn.approved = {}  # a yes to a call that waited is none to a later one, whatever its id
        if self.instructions is not None and not turn.messages:
            turn.messages.append({"role": "system", "content": self.instructions})
        if goal is not None:
            turn.messages.append({"role": "user", "content": goal})

    def _is_last(self, turn: _Progress) -> bool:
        """Whether the step may only answer: the steps, the time or the tokens are used up, or calls repeat."""
        limits = self.limits
        too_late = limits.seconds is not None and time.monotonic() - turn.begun >= limits.seconds
        written = limits.tokens is not None and turn.usage.completion_tokens >= limits.tokens
        repeats = turn.repeats >= limits.repeats
        return turn.number >= limits.steps or too_late or written or repeats or turn.cuts > 0

    async def _step(self, turn: _Progress, last: bool) -> AsyncGenerator[AgentEvent | Reply, None]:
        made = await anyio.to_thread.run_sync(self._plan, turn, last)  # a set of new tools may take a while
        most = self.limits.answer_tokens if last else self.limits.step_tokens
        if not last and self.limits.tokens is not None:
            most = max(1, min(most, self.limits.tokens - turn.usage.completion_tokens))
        async with aclosing(stream(made, self.engine, replace(self.sampling, max_tokens=most))) as items:
            async for item in items:
                match item:
                    case ReasoningDelta(text):
                        yield Reasoning(text)
                    case ContentDelta(text):
                        yield Text(text)
                    case Reply():
                        yield item
                    case _:
                        pass

    def _plan(self, turn: _Progress, last: bool) -> Plan:
        body: dict[str, Any] = {"messages": turn.messages}
        if self._tools:
            body |= {"tools": [tool.to_openai() for tool in self._tools.values()]}
            body |= {"tool_choice": "none" if last else "auto"}
        if self._answer is not None:
            room = self.limits.answer_tokens // _TIGHTER[turn.cuts] if last else None
            body["response_format"] = self._answer.response_format(room)
        return plan(body, self.template, self.style)

    async def _run_calls(self, calls: Sequence[ToolCall], turn: _Progress) -> AsyncGenerator[AgentEvent, None]:
        allowed: list[ToolCall] = []
        texts: dict[str | None, str] = {}
        for call in calls:
            answer = turn.approved.get(call.id or "")
            if answer is None and self._asks(call):
                yield ApprovalAsked(call)
                answer = await self._approval(call)
                if answer is None:
                    turn.waiting.append(call)
                    continue
            if answer is not None and answer is not True:
                texts[call.id] = DENIED
                yield Result(call, DENIED, is_error=True, seconds=0.0)
            else:
                allowed.append(call)
        if turn.waiting and not texts and not allowed:
            return
        async with aclosing(results(allowed, self._tools, self.limits)) as made:
            async for result in made:
                texts[result.call.id] = result.text
                yield result
        said = ({"role": "tool", "tool_call_id": id_, "content": text} for id_, text in texts.items())
        turn.messages[:] = _in_order([*turn.messages, *said])

    def _asks(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is not None and (self.ask == "always" or (self.ask == "writes" and tool.writes))

    async def _approval(self, call: ToolCall) -> bool | None:
        if self.approve is None:
            return None
        answer = self.approve(call)
        return await answer if isawaitable(answer) else answer

    def _is_answer(self, reply: Reply, turn: _Progress, last: bool) -> bool:
        """Whether the step ended the run; else the model was told why not. Raises NoAnswer in the last step."""
        if reply.finish_reason == "length" and (not last or self._answer is not None):
            problem = _CUT
        else:
            try:
                turn.answer = self._answer.value(reply.message) if self._answer else reply.message.content or ""
            except InvalidOutput as error:
                problem = f"Your answer was not accepted: {error}"
            else:
                turn.messages.append(reply.message.to_openai())
                return True
        if last:
            turn.cuts += 1
            if turn.cuts == len(_TIGHTER):
                raise NoAnswer(f"the last step gave no whole answer in {len(_TIGHTER)} attempts: {problem}")
        turn.tell(reply.message.content, problem)
        return False


@dataclass
class _Progress:
    """What a run has come to so far."""

    messages: list[JsonMessage]
    approved: Mapping[str, bool]
    begun: float = field(default_factory=time.monotonic)
    number: int = 0
    cuts: int = 0  # last steps without a whole answer
    usage: Usage = field(default_factory=Usage)
    texts: list[str] = field(default_factory=list[str])
    waiting: list[ToolCall] = field(default_factory=list[ToolCall])
    answer: Any = None
    cut: bool = False
    repeats: int = 0  # turns with the same calls, up to the last
    _last_calls: Sequence[tuple[str, str]] = ()

    def called(self, calls: Sequence[ToolCall]) -> None:
        """What a step calls."""
        said = tuple((call.name, call.arguments) for call in calls)
        self.repeats = self.repeats + 1 if said == self._last_calls else 1
        self._last_calls = said

    def count(self, reply: Reply) -> None:
        """What a step wrote and cost."""
        self.cut = reply.finish_reason == "length"
        self.texts.append(reply.text)
        self.usage = _sum(self.usage, reply.usage)

    def tell(self, said: str | None, problem: str) -> None:
        """A word to the model, after what it said: in a turn of the user's, of which no two follow one another."""
        if said:
            self.messages.append({"role": "assistant", "content": said})
        if self.messages and self.messages[-1].get("role") == "user" and isinstance(self.messages[-1]["content"], str):
            before = self.messages.pop()
            self.messages.append({**before, "content": f"{before['content']}\n\n{problem}"})
        else:
            self.messages.append({"role": "user", "content": problem})

    def ended(self, answer: Any) -> Run[Any]:
        """The run, at its end."""
        messages, waiting, texts = tuple(self.messages), tuple(self.waiting), tuple(self.texts)
        return Run(answer, messages, waiting, self.number, self.usage, texts, self.cut)


def _by_name(tools: Iterable[Callable[..., Any] | FunctionTool | Tool], limits: Limits) -> Mapping[str, Tool]:
    named: dict[str, Tool] = {}
    for each in tools:
        tool = _tool(each, limits)
        if tool.name in named:
            raise InvalidTool(f"{tool.name}: two tools have this name")
        named[tool.name] = tool
    return named


def _tool(given: Callable[..., Any] | FunctionTool | Tool, limits: Limits) -> Tool:
    if isinstance(given, FunctionTool):
        return Called(given, limits.result_characters)
    if isinstance(given, Tool):
        return given
    return Called(tool_of(given), limits.result_characters)


def _whole(message: Message) -> tuple[ToolCall, ...]:
    return tuple(call for call in message.tool_calls if not call.incomplete)


def _with_own_ids(calls: tuple[ToolCall, ...], messages: Conversation) -> tuple[ToolCall, ...]:
    """The calls, each with an id that no other call of the conversation has: some formats let the model choose it."""
    taken = {call["id"] for message in messages for call in message.get("tool_calls") or () if call.get("id")}
    made: list[ToolCall] = []
    for call in calls:
        id_, number = call.id, 0
        while id_ is None or id_ in taken:
            number += 1
            id_ = sha256(f"{call.id} {number}".encode(errors="surrogatepass")).hexdigest()[:_ID]
        taken.add(id_)
        made.append(replace(call, id=id_))
    return tuple(made)


def _in_order(messages: list[JsonMessage]) -> list[JsonMessage]:
    """The conversation with the results at its end in the order of their calls, as templates want them."""
    at = max((i for i, message in enumerate(messages) if message.get("role") != "tool"), default=-1)
    calls = cast("Sequence[Any]", messages[at].get("tool_calls") or ()) if at >= 0 else ()
    place = {call.get("id"): number for number, call in enumerate(calls)}
    last = len(place)
    return [
        *messages[: at + 1],
        *sorted(messages[at + 1 :], key=lambda each: place.get(each.get("tool_call_id"), last)),
    ]


def _unanswered(messages: Conversation) -> tuple[ToolCall, ...]:
    """The calls at the end of a conversation that have no results yet."""
    answered: set[Any] = set()
    for message in reversed(messages):
        if message.get("role") == "tool":
            answered.add(message.get("tool_call_id"))
            continue
        calls = cast("Sequence[Any]", message.get("tool_calls") or ()) if message.get("role") == "assistant" else ()
        return tuple(
            ToolCall(call["function"]["name"], call["function"]["arguments"], call["id"])
            for call in calls
            if call.get("id") and call["id"] not in answered and "function" in call
        )
    return ()


def _sum(one: Usage, other: Usage) -> Usage:
    """What both cost together."""
    summed = {each.name: getattr(one, each.name) + getattr(other, each.name) for each in fields(Usage)}
    return Usage(**{**summed, "reasoning_closed": one.reasoning_closed or other.reasoning_closed})
