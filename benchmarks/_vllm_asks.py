"""Questions to a chat server, streamed: when the first piece of an answer came, when all of it, and what it was.

The clients are sockets, and an answer is read after it is there: with 64 clients it is the servers that are measured.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs

from _tool_tasks import Task

TOKENS = 128
LONG = 600  # seconds
KINDS: Mapping[str, Mapping[str, Any]] = {
    "required": {"tool_choice": "required"},
    "required, strict": {"tool_choice": "required", "strict": True},
    "auto": {"tool_choice": "auto"},
    "text": {"tool_choice": None},
}
OUTCOMES = ("call", "invalid call", "text", "cut off", "error")


@dataclass(frozen=True)
class Answer:
    """When its first piece and its end came, in seconds, what it cost, and which of the OUTCOMES it is."""

    first: float
    whole: float
    prompt_tokens: int
    tokens: int
    outcome: str
    said: str = ""


def body(kind: str, task: Task, model: str) -> dict[str, Any]:
    """A chat-completions body; where a kind is strict, each tool says so; a text is asked for without tools."""
    how = KINDS[kind]
    asked = {"model": model, "messages": [{"role": "user", "content": task.question}], "temperature": 0}
    asked |= {"max_tokens": TOKENS, "stream": True, "stream_options": {"include_usage": True}}
    if how["tool_choice"] is None:
        return asked
    tools = [{**tool, "function": {**tool["function"], **_strict(how)}} for tool in task.tools]
    return {**asked, "tools": tools, "tool_choice": how["tool_choice"], "parallel_tool_calls": False}


def _strict(how: Mapping[str, Any]) -> dict[str, Any]:
    return {"strict": True} if how.get("strict") else {}


async def ask(url: str, asked: Mapping[str, Any]) -> Answer:
    """The answer, over a new connection."""
    where = urlsplit(url)
    raw = json.dumps(asked).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {where.netloc}\r\nconnection: close\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n"
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=1 << 24)
    writer.write(head.encode() + raw)
    first, lines = 0.0, list[bytes]()
    async with asyncio.timeout(LONG):
        async for line in reader:
            lines.append(line)
            if not first and line.startswith(b"data: {") and _says(json.loads(line[6:])):
                first = time.perf_counter() - began
    whole = time.perf_counter() - began
    writer.close()
    return _read(lines, asked, first or whole, whole)


def _says(event: Mapping[str, Any]) -> bool:
    """Whether an event has a piece of the answer: a text, or of a call; not the role alone."""
    deltas = [choice["delta"] for choice in event.get("choices") or ()]
    return any(delta.get("content") or delta.get("tool_calls") for delta in deltas)


def _read(lines: Sequence[bytes], asked: Mapping[str, Any], first: float, whole: float) -> Answer:
    events = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
    usage: dict[str, Any] = next((event["usage"] for event in reversed(events) if event.get("usage")), {})
    told = (first, whole, usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))
    if not usage or any("error" in event for event in events):
        return Answer(*told, "error", b"".join(lines)[-500:].decode(errors="replace"))
    choices = [choice for event in events for choice in event["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    calls: dict[int, list[str]] = {}
    for part in (part for choice in choices for part in choice["delta"].get("tool_calls") or ()):
        call = calls.setdefault(part["index"], ["", ""])
        for at, name in enumerate(("name", "arguments")):
            call[at] += part["function"].get(name) or ""
    said = text + "".join(f"\n{name}({arguments})" for name, arguments in calls.values())
    if any(choice.get("finish_reason") == "length" for choice in choices):
        return Answer(*told, "cut off", said)
    if not calls:
        return Answer(*told, "text", said)
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in asked.get("tools", ())}
    valid = all(name in schemas and _fits(arguments, schemas[name]) for name, arguments in calls.values())
    return Answer(*told, "call" if valid else "invalid call", said)


def _fits(arguments: str, schema: Mapping[str, Any]) -> bool:
    try:
        return jsonschema_rs.is_valid(schema, json.loads(arguments))
    except ValueError:
        return False


def at_once(url: str, bodies: Sequence[Mapping[str, Any]], clients: int) -> tuple[float, list[Answer]]:
    """The seconds that so many clients need to have all of these answered, each one after another, and the answers."""

    async def run() -> tuple[float, list[Answer]]:
        left = iter(bodies)

        async def client() -> list[Answer]:
            return [await ask(url, each) for each in left]

        began = time.perf_counter()
        answers = await asyncio.gather(*(client() for _ in range(clients)))
        return time.perf_counter() - began, [answer for each in answers for answer in each]

    return asyncio.run(run())
