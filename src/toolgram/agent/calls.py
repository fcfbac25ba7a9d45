"""Running the calls of a turn: side by side, each within its time, and what goes wrong becomes a result."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

from toolgram.errors import InvalidOutput, ToolgramError, needing

with needing("agent", "an agent"):
    import anyio

from toolgram.agent.illustrated import Illustrated, shown_of, shown_of_async
from toolgram.agent.results import is_awaited, shortened
from toolgram.agent.runs import CallProgress, Limits, Result
from toolgram.agent.tools import FunctionTool
from toolgram.conversation.message import ToolCall
from toolgram.spans import span

DENIED = "The user did not allow this call."
_MAX_ERROR = 2_000  # characters of what a tool raised
_MAX_NAME = 100  # characters of a name that no tool has, and of what is told of progress
_WAITING = 100  # what was told of progress, and nobody has read yet

_report: ContextVar[Callable[..., None] | None] = ContextVar("toolgram_report", default=None)


class CallFailed(ToolgramError):
    """A call that gave no result; the model is told the words as they are."""


@runtime_checkable
class Tool(Protocol):
    """What an agent can call: a `FunctionTool`, or anything of this shape."""

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        ...

    @property
    def writes(self) -> bool:
        """Whether a call changes something, so that an approval is asked for."""
        ...

    def to_openai(self) -> dict[str, Any]:
        """The tool in the shape of a chat-completions request."""
        ...

    async def call(self, arguments: str) -> Any:
        """What comes of a call with these arguments, JSON text; what it raises is told to the model."""
        ...


def object_of(arguments: str) -> dict[str, Any]:
    """The arguments of a call, as a JSON object. Raises InvalidOutput for any other text."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise InvalidOutput(("", f"Invalid JSON: {error}")) from error
    if not isinstance(given, dict):
        raise InvalidOutput(("", "Arguments must be an object"))
    return cast("dict[str, Any]", given)


class Called:
    """A Python function as an agent's tool: functions that are not async run in threads of their own."""

    def __init__(self, tool: FunctionTool, most: int) -> None:
        self._tool, self._most = tool, most
        self.name = tool.name
        self.writes = tool.writes

    def to_openai(self) -> dict[str, Any]:
        """The tool in the shape of a chat-completions request."""
        return self._tool.to_openai()

    async def call(self, arguments: str) -> str | Illustrated:
        """The result. Raises InvalidOutput for arguments of other types, and what the function raises."""
        given = self._tool.arguments(arguments)
        if inspect.iscoroutinefunction(self._tool.function):
            return await shown_of_async(self._tool.function(**given), self._most)
        made = await in_thread(partial(self._run, given))
        return made if isinstance(made, str | Illustrated) else await shown_of_async(made, self._most)

    def _run(self, given: Mapping[str, Any]) -> Any:
        """What is shown, or what is to be awaited for it."""
        value = self._tool.function(**given)
        return value if is_awaited(value) else shown_of(value, self._most)


async def in_thread(function: Callable[[], Any]) -> Any:
    """What the function gives, in a thread that is left alone if it does not end: it keeps no program from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = function()
        except Exception as raised:  # noqa: BLE001 - a tool may raise anything, and the model is to know
            error = raised if not isinstance(raised, StopIteration) else RuntimeError("StopIteration")
        except BaseException as raised:  # noqa: BLE001 - as above: else who waits for it waits all its time
            error = CallFailed(f"{type(raised).__name__}: {raised}")
        with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=copy_context().run, args=(work,), daemon=True).start()
    return await done


def report_progress(done: float, total: float | None = None, message: str = "") -> None:
    """Tell how far the call has come that runs here; for tools, which may call it from the thread they run in."""
    if (report := _report.get()) is not None:
        report(done, total, shortened(message, _MAX_NAME))


async def results(
    calls: Sequence[ToolCall], tools: Mapping[str, Tool], limits: Limits
) -> AsyncGenerator[CallProgress | Result, None]:
    """The result of each call, in the order in which they end, and before it how far it has come where that is told.

    Closing the generator stops the calls.
    """
    happened: asyncio.Queue[CallProgress | Result] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def run(call: ToolCall) -> None:
        def tell(*said: Any) -> None:
            if happened.qsize() < _WAITING:  # a tool that tells without an end fills no memory
                happened.put_nowait(CallProgress(call, *said))

        def report(*said: Any) -> None:
            if threading.get_ident() == here:
                tell(*said)
            else:
                loop.call_soon_threadsafe(tell, *said)

        _report.set(report)
        begun = time.monotonic()
        try:
            result = await result_of(call, tools, limits)
        except BaseException as error:  # who cancelled itself, say: nobody is to wait for it
            text = f"The call was ended: {type(error).__name__}"
            happened.put_nowait(Result(call, text, is_error=True, seconds=time.monotonic() - begun))
            raise
        happened.put_nowait(result)

    here = threading.get_ident()
    running = [asyncio.create_task(run(call)) for call in calls]
    left = len(running)
    try:
        while left:
            item = await happened.get()
            left -= isinstance(item, Result)
            yield item
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def result_of(call: ToolCall, tools: Mapping[str, Tool], limits: Limits) -> Result:
    """The result of one call: whatever goes wrong is one too."""
    begun = time.monotonic()
    name = shortened(call.name, _MAX_NAME)
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call.id}
    with span(f"execute_tool {name}", said) as note:
        shown, is_error = await _outcome(call, tools, limits)
        note({"error.type": "tool_error" if is_error else None})
    seconds = time.monotonic() - begun
    if isinstance(shown, Illustrated):
        return Result(call, shown.text, is_error, seconds, shown)
    return Result(call, shown, is_error, seconds)


async def _outcome(call: ToolCall, tools: Mapping[str, Tool], limits: Limits) -> tuple[str | Illustrated, bool]:
    try:
        return await _said(call, tools, limits)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return f"The call was cancelled: {error}", True
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool may raise anything, and the model is to know
        return shortened(f"{type(error).__name__}: {error}", _MAX_ERROR), True


async def _said(call: ToolCall, tools: Mapping[str, Tool], limits: Limits) -> tuple[str | Illustrated, bool]:
    if (tool := tools.get(call.name)) is None:
        there_are = shortened(", ".join(tools), _MAX_ERROR)
        return f"There is no tool {shortened(call.name, _MAX_NAME)!r}. There are: {there_are}", True
    with anyio.move_on_after(limits.call_seconds):
        try:
            return await shown_of_async(tool.call(call.arguments), limits.result_characters), False
        except InvalidOutput as error:
            return f"The arguments are not what {call.name} takes: {error}", True
        except CallFailed as error:
            return shortened(str(error), limits.result_characters), True
    return f"{call.name} gave no result within {limits.call_seconds:g} s", True
