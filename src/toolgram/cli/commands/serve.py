"""`toolgram serve` as a command: its options, each also a variable of the environment, and what they make."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from toolgram.cli.options import Backend, Kind


def _env(name: str) -> str:
    return f"TOOLGRAM_{name}"


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="PATH|NAME|ORG/REPO:FILE",
            envvar=_env("MODEL"),
            help="A model; may be repeated.",
        ),
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option(
            "--alias",
            "--served-model-name",
            "-a",
            metavar="NAME",
            envvar=_env("ALIAS"),
            help="Another name for the first model.",
        ),
    ] = None,
    any_model_name: Annotated[
        bool,
        typer.Option(
            "--any-model-name",
            envvar=_env("ANY_MODEL_NAME"),
            help="The first model answers to names that there are not.",
        ),
    ] = False,
    mmproj: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar=_env("MMPROJ"),
            help="The projector by which the model is shown images, mmproj-….gguf: llama.cpp's own server runs it.",
        ),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            "--chat-template",
            "--template",
            metavar="FILE",
            envvar=_env("CHAT_TEMPLATE"),
            help="A chat template to use instead of the model's.",
        ),
    ] = None,
    style: Annotated[
        str | None, typer.Option(metavar="NAME", envvar=_env("STYLE"), help="How calls are written.")
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|NAME|none",
            envvar=_env("PROFILE"),
            help="What `toolgram tune` found best for a model; may be repeated (default: what ships with toolgram).",
        ),
    ] = None,
    upstream: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", envvar=_env("UPSTREAM"), help="A server that runs the model; may be repeated."),
    ] = None,
    upstream_kind: Annotated[
        Kind | None,
        typer.Option(envvar=_env("UPSTREAM_KIND"), help="What kind of server it is (default: as it says itself)."),
    ] = None,
    upstream_backend: Annotated[
        Backend, typer.Option(envvar=_env("UPSTREAM_BACKEND"), help="vLLM's --structured-outputs-config.backend.")
    ] = Backend.xgrammar,
    upstream_model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", envvar=_env("UPSTREAM_MODEL"), help="The upstream's name for the model; may be repeated."
        ),
    ] = None,
    upstream_key: Annotated[
        str | None, typer.Option(metavar="KEY", envvar=_env("UPSTREAM_KEY"), help="The API key of the upstream.")
    ] = None,
    allow_unenforced: Annotated[
        bool,
        typer.Option(
            "--allow-unenforced",
            envvar=_env("ALLOW_UNENFORCED"),
            help="Take required calls and strict schemas before a server that enforces nothing, and check the answers.",
        ),
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            envvar=_env("WORKERS"),
            help="Worker processes in front of an upstream; each has its own --parallel and --queue.",
        ),
    ] = 1,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", envvar=_env("HOST"), help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", envvar=_env("PORT"), help="The port to listen on; 0: any free one.")
    ] = 8000,
    context: Annotated[
        int | None,
        typer.Option(
            "--ctx-size",
            "--context",
            "--max-model-len",
            "-c",
            metavar="N",
            min=1,
            envvar=_env("CTX_SIZE"),
            help="Tokens of prompt and answer together (default: as trained, as far as memory allows).",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", "-t", metavar="N", min=1, envvar=_env("THREADS"), help="Processor cores for the engine."
        ),
    ] = None,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            envvar=_env("DETERMINISTIC"),
            help="An embedded model gives the same answer again, whatever runs beside it; this takes longer.",
        ),
    ] = False,
    parallel: Annotated[
        int,
        typer.Option(
            "--parallel",
            "--max-num-seqs",
            "-np",
            metavar="N",
            min=1,
            envvar=_env("PARALLEL"),
            help="Requests that run at once (per worker); an embedded model batches up to 32.",
        ),
    ] = 64,
    queue: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, envvar=_env("QUEUE"), help="Requests that may wait (per worker); any more get a 429."
        ),
    ] = 1024,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", "-to", metavar="S", min=0.001, envvar=_env("TIMEOUT"), help="Seconds that a request may take."
        ),
    ] = 600.0,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--n-predict",
            "--max-tokens",
            "-n",
            metavar="N",
            min=1,
            envvar=_env("MAX_TOKENS"),
            help="The most tokens in an answer.",
        ),
    ] = None,
    max_body: Annotated[
        int, typer.Option(metavar="BYTES", min=1, envvar=_env("MAX_BODY"), help="The largest request body.")
    ] = 16 << 20,
    max_store: Annotated[
        int,
        typer.Option(
            metavar="BYTES",
            min=0,
            envvar=_env("MAX_STORE"),
            help="The most that is kept of responses, for requests that go on from them (with one worker).",
        ),
    ] = 64 << 20,
    api_key: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", envvar=_env("API_KEY"), help="An API key for clients; may be repeated."),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", envvar=_env("API_KEY_FILE"), help="A file of API keys, one per line.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-origins",
            metavar="URL",
            envvar=_env("ALLOWED_ORIGINS"),
            help="A site whose pages may call the server; may be repeated.",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-hosts",
            metavar="NAME",
            envvar=_env("ALLOWED_HOSTS"),
            help="A host name for clients to use, such as nas.local or *.example.com; may be repeated. Addresses and "
            "localhost always work (default: no other name if only this machine can connect, else any).",
            show_default=False,
        ),
    ] = None,
    trust_templates: Annotated[
        bool | None,
        typer.Option(
            "--trust-request-chat-template/--no-trust-request-chat-template",
            envvar=_env("TRUST_REQUEST_CHAT_TEMPLATE"),
            help="Whether a request may bring a chat template (default: only if no other machine can connect).",
            show_default=False,
        ),
    ] = None,
    mcp: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            envvar=_env("MCP"),
            help="MCP servers whose tools are run for /v1/responses, as editors are configured for them.",
        ),
    ] = None,
    keep_alive: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0.1,
            envvar=_env("KEEP_ALIVE"),
            help="Seconds of silence before a stream sends a keep-alive.",
        ),
    ] = 10.0,
    shutdown_timeout: Annotated[
        int,
        typer.Option(
            metavar="S",
            min=0,
            envvar=_env("SHUTDOWN_TIMEOUT"),
            help="Seconds that running answers have to finish when the server is told to end.",
        ),
    ] = 25,
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", envvar=_env("LOG_FILE"), help="The log file (default: stderr).")
    ] = None,
    log_contents: Annotated[
        bool,
        typer.Option("--log-contents", envvar=_env("LOG_CONTENTS"), help="Log the contents of requests and answers."),
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", envvar=_env("RECORD"), help="Write each request that fails there, for `toolgram replay`."
        ),
    ] = None,
    otel: Annotated[
        bool,
        typer.Option(
            "--otel",
            envvar=_env("OTEL"),
            help="Send spans of each request by OTLP to where OTEL_EXPORTER_OTLP_ENDPOINT says.",
        ),
    ] = False,
    redact: Annotated[
        bool, typer.Option("--redact", envvar=_env("REDACT"), help="Record without the words that were said.")
    ] = False,
) -> None:
    """Serve models by the APIs of OpenAI, Anthropic and Ollama; every option is also a variable, TOOLGRAM_…."""
    from toolgram.cli.inputs import BadInput, read_mcp
    from toolgram.cli.profiles import profiles_of
    from toolgram.cli.serve import Loading, Remote, check, keys, load, run, run_workers, sampled
    from toolgram.cli.upstream import Upstream, connect
    from toolgram.engines.remote.http import is_local
    from toolgram.server.settings import Settings

    settings = Settings(
        api_keys=keys(api_key or (), api_key_file, os.environ),
        origins=tuple(allowed_origin or ()),
        hosts=tuple(allowed_host) if allowed_host else () if is_local(host) else ("*",),
        parallel=parallel,
        queue=queue,
        timeout=timeout,
        keep_alive=keep_alive,
        max_body=max_body,
        max_store=max_store,
        shutdown_timeout=shutdown_timeout,
        max_tokens=max_tokens,
        style=style,
        request_templates=is_local(host) if trust_templates is None else trust_templates,
        log_contents=log_contents,
        any_model_name=any_model_name,
        allow_unenforced=allow_unenforced,
        record=record,
        redact=redact,
        otel=otel,
        mcp=None if mcp is None else read_mcp(mcp),
        workers=workers,
    )
    check(settings, host, port)
    aliases, profiles = tuple(alias or ()), tuple(profile or ())
    if style is not None:
        profiles_of(profiles, (), style)  # not both
        profiles = ("none",)
    if upstream and model:
        raise BadInput("give --model or --upstream, not both")
    if mmproj is not None and len(model or ()) != 1:
        raise BadInput("--mmproj is for one --model; a server gets its own where it is started")
    if upstream:
        found = tuple(
            connect(Upstream(tuple(upstream), upstream_kind, name, upstream_key, upstream_backend), template, wait=True)
            for name in dict.fromkeys(upstream_model or [None])
        )
        best = profiles_of(profiles, [(each.name, each.template) for each in found])
        remote = Remote(found, aliases, settings, log_file, tuple(best))
        for each in found:
            typer.echo(each.about, err=True)
            typer.echo(sampled(each.name, each.defaults), err=True)
        if workers > 1:
            run_workers(remote, host, port, workers)
        else:
            run(remote.served(), settings, host, port, log_file)
        return
    if workers > 1:
        raise BadInput("--workers needs --upstream: an embedded model runs in one process, which batches its requests")
    names = tuple(model or ())
    loading = Loading(names, aliases, template, context, threads, parallel, deterministic, profiles, mmproj)
    run(load(loading), settings, host, port, log_file)
