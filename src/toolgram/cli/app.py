"""The commands of `toolgram`, kept thin: each imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from toolgram.errors import ToolgramError


class _Group(TyperGroup):
    """Reports a ToolgramError in one line, and exits with 2."""

    def invoke(self, ctx: Any) -> Any:  # a click Context; typer may bundle its own click
        try:
            return super().invoke(ctx)
        except ToolgramError as error:
            typer.echo(f"error: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from error


class Dialect(StrEnum):
    """The grammar dialects."""

    gbnf = "gbnf"
    lark = "lark"
    ebnf = "ebnf"


app = typer.Typer(
    name="toolgram",
    cls=_Group,
    help="Make any open-weight model call tools and answer in a schema, correctly by construction.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Tools = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Tools: a JSON list, or a Python file with typed functions.")
]
ToolChoiceOption = Annotated[
    str | None, typer.Option(metavar="auto|none|required|NAME", help="Whether the model may, must or must not call.")
]
Parallel = Annotated[bool | None, typer.Option("--parallel/--no-parallel", help="Allow several calls in one turn.")]
Schema = Annotated[
    Path | None,
    typer.Option(metavar="FILE|FILE.py:NAME", help="A JSON Schema, or a Python type, that the answer must match."),
]
System = Annotated[str | None, typer.Option(metavar="TEXT", help="A system message.")]
Model = Annotated[
    str | None, typer.Option(metavar="PATH|NAME", help="A GGUF file, or a known model (default: smollm2).")
]
Template = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A chat template: .jinja, .gguf, or a folder (default: the model's)."),
]
Style = Annotated[
    str | None, typer.Option(metavar="NAME", help="How calls are written (default: the style that fits the template).")
]


@app.command(epilog='Example: toolgram ask "Will it rain in Paris?" --tools tools.py --tool-choice required')
def ask(
    question: Annotated[str, typer.Argument(help="What to ask.", show_default=False)],
    tools: Tools = None,
    tool_choice: ToolChoiceOption = None,
    parallel: Parallel = None,
    schema: Schema = None,
    system: System = None,
    model: Model = None,
    template: Template = None,
    style: Style = None,
    stream: Annotated[
        bool | None, typer.Option("--stream/--no-stream", help="Show the raw text on stderr (default: on a terminal).")
    ] = None,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens in an answer.")] = 512,
    temperature: Annotated[float, typer.Option(metavar="T", help="0 is deterministic.")] = 0.0,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Makes sampling repeatable.")] = None,
) -> None:
    """Ask a model; the answer is a message in JSON on stdout."""
    from toolgram.cli.ask import answer, model_file
    from toolgram.cli.inputs import Question, load_engine, request_of, template_of
    from toolgram.conversation.request import parse_request
    from toolgram.engines.base import Sampling
    from toolgram.planning.plan import plan as make_plan
    from toolgram.planning.typed_answer import typed_answer

    body = request_of(Question(question, tools, tool_choice, parallel, schema, system))
    parse_request(typed_answer(body)[0])  # errors in it are reported before a model is fetched
    sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed)
    file = model_file(model)
    plan = make_plan(body, template_of(template, file), style)
    answer(plan, load_engine(file), sampling, show=sys.stderr.isatty() if stream is None else stream)


@app.command(epilog='Example: toolgram explain "Will it rain in Paris?" --tools tools.py --dialect lark')
def explain(
    question: Annotated[str | None, typer.Argument(help="What to ask.", show_default=False)] = None,
    request: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A chat-completions body, instead of a question.")
    ] = None,
    tools: Tools = None,
    tool_choice: ToolChoiceOption = None,
    parallel: Parallel = None,
    schema: Schema = None,
    system: System = None,
    model: Model = None,
    template: Template = None,
    style: Style = None,
    dialect: Annotated[Dialect, typer.Option(help="The dialect to show the grammar in.")] = Dialect.gbnf,
    trace: Annotated[
        bool, typer.Option("--trace", help="Run the request, and show what the model would write without the grammar.")
    ] = False,
) -> None:
    """Show the prompt, style and grammar of a request, or the grammar and relaxations of a --schema alone."""
    from toolgram.cli.explain import explain_plan, explain_schema
    from toolgram.cli.inputs import (
        BadInput,
        Question,
        load_engine,
        model_at_hand,
        read_json,
        read_schema,
        request_of,
        template_of,
    )
    from toolgram.planning.plan import plan as make_plan

    asked = Question(question or "", tools, tool_choice, parallel, schema, system)
    if request is not None and asked != Question(""):
        raise BadInput("--request is the whole request: give no question and none of its options with it")
    if request is None and question is None:
        if schema is None:
            raise BadInput("there is nothing to explain: give a question, --request FILE or --schema FILE")
        if trace:
            raise BadInput("--trace runs a request: give a question or --request FILE")
        explain_schema(read_schema(schema), dialect.value)
        return
    body = read_json(request) if request else request_of(asked)
    if trace:
        from toolgram.cli.ask import model_file
        from toolgram.cli.trace import trace_plan

        file = model_file(model)
        trace_plan(make_plan(body, template_of(template, file), style), load_engine(file))
        return
    file = model_at_hand(model) if model or not template else None
    plan = make_plan(body, template_of(template, file), style)
    explain_plan(plan, dialect.value, file)


@app.command(epilog="Example: toolgram styles --template chat_template.jinja")
def styles(
    template: Template = None,
    as_file: Annotated[
        bool, typer.Option("--print", help="Print the style found from the template as a Python file.")
    ] = False,
    why: Annotated[
        str | None, typer.Option(metavar="NAME", help="Say why this style fits the template, or where it fails.")
    ] = None,
) -> None:
    """List the styles; with a template, say which of them fit it, which one is chosen, and why."""
    from toolgram.cli.explain import list_styles, print_discovered
    from toolgram.cli.inputs import BadInput, template_of
    from toolgram.cli.why import print_why

    if as_file and why is not None:
        raise BadInput("give --print or --why, not both")
    if template is None and (as_file or why is not None):
        raise BadInput(f"{'--print' if as_file else '--why'} needs a template: give --template FILE")
    if template is None:
        list_styles(None)
    elif as_file:
        print_discovered(template_of(template, None), template)
    elif why is not None:
        print_why(template_of(template, None), why)
    else:
        list_styles(template_of(template, None))


@app.command(epilog="Example: toolgram report --templates templates --request request.json > report.md")
def report(
    reference: Annotated[bool, typer.Option("--reference", help="Write the document of the 2024 profile.")] = False,
    templates: Annotated[Path | None, typer.Option(metavar="DIR", help="A folder of .jinja files.")] = None,
    request: Annotated[Path | None, typer.Option(metavar="FILE", help="A chat-completions body.")] = None,
    style: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A style; may be repeated.")] = None,
) -> None:
    """Write the prompts and grammars of a request in several templates and styles, as Markdown on stdout."""
    from toolgram.cli.report import report as write_report

    text = write_report(reference=reference, templates=templates, request=request, style_names=style or ())
    sys.stdout.write(text)


class Kind(StrEnum):
    """The kinds of servers that can run the model."""

    vllm = "vllm"
    llama_server = "llama-server"
    openai = "openai"


class Backend(StrEnum):
    """The backends that can enforce grammars in vLLM."""

    xgrammar = "xgrammar"
    guidance = "guidance"


def _env(name: str) -> str:
    return f"TOOLGRAM_{name}"


@app.command(epilog="Example: toolgram serve --model smollm2 --port 8080")
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
    upstream: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", envvar=_env("UPSTREAM"), help="A server that runs the model; may be repeated."),
    ] = None,
    upstream_kind: Annotated[
        Kind, typer.Option(envvar=_env("UPSTREAM_KIND"), help="What kind of server it is.")
    ] = Kind.vllm,
    upstream_backend: Annotated[
        Backend, typer.Option(envvar=_env("UPSTREAM_BACKEND"), help="vLLM's --structured-outputs-config.backend.")
    ] = Backend.xgrammar,
    upstream_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", envvar=_env("UPSTREAM_MODEL"), help="The upstream's name for the model."),
    ] = None,
    upstream_key: Annotated[
        str | None, typer.Option(metavar="KEY", envvar=_env("UPSTREAM_KEY"), help="The API key of the upstream.")
    ] = None,
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
) -> None:
    """Serve models to clients of OpenAI's and Anthropic's APIs; every option is also a variable, TOOLGRAM_…."""
    from toolgram.cli.inputs import BadInput
    from toolgram.cli.serve import Loading, Remote, Upstream, check, is_local, keys, load, run, run_workers
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
        shutdown_timeout=shutdown_timeout,
        max_tokens=max_tokens,
        style=style,
        request_templates=is_local(host) if trust_templates is None else trust_templates,
        log_contents=log_contents,
        any_model_name=any_model_name,
    )
    check(settings, host, port)
    aliases = tuple(alias or ())
    if upstream and model:
        raise BadInput("give --model or --upstream, not both")
    if upstream:
        server = Upstream(tuple(upstream), upstream_kind.value, upstream_model, upstream_key, upstream_backend.value)
        remote = Remote(server, template, aliases, settings, log_file)
        if workers > 1:
            run_workers(remote, host, port, workers)
        else:
            run(remote.connect(), settings, host, port, log_file)
        return
    if workers > 1:
        raise BadInput("--workers needs --upstream: an embedded model runs in one process, which batches its requests")
    loading = Loading(tuple(model or ()), aliases, template, context, threads, parallel, deterministic)
    run(load(loading), settings, host, port, log_file)


@app.command(epilog="Example: toolgram pull smollm2")
def pull(name: Annotated[str, typer.Argument(help="A known model.")] = "smollm2") -> None:
    """Fetch a model into the cache and print its path."""
    from toolgram.cli.pull import with_progress

    typer.echo(with_progress(name))
