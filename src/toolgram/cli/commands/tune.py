"""`toolgram tune` as a command: its options, and what they make."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolgram.cli.options import (
    Model,
    Server,
    Template,
    Tools,
    UpstreamKey,
    UpstreamKind,
    UpstreamModel,
    UpstreamUrl,
)


def tune(
    model: Model = None,
    template: Template = None,
    tools: Tools = None,
    style: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A style to try; may be repeated (default: all that the template admits)."),
    ] = None,
    budget: Annotated[str, typer.Option(metavar="TIME", help="How long it may take: 90s, 10m, 2h.")] = "10m",
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The profile.")] = Path("profile.toml"),
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens in an answer.")] = 256,
    upstream: UpstreamUrl = None,
    upstream_kind: UpstreamKind = None,
    upstream_model: UpstreamModel = None,
    upstream_key: UpstreamKey = None,
) -> None:
    """Find out how a model calls tools best, on one half of bench's questions, and measure it on the other half.

    The profile is for --profile. With --tools, those are offered beside the tools of each question.
    """
    from toolgram.cli.ask import model_of
    from toolgram.cli.inputs import check_writable, read_tools
    from toolgram.cli.tune import seconds_of, tuned
    from toolgram.engines.base import Sampling
    from toolgram.tune.trials import Asker

    seconds = seconds_of(budget)
    check_writable(output)  # before a model is fetched
    offered = tuple(read_tools(tools)) if tools else ()
    asks = model_of(model, template, Server(upstream, upstream_kind, upstream_model, upstream_key))
    asker = Asker(asks.template, asks.load(), Sampling(max_tokens=max_tokens), offered)
    tuned(asks.profiled, asker, seconds, output, tuple(style or ()))
