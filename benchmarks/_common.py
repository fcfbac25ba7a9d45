"""What the benchmarks share: a realistic request, emptied caches, timing, and tables."""

from __future__ import annotations

import re
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import toolgram
from toolgram.styles.generic import GENERIC

BOS, EOS = "<s>", "<|im_end|>"
CHATML_SOURCE = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CHATML = toolgram.ChatTemplate(CHATML_SOURCE, BOS, EOS)
STYLES = tuple(style.name for style in GENERIC)

Tool = Mapping[str, Any]

_VERBS = ("create", "find", "update", "cancel", "list", "export")
_NOUNS = ("order", "invoice", "customer", "appointment", "ticket")
_TEXT = {"type": "string"}
_ADDRESS = {
    "type": "object",
    "properties": {"street": _TEXT, "city": _TEXT, "country": {"type": "string", "enum": ["AT", "DE", "FR", "PL"]}},
    "required": ["city"],
}
_LINE = {
    "type": "object",
    "properties": {"sku": _TEXT, "quantity": {"type": "integer", "minimum": 1, "maximum": 999}},
    "required": ["sku", "quantity"],
}


def end_in_order() -> None:
    """Let SIGTERM end the program as Ctrl+C does, so that the servers end which it started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _parameters(verb: str, noun: str) -> dict[str, Any]:
    """Five parameters: text, an enumeration, a bounded integer, an array, and an object or an array of objects."""
    nested = {"lines": {"type": "array", "items": _LINE, "maxItems": 20}} if verb == "create" else {"address": _ADDRESS}
    properties: dict[str, Any] = {
        f"{noun}_id": {"type": "string", "description": f"Which {noun}, as shown in the list"},
        "state": {"type": "string", "enum": ["draft", "open", "closed", f"{verb}_later"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50 * (1 + len(noun))},
        "tags": {"type": "array", "items": _TEXT, "maxItems": 8},
        **nested,
    }
    return {"type": "object", "properties": properties, "required": [f"{noun}_id", "state"]}


def tools(count: int) -> list[Tool]:
    """A number of tools (at most 30) in OpenAI's shape, with five parameters each."""
    return [
        {
            "type": "function",
            "function": {
                "name": f"{verb}_{noun}",
                "description": f"{verb.title()} one {noun} of the shop",
                "parameters": _parameters(verb, noun),
            },
        }
        for verb, noun in list(product(_VERBS, _NOUNS))[:count]
    ]


def request(tools: Sequence[Tool]) -> dict[str, Any]:
    """A chat-completions body with these tools."""
    return {"messages": [{"role": "user", "content": "Order 1207 is late. Where is it?"}], "tools": list(tools)}


def clear_caches() -> None:
    """Empty every cache of toolgram except the engines', and that of `re`: what comes next is like the first time."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "toolgram" and not name.startswith("toolgram.engines"):
            for value in list(vars(module).values()):
                for cached in _caches(value):
                    cached.cache_clear()
    re.purge()


def _caches(value: Any) -> Iterator[Any]:
    if hasattr(value, "cache_clear"):
        yield value
    elif isinstance(value, type):
        members = (getattr(member, "__func__", member) for member in list(vars(value).values()))
        yield from (member for member in members if hasattr(member, "cache_clear"))


def median(run: Callable[[], object], seconds: float, before: Callable[[], object] | None = None) -> float:
    """The median time of a run, in seconds, of all runs that fit in about `seconds`, and of three at least.

    `before` is done before each run, off the clock.
    """
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        if before:
            before()
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table; numbers are right-aligned."""
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(head))]
    print(f"\n{title}\n")
    lines = [
        " | ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)) for row in cells
    ]
    rule = " | ".join("-" * (w - 1) + ":" if r else "-" * w for w, r in zip(widths, right, strict=True))
    for line in (lines[0], rule, *lines[1:]):
        print(f"| {line} |")


def _cell(value: object) -> str:
    match value:
        case None:
            return "–"
        case float():
            return f"{value:.2f}" if value < 100 else f"{value:.0f}"
        case _:
            return str(value)
