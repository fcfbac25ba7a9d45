"""What the process runs that renders the templates of others: questions come on stdin, answers go to stdout."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, BinaryIO

from toolgram.errors import TemplateError
from toolgram.process_limits import lower
from toolgram.template.bounds import TooMuch
from toolgram.template.chat_template import ChatTemplate

_HEADER = 8  # bytes, which say how many follow
_MEMORY = 1 << 30  # bytes
_NICE = 5  # streams go first


def main() -> None:
    """Answers until there are no more questions."""
    lower(resource.RLIMIT_AS, _MEMORY)
    os.nice(_NICE)
    while header := sys.stdin.buffer.read(_HEADER):
        _tell(sys.stdout.buffer, _answered(json.loads(sys.stdin.buffer.read(int.from_bytes(header)))))


def _tell(out: BinaryIO, answer: Mapping[str, Any]) -> None:
    content = json.dumps(answer).encode()
    out.write(len(content).to_bytes(_HEADER) + content)
    out.flush()


def _answered(question: Mapping[str, Any]) -> Mapping[str, Any]:
    match question:
        case {"seconds": int(seconds)}:
            used = resource.getrusage(resource.RUSAGE_SELF)
            lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds, for_good=False)
            return {"text": ""}
        case {"template": template, **given}:
            try:
                return {"text": _rendered(ChatTemplate(*template), **given)}
            except TemplateError as error:
                return {"error": str(error), "too_much": isinstance(error.__cause__, TooMuch)}
        case _:
            raise ValueError(question)


def _rendered(template: ChatTemplate, arguments: Mapping[str, Any] | None = None, now: str | None = None) -> str:
    if arguments is None:
        return ""
    return template.render(**arguments, now=datetime.fromisoformat(now) if now else None)
