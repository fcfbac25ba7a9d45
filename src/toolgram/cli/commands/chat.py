"""`toolgram chat` as a command: its options, and what they make."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from toolgram.cli.options import (
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


def chat(
    tools: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|URL", help="Functions of a Python file, or an OpenAPI document; may be repeated."),
    ] = None,
    schema: Schema = None,
    system: System = None,
    model: Model = None,
    mmproj: Mmproj = None,
    template: Template = None,
    style: Style = None,
    profile: Profile = None,
    max_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="The most tokens in an answer.")] = 1024,
    temperature: Annotated[float, typer.Option(metavar="T", help="0 is deterministic.")] = 0.0,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Makes sampling repeatable.")] = None,
    upstream: UpstreamUrl = None,
    upstream_kind: UpstreamKind = None,
    upstream_model: UpstreamModel = None,
    upstream_key: UpstreamKey = None,
) -> None:
    """Talk with a model: it calls the tools, which run, and answers. /help says what else can be typed."""
    from toolgram.agent.agent import by_name
    from toolgram.agent.runs import Limits
    from toolgram.cli.ask import model_of
    from toolgram.cli.commands.agent import approved
    from toolgram.cli.inputs import read_answer_type, runnable_tools, style_of
    from toolgram.cli.profiles import profile_of
    from toolgram.cli.sessions.chat import Chat
    from toolgram.cli.sessions.chat import chat as talk
    from toolgram.engines.base import Sampling

    runnable = by_name([tool for source in tools or () for tool in runnable_tools(source)], Limits())
    answer = read_answer_type(schema) if schema else None  # errors are told before a model is fetched
    chosen, sampling = style_of(style), Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed)
    server = Server(upstream, upstream_kind, upstream_model, upstream_key)
    asks = model_of(model, template, server, mmproj=mmproj)
    best = profile_of(profile, asks.bound, chosen)
    if sys.stdin.isatty():
        typer.echo(f"{asks.name}; /help says what can be typed", err=True)
    messages = ({"role": "system", "content": system},) if system else ()
    approve = approved if sys.stdin.isatty() else None
    made = Chat(
        asks.load(), asks.template, chosen, sampling, approve, best, runnable, answer, str(schema or ""), messages
    )
    talk(made)
