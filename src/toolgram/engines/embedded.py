"""A model in this process: by the C interface of llama.cpp, or else by the server that comes with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from toolgram.engines.llama_c import OtherLibrary
from toolgram.engines.llama_cpp import LlamaCpp
from toolgram.engines.llama_object import LlamaObject


def load(
    path: Path, notify: Callable[[str], object], *, context: int = 4096, threads: int | None = None, alone: bool = False
) -> LlamaCpp | LlamaObject:
    """The embedded engine with a model, for one request at once if it is `alone`; `threads` are those of `LlamaCpp`.

    Where another xllamacpp is installed than the one whose C interface we know, its own server runs the model, and
    `notify` is told why. Raises ModelError for a file that cannot be run, EngineError where xllamacpp is missing.
    """
    try:
        return LlamaCpp(path, context=context, parallel=1 if alone else 16, threads=threads)
    except OtherLibrary as error:
        notify(f"{error}. Until then llama.cpp's own server runs the model, which takes longer.")
        return LlamaObject(path, context=context, parallel=1 if alone else 4, threads=threads)
