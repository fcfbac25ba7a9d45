"""A server that really listens, in a thread, for real clients."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from situations import CHATML
from toolgram.engines.base import Engine
from toolgram.server.app import create_app
from toolgram.server.listening import Connection, Listening
from toolgram.server.listening import config as listening_config
from toolgram.server.models import Served
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate


@contextmanager
def listening(app: Any, *, shutdown_timeout: int = 10, connection: type[Connection] = Connection) -> Iterator[str]:
    """Its address, while it listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = listening_config(app, shutdown_timeout)
        config.http = connection
        server = Listening(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


@contextmanager
def serving(
    engine: Engine,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    template: ChatTemplate = CHATML,
    aliases: Sequence[str] = (),
) -> Iterator[str]:
    """The address of a server of one model, named `recorded`."""
    with listening(create_app([Served("recorded", template, engine, tuple(aliases))], settings)) as address:
        yield address
