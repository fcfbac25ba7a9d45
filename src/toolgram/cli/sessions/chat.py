"""`toolgram chat`: a conversation in the terminal, with tools that run."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer

from toolgram.agent.agent import by_name
from toolgram.agent.calls import DENIED, Tool, results
from toolgram.agent.progress import whole_calls, with_own_ids
from toolgram.agent.results import shortened
from toolgram.agent.runs import JsonMessage, Limits, Result
from toolgram.chat import Reply, stream
from toolgram.cli.ask import printable
from toolgram.cli.commands.agent import visible
from toolgram.cli.explain import explain_plan
from toolgram.cli.inputs import BadInput, content_of, image_part, read_answer_type, runnable_tools
from toolgram.conversation.events import ArgumentsDelta, ContentDelta, ReasoningDelta, ToolCallStart
from toolgram.conversation.message import ToolCall
from toolgram.engines.base import Engine, Sampling, shows_images
from toolgram.errors import EngineError, ToolgramError
from toolgram.planning.plan import Plan, plan
from toolgram.planning.profile import Profile
from toolgram.styles.base import ToolStyle
from toolgram.template.chat_template import ChatTemplate

_RESULT = 200  # characters of what a tool answers that are shown
_MOST_STEPS = 10  # turns of the model for one text; in the last it cannot call
_BLOCK = '"""'
HELP = """\
/tools [FILE|off]   the tools that may be called: FILE.py, or an OpenAPI document
/schema [FILE|off]  what answers must match: a JSON Schema, or FILE.py:NAME
/image FILE         show an image before the next text, to a model that sees
/explain [TEXT]     the prompt and the grammar for a text, or for the last one
/new                forget the conversation
/quit               leave, as Ctrl-D does
A line that ends with \\ goes on, and so does all between two lines of \"\"\".
Ctrl-C ends an answer."""


@dataclass(frozen=True)
class Chat:
    """A conversation so far, and who goes on with it; `approve` is asked before a tool that writes is run.

    `images`, parts of a message, are shown before the next text, to a model that `sees`.
    """

    engine: Engine
    template: ChatTemplate
    style: str | ToolStyle | None
    sampling: Sampling
    approve: Callable[[ToolCall], bool] | None
    profile: Profile | None = None
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    answer: Any = None
    schema: str = ""
    messages: tuple[JsonMessage, ...] = ()
    images: tuple[JsonMessage, ...] = ()
    sees: bool = False

    def plan(self, messages: Sequence[JsonMessage], *, may_call: bool = True) -> Plan:
        """The plan of the next turn. Raises what `toolgram.plan` raises."""
        body: dict[str, Any] = {"messages": list(messages)}
        if self.tools:
            body["tools"] = [tool.to_openai() for tool in self.tools.values()]
            body["tool_choice"] = "auto" if may_call else "none"
        if self.answer is not None:
            named = {"type": "json_schema", "json_schema": {"name": "answer", "schema": self.answer}}
            body["response_format"] = named if isinstance(self.answer, dict) else self.answer
        return plan(body, self.template, self.style, profile=self.profile, sees=self.sees)


def chat(begun: Chat) -> None:
    """Reads lines until they end, and answers each. The engine is closed at last."""
    with suppress(ImportError):
        import readline  # noqa: F401  # pyright: ignore[reportUnusedImport] - arrows bring back lines; Windows has none
    typed: Any = sys.stdin
    if isinstance(typed, io.TextIOWrapper):
        typed.reconfigure(errors="replace")  # a character of another encoding ends no conversation
    with asyncio.Runner() as runner:
        try:
            state = replace(begun, sees=runner.run(_sees(begun.engine)))
            for text in _texts():
                if text == "/quit":
                    return
                try:
                    state = _obeyed(state, text) if text.startswith("/") else runner.run(_answered(state, text))
                except ToolgramError as error:
                    _say(f"error: {' '.join(str(error).split())}")
                except (KeyboardInterrupt, asyncio.CancelledError):
                    typer.echo("")
                    _say("stopped: the question and what was said of an answer are forgotten")
        finally:
            runner.run(begun.engine.aclose())


async def _sees(engine: Engine) -> bool:
    """Whether the model is shown images; not by a server that does not tell."""
    try:
        return await shows_images(engine)
    except EngineError:
        return False


def _texts() -> Iterator[str]:
    """What is typed, several lines as one text; white space alone is none."""
    while True:
        try:
            line = _line("> ")
            if line.strip() == _BLOCK:
                lines = list(iter(lambda: _line("… "), _BLOCK))
            else:
                lines = [line]
                while lines[-1].endswith("\\"):
                    lines[-1:] = [lines[-1][:-1], _line("… ")]
        except EOFError:
            if sys.stdin.isatty():
                typer.echo("")
            return
        except KeyboardInterrupt:
            typer.echo("")
            continue
        if text := "\n".join(lines).strip():
            yield text


def _line(prompt: str) -> str:
    if sys.stdin.isatty():
        return input(prompt)
    if not (line := sys.stdin.readline()):
        raise EOFError
    return line.removesuffix("\n")


async def _answered(state: Chat, text: str) -> Chat:
    """The conversation with this text and what came of it, which is shown as it comes."""
    messages: list[JsonMessage] = [*state.messages, {"role": "user", "content": content_of(text, state.images)}]
    before: list[tuple[str, str]] = []
    again = False
    for step in range(_MOST_STEPS):
        reply = await _turn(state, state.plan(messages, may_call=step < _MOST_STEPS - 1 and not again))
        calls = with_own_ids(whole_calls(reply.message), messages)
        said = replace(reply.message, tool_calls=calls)
        messages.append((said if calls else replace(said, content=said.content or "")).to_openai())
        if reply.finish_reason == "length":
            _say("cut off: --max-tokens allows longer answers, /new makes room in the context")
        if not calls:
            break
        same = [(call.name, call.arguments) for call in calls]
        again, before = same == before, same  # what was just answered needs no third answer
        messages += [message async for message in _results(state, calls)]
    return replace(state, messages=tuple(messages), images=())


async def _turn(state: Chat, made: Plan) -> Reply:
    """A turn of the model, shown while it is written: reasoning dimmed, calls in a colour."""
    begun = ""  # what the line is of
    async with aclosing(stream(made, state.engine, state.sampling)) as items:
        async for item in items:
            match item:
                case Reply():
                    typer.echo("" if begun else typer.style("(nothing)", dim=True))
                    return item
                case ReasoningDelta(text):
                    kind, shown = "reasoning", typer.style(printable(text), dim=True)
                case ContentDelta(text):
                    kind, shown = "content", printable(text)
                case ToolCallStart(index, name):
                    kind, shown = f"call {index}", typer.style(f"{visible(name)} ", fg="cyan")
                case ArgumentsDelta(index, text):
                    kind, shown = f"call {index}", typer.style(printable(text), fg="cyan")
                case _:
                    continue
            typer.echo(f"{chr(10) if begun not in ('', kind) else ''}{shown}", nl=False)
            begun = kind
    raise AssertionError("a stream ends with a reply or raises")


async def _results(state: Chat, calls: Sequence[ToolCall]) -> AsyncGenerator[JsonMessage, None]:
    """What the tools answer, in the order of the calls."""
    denied = [call for call in calls if not _may_run(state, call)]
    told: dict[str | None, Any] = {call.id: DENIED for call in denied}
    async with aclosing(results([call for call in calls if call not in denied], state.tools, Limits())) as made:
        async for result in made:
            if not isinstance(result, Result):  # how far a call has come
                continue
            said = result.told(sees=state.sees)
            color, what = ("red", "error: ") if said.is_error else ("green", "")
            typer.secho(f"= {what}{visible(shortened(said.text, _RESULT))} ({said.seconds:.1f} s)", fg=color)
            told[said.call.id] = said.content
    for call in calls:
        yield {"role": "tool", "tool_call_id": call.id, "content": told[call.id]}


def _may_run(state: Chat, call: ToolCall) -> bool:
    """Whether a call is one that changes nothing, or somebody said yes to it."""
    tool = state.tools.get(call.name)
    if tool is None or not tool.writes:
        return True
    allowed = state.approve is not None and state.approve(call)
    if not allowed:
        _say(f"{visible(call.name)} was not run")
    return allowed


def _obeyed(state: Chat, text: str) -> Chat:
    """What a command makes of the conversation. Raises ToolgramError."""
    name, _, argument = text[1:].partition(" ")
    if name not in _COMMANDS:
        typer.echo(HELP)
        return state
    return _COMMANDS[name](state, argument.strip())


def _tools(state: Chat, source: str) -> Chat:
    if source:
        state = replace(state, tools={} if source == "off" else by_name(runnable_tools(source), Limits()))
    for tool in state.tools.values():
        described = tool.to_openai()["function"]
        typer.echo(f"{visible(described['name'])}: {visible(described.get('description', ''))}")
    if not state.tools:
        typer.echo("no tools: /tools FILE.py gives some")
    return state


def _schema(state: Chat, file: str) -> Chat:
    if file == "off":
        state = replace(state, answer=None, schema="")
    elif file:
        state = replace(state, answer=read_answer_type(Path(file)), schema=file)
    typer.echo(f"answers match {state.schema}" if state.schema else "answers are text: /schema FILE makes them JSON")
    return state


def _image(state: Chat, file: str) -> Chat:
    if not state.sees:
        raise BadInput("this model is shown no images: --mmproj FILE gives it a projector")
    if not file:
        raise BadInput("which one? /image FILE")
    return replace(state, images=(*state.images, image_part(Path(file))))


def _explain(state: Chat, text: str) -> Chat:
    asked = [at for at, message in enumerate(state.messages) if message["role"] == "user"]
    if text:
        messages = (*state.messages, {"role": "user", "content": content_of(text, state.images)})
    elif asked:
        messages = state.messages[: asked[-1] + 1]
    else:
        raise BadInput("nothing was asked yet: /explain TEXT")
    explain_plan(state.plan(messages), "gbnf", None)
    return state


def _new(state: Chat, _: str) -> Chat:
    system = tuple(message for message in state.messages[:1] if message["role"] == "system")
    return replace(state, messages=system, images=())


_COMMANDS: dict[str, Callable[[Chat, str], Chat]] = {
    "tools": _tools,
    "schema": _schema,
    "image": _image,
    "explain": _explain,
    "new": _new,
}


def _say(text: str) -> None:
    typer.echo(text, err=True)
