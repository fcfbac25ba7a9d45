"""`toolgram tools`: what a source of tools gives, and Python functions as an MCP server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from toolgram.agent import FunctionTool
    from toolgram.agent.mcp import McpTool

app = typer.Typer(help="Serve Python functions as tools, or list what a source of tools gives.", no_args_is_help=True)


@app.command(epilog="Example: toolgram tools serve tools.py")
def serve(file: Annotated[Path, typer.Argument(metavar="FILE.py", help="A Python file with typed functions.")]) -> None:
    """Offer the functions of a Python file as an MCP server on stdin and stdout."""
    import asyncio

    from toolgram.agent import tools_of
    from toolgram.agent.mcp_server import serve as answer

    asyncio.run(answer(file.stem, tools_of(file)))


@app.command(name="list", epilog="Example: toolgram tools list tools.py")
def list_(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A Python file, or an MCP configuration (mcp.json).")],
) -> None:
    """List the tools of a source: which of them write, and what of their schemas no grammar enforces."""
    import asyncio

    from toolgram.schema import schema_grammar

    for tool in asyncio.run(_listed(source)):
        function = tool.to_openai()["function"]
        typer.echo(f"{tool.name}{' (writes)' if tool.writes else ''}: {' '.join(function['description'].split())}")
        for relaxation in schema_grammar(function["parameters"], mode="relaxed").relaxations:
            typer.echo(f"  {relaxation}")


async def _listed(source: Path) -> Sequence[FunctionTool | McpTool]:
    from toolgram.agent import tools_of
    from toolgram.cli.inputs import read_mcp

    if source.suffix == ".py":
        return tools_of(source)
    from toolgram.agent.mcp import mcp_tools

    async with mcp_tools(read_mcp(source)) as tools:
        return tools
