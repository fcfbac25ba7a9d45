"""The files of a GGUF model: one, or several parts as llama.cpp's gguf-split names them, `m-00001-of-00003.gguf`."""

from __future__ import annotations

import re
from pathlib import Path

_PART = re.compile(r"(.*)-\d{5}-of-(\d{5})\.gguf", re.DOTALL)


def parts_of(name: str) -> tuple[str, ...]:
    """The names or paths of a model's files, of which one is given: the first is the one to load, and has all that the
    model says of itself."""
    found = _PART.fullmatch(name)
    if found is None:
        return (name,)
    stem, count = found.groups()
    return tuple(f"{stem}-{number:05}-of-{count}.gguf" for number in range(1, int(count) + 1))


def size_of(path: Path) -> int:
    """The bytes of a model's files. Raises OSError where one is missing."""
    return sum(Path(part).stat().st_size for part in parts_of(str(path)))


def name_of(path: Path) -> str:
    """What a model is called by its file."""
    found = _PART.fullmatch(path.name)
    return found[1] if found else path.stem
