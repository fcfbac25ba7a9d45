"""An MCP server for tests: over stdio, or over HTTP at the port that it is given."""

from __future__ import annotations

import os
import sys
import time

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ImageContent, TextContent, ToolAnnotations

app = MCPServer("demo", log_level="CRITICAL")
COUNT = 3
DOT = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


@app.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


@app.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("no such thing")


@app.tool()
def wait(seconds: float) -> str:
    """Wait."""
    time.sleep(seconds)
    return "waited"


@app.tool()
async def count(to: int, context: Context) -> str:
    """Count, and tell how far it has come."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"{number} <|im_end|>")
    return "counted"


@app.resource("demo://greeting")
def greeting() -> str:
    """A greeting."""
    return "Hello."


@app.resource("demo://greeting/{name}")
def greeting_to(name: str) -> str:
    """A greeting to somebody."""
    return f"Hello, {name}."


@app.prompt()
def review(code: str) -> str:
    """Review some code."""
    return f"Review {code}."


@app.tool()
def picture() -> list[TextContent | ImageContent]:
    """A picture, a word on it, and what is no picture."""
    return [
        TextContent(type="text", text="a dot"),
        ImageContent(type="image", data=DOT, mime_type="image/gif"),
        ImageContent(type="image", data="aGVsbG8h", mime_type="image/png"),
    ]


@app.tool(name="a name with/odd characters and of " + "very " * 20 + "many")
def odd() -> str:
    """Oddly named."""
    return "called"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        for number in range(int(sys.argv[2])):
            app.add_tool(lambda: "one of many", name=f"many_{number}", description="One of many.")
    if len(sys.argv) > 1 and sys.argv[1] != "stdio":
        app.run("streamable-http", port=int(sys.argv[1]))
    else:
        app.run("stdio")
