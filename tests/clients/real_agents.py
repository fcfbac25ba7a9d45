"""Lets agents carry out a small task against a server, each with a model of each of five ways to write calls.

Argument: the folder into which they are installed. Each has a temporary folder to work in and a home of its own; every
host but this server is refused, and recorded. It is carried out twice: what a client sent before must be the beginning
of what it sends then, so that an engine reads next to nothing twice.
"""

from __future__ import annotations

import os
import re
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from clients.agents import AGENTS, LAST_WORD, MENDED, MISSPELLED, NODE, TASK, Agent
from clients.scripted import Scripted
from live_server import serving
from situations import CHATML
from toolgram.server.settings import Settings
from toolgram.styles.registry import find_style

STYLES = ("hermes", "qwen_xml", "harmony", "llama_3", "long")
_SECONDS = 180
_KNOWN = 0.95  # of a prompt that was there before


class _Refusing(socketserver.BaseRequestHandler):
    """A proxy that lets nobody out of this machine, and remembers who asked for what."""

    asked: list[str] = []  # noqa: RUF012 - one listener for all

    def handle(self) -> None:
        line = self.request.recv(4096).split(b"\r\n", 1)[0].decode(errors="replace")
        if here := re.match(r"CONNECT 127\.0\.0\.1:(\d+) ", line):  # some send all they have to say this way
            with socket.create_connection(("127.0.0.1", int(here[1]))) as server:
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                forth = threading.Thread(target=_pump, args=(self.request, server), daemon=True)
                forth.start()
                _pump(server, self.request)
            return
        self.asked.append(line)
        self.request.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return  # one of them has gone


@contextmanager
def _listener() -> Iterator[tuple[str, list[str]]]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", _Refusing.asked
        server.shutdown()


class Failed(Exception):
    """A task was not carried out, or at too high a cost."""


def carry_out(agent: Agent, style: str, installed: Path, proxy: str) -> float:
    """The task, twice in one folder; gives how much of each prompt at least had been read before. Raises Failed."""
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as home:
        folder = Path(work)
        known = find_style(style)
        assert known is not None
        engine = Scripted(known, TASK, 2 * agent.turns(folder))
        with serving(engine, Settings(style=style, any_model_name=True), CHATML) as address:
            environment = {
                **{key: value for key, value in os.environ.items() if key in ("LANG", "TERM")},
                "PATH": os.pathsep.join((str(installed / NODE), os.environ["PATH"])),  # the node that they want
                "HOME": home,
                "XDG_CONFIG_HOME": home,
                "XDG_DATA_HOME": home,
                "XDG_CACHE_HOME": home,
                **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy),
                "NO_PROXY": "127.0.0.1,localhost",
                "no_proxy": "127.0.0.1,localhost",
                **agent.environment(address, Path(home)),
            }
            command = [str(installed / agent.command[0]), *agent.command[1:]]
            for _ in range(2):
                _try(command, folder, environment, engine)
        return _least_known(engine.prompts)


def _try(command: Sequence[str], folder: Path, environment: Mapping[str, str], engine: Scripted) -> None:
    (folder / "greeting.txt").write_text(MISSPELLED, encoding="utf-8")
    (folder / "done.txt").unlink(missing_ok=True)
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"did not end in {_SECONDS} s, after {engine.said} turns") from error
    if engine.refused is not None:
        raise Failed(f"the grammar does not admit {engine.refused!r}")
    output = f"after {engine.said} turns:\n{ended.stdout[-1500:]}\n{ended.stderr[-1500:]}"
    if (folder / "greeting.txt").read_text(encoding="utf-8") != MENDED:
        raise Failed(f"greeting.txt was not mended, {output}")
    if not (folder / "done.txt").exists() or (folder / "done.txt").read_text(encoding="utf-8").strip() != "done":
        raise Failed(f"done.txt was not written, {output}")
    if LAST_WORD not in ended.stdout:
        raise Failed(f"the last word was not shown, {output}")


def _least_known(prompts: Sequence[str]) -> float:
    """The least share of a turn's prompt that was in the prompt of the turn before, or of the first task's first turn.

    Raises Failed where it is little: then an engine reads nearly all again.
    """
    shares = [1.0]
    for turn, prompt in enumerate(prompts[1:], 1):
        before = prompts[0] if turn == len(prompts) // 2 else prompts[turn - 1]
        shortest = min(len(before), len(prompt))
        known = next((at for at in range(shortest) if before[at] != prompt[at]), shortest)
        shares.append(known / shortest)
        if shares[-1] < _KNOWN:
            raise Failed(
                f"turn {turn + 1} begins anew after {known} of {len(before)} characters: {prompt[known:][:200]!r}"
            )
    return min(shares)


def main(installed: Path, only: Sequence[str]) -> None:
    """Each client with each style; exits with 1 where a task failed, or somebody asked for another host."""
    failed = False
    with _listener() as (proxy, asked):
        for agent in AGENTS:
            for style in STYLES:
                if only and not {agent.name, style} & set(only):
                    continue
                begun, before = time.monotonic(), len(asked)
                try:
                    word = f"done, {carry_out(agent, style, installed, proxy):.1%} of each prompt known"
                except Failed as error:
                    word, failed = str(error), True
                out = sorted({line for line in asked[before:] if agent.asks is None or agent.asks not in line})
                failed = failed or bool(out)
                print(f"{agent.name:10} {style:10} {time.monotonic() - begun:5.0f} s  {word}", flush=True)  # noqa: T201 - a script
                for line in out:
                    print(f"{'':10} asked for another host: {line}", flush=True)  # noqa: T201 - a script
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
