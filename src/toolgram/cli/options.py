"""Options that several commands have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    """The kinds of servers that can run the model; `openai` is any that completes prompts."""

    vllm = "vllm"
    sglang = "sglang"
    llama_server = "llama-server"
    openai = "openai"


class Backend(StrEnum):
    """The backends that can enforce grammars in vLLM."""

    xgrammar = "xgrammar"
    guidance = "guidance"


class Dialect(StrEnum):
    """The grammar dialects."""

    gbnf = "gbnf"
    lark = "lark"
    ebnf = "ebnf"


CUT_OFF = 3  # the exit code of an answer that is not complete, or not what was asked for
ISOLATE = "Run the functions of Python files in processes of their own, with limits and without your environment."

Tools = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Tools: JSON as OpenAI, Anthropic or MCP writes them, or typed functions of a Python file."
    ),
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
    str | None,
    typer.Option(metavar="PATH|NAME", help="A GGUF file, org/repo:Q4_K_M, or a known model (default: smollm2)."),
]
Image = Annotated[
    list[Path] | None,
    typer.Option("--image", metavar="FILE", help="An image (PNG, JPEG, GIF or BMP) to show; may be repeated."),
]
Mmproj = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="The projector by which the model is shown images, mmproj-….gguf."),
]
Template = Annotated[
    Path | None,
    typer.Option(
        "--template",
        "--chat-template",
        metavar="FILE",
        help="A chat template: .jinja, .json, .gguf, or a folder (default: the model's).",
    ),
]
Style = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE.py",
        help="How calls are written: a style, or a file with one (default: what fits).",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAME|none",
        help="What `toolgram tune` found best for the model (default: what ships with toolgram, if it does).",
    ),
]
UpstreamUrl = Annotated[
    str | None, typer.Option("--upstream", metavar="URL", help="A server that runs the model, in the place of --model.")
]
UpstreamKind = Annotated[Kind | None, typer.Option(help="What kind of server it is (default: as it says itself).")]
UpstreamModel = Annotated[str | None, typer.Option(metavar="NAME", help="The server's name for the model.")]
UpstreamKey = Annotated[str | None, typer.Option(metavar="KEY", help="The API key of the server.")]


@dataclass(frozen=True, slots=True)
class Server:
    """The options that name a server which runs the model; without an address there is none."""

    url: str | None
    kind: Kind | None
    model: str | None
    key: str | None
