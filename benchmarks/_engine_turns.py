"""The second turn of a long conversation: how long until its first token, against the first turn's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle, islice
from pathlib import Path

import toolgram
from _common import show
from _engine_peers import ours
from _engine_sides import Side, apart, here
from _tool_tasks import Task, tasks
from toolgram.engines.llama_cpp.engine import LlamaCpp

_OTHERS = 3  # clients beside, and after one another between the turns
_ROOM = 512  # tokens of the turns after the first


def turns(model: Path, tokens: int, threads: int | None) -> None:
    """Print it for a first turn of so many tokens: at once, after other requests, and beside other clients."""
    template = toolgram.ChatTemplate.from_gguf(model)
    engine = LlamaCpp(model, threads=threads)
    text = long_text(engine, tokens)
    rows = [["toolgram", *seconds(here(ours(engine, template)), text)]]
    engine.close()
    rows.append(["llama.cpp", *seconds(apart(model, threads, _OTHERS + 1, tokens + _ROOM), text)])
    head = ["who", "first turn", "second", "×", "after others", "×", "beside others", "×"]
    show(f"Seconds to the first token, after a first turn of {tokens} tokens", head, rows)


def long_text(engine: LlamaCpp, tokens: int) -> str:
    """A text of about so many tokens, in which nothing comes twice."""
    lines = (f"{number}. {task.question}" for number, task in zip(count(), islice(_forever(), tokens), strict=False))
    text = ""
    while engine.count_tokens(((text, False),)) < tokens:
        text += "\n".join(islice(lines, 20)) + "\n"
    return text


def _forever() -> Iterator[Task]:
    return cycle(tasks())


def seconds(side: Side, text: str) -> list[float]:
    """The first turn's, and those of three later ones, each with its part of the first one's."""
    few = [Task(task.question, ()) for task in tasks()[:_OTHERS]]

    def turn(more: str) -> float:
        return side.ask("text", Task(text + more, ())).first

    first = turn("What is the first of these?")
    found = [turn("What is the second of these?")]
    side.at_once("text", few, 1)
    found.append(turn("What is the third of these?"))
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(side.at_once, "text", few * 4, _OTHERS)
        found.append(turn("What is the fourth of these?"))
        beside.result()
    return [first, *(number for each in found for number in (each, each / first))]
