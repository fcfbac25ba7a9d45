"""`toolgram ask` as a command: its options, and what they make."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from toolgram.cli.options import (
    CUT_OFF,
    Image,
    Mmproj,
    Model,
    Parallel,
    Profile,
    Schema,
    Server,
    Style,
    System,
    Template,
    ToolChoiceOption,
    Tools,
    UpstreamKey,
    UpstreamKind,
    UpstreamModel,
    UpstreamUrl,
)


def ask(
    question: Annotated[str, typer.Argument(help="What to ask; - reads it from stdin.", show_default=False)],
    tools: Tools = None,
    tool_choice: ToolChoiceOption = None,
    parallel: Parallel = None,
    schema: Schema = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse what of a schema a grammar cannot enforce exactly.")
    ] = False,
    system: System = None,
    image: Image = None,
    model: Model = None,
    mmproj: Mmproj = None,
    template: Template = None,
    style: Style = None,
    profile: Profile = None,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Show the raw text on stderr (default: if it alone is a terminal)."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the message as JSON, as is done where stdout is no terminal.")
    ] = False,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens in an answer.")] = 512,
    temperature: Annotated[float, typer.Option(metavar="T", help="0 is deterministic.")] = 0.0,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Makes sampling repeatable.")] = None,
    upstream: UpstreamUrl = None,
    upstream_kind: UpstreamKind = None,
    upstream_model: UpstreamModel = None,
    upstream_key: UpstreamKey = None,
    allow_unenforced: Annotated[
        bool, typer.Option("--allow-unenforced", help="Ask a server that enforces nothing for a required call, too.")
    ] = False,
) -> None:
    """Ask a model; stdout has its answer: text on a terminal, else a message in JSON. Exits with 3 if cut or wrong."""
    from toolgram.chat.guarantees import refuse_unenforced
    from toolgram.cli.ask import answer, model_of
    from toolgram.cli.inputs import Question, question_of, request_of, style_of
    from toolgram.cli.profiles import profile_of
    from toolgram.conversation.request import parse_request
    from toolgram.engines.base import Sampling
    from toolgram.planning.plan import plan as make_plan
    from toolgram.planning.typed_answer import typed_answer

    images = tuple(image or ())
    asked = Question(question_of(question), tools, tool_choice, parallel, schema, system, images, strict=strict)
    body = request_of(asked)
    parse_request(typed_answer(body)[0])  # errors in it are reported before a model is fetched
    sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed)
    chosen = style_of(style)
    server = Server(upstream, upstream_kind, upstream_model, upstream_key)
    asks = model_of(model, template, server, mmproj=mmproj, images=bool(images))
    best = profile_of(profile, asks.bound, chosen)
    plan = make_plan(body, asks.template, chosen, profile=best, sees=bool(images))
    engine = asks.load()
    if not allow_unenforced:
        refuse_unenforced(plan.request, engine)
    plain = sys.stdout.isatty() and not as_json
    raw = sys.stderr.isatty() and not plain if stream is None else stream
    reply = answer(plan, engine, sampling, raw=raw, plain=plain)
    if reply.finish_reason == "length" or not reply.valid:
        raise typer.Exit(CUT_OFF)
