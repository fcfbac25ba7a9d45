"""Turns what the commands are given, files and options, into a request, a template and an engine."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from pydantic import ValidationError

from toolgram.api.tools import openai_tools
from toolgram.engines.base import SamplingDefaults
from toolgram.errors import EngineError, TemplateError, ToolgramError, unreadable
from toolgram.models import catalog
from toolgram.planning.images import data_url, kind_of
from toolgram.planning.typed_answer import typed_answer
from toolgram.styles.base import ToolStyle
from toolgram.template.chat_template import ChatTemplate

if TYPE_CHECKING:
    from toolgram.agent.isolated import IsolatedTool
    from toolgram.agent.runs import Limits
    from toolgram.engines.llama_cpp.bundled_server import LlamaObject
    from toolgram.engines.llama_cpp.engine import LlamaCpp
    from toolgram.planning.plan import Plan


class BadInput(ToolgramError):
    """A file or an option that cannot be used."""


@dataclass(frozen=True, slots=True)
class Question:
    """The options that make a request."""

    text: str
    tools: Path | None = None
    tool_choice: str | None = None
    parallel: bool | None = None
    schema: Path | None = None
    system: str | None = None
    images: tuple[Path, ...] = ()
    strict: bool = False


def request_of(question: Question) -> dict[str, Any]:
    """The chat-completions body that a question and its options stand for."""
    content = content_of(question.text, [*map(image_part, question.images)])
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if question.system is not None:
        messages.insert(0, {"role": "system", "content": question.system})
    body: dict[str, Any] = {"messages": messages}
    if question.tools is not None:
        body["tools"] = read_tools(question.tools, strict=question.strict)
    match question.tool_choice:
        case None:
            pass
        case "auto" | "none" | "required":
            body["tool_choice"] = question.tool_choice
        case name:
            body["tool_choice"] = {"type": "function", "function": {"name": name}}
    if question.parallel is not None:
        body["parallel_tool_calls"] = question.parallel
    if question.schema is not None:
        body["response_format"] = _response_format(question.schema, strict=question.strict)
    return body


def content_of(text: str, images: Sequence[Mapping[str, Any]]) -> str | list[Any]:
    """What a user says, behind the images that are shown, each a part of the content."""
    return [*images, {"type": "text", "text": text}] if images else text


def image_part(image: Path) -> dict[str, Any]:
    """The part of a message that an image is. Raises BadInput for a file that cannot be read, or shown."""
    try:
        data = image.read_bytes()
    except OSError as error:
        raise BadInput(f"{image}: {unreadable(error)}") from error
    if (kind := kind_of(data)) is None:
        raise BadInput(f"{image}: is no image that can be shown: PNG, JPEG, GIF and BMP are, of 67 million pixels")
    return {"type": "image_url", "image_url": {"url": data_url(data, kind)}}


def question_of(text: str) -> str:
    """The text, or for "-" the standard input. Raises BadInput where that is empty."""
    if text != "-":
        return text
    try:
        read = sys.stdin.read().strip()
    except UnicodeDecodeError as error:
        raise BadInput(f"the standard input cannot be read: {error}") from error
    if not read:
        raise BadInput("there is no question in the standard input")
    return read


def apart() -> AbstractContextManager[Any]:
    """What a user's own file prints while it is run is no part of what a command prints: it goes to stderr."""
    return redirect_stdout(sys.stderr)


def style_of(name: str | None) -> str | ToolStyle | None:
    """A style by its name, or the one of a Python file, which is run. Raises BadInput where it has none, or several."""
    if name is None or not name.endswith(".py"):
        return name
    from toolgram.agent.tools import module_of

    with apart():
        module = vars(module_of(Path(name)))
    found: dict[str, ToolStyle] = {key: value for key, value in module.items() if isinstance(value, ToolStyle)}
    if "STYLE" in found:
        return found["STYLE"]
    if len(found) != 1:
        raise BadInput(f"{name}: has {len(found)} styles; name the one that is meant STYLE")
    return next(iter(found.values()))


def _response_format(path: Path, *, strict: bool = False) -> Any:
    """A type of a Python file, where the path is FILE.py:NAME, else the JSON Schema that a file is."""
    file, _, name = str(path).rpartition(":")
    if path.suffix == ".py":
        raise BadInput(f"{path}: which of its types? Give {path}:NAME")
    if not file.endswith(".py"):
        described = {"name": path.stem, "schema": read_json(path), **({"strict": True} if strict else {})}
        return {"type": "json_schema", "json_schema": described}
    if strict:
        raise BadInput("--strict is for a JSON Schema: what of a type no grammar enforces is checked afterwards anyway")
    from toolgram.agent.tools import module_of  # runs the file

    with apart():
        kind = getattr(module_of(Path(file)), name, None)
    if typed_answer({"response_format": kind})[1] is None:
        raise BadInput(f"{file}: {name!r} is not a type in it")
    return kind


def read_answer_type(path: Path) -> Any:
    """A type of a Python file, where the path is FILE.py:NAME, else the JSON Schema that a file is."""
    given = _response_format(path)
    return cast("dict[str, Any]", given)["json_schema"]["schema"] if isinstance(given, dict) else given


def isolated_answer_type(path: Path) -> Any:
    """As `read_answer_type`, but that a Python file is run only in a process of its own: a type's JSON Schema."""
    file, _, name = str(path).rpartition(":")
    if not file.endswith(".py"):
        return read_answer_type(path)
    from toolgram.agent.isolated import isolated_schema

    return asyncio.run(isolated_schema(Path(file), name))


def runnable_tools(source: str) -> list[Any]:
    """The tools of a Python file, or the operations of an OpenAPI document, a file or a URL.

    The secrets of a document's security schemes stand in the environment.
    """
    if source.endswith(".py"):
        from toolgram.agent.tools import tools_of  # runs the file

        with apart():
            return list(tools_of(Path(source)))
    from toolgram.agent.openapi import fetched, openapi_tools, secrets_in

    is_url = source.startswith(("http://", "https://"))
    document = fetched(source) if is_url else read_json(Path(source))
    return list(openapi_tools(document, source if is_url else None, auth=secrets_in(os.environ, document)))


def isolated_functions(source: str, limits: Limits) -> list[IsolatedTool]:
    """The functions of a Python file, which is run only in processes of its own; a notice says what these may do."""
    from toolgram.agent.isolated import isolated_tools

    made = asyncio.run(isolated_tools(Path(source), limits=limits))
    if not made.in_namespaces:
        sys.stderr.write(f"note: {source}: this system holds back neither its network nor its processes\n")
    return list(made.tools)


def read_mcp(path: Path) -> dict[str, Any]:
    """An MCP configuration in the form that editors use."""
    if importlib.util.find_spec("mcp") is None:
        raise BadInput("MCP servers need a package that is not installed: pip install 'toolgram[mcp]'")
    config = read_json(path)
    if not isinstance(config, dict):
        raise BadInput(f'{path}: must be {{"mcpServers": {{…}}}}')
    logging.getLogger("mcp.client.stdio").addFilter(_in_a_line)
    return config  # pyright: ignore[reportUnknownVariableType] - JSON, checked by `mcp_tools`


def _in_a_line(record: logging.LogRecord) -> bool:
    """What a server prints that is no message, such as a greeting: MCP's SDK tells it with a traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, ValidationError):
        record.msg = "note: an MCP server prints what is no message of MCP, which is passed over: %.100r"
        record.args = (error.errors(include_url=False)[0]["input"],)
        record.exc_info = None
    return True


def read_schema(path: Path) -> Any:
    """The JSON Schema that a file is, or that a type of a Python file has."""
    body, _ = typed_answer({"response_format": _response_format(path)})
    return body["response_format"]["json_schema"]["schema"]


def check_writable(*paths: Path | None) -> None:
    """Raises BadInput for a file that cannot be written, before there is anything to write; what is there stays."""
    for path in paths:
        if path is None:
            continue
        is_new = not path.exists()
        try:
            path.open("a").close()
            if is_new:
                path.unlink()
        except OSError as error:
            raise BadInput(f"{path}: cannot be written: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    """Writes a file. Raises BadInput where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error


def read_json(path: Path) -> Any:
    """A JSON document; duplicate keys and NaN are refused, since no two readers agree on them."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {unreadable(error)}") from error
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON: {error}") from error


def read_tools(path: Path, *, strict: bool = False) -> list[Any]:
    """The tools of a JSON file or of a Python file (its public typed functions), in OpenAI's shape.

    The JSON is one tool, a list of them, or `{"tools": […]}`, each as OpenAI, Anthropic or MCP writes it.
    """
    if path.suffix == ".py":
        from toolgram.agent.tools import tools_of  # runs the file

        with apart():
            tools: list[Any] = [tool.to_openai() for tool in tools_of(path)]
    else:
        found = openai_tools(read_json(path))
        if found is None:
            raise BadInput(f'{path}: must be a list of tools, such as [{{"type": "function", "function": {{…}}}}]')
        tools = found
    for tool in tools if strict else ():
        if isinstance(tool, dict) and isinstance(function := cast("dict[str, Any]", tool).get("function"), dict):
            function["strict"] = True
    return tools


def template_of(file: Path | None, model: Path | None) -> ChatTemplate:
    """The template of a file (.jinja or .json, with the model's special tokens; .gguf; a folder), else the model's."""
    if file is None:
        if model is None:
            raise TemplateError("no chat template: give --template FILE or --model FILE, or run `toolgram pull` once")
        return ChatTemplate.from_gguf(model)
    if file.is_dir():
        return ChatTemplate.from_hf(file)
    if file.suffix == ".gguf":
        return ChatTemplate.from_gguf(file)
    template = ChatTemplate.from_file(file)
    if model is None:
        return template
    of_model = ChatTemplate.from_gguf(model, source=template.source)
    return replace(of_model, response_template=template.response_template, tool_use=template.tool_use)


def defaults_of(values: Mapping[str, float], source: str) -> SamplingDefaults:
    """The defaults of a model's own configuration; where they cannot be used, a notice says so, and ours hold."""
    try:
        return SamplingDefaults.of(values, source)
    except EngineError as error:
        sys.stderr.write(f"note: {source} is not used: {error}\n")
        return SamplingDefaults()


def model_at_hand(name: str | None) -> Path | None:
    """A model's file if that needs no download: a path, a known model in the cache, or else the default model."""
    if name is not None and name not in catalog.MODELS:
        return catalog.resolve(name)
    return catalog.cached(name or catalog.DEFAULT)


def load_engine(
    path: Path,
    context: int | None = None,
    threads: int | None = None,
    parallel: int = 1,
    *,
    deterministic: bool = False,
    mmproj: Path | None = None,
) -> LlamaCpp | LlamaObject:
    """The embedded engine with a model, for `parallel` requests at once; `context` is in tokens, None for as many
    as the model was trained for and memory allows; with `mmproj` it is shown images. Ctrl-C ends the process at once.

    Raises ModelError for a file that cannot be run, MissingPackage where the engine is not installed.
    """
    from toolgram.engines.llama_cpp import load  # heavy and optional

    try:
        return load(
            path,
            lambda notice: sys.stderr.write(f"{notice}\n"),
            context=context,
            threads=threads,
            parallel=parallel,
            deterministic=deterministic,
            mmproj=mmproj,
        )
    except KeyboardInterrupt:
        sys.stdout.flush()
        os._exit(130)  # the thread that loads cannot be stopped, and an end in order would wait for it


def tokens_of(plan: Plan, engine: LlamaCpp | LlamaObject) -> int:
    """How many tokens a prompt has. Raises PromptTooLong for one that is far too long to be counted."""
    count = engine.count_tokens(plan.prompt_parts)
    return count if isinstance(count, int) else asyncio.run(count)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in members if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return members
