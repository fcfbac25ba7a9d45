"""Chat templates that are rendered in a process of their own, which is ended where they take too long.

The sandbox meters what a template does step by step; one step of it may still be long, and nothing stops that in our
own process. `apart_process` is what the other one runs.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from toolgram.errors import TemplateError, TooMuchWork
from toolgram.template.bounds import TooMuch
from toolgram.turns import Lane
from toolgram.work import away, client, look

_WORKER = "toolgram.template.apart_process"
_MILLISECONDS = 50  # between two looks at whether the answer is still wanted
_HEADER = 8  # bytes, which say how many follow
_MOST = 1 << 28  # bytes of an answer: six for each character of the longest prompt
_ENDED = "the chat template takes more time or memory than a request may cost: make it smaller"

Question = Mapping[str, Any]


class Apart:
    """A process that renders templates, for one request at a time, and another one when it was ended.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lane = Lane(1)
        self._process: _Process | None = None

    @contextmanager
    def rendering(self, seconds: int) -> Generator[None]:
        """Templates are rendered in the process here, which has so many seconds of processor time for all of them."""
        if os.name != "posix":  # a process has no such limits there
            yield
            return
        with away():
            self._lane.take(client())
        try:
            look()
            if self._process is None or self._process.ended:
                self._process = _Process()
            self._process.ask({"seconds": seconds})
            token = _process.set(self._process)
            try:
                yield
            finally:
                _process.reset(token)
        finally:
            self._lane.give_back()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.end()


class _Process:
    """Answers questions, one at a time."""

    def __init__(self) -> None:
        self.ended = False
        command = f"import sys; sys.path[:] = {sys.path!r}; import {_WORKER} as w; w.main()"
        self._popen = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-I", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            start_new_session=True,
        )

    def ask(self, question: Question) -> Mapping[str, Any]:
        """The answer. Raises TemplateError where it is one, TooMuchWork where the process ended, and as `look` does."""
        try:
            with away():
                said = json.loads(self._answer(json.dumps(question).encode()))
        except BaseException:  # it may go on, and answer later
            self.end()
            raise
        if "error" in said:
            raise TemplateError(said["error"]) from (TooMuch(said["error"]) if said["too_much"] else None)
        return said

    def _answer(self, question: bytes) -> bytes:
        assert self._popen.stdin is not None  # noqa: S101 - it is a pipe
        try:
            self._popen.stdin.write(len(question).to_bytes(_HEADER) + question)
            self._popen.stdin.flush()
        except BrokenPipeError as error:
            raise TooMuchWork(_ENDED) from error
        size = int.from_bytes(self._read(_HEADER))
        if size > _MOST:
            raise TooMuchWork(_ENDED)
        return self._read(size)

    def _read(self, count: int) -> bytes:
        """So many bytes."""
        assert self._popen.stdout is not None  # noqa: S101 - it is a pipe
        ready = select.poll()
        ready.register(self._popen.stdout, select.POLLIN)
        pieces = bytearray()
        while len(pieces) < count:
            look()
            if ready.poll(_MILLISECONDS):
                piece = os.read(self._popen.stdout.fileno(), count - len(pieces))
                if not piece:
                    raise TooMuchWork(_ENDED)
                pieces += piece
        return bytes(pieces)

    def end(self) -> None:
        """Kill the process."""
        self.ended = True
        self._popen.kill()
        self._popen.communicate()


_process: ContextVar[_Process | None] = ContextVar("_process", default=None)


def asked(question: Question) -> str | None:
    """What the process for templates answers to this; None where they are rendered here. Raises as `_Process.ask`."""
    process = _process.get()
    return None if process is None else process.ask(question)["text"]
