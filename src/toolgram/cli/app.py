"""The commands of `toolgram`, thin: each imports what it needs when it runs, so that `--help` is quick."""

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
    """Says what went wrong in one line, and exits with 2, where a ToolgramError is raised."""

    def invoke(self, ctx: Any) -> Any:  # a click Context; typer may have a click of its own
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
ToolChoiceOption = Annotated[str | None, typer.Option(metavar="auto|none|required|NAME", help="Whether to call.")]
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
Style = Annotated[str | None, typer.Option(metavar="NAME", help="How calls are written (default: what fits).")]


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
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The longest answer.")] = 512,
    temperature: Annotated[float, typer.Option(metavar="T", help="0 is deterministic.")] = 0.0,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Makes a temperature above 0 repeatable.")] = None,
) -> None:
    """Ask a model; the answer is a message in JSON on stdout."""
    from toolgram.cli.ask import answer, model_file
    from toolgram.cli.inputs import Question, load_engine, request_of, template_of
    from toolgram.conversation.request import parse_request
    from toolgram.engines.base import Sampling
    from toolgram.planning.plan import plan as make_plan
    from toolgram.planning.typed_answer import typed_answer

    body = request_of(Question(question, tools, tool_choice, parallel, schema, system))
    parse_request(typed_answer(body)[0])  # what is wrong with it is told before a model is fetched
    sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed)
    file = model_file(model)
    plan = make_plan(body, template_of(template, file), style)
    answer(plan, load_engine(file), sampling, show=sys.stderr.isatty() if stream is None else stream)


@app.command(epilog='Example: toolgram explain "Will it rain in Paris?" --tools tools.py --dialect lark')
def explain(
    question: Annotated[str | None, typer.Argument(help="What to ask.", show_default=False)] = None,
    request: Annotated[Path | None, typer.Option(metavar="FILE", help="A chat-completions body, instead.")] = None,
    tools: Tools = None,
    tool_choice: ToolChoiceOption = None,
    parallel: Parallel = None,
    schema: Schema = None,
    system: System = None,
    model: Model = None,
    template: Template = None,
    style: Style = None,
    dialect: Annotated[Dialect, typer.Option(help="The dialect to show the grammar in.")] = Dialect.gbnf,
) -> None:
    """Show the prompt, the style and the grammar of a request; of a --schema alone, its grammar and relaxations."""
    from toolgram.cli.explain import explain_plan, explain_schema
    from toolgram.cli.inputs import BadInput, Question, model_at_hand, read_json, read_schema, request_of, template_of
    from toolgram.planning.plan import plan as make_plan

    asked = Question(question or "", tools, tool_choice, parallel, schema, system)
    if request is not None and asked != Question(""):
        raise BadInput("--request holds the whole request: no question and no option of one goes with it")
    if request is None and question is None:
        if schema is None:
            raise BadInput("there is nothing to explain: give a question, --request FILE or --schema FILE")
        explain_schema(read_schema(schema), dialect.value)
        return
    body = read_json(request) if request else request_of(asked)
    file = model_at_hand(model) if model or not template else None
    plan = make_plan(body, template_of(template, file), style)
    explain_plan(plan, dialect.value, file)


@app.command(epilog="Example: toolgram styles --template chat_template.jinja")
def styles(
    template: Template = None,
    as_file: Annotated[
        bool, typer.Option("--print", help="Print the style found from the template as a Python file.")
    ] = False,
) -> None:
    """List the styles; with a template, which of them fit it, which is chosen and why."""
    from toolgram.cli.explain import list_styles, print_discovered
    from toolgram.cli.inputs import BadInput, template_of

    if not as_file:
        list_styles(template_of(template, None) if template else None)
    elif template is None:
        raise BadInput("--print wants a template: give --template FILE")
    else:
        print_discovered(template_of(template, None), template)


@app.command(epilog="Example: toolgram report --templates templates --request request.json > report.md")
def report(
    reference: Annotated[bool, typer.Option("--reference", help="The document of the 2024 profile.")] = False,
    templates: Annotated[Path | None, typer.Option(metavar="DIR", help="A folder of .jinja files.")] = None,
    request: Annotated[Path | None, typer.Option(metavar="FILE", help="A chat-completions body.")] = None,
    style: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A style; may be given again.")] = None,
) -> None:
    """Write what templates, styles and a request become, as Markdown on stdout."""
    from toolgram.cli.report import report as write_report

    text = write_report(reference=reference, templates=templates, request=request, style_names=style or ())
    sys.stdout.write(text)


class Kind(StrEnum):
    """The kinds of servers that may run the model."""

    vllm = "vllm"
    llama_server = "llama-server"
    openai = "openai"


class Backend(StrEnum):
    """What may enforce grammars in vLLM."""

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
            help="A model; may be given again.",
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
            help="Another name of the first model.",
        ),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            "--chat-template",
            "--template",
            metavar="FILE",
            envvar=_env("CHAT_TEMPLATE"),
            help="A chat template, instead of the model's.",
        ),
    ] = None,
    style: Annotated[
        str | None, typer.Option(metavar="NAME", envvar=_env("STYLE"), help="How calls are written.")
    ] = None,
    upstream: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", envvar=_env("UPSTREAM"), help="A server that runs the model; may be given again."),
    ] = None,
    upstream_kind: Annotated[Kind, typer.Option(envvar=_env("UPSTREAM_KIND"), help="What it is.")] = Kind.vllm,
    upstream_backend: Annotated[
        Backend, typer.Option(envvar=_env("UPSTREAM_BACKEND"), help="vLLM's --structured-outputs-config.backend.")
    ] = Backend.xgrammar,
    upstream_model: Annotated[
        str | None, typer.Option(metavar="NAME", envvar=_env("UPSTREAM_MODEL"), help="Its name of the model.")
    ] = None,
    upstream_key: Annotated[
        str | None, typer.Option(metavar="KEY", envvar=_env("UPSTREAM_KEY"), help="The key that it wants.")
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            envvar=_env("WORKERS"),
            help="Processes before an upstream; each has its own --parallel and --queue.",
        ),
    ] = 1,
    host: Annotated[str, typer.Option(metavar="ADDRESS", envvar=_env("HOST"), help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", envvar=_env("PORT"), help="Where to listen; 0: any.")] = 8000,
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
        typer.Option("--threads", "-t", metavar="N", min=1, envvar=_env("THREADS"), help="Cores of the engine."),
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
            help="Requests that run at once (in each worker); an embedded model takes up to 32 in a batch.",
        ),
    ] = 64,
    queue: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, envvar=_env("QUEUE"), help="Requests that may wait (in each worker); more get a 429."
        ),
    ] = 1024,
    timeout: Annotated[
        float,
        typer.Option("--timeout", "-to", metavar="S", min=0.001, envvar=_env("TIMEOUT"), help="Seconds for a request."),
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
            help="The longest answer.",
        ),
    ] = None,
    max_body: Annotated[
        int, typer.Option(metavar="BYTES", min=1, envvar=_env("MAX_BODY"), help="The largest body.")
    ] = 16 << 20,
    api_key: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", envvar=_env("API_KEY"), help="A key of a client; may be given again."),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", envvar=_env("API_KEY_FILE"), help="Keys, one in a line.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-origins",
            metavar="URL",
            envvar=_env("ALLOWED_ORIGINS"),
            help="A site whose pages may call; may be given again.",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-hosts",
            metavar="NAME",
            envvar=_env("ALLOWED_HOSTS"),
            help="A name by which clients may ask, as nas.local or *.example.com; may be given again. Addresses and "
            "localhost always go (default: no other name where this machine alone can ask, else any).",
            show_default=False,
        ),
    ] = None,
    trust_templates: Annotated[
        bool | None,
        typer.Option(
            "--trust-request-chat-template/--no-trust-request-chat-template",
            envvar=_env("TRUST_REQUEST_CHAT_TEMPLATE"),
            help="Whether a request may bring a chat template (default: only where this machine alone can ask).",
            show_default=False,
        ),
    ] = None,
    keep_alive: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0.1,
            envvar=_env("KEEP_ALIVE"),
            help="Seconds of silence until a stream shows that it lives.",
        ),
    ] = 10.0,
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", envvar=_env("LOG_FILE"), help="The log (default: stderr).")
    ] = None,
    log_contents: Annotated[
        bool, typer.Option("--log-contents", envvar=_env("LOG_CONTENTS"), help="Log what is asked and answered.")
    ] = False,
) -> None:
    """Serve models to clients of OpenAI's API; every option is also an environment variable, TOOLGRAM_…."""
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
        max_tokens=max_tokens,
        style=style,
        request_templates=is_local(host) if trust_templates is None else trust_templates,
        log_contents=log_contents,
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
        raise BadInput(
            "--workers goes with --upstream: an embedded model runs in one process, which batches its requests"
        )
    loading = Loading(tuple(model or ()), aliases, template, context, threads, parallel, deterministic)
    run(load(loading), settings, host, port, log_file)


@app.command(epilog="Example: toolgram pull smollm2")
def pull(name: Annotated[str, typer.Argument(help="A known model.")] = "smollm2") -> None:
    """Fetch a model into the cache; its path goes to stdout."""
    from toolgram.cli.pull import with_progress

    typer.echo(with_progress(name))
