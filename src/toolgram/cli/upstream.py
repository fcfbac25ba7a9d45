"""Servers that run a model: what they are, what they tell of it, and the engine that asks them."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import typer

from toolgram.cli import inputs
from toolgram.cli.inputs import BadInput
from toolgram.cli.options import Backend, Kind
from toolgram.engines.base import Engine, SamplingDefaults
from toolgram.engines.remote.http import Http, Refused, Silent, Unavailable
from toolgram.engines.remote.identify import NAMES, Identity, Loading, ServerKind, identify
from toolgram.errors import EngineError, ModelError, nearest
from toolgram.gguf_files import name_of
from toolgram.models import hub
from toolgram.models.defaults import sampling_of_folder
from toolgram.template.chat_template import ChatTemplate

_PAUSE = 1.0  # seconds between two attempts to reach a server
_PATIENCE = 30.0  # seconds that it may take to write a few characters
_DIALECTS: dict[Backend, Literal["ebnf", "lark"]] = {Backend.xgrammar: "ebnf", Backend.guidance: "lark"}
_SGLANGS = {"xgrammar": Backend.xgrammar, "llguidance": Backend.guidance}  # by its names; others take no grammar
_ENFORCED = "grammars are enforced"
_UNENFORCED = (
    "nothing is enforced: required calls and strict schemas are refused (--allow-unenforced asks all the same), "
    "other answers are checked when they are there"
)
_SEVERAL = "several upstreams are possible only before vLLM"
_OLLAMA = (
    "its API takes neither raw prompts nor grammars. toolgram can run its model by itself: "
    "`ollama show MODEL --modelfile` names the file after FROM, and `toolgram serve --model FILE` serves it"
)
_TOOLGRAM = (
    "any client of OpenAI's or Anthropic's API asks it for tools and schemas, and it takes no grammars. "
    "Here give what it runs itself: the same --model or --upstream"
)


@dataclass(frozen=True, slots=True)
class Upstream:
    """Servers that run one model; `kind` and `model` are None where they are to say it. `backend` is vLLM's; an SGLang
    tells its own."""

    urls: tuple[str, ...]
    kind: Kind | None = None
    model: str | None = None
    api_key: str | None = None
    backend: Backend = Backend.xgrammar


@dataclass(frozen=True, slots=True)
class Connection:
    """All that an engine, in any process, needs to know of a model on other servers; without a `backend` an SGLang is
    asked without grammars."""

    urls: tuple[str, ...]
    kind: Kind
    name: str
    model: str | None
    template: ChatTemplate
    api_key: str | None
    backend: Backend | None
    found: str
    defaults: SamplingDefaults
    context: int | None = None
    alive: str | None = None

    @property
    def enforces(self) -> bool:
        """Whether grammars are sent."""
        return self.kind is not Kind.openai and self.backend is not None

    @property
    def about(self) -> str:
        """What was found, and whether grammars are enforced there."""
        return f"{self.found}; {_ENFORCED if self.enforces else _UNENFORCED}"

    def engine(self, timeout: float) -> Engine:
        """An engine that asks the servers, which may be silent for `timeout` seconds."""
        match self.kind:
            case Kind.vllm:
                from toolgram.engines.remote.vllm import Vllm

                dialect = _DIALECTS[self.backend or Backend.xgrammar]
                return Vllm(self.urls, model=self.model, dialect=dialect, api_key=self.api_key, timeout=timeout)
            case Kind.llama_server:
                from toolgram.engines.remote.llama_server import LlamaServer

                return LlamaServer(
                    self.urls[0], model=self.model, alive=self.alive, api_key=self.api_key, timeout=timeout
                )
            case Kind.sglang:
                from toolgram.engines.remote.sglang import Sglang

                dialect = None if self.backend is None else _DIALECTS[self.backend]
                return Sglang(self.urls[0], self.model or "", dialect=dialect, api_key=self.api_key, timeout=timeout)
            case Kind.openai:
                from toolgram.engines.remote.openai import OpenAICompletions

                return OpenAICompletions(self.urls[0], self.model or "", api_key=self.api_key, timeout=timeout)


def connect(upstream: Upstream, template: Path | None, *, wait: bool = False, loads: bool = False) -> Connection:
    """Asks the servers what they are. With `wait`, as before they are served, until they answer, unless all that they
    could say is given; and whether they enforce what they take, which an engine asks before its first grammar, too.
    One that `loads` its model when it is asked is given the time for that.

    Raises BadInput for what does not go together or is missing, Unavailable where nothing answers.
    """
    urls = tuple(url.rstrip("/").removesuffix("/v1") for url in upstream.urls)
    upstream = replace(upstream, urls=urls)
    given = upstream.kind is not None and template is not None
    given = given and (upstream.model is not None or upstream.kind in (Kind.vllm, Kind.llama_server))
    found = _asked(upstream, wait=wait, loads=loads, given=given and not loads)
    if found and found[0].kind == "llama-swap" and len(urls) == 1:
        return _of_swap(upstream, found[0], template, wait=wait)
    if len(urls) > 1 and any(each.kind == "llama-swap" for each in found):
        raise BadInput(_SEVERAL)
    kind = _kind(upstream, found)
    if kind is not Kind.vllm and len(urls) > 1:
        raise BadInput(_SEVERAL)
    first = found[0] if found else Identity("".join(urls[:1]), "other")
    model = _model(upstream.model, kind, first)
    folder = _folder(first.tokenizer, needed=template is None and not first.template)
    chat_template, whose = _template(template, first, folder)
    values = sampling_of_folder(folder) if folder is not None else dict[str, float]()
    defaults = inputs.defaults_of(values, f"generation_config.json of {first.tokenizer}")
    name = model or _base_name(first.models[0] if first.models else kind.value)
    chat_template = replace(chat_template, model=_called(name, first.weights))
    what = first.name if found else NAMES[_kind_of(kind)]
    backend = _SGLANGS.get(first.backend) if kind is Kind.sglang else upstream.backend
    said = f"{', '.join(urls)}: {what} with {name} and {whose}"
    connection = Connection(
        urls, kind, name, model, chat_template, upstream.api_key, backend, said, defaults, first.context
    )
    return _checked(connection) if found and wait else connection


def _of_swap(upstream: Upstream, swap: Identity, template: Path | None, *, wait: bool) -> Connection:
    """A model that llama-swap runs: it is at an address of its own there, which starts it."""
    name = _named(upstream.model, swap)
    url = f"{swap.url}/upstream/{quote(name, safe='/:')}"
    found = connect(replace(upstream, urls=(url,), model=None), template, wait=wait, loads=True)
    named = replace(found.template, model=_called(name, found.template.model))
    return replace(found, name=name, template=named, alive=swap.url)


def _checked(connection: Connection) -> Connection:
    """The connection, to an SGLang that does not keep to grammars as to one that takes none.

    Raises BadInput for a vLLM that does not enforce what is said to be enforced, as its engine does for each request
    with a grammar; warns of a server that cannot be asked.
    """
    from toolgram.engines.remote.enforcement import NotEnforced
    from toolgram.engines.remote.sglang import Sglang
    from toolgram.engines.remote.vllm import Vllm

    engine = connection.engine(_PATIENCE)
    if not isinstance(engine, Vllm | Sglang):
        return connection

    async def check() -> None:
        async with aclosing(engine):
            await engine.check_enforced()

    try:
        asyncio.run(check())
    except NotEnforced as error:
        if connection.kind is Kind.sglang:
            typer.echo(f"warning: {error}", err=True)
            return replace(connection, backend=None)
        asks = "--upstream-kind openai asks it all the same, and enforces nothing"
        raise BadInput(f"{error} ({asks})") from error
    except EngineError as error:  # before the first grammar it is asked again
        typer.echo(f"warning: {error}", err=True)
    return connection


def _asked(upstream: Upstream, *, wait: bool, loads: bool, given: bool) -> tuple[Identity, ...]:
    """What those servers say that answer; nothing, with a warning, where none does and all is `given`."""
    waiting = False
    while True:
        try:
            return asyncio.run(_identified(upstream))
        except Unavailable as error:
            if given:
                typer.echo(f"warning: {error}", err=True)
                return ()
            if not (wait or isinstance(error, Loading) or (loads and isinstance(error, Silent))):
                raise
            if not waiting:
                typer.echo(f"waiting for {', '.join(upstream.urls)}: {error}", err=True)
            waiting = True
            time.sleep(_PAUSE)
        except Refused as error:
            raise BadInput(str(error)) from error
        except EngineError as error:
            raise BadInput(f"{error} (--upstream-key gives it a key)") from error


async def _identified(upstream: Upstream) -> tuple[Identity, ...]:
    servers = [Http(url, api_key=upstream.api_key) for url in upstream.urls]
    try:
        asked = (identify(server, upstream.model) for server in servers)
        answers = await asyncio.gather(*asked, return_exceptions=True)
    finally:
        await asyncio.gather(*(server.aclose() for server in servers))
    found = tuple(answer for answer in answers if isinstance(answer, Identity))
    failed = [answer for answer in answers if isinstance(answer, BaseException)]
    grave = [error for error in failed if not isinstance(error, Unavailable)]
    if grave or not found:
        raise (grave or failed)[0]
    for error in failed:  # it may come later
        typer.echo(f"warning: {error}", err=True)
    return found


def _kind(upstream: Upstream, found: tuple[Identity, ...]) -> Kind:
    """The kind of the servers. Raises BadInput where it is not the one that was named, or not one for all."""
    for each in found:
        if each.kind == "ollama":
            raise BadInput(f"{each.url} is {each.name}: {_OLLAMA}")
        if each.kind == "toolgram" and upstream.kind is not Kind.openai:
            raise BadInput(f"{each.url} is {each.name}: {_TOOLGRAM}")
    if len({each.kind for each in found}) > 1:
        raise BadInput("the upstreams differ: " + ", ".join(f"{each.url} is {each.name}" for each in found))
    said = found[0].kind if found else "other"
    if upstream.kind is None:
        return Kind.openai if said == "other" else Kind(said)
    if upstream.kind is Kind.openai or said in ("other", upstream.kind.value):
        return upstream.kind
    named = NAMES[_kind_of(upstream.kind)]
    raise BadInput(f"{found[0].url} is {found[0].name}, not {named}: leave --upstream-kind out, and it is found")


def _kind_of(kind: Kind) -> ServerKind:
    return "other" if kind is Kind.openai else kind.value


def _model(named: str | None, kind: Kind, found: Identity) -> str | None:
    """The server's name for the model; None where it needs none. Raises BadInput where it is none of its models."""
    if found.by_name:
        return _named(named, found)
    if kind is Kind.llama_server:
        return named
    if named is None and kind is not Kind.vllm and not found.models:
        raise BadInput(f"{found.url} does not tell its models: give --upstream-model NAME")
    return _known(named, found) or (found.models[0] if found.models else None)


def _named(named: str | None, found: Identity) -> str:
    """Which of several models is meant. Raises BadInput where that is not said, or it is none of them."""
    name = _known(named, found) or found.model
    if not name:
        models = ", ".join(found.models) or "no model"
        raise BadInput(f"{found.url} runs {models}: say which with --upstream-model NAME")
    return name


def _known(named: str | None, found: Identity) -> str | None:
    """The name. Raises BadInput where the server has models, and none that is called so."""
    if named is not None and found.models and named not in found.models:
        raise BadInput(f"{found.url} has no model {named!r}; {nearest(named, found.models)}")
    return named


def _base_name(model: str) -> str:
    """A llama-server goes by the path of its file."""
    return name_of(Path(model)) if model.endswith(".gguf") else model


def _called(name: str, weights: str) -> str:
    """What the model is called: it may be served by another name than that of its file, folder or repository."""
    return name if _base_name(weights) in ("", name) else f"{name}, {_base_name(weights)}"


def _folder(where: str, *, needed: bool) -> Path | None:
    """A folder of this machine with the tokenizer's files; those of the hub are fetched only where they are needed."""
    if where and Path(where).is_dir():
        return Path(where)
    if not hub.is_repository(where):
        return None
    try:
        return hub.tokenizer(where, fetch=needed)
    except ModelError as error:
        if needed:
            raise BadInput(
                f"the server does not tell its chat template ({error}): give --chat-template FILE"
            ) from error
        return None


def _template(file: Path | None, found: Identity, folder: Path | None) -> tuple[ChatTemplate, str]:
    """The chat template, and whose it is. Raises BadInput where there is none."""
    if file is not None:
        template = inputs.template_of(file, None)
        if not (template.bos_token or template.eos_token):  # a file of Jinja alone has none
            template = replace(template, bos_token=found.bos_token, eos_token=found.eos_token)
        return template, f"the chat template of {file}"
    if found.template:
        own = ChatTemplate(found.template, found.bos_token, found.eos_token, tool_use=found.tool_use)
        return own, "its own chat template"
    if folder is None:
        raise BadInput(f"{found.url} does not tell its chat template: give --chat-template FILE")
    return ChatTemplate.from_hf(folder), f"the chat template of {found.tokenizer}"
