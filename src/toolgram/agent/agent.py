"""An agent: a goal, tools that run, and an answer of a given type, on any model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import Any, Generic, Literal, TypeVar, get_args

from toolgram.errors import InvalidOutput, InvalidRequest, PromptTooLong, TooManyPixels, needing

with needing("agent", "an agent"):
    import anyio.to_thread

from toolgram.agent.answers import MOST_TIGHT, AnswerType, fits
from toolgram.agent.calls import DENIED, Called, Tool, results
from toolgram.agent.progress import Conversation, Progress, helped, images_in, unanswered, whole_calls, with_own_ids
from toolgram.agent.runs import (
    AgentEvent,
    ApprovalAsked,
    Call,
    Limits,
    NoAnswer,
    Reasoning,
    Result,
    Run,
    Step,
    StepUsage,
    Text,
)
from toolgram.agent.search import NAME, Index, Shown
from toolgram.agent.tools import FunctionTool, InvalidTool, tool_of
from toolgram.chat import Reply, stream
from toolgram.conversation.events import ContentDelta, ReasoningDelta
from toolgram.conversation.message import ToolCall
from toolgram.engines.base import Engine, Sampling, shows_images
from toolgram.engines.remote.http import Refused
from toolgram.planning.plan import Plan, plan
from toolgram.planning.profile import Profile
from toolgram.styles.base import ToolStyle
from toolgram.template.chat_template import ChatTemplate

T = TypeVar("T")
Approval = Callable[[ToolCall], bool | Awaitable[bool]]
Ask = Literal["never", "writes", "always"]

_CUT = "Your last turn was too long and was cut off. Be shorter."
_ATTEMPTS = 3  # at the last answer


@dataclass(frozen=True)
class Agent(Generic[T]):
    """Calls tools until it has an answer.

    `tools` are functions, `FunctionTool`s or objects with the methods of `Tool`. `answer` is a type that pydantic
    takes, or a JSON Schema: then a turn that does not call is this answer, by its grammar, and the last step is this
    answer alone; without one the answer is text. `ask` says for which tools an approval is asked: `approve` gives it,
    and without one the run ends and waits. `sampling` is that of each step, but for `max_tokens`, which `limits` sets.
    The `profile` is the model's. Of more tools than `most_tools` so many are shown at once, those that fit best, and
    `search_tools` finds others. `tool_choice` is that of the first step, which calls a tool unless it is "auto": a
    small model would rather invent an answer. All others call or answer, as the model likes.
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
    profile: Profile | None = None
    most_tools: int | None = None
    tool_choice: Literal["auto", "required"] = "required"
    _index: Index | None = field(init=False, repr=False)
    _tools: Mapping[str, Tool] = field(init=False, repr=False)
    _answer: AnswerType | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.ask not in get_args(Ask):  # which would ask for no approval
            raise InvalidRequest("/ask", f"must be one of {', '.join(get_args(Ask))}, not {self.ask!r}")
        # A frozen value is completed by these alone: what was given stays as it was, for dataclasses.replace.
        object.__setattr__(self, "_tools", by_name(self.tools, self.limits))
        object.__setattr__(self, "_index", self._indexed())
        object.__setattr__(self, "_answer", None if self.answer is None else AnswerType.of(self.answer))

    def _indexed(self) -> Index | None:
        if self.most_tools is None or len(self._tools) <= self.most_tools:
            return None
        if self.most_tools < 1 or NAME in self._tools:
            raise InvalidTool(f"most_tools must be at least 1, and no tool named {NAME}")
        return Index(self._tools.values())

    async def run(
        self,
        goal: str | Sequence[Any] | None = None,
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
        goal: str | Sequence[Any] | None = None,
        *,
        messages: Conversation = (),
        approved: Mapping[str, bool] | None = None,
    ) -> AsyncGenerator[AgentEvent | Run[T], None]:
        """What happens, as it happens; at last the run. Closing the generator stops the engine and the tools.

        The `goal` is a text, or the parts of a message's content: images are for a model that sees, and it is shown
        those that tools give, too. `messages` is a conversation to go on with, as a `Run` has it. Calls in it that have
        no results are run first, with `approved` saying yes or no to them by their ids, and then the goal is told.
        Raises EngineError where the engine fails or the context is full, NoAnswer where not even a short answer was
        whole or taken by its type, and what `toolgram.plan` raises.
        """
        # All results of an agent's conversation are those of its tools, also of an earlier run.
        given = {message.get("tool_call_id") for message in messages if message.get("role") == "tool"}
        turn = Progress(list(messages), approved or {}, given=given)
        if self._index is not None:
            turn.shown = Shown(self._tools, self._index, self.most_tools or 1)
        calls = unanswered(turn.messages)
        while True:
            async with aclosing(self._run_calls(calls, turn)) as events:
                async for event in events:
                    yield event
            if turn.waiting:
                yield turn.ended(None)
                return
            if turn.number == 0:
                self._begin(goal, turn)
                if turn.shown is not None:
                    turn.shown.read(turn.messages)
                if any(map(images_in, turn.messages)) and not await self._sees(turn):
                    turn.hide_images()
            turn.number += 1
            last = turn.is_over(self.limits)
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
            calls = with_own_ids(whole_calls(reply.message), turn.messages)
            if calls:
                turn.called(calls)
                turn.messages.append(replace(reply.message, tool_calls=calls).to_openai())
                for call in calls:
                    yield Call(call)
            elif self._is_answer(reply, turn, last):
                yield turn.ended(turn.answer)
                return

    def _begin(self, goal: str | Sequence[Any] | None, turn: Progress) -> None:
        turn.approved = {}  # a yes to a call that waited is none to a later one, whatever its id
        if self.instructions is not None and not turn.messages:
            turn.messages.append({"role": "system", "content": self.instructions})
        if goal is not None:
            turn.messages.append({"role": "user", "content": goal if isinstance(goal, str) else list(goal)})
        if not turn.messages:
            raise InvalidRequest("/messages", "there is neither a goal nor a conversation to go on with")

    async def _step(self, turn: Progress, last: bool) -> AsyncGenerator[AgentEvent | Reply, None]:
        while True:
            began = False
            try:
                # A set of new tools, or a narrow answer, may take a while.
                made, most = await anyio.to_thread.run_sync(self._last_plan if last else self._plan, turn)
                async with aclosing(stream(made, self.engine, replace(self.sampling, max_tokens=most))) as items:
                    async for item in items:
                        began = True
                        match item:
                            case ReasoningDelta(text):
                                yield Reasoning(text)
                            case ContentDelta(text):
                                yield Text(text)
                            case Reply():
                                turn.is_full = item.finish_reason == "length" and item.usage.completion_tokens < most
                                yield item
                            case _:
                                pass
            except (PromptTooLong, TooManyPixels, Refused) as error:
                # What has grown too long is worth saying twice; what an engine refuses late is not its images.
                if (began and isinstance(error, Refused)) or not helped(turn, error):
                    raise
            else:
                return

    async def _sees(self, turn: Progress) -> bool:
        """Whether the model is shown images; a server is asked once, where there is one to show."""
        if turn.sees is None:
            turn.sees = await shows_images(self.engine)
        return turn.sees

    def _plan(self, turn: Progress) -> tuple[Plan, int]:
        """The plan of a step that may call, and how many tokens it may write."""
        most = self.limits.step_tokens
        if self.limits.tokens is not None:
            most = max(1, min(most, self.limits.tokens - turn.usage.completion_tokens))
        form = None if self._answer is None else self._answer.response_format()
        return self._made(turn, self.tool_choice if turn.is_first else "auto", form), most

    def _last_plan(self, turn: Progress) -> tuple[Plan, int]:
        """The plan of a step that may only answer, and how many tokens it may write.

        Once an answer was cut off, the next one is bounded so that its longest form has no more bytes than there are
        tokens for it. Reasoning has room of its own, until then.
        """
        room = self.limits.answer_tokens
        if self._answer is None:
            made = self._made(turn, "none", None)
        else:
            made = self._made(turn, "none", self._answer.response_format(room, turn.tightness))
            while 0 < turn.tightness < MOST_TIGHT and not fits(made, room):
                turn.tightness += 1
                made = self._made(turn, "none", self._answer.response_format(room, turn.tightness))
        reasoning = room if made.format.reasoning and turn.tightness == 0 else 0
        return replace(made, request=replace(made.request, reasoning_max_tokens=reasoning)), room + reasoning

    def _shown(self, turn: Progress) -> Mapping[str, Tool]:
        return self._tools if turn.shown is None else turn.shown.now()

    def _made(self, turn: Progress, choice: str, form: Mapping[str, Any] | None) -> Plan:
        body: dict[str, Any] = {"messages": turn.messages}
        if shown := self._shown(turn):
            body |= {"tools": [tool.to_openai() for tool in shown.values()], "tool_choice": choice}
        if form is not None:
            body["response_format"] = form
        return plan(body, self.template, self.style, profile=self.profile, sees=turn.sees is True)

    async def _run_calls(self, calls: Sequence[ToolCall], turn: Progress) -> AsyncGenerator[AgentEvent, None]:
        allowed: list[ToolCall] = []
        made: list[Result] = []
        for call in calls:
            answer = turn.approved.get(call.id or "")
            if answer is None and self._asks(call):
                yield ApprovalAsked(call)
                answer = await self._approval(call)
                if answer is None:
                    turn.waiting.append(call)
                    continue
            if answer is not None and answer is not True:
                made.append(Result(call, DENIED, is_error=True, seconds=0.0))
                yield made[-1]
            else:
                allowed.append(call)
        if turn.waiting and not made and not allowed:
            return
        async with aclosing(results(allowed, {**self._tools, **self._shown(turn)}, self.limits)) as events:
            async for told in events:
                if isinstance(told, Result):
                    sees = told.illustrated is not None and await self._sees(turn)
                    made.append(told.told(sees=sees))
                    yield made[-1]
                else:
                    yield told
        turn.add_results(made)

    def _asks(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is not None and (self.ask == "always" or (self.ask == "writes" and tool.writes))

    async def _approval(self, call: ToolCall) -> bool | None:
        if self.approve is None:
            return None
        answer = self.approve(call)
        return await answer if isawaitable(answer) else answer

    def _is_answer(self, reply: Reply, turn: Progress, last: bool) -> bool:
        """Whether the step ended the run; else the model was told why not. Raises NoAnswer in the last step."""
        if reply.finish_reason == "length" and (not last or self._answer is not None):
            problem = _CUT
            turn.tightness = min(turn.tightness + last, MOST_TIGHT)
        else:
            try:
                turn.answer = self._answer.value(reply.message) if self._answer else reply.message.content or ""
            except InvalidOutput as error:
                problem = f"Your answer was not accepted: {error}"
            else:
                turn.messages.append(reply.message.to_openai())
                return True
        if last:
            turn.failed += 1
            if turn.failed == _ATTEMPTS:
                raise NoAnswer(f"the last step gave no whole answer in {_ATTEMPTS} attempts: {problem}")
        turn.tell(reply.message.content, problem)
        return False


def by_name(tools: Iterable[Callable[..., Any] | FunctionTool | Tool], limits: Limits) -> Mapping[str, Tool]:
    """The tools by their names, made ready to run. Raises InvalidTool for two of one name."""
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
