"""The commands of `toolgram`, kept thin: each imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import toolgram
from toolgram.cli.commands.agent import agent
from toolgram.cli.commands.ask import ask
from toolgram.cli.commands.chat import chat
from toolgram.cli.commands.doctor import doctor
from toolgram.cli.commands.replay import replay
from toolgram.cli.commands.serve import serve
from toolgram.cli.commands.tools import app as tool_commands
from toolgram.cli.commands.tune import tune
from toolgram.cli.options import (
    Dialect,
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
from toolgram.errors import ToolgramError


class _Group(TyperGroup):
    """Reports what is wrong in one line, and exits with 2; with 130 where it was interrupted."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Runs the command line."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            code = super().main(*args, standalone_mode=False, **extra)
        except ToolgramError as error:
            _fail(str(error))
        except typer.Abort:
            sys.exit(130)
        except OSError as error:  # a disk that is full, above all
            sys.stdout = io.StringIO()  # what was written is not flushed once more
            _fail(f"{error.filename or 'the output'}: {error.strerror or error}")
        except Exception as error:
            # Of click, which typer may bundle or not: nothing typed, for which help was printed, or a fault in it.
            if type(error).__name__ == "NoArgsIsHelpError":
                sys.exit(2)
            told: Callable[[], str] | None = getattr(error, "format_message", None)
            if told is None:
                raise
            context = getattr(error, "ctx", None)
            see = f" ({context.command_path} --help)" if context is not None else ""
            _fail(f"{told()}{see}")
        sys.exit(code if isinstance(code, int) else 0)


def _fail(what: str) -> NoReturn:
    typer.echo(f"error: {' '.join(what.split())}", err=True)
    sys.exit(2)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"toolgram {toolgram.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="toolgram",
    cls=_Group,
    help="Make any open-weight model call tools and answer in a schema, correctly by construction.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _options(
    _asked: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command(epilog='Example: toolgram ask "Will it rain in Paris?" --tools tools.py --tool-choice required')(ask)


@app.command(epilog="Example: toolgram bench --kind simple --questions 1 --tool-choice required")
def bench(
    kind: Annotated[list[str] | None, typer.Option(metavar="KIND", help="May be repeated (default: all).")] = None,
    questions: Annotated[int | None, typer.Option(metavar="N", min=1, help="The first N of each kind.")] = None,
    tool_choice: Annotated[str, typer.Option(metavar="auto|required", help="Whether the model may or must call.")] = (
        "auto"
    ),
    model: Model = None,
    template: Template = None,
    style: Style = None,
    profile: Profile = None,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens in an answer.")] = 256,
    temperature: Annotated[float, typer.Option(metavar="T", help="0 is deterministic.")] = 0.0,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all answers there.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with plots there.")] = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="Print the wrong answers.")] = False,
    show: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Ask nobody: compare what such a --json has; may be repeated."),
    ] = None,
    upstream: UpstreamUrl = None,
    upstream_kind: UpstreamKind = None,
    upstream_model: UpstreamModel = None,
    upstream_key: UpstreamKey = None,
) -> None:
    """Ask a model 246 questions with known answers, and print how many are right, by kind."""
    from toolgram.cli import bench as asking
    from toolgram.cli.ask import model_of
    from toolgram.cli.inputs import check_writable, style_of
    from toolgram.cli.profiles import profile_of
    from toolgram.engines.base import Sampling

    check_writable(json, html)
    if show:
        asking.shown(show, html)
        return
    kinds = tuple(kind or ())
    asking.chosen(kinds, questions, tool_choice)  # errors are reported before a model is fetched
    sampling = Sampling(max_tokens=max_tokens, temperature=temperature)
    asks = model_of(model, template, Server(upstream, upstream_kind, upstream_model, upstream_key))
    chosen = style_of(style)
    best = profile_of(profile, asks.bound, chosen)
    asked = asking.Asked(kinds, questions, tool_choice, chosen, sampling, asks.name, best)
    asking.bench(asked, asks.template, asks.load(), json, html, show_wrong=wrong)


app.command(epilog="Example: toolgram chat --tools tools.py")(chat)
app.command(epilog="Example: toolgram doctor smollm2 --probe calls")(doctor)


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
    profile: Profile = None,
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
    )

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
        trace_plan(_planned(body, template, file, style, profile), load_engine(file))
        return
    file = model_at_hand(model) if model or not template else None
    plan = _planned(body, template, file, style, profile, sees=True)  # as a model with a projector is shown it
    explain_plan(plan, dialect.value, file)


def _planned(
    body: Any, template: Path | None, file: Path | None, style: str | None, profile: str | None, *, sees: bool = False
) -> toolgram.Plan:
    """The plan as `ask` makes it; without a model's file its name is not known, and the profile is the one given."""
    from toolgram.cli.inputs import style_of, template_of
    from toolgram.cli.profiles import profile_of
    from toolgram.models.profiles import model_name

    of, chosen = template_of(template, file), style_of(style)
    best = profile_of(profile, (model_name(file) if file else None, of), chosen)
    return toolgram.plan(body, of, chosen, profile=best, sees=sees)


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
        print_discovered(template_of(template, None).with_tools, template)
    elif why is not None:
        print_why(template_of(template, None).with_tools, why)
    else:
        list_styles(template_of(template, None).with_tools)


@app.command(epilog="Example: toolgram lint chat_template.jinja")
def lint(
    template: Annotated[
        Path | None,
        typer.Argument(help="A chat template: .jinja, .json, .gguf, or a Hugging Face folder.", show_default=False),
    ] = None,
    tools: Tools = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    response_template: Annotated[
        bool, typer.Option("--response-template", help="Print what tokenizer_config.json may have to read calls back.")
    ] = False,
) -> None:
    """Say what is wrong with a chat template, or with --tools, and what to do; exits with 1 if there are errors."""
    from toolgram.cli.inputs import BadInput
    from toolgram.cli.lint import linted, print_response_template
    from toolgram.cli.lint_tools import tools_linted

    if response_template:
        if template is None or tools is not None:
            raise BadInput("--response-template is of a template: give that alone")
        print_response_template(template)
        return
    if tools is not None:
        sound = tools_linted(tools, template, as_json=as_json)
    elif template is not None:
        sound = linted(template, as_json=as_json)
    else:
        raise BadInput("there is nothing to look at: give a template or --tools FILE")
    if not sound:
        raise typer.Exit(1)


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


app.command(epilog='Example: toolgram agent "Will it rain in Paris?" --tools tools.py --answer tools.py:Forecast')(
    agent
)
app.command(epilog="Example: toolgram tune --model smollm2 --budget 30m --output smollm2.toml")(tune)
app.add_typer(tool_commands, name="tools")
app.command(epilog="Example: toolgram replay failed.json --shrink smallest.json")(replay)
app.command(epilog="Example: toolgram serve --model smollm2 --port 8080")(serve)


@app.command(epilog="Example: toolgram pull smollm2")
def pull(name: Annotated[str, typer.Argument(help="A known model.")] = "smollm2") -> None:
    """Fetch a model into the cache and print its path."""
    from toolgram.cli.ask import with_progress

    typer.echo(with_progress(name))
