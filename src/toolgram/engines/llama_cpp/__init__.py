"""A model in this process: by the C interface of llama.cpp, or else by the server that comes with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from toolgram.errors import EngineError, needing

with needing("embedded", "the embedded engine"):
    import httpx2 as httpx2
    import llguidance as llguidance
    import numpy as numpy

from toolgram.engines.llama_cpp.bundled_server import LlamaObject
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.ffi import OtherLibrary

_IN_A_PASS = 32  # requests: more would only make each wait longer for its next token
_IN_A_SERVER = 4  # each has a context of its own there


def load(
    path: Path,
    notify: Callable[[str], object],
    *,
    context: int | None = None,
    threads: int | None = None,
    parallel: int = 1,
    deterministic: bool = False,
    mmproj: Path | None = None,
) -> LlamaCpp | LlamaObject:
    """The embedded engine with a model, for so many requests at once, or as many as are of use; others wait.

    `context`, `threads` and `deterministic` are those of `LlamaCpp`. Where the C interface of the xllamacpp that is
    installed is not known, or not there, as on Windows, its own server runs the model, and `notify` is told why; but
    that server cannot be made deterministic. It does so, too, where the model has a projector, the file `mmproj`, by
    which it is shown images. Raises ModelError for a file or a context that this machine cannot run,
    EngineError where xllamacpp is unsuitable, MissingPackage where it is not installed.
    """
    in_a_server = min(parallel, _IN_A_SERVER)
    if mmproj is not None:
        if deterministic:
            raise EngineError("answers cannot be made deterministic where images are shown")
        return LlamaObject(path, mmproj=mmproj, context=context, parallel=in_a_server, threads=threads)
    try:
        most = min(parallel, _IN_A_PASS)
        return LlamaCpp(path, context=context, parallel=most, threads=threads, deterministic=deterministic)
    except OtherLibrary as error:
        if deterministic:
            raise EngineError(f"answers cannot be made deterministic here: {error}") from error
        notify(f"{error}; llama.cpp's own server runs the model instead, which takes longer")
        return LlamaObject(path, context=context, parallel=in_a_server, threads=threads)
