"""`toolgram tools`: what a source of tools gives, and Python functions as an MCP server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgram.cli.options import ISOLATE

if TYPE_CHECKING:
    from toolgram.agent import FunctionTool
    from toolgram.agent.mcp import McpOffer, McpTool
    from toolgram.agent.openapi import OpenApiTool

app = typer.Typer(help="Serve Python functions as tools, or list what a source of tools gives.", no_args_is_help=True)


@app.command(epilog="Example: toolgram tools serve tools.py")
def serve(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="A Python file with typed functions.")],
    isolate: Annotated[bool, typer.Option("--isolate", help=ISOLATE)] = False,
) -> None:
    """Offer the functions of a Python file as an MCP server on stdin and stdout."""
    import asyncio

    from toolgram.agent import Limits, tools_of
    from toolgram.agent.mcp_server import serve as answer
    from toolgram.cli.inputs import isolated_functions

    with redirect_stdout(sys.stderr):  # what the file prints is no message of the protocol
        functions = isolated_functions(str(file), Limits()) if isolate else tools_of(file)
    asyncio.run(answer(file.stem, functions))


@app.command(name="list", epilog="Example: toolgram tools list tools.py")
def list_(
    source: Annotated[
        str, typer.Argument(metavar="FILE|URL", help="A Python file, an OpenAPI document, or an MCP configuration.")
    ],
    json_: Annotated[bool, typer.Option("--json", help="Print them as a request has them, and nothing else.")] = False,
) -> None:
    """List the tools of a source: which of them write, and what of their schemas no grammar enforces.

    Of MCP servers the resources and prompts are listed too.
    """
    import asyncio
    import json

    from toolgram.cli.commands.agent import visible
    from toolgram.schema import schema_grammar

    with redirect_stdout(sys.stderr):  # what a file prints is no part of the list
        tools, offers = asyncio.run(_listed(source))
    if json_:
        typer.echo(json.dumps([tool.to_openai() for tool in tools], indent=2, ensure_ascii=False))
        return
    for tool in tools:
        function = tool.to_openai()["function"]
        typer.echo(f"{tool.name}{' (writes)' if tool.writes else ''}: {visible(function['description'])}")
        if problem := getattr(tool, "problem", ""):
            typer.echo(f"  any object is taken: {visible(problem)}")
        for relaxation in schema_grammar(function["parameters"], mode="relaxed").relaxations:
            typer.echo(f"  {relaxation}")
    for offer in offers:
        typer.echo(f"{offer.kind} of {offer.server}: {visible(offer.name)}: {visible(offer.description)}")


async def _listed(source: str) -> tuple[Sequence[FunctionTool | OpenApiTool | McpTool], Sequence[McpOffer]]:
    from toolgram.cli.inputs import read_json, read_mcp, runnable_tools

    if not source.endswith(".json") or source.startswith("http"):
        return runnable_tools(source), ()
    document = read_json(Path(source))
    if isinstance(document, dict) and "openapi" in document:
        return runnable_tools(source), ()
    from toolgram.agent.mcp import mcp_offers

    return await mcp_offers(read_mcp(Path(source)))
