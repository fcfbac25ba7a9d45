"""`toolgram doctor` as a command: its options, and what they make."""

from __future__ import annotations

from typing import Annotated

import typer

from toolgram.cli.options import Profile, Server, Style, Template, UpstreamKey, UpstreamKind, UpstreamModel

_AT_ONCE = 4  # requests that are put together


def doctor(
    target: Annotated[
        str,
        typer.Argument(metavar="URL|PATH|NAME", help="A server, a GGUF file, or a known model.", show_default=False),
    ],
    probe: Annotated[list[str] | None, typer.Option(metavar="NAME", help="May be repeated (default: all).")] = None,
    template: Template = None,
    style: Style = None,
    profile: Profile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON.")] = False,
    upstream_kind: UpstreamKind = None,
    upstream_model: UpstreamModel = None,
    upstream_key: UpstreamKey = None,
) -> None:
    """Find out what a running model and its server really do; exits with 1 if something is not enforced or fails."""
    from toolgram.cli.ask import model_of
    from toolgram.cli.inputs import style_of
    from toolgram.cli.profiles import profile_of
    from toolgram.cli.sessions.doctor import Patient, chosen
    from toolgram.cli.sessions.doctor import doctor as examine

    probes, asked = chosen(probe or ()), style_of(style)  # errors are reported before a model is fetched
    remote = target.startswith(("http://", "https://"))
    server = Server(target if remote else None, upstream_kind, upstream_model, upstream_key)
    asks = model_of(None if remote else target, template, server, parallel=_AT_ONCE)
    given = {
        "--upstream" if remote else "--model": target,
        "--upstream-kind": upstream_kind and upstream_kind.value,
        "--upstream-model": upstream_model,
        "--chat-template": template and str(template),
        "--style": style,
        "--profile": profile,
    }
    command = tuple(word for name, value in given.items() if value for word in (name, value))
    best = profile_of(profile, asks.bound, asked)
    patient = Patient(asks.name, asks.template, asked, command, best)
    if not examine(patient, asks.load(), probes, json_=as_json):
        raise typer.Exit(1)
