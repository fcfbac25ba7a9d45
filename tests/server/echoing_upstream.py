"""An upstream in a process of its own, which needs no imports that take long: `python echoing_upstream.py PORT`.

It answers a prompt with the words of its last line, `said COUNT times`, and says on standard output where it listens.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
ASKED = re.compile(r"tag(\d+)of(\d+)")
PAUSE = 0.01


def words(tag: str, count: int) -> list[str]:
    """What is answered."""
    return [f"{tag}:{number} " for number in range(count)]


def event(text: str, finish: str | None = None) -> bytes:
    return b"data: %b\n\n" % json.dumps({"choices": [{"text": text, "finish_reason": finish}]}).encode()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        body = await reader.readexactly(int(length[1])) if length else b""
        writer.write(HEAD)
        if asked := ASKED.search(json.loads(body)["prompt"] if body else ""):
            for word in words(asked[1], int(asked[2])):
                writer.write(event(word))
                await writer.drain()
                await asyncio.sleep(PAUSE)
        writer.write(event("", "stop") + b"data: [DONE]\n\n")
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass  # the other side has left
    finally:
        writer.close()


async def main(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - for who started it
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
