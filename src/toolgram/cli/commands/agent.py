"""`toolgram agent`: a goal, tools that run, and an answer, on the embedded engine."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager, redirect_stdout
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgram.cli.options import (
    CUT_OFF,
    ISOLATE,
    Image,
    Mmproj,
    Model,
    Profile,
    Schema,
    Server,
    Style,
    System,
    Template,
    UpstreamKey,
    UpstreamKind,
    UpstreamModel,
    UpstreamUrl,
)

if TYPE_CHECKING:
    from toolgram.agent import Agent, Run
    from toolgram.agent.runs import AgentEvent
    from toolgram.conversation.message import ToolCall

_WAITS = 4  # the exit code of a run that waits for an approval
_SHOWN = 200  # characters of a result in the view
_UNENFORCED = (
    "--tool-choice required: the first turn is to call a tool, but nothing can guarantee it: this model's server takes "
    "no grammar (--tool-choice auto asks it all the same)"
)


class Ask(StrEnum):
    """Which calls an approval is asked for."""

    never = "never"
    writes = "writes"
    always = "always"


class First(StrEnum):
    """Whether the first turn calls a tool, or may answer at once."""

    required = "required"
    auto = "auto"


def agent(
    goal: Annotated[str, typer.Argument(help="What the agent is to find out or to do.", show_default=False)],
    tools: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|URL", help="Functions of a Python file, or an OpenAPI document; may be repeated."),
    ] = None,
    mcp: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="MCP servers, as editors are configured for them.")
    ] = None,
    python: Annotated[
        bool, typer.Option("--python", help="A tool that runs Python code, without files or network.")
    ] = False,
    isolate: Annotated[bool, typer.Option("--isolate", help=ISOLATE)] = False,
    most_tools: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Show N tools that fit, of more; the model can search for others."),
    ] = None,
    tool_choice: Annotated[
        First, typer.Option(help="Whether the first turn calls a tool, or may answer at once; others may.")
    ] = First.required,
    answer: Schema = None,
    instructions: System = None,
    max_steps: Annotated[
        int, typer.Option(metavar="N", min=1, help="Turns of the model; in the last it answers.")
    ] = 10,
    max_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="The most tokens in a turn.")] = 1024,
    call_seconds: Annotated[float, typer.Option(metavar="S", help="How long a call may take.")] = 60.0,
    approve: Annotated[
        Ask, typer.Option(help="Ask before calls of functions marked with @toolgram.agent.writes, of all, or of none.")
    ] = Ask.writes,
    image: Image = None,
    model: Model = None,
    mmproj: Mmproj = None,
    template: Template = None,
    style: Style = None,
    profile: Profile = None,
    temperature: Annotated[float, typer.Option(metavar="T", help="0 is deterministic.")] = 0.0,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Makes sampling repeatable.")] = None,
    upstream: UpstreamUrl = None,
    upstream_kind: UpstreamKind = None,
    upstream_model: UpstreamModel = None,
    upstream_key: UpstreamKey = None,
) -> None:
    """Let a model call tools until it has an answer; what happens is shown on stderr, the answer on stdout."""
    import asyncio

    from toolgram.agent import Agent, Limits
    from toolgram.cli.ask import model_of, printable
    from toolgram.cli.inputs import (
        BadInput,
        content_of,
        image_part,
        isolated_answer_type,
        isolated_functions,
        read_answer_type,
        read_mcp,
        runnable_tools,
        style_of,
    )
    from toolgram.cli.profiles import profile_of
    from toolgram.engines import Replay
    from toolgram.engines.base import Sampling

    asked = content_of(goal, [*map(image_part, image or ())])
    with redirect_stdout(sys.stderr):  # what tools and their files print is no part of the answer
        limits = Limits(max_steps, step_tokens=max_tokens, answer_tokens=max_tokens, call_seconds=call_seconds)
        runnable: list[Any] = []
        for source in tools or ():
            runnable += (
                isolated_functions(source, limits) if isolate and source.endswith(".py") else runnable_tools(source)
            )
        if python:
            from toolgram.agent.python_code import python_tool

            runnable.append(python_tool(call_seconds))

        form = (isolated_answer_type if isolate else read_answer_type)(answer) if answer else None

        def made(engine: Any, of: Any) -> Agent[Any]:
            return Agent(
                engine,
                of,
                runnable,
                form,
                instructions,
                limits,
                approve.value,
                approved if sys.stdin.isatty() else None,
                style_of(style),
                Sampling(temperature=temperature, seed=seed),
                most_tools=most_tools,
                tool_choice=tool_choice.value,
            )

        made(Replay(), None)  # errors in what was given are told before a model is fetched
        config = read_mcp(mcp) if mcp else None
        server = Server(upstream, upstream_kind, upstream_model, upstream_key)
        asks = model_of(model, template, server, mmproj=mmproj, images=bool(image))
        best = profile_of(profile, asks.bound, style)
        engine = asks.load()
        if tool_choice is First.required and (runnable or config) and engine.capabilities.unenforced:
            raise BadInput(_UNENFORCED)
        ended = asyncio.run(_run(replace(made(engine, asks.template), profile=best), asked, config))
    if ended.waiting:
        names = ", ".join(call.name for call in ended.waiting)
        _say(f"waits for an approval of {names}: run it in a terminal, or give --approve never")
        raise typer.Exit(_WAITS)
    _say(f"{ended.steps} turns, {ended.usage.completion_tokens} tokens")
    told = ended.answer if isinstance(ended.answer, str) else _json(ended.answer)
    typer.echo(printable(told) if sys.stdout.isatty() else told)
    if ended.cut:
        _say("note: cut off by --max-tokens or the end of the context: the answer may not be complete")
        raise typer.Exit(CUT_OFF)


async def _run(agent: Agent[Any], goal: str | list[Any], config: Mapping[str, Any] | None) -> Run[Any]:
    from toolgram.agent import Run

    try:
        async with _with_mcp(agent, config) as equipped, aclosing(equipped.stream(goal)) as events:
            async for event in events:
                if isinstance(event, Run):
                    return event
                if shown := _line(event):
                    _say(shown)
    finally:
        await agent.engine.aclose()
    raise AssertionError("a stream ends with a run or raises")


@asynccontextmanager
async def _with_mcp(agent: Agent[Any], config: Mapping[str, Any] | None) -> AsyncGenerator[Agent[Any], None]:
    """The agent with the tools of MCP servers beside its own, while they run."""
    if config is None:
        yield agent
        return
    from toolgram.agent.mcp import mcp_tools

    async with mcp_tools(config) as tools:
        yield replace(agent, tools=[*agent.tools, *tools])


def _line(event: AgentEvent) -> str:
    """What is shown of an event; "" for what is not."""
    from toolgram.agent.results import shortened
    from toolgram.agent.runs import Call, CallProgress, Result, Step

    match event:
        case Step(number, last):
            return f"turn {number}{', the last' if last else ''}"
        case Call(call):
            return f"  {visible(call.name)}({visible(call.arguments)})"
        case CallProgress(call, done, total, message):
            of = "" if total is None else f" of {total:g}"
            return f"  {visible(call.name)}: {done:g}{of} {visible(message)}".rstrip()
        case Result(call, text, is_error, seconds):
            what = "error" if is_error else "result"
            return f"  {what} of {call.name} after {seconds:.1f} s: {visible(shortened(text, _SHOWN))}"
        case _:
            return ""


def visible(text: str) -> str:
    """The text in one line, with escapes for what moves a cursor or hides: a tool's words are not to look like ours."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in line)


def approved(call: ToolCall) -> bool:
    return typer.confirm(f"  call {visible(call.name)}({visible(call.arguments)})?", err=True)


def _json(value: Any) -> str:
    from pydantic_core import to_json

    return to_json(value, indent=2).decode()


def _say(text: str) -> None:
    typer.echo(text, err=True)
