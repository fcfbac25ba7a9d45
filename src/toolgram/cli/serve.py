"""`toolgram serve`: loads models and runs an HTTP server for them."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from errno import EACCES, EADDRINUSE
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from toolgram.cli import inputs
from toolgram.cli.ask import model_file
from toolgram.cli.inputs import BadInput
from toolgram.cli.profiles import profiles_of
from toolgram.cli.upstream import Connection
from toolgram.engines.base import Engine, SamplingDefaults
from toolgram.engines.remote.http import is_local
from toolgram.errors import unreadable
from toolgram.gguf_files import name_of
from toolgram.models import catalog as models
from toolgram.models.defaults import sampling_of_gguf
from toolgram.models.profiles import model_name
from toolgram.planning.profile import Profile
from toolgram.server.mcp import servers_of
from toolgram.server.models import Served
from toolgram.server.request_log import Line
from toolgram.server.settings import Settings
from toolgram.styles.registry import no_such_style, style_names

if TYPE_CHECKING:
    from starlette.types import ASGIApp  # comes with the server extra


_LAST_PORT = 65535
_GARBAGE = (10_000, 20, 20)  # objects, and how often before older ones are looked through


@dataclass(frozen=True, slots=True)
class Loading:
    """Which models to load, and how; no model means the default one. `aliases` are other names for the first.

    `profiles` are files, or "none"; `mmproj` is the file of the projector by which the one model is shown images.
    """

    models: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    template: Path | None = None
    context: int | None = None
    threads: int | None = None
    parallel: int = 1
    deterministic: bool = False
    profiles: tuple[str, ...] = ()
    mmproj: str | None = None


def load(loading: Loading) -> tuple[Served, ...]:
    """Loads the models. Raises ModelError, TemplateError, ProfileError, and BadInput for two models with one name."""
    projector = None if loading.mmproj is None else models.resolve(loading.mmproj, projector=True)
    names = loading.models or (models.DEFAULT,)
    if not loading.models:
        _say(f"no --model given: this is {models.DEFAULT}, a very small one, to try things out")
    files = [model_file(name) for name in names]
    known = [name if name in models.MODELS else name_of(file) for name, file in zip(names, files, strict=True)]
    _tell_apart(known, loading.aliases)
    if projector is None and len(files) == 1:
        _tell_projector(files[0])
    templates = [inputs.template_of(loading.template, file) for file in files]
    profiles = profiles_of(loading.profiles, [*zip(map(model_name, files), templates, strict=True)])
    served: list[Served] = []
    for name, file, template, profile in zip(known, files, templates, profiles, strict=True):
        engine = inputs.load_engine(
            file,
            loading.context,
            loading.threads,
            loading.parallel,
            deterministic=loading.deterministic,
            mmproj=projector,
        )
        told = _told_context(engine)
        aliases = () if served else loading.aliases
        defaults = inputs.defaults_of(sampling_of_gguf(file), f"the metadata of {file.name}")
        _say(sampled(name, defaults))
        served.append(Served(name, template, engine, aliases, defaults=defaults, profile=profile, told_context=told))
    return tuple(served)


def _tell_apart(names: Sequence[str], aliases: Sequence[str]) -> None:
    """Raises BadInput where two models would answer to one name, the other names of the first included."""
    seen: set[str] = set()
    for name in (*{*names[:1], *aliases}, *names[1:]):
        if name in seen:
            raise BadInput(f"two models would be named {name!r}")
        seen.add(name)


def sampled(name: str, defaults: SamplingDefaults) -> str:
    """How the tokens of a model are chosen where a request does not say."""
    return f"{name}, where a request does not say: {defaults} ({defaults.source or 'the model has none of its own'})"


def _tell_projector(model: Path) -> None:
    beside = list(model.parent.glob("*mmproj*.gguf"))
    if len(beside) == 1:
        _say(f"note: --mmproj {beside[0]} would show the model images, if it is the model's")


def _told_context(engine: Engine) -> int | None:
    """The context of an engine that does not count tokens itself; what is remembered at most is said."""
    # Of an extra, which is there if a model was loaded.
    from toolgram.engines.llama_cpp.bundled_server import LlamaObject
    from toolgram.engines.llama_cpp.engine import LlamaCpp

    if isinstance(engine, LlamaCpp | LlamaObject):
        _say(engine.memory)
    return engine.context_length if isinstance(engine, LlamaObject) else None


def keys(given: Sequence[str], file: Path | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of the options and of a file, which has one per line.

    Raises BadInput, for an empty key too: whoever gives one wants a closed server, and would get an open one.
    """
    if not all(key.strip() for key in given):
        raise BadInput("--api-key is empty: give a key, or leave the option out to let every client in")
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines() if file else []
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: {unreadable(error)}") from error
    for number, line in enumerate(lines, 1):
        if len(line.split()) > 1 or line.strip().startswith("#"):
            raise BadInput(f"{file}, line {number}: is no key: there is one on a line, without comments and spaces")
    found = tuple(key.strip() for key in (*given, *lines) if key.strip())
    if file is not None and not found:
        raise BadInput(f"{file}: contains no key")
    # An option does not distinguish an empty variable from one that is not set.
    for name in ("TOOLGRAM_API_KEY", "TOOLGRAM_API_KEY_FILE"):
        if name in environment and not found:
            raise BadInput(f"{name} is set but empty: give it a key, or unset it to let every client in")
    return found


def run(served: Sequence[Served], settings: Settings, host: str, port: int, log_file: Path | None) -> None:
    """Serve until stopped, then finish the running streams. Raises ToolgramError if it cannot listen."""
    from toolgram.server.app import create_app
    from toolgram.server.listening import Server, config, take_files

    log_to(log_file)
    _take_short_turns()
    take_files()
    server = Server(config(create_app(served, settings), settings.shutdown_timeout, host, port))
    listener = _bound(host, port)
    _listen(listener)
    _say_where(served, host, listener)
    server.run([listener])


@dataclass(frozen=True, slots=True)
class Remote:
    """What a worker needs to make its own application in front of another server; `aliases` are other names for its
    first model."""

    connections: tuple[Connection, ...]
    aliases: tuple[str, ...]
    settings: Settings
    log_file: Path | None
    profiles: tuple[Profile | None, ...]

    def served(self) -> tuple[Served, ...]:
        """The models of the other server."""
        return tuple(
            Served(
                found.name,
                found.template,
                found.engine(self.settings.timeout),
                () if number else self.aliases,
                defaults=found.defaults,
                profile=profile,
                told_context=found.context,
            )
            for number, (found, profile) in enumerate(zip(self.connections, self.profiles, strict=True))
        )

    def __call__(self) -> ASGIApp:
        """The application."""
        from toolgram.server.app import create_app

        log_to(self.log_file)
        _take_short_turns()
        return create_app(self.served(), self.settings)


def run_workers(remote: Remote, host: str, port: int, count: int) -> None:
    """Like `run`, in several processes; the limits of the settings apply to each."""
    from toolgram.server.listening import take_files
    from toolgram.server.workers import serve_by_workers

    log_to(remote.log_file)
    take_files()  # the workers have what this process has
    listener = _bound(host, port)
    _listen(listener)
    _say_where(remote.served(), host, listener)
    serve_by_workers(remote, listener, count, remote.settings.shutdown_timeout)


def check(settings: Settings, host: str, port: int) -> None:
    """Warn if everybody is let in, and make the folder of recordings. Raises BadInput for what cannot be served, or
    not at this address, and InvalidTool for a configuration of no MCP servers.
    """
    if not 0 <= port <= _LAST_PORT:
        raise BadInput(f"a port is a number from 0 to {_LAST_PORT}, not {port}")
    _bound(host, port).close()  # a model may take minutes to load, and is not loaded for nothing
    if not settings.api_keys and not is_local(host):
        tools = "" if settings.mcp is None else " and run the tools of its MCP servers"
        where = host or "this machine"
        _say(f"warning: whoever can reach {where} may use this server{tools}: --api-key restricts access")
    if settings.redact and settings.record is None:
        raise BadInput("--redact is for what is recorded: give --record DIR")
    if settings.record is not None:
        try:
            settings.record.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{settings.record}: cannot be written to: {error.strerror}") from error
    if settings.style is not None and settings.style not in style_names():
        raise BadInput(no_such_style(settings.style))
    servers_of(settings.mcp)


def _bound(host: str, port: int) -> socket.socket:
    """A socket at the address. Raises BadInput where it cannot be had."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    # Elsewhere this lets a server begin again at once; on Windows it would let two have one port.
    listener.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR), 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        other = ": give another --port, or 0 for any that is free" if error.errno in (EADDRINUSE, EACCES) else ""
        raise BadInput(f"{host}:{port}: {error.strerror or 'it cannot be listened at'}{other}") from error
    return listener


def _listen(listener: socket.socket) -> None:
    """Binds the socket: from now on, connections wait until the server runs."""
    from toolgram.server.listening import BACKLOG

    # Otherwise each event waits up to 40 ms for the client to acknowledge the previous one: asyncio sets this only for
    # sockets that it opens itself. Connections inherit it.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.listen(BACKLOG)


def _take_short_turns() -> None:
    """Keep pauses short: threads that plan yield after 0.2 ms, not 5, and garbage is looked for a tenth as often.

    A request takes the one that answers many turns; yet shorter ones would cost those that plan more than they bring.
    What is planned is many objects that live on: looking through them again and again for garbage takes up to half of
    the time, and stops all threads for up to 100 ms.
    """
    sys.setswitchinterval(0.0002)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)


def _say_where(served: Sequence[Served], host: str, listener: socket.socket) -> None:
    names = ", ".join(model.name for model in served)
    name = f"[{host}]" if ":" in host else host
    where = f"http://{name}:{listener.getsockname()[1]}"
    typer.echo(f"serving {names} at {where}/v1, with a playground at {where}/ and the API at {where}/docs")


def log_to(file: Path | None) -> None:
    """Logs a line for each request, for people on a terminal and in JSON elsewhere. Raises BadInput."""
    try:
        handler = _LogFile(file, encoding="utf-8") if file else logging.StreamHandler(sys.stderr)
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error}") from error
    handler.setFormatter(_ForPeople() if file is None and sys.stderr.isatty() else logging.Formatter("%(message)s"))
    logger = logging.getLogger("toolgram.server")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)


class _LogFile(WatchedFileHandler):
    """A file that other programs may move away, as logrotate does; where it cannot be written, that is said once."""

    _failure: OSError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        before, self._failure = self._failure, None
        try:
            super().emit(record)
        except OSError:  # where the file was moved away and cannot be made anew
            self.handleError(record)
        if self._failure and not before:
            _say(f"warning: {self.baseFilename} cannot be written: {self._failure.strerror}")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of logging
        """What is wrong with a line itself is shown as logging does."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            self._failure = error
        else:
            super().handleError(record)


class _ForPeople(logging.Formatter):
    """Lines of requests as they are read best; what else is logged as it is."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return record.msg.for_people() if isinstance(record.msg, Line) else super().format(record)


def _say(text: str) -> None:
    typer.echo(text, err=True)
