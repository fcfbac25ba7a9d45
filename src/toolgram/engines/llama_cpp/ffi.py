"""The C interface of llama.cpp in the pinned xllamacpp wheel, by ctypes: no compiler, no header.

It is looked at in a process of its own first (`ffi_layout`), so that another library cannot crash this one.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import logging
import os
import subprocess
import sys
from collections import deque
from ctypes import c_char_p, c_int32, c_void_p
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from toolgram.engines.llama_cpp import ffi_layout
from toolgram.errors import EngineError, MissingPackage

XLLAMACPP = "2026.10.11549"
TOKEN_UNKNOWN, TOKEN_UNUSED, TOKEN_CONTROL, TOKEN_USER_DEFINED, TOKEN_BYTE = 1, 2, 8, 16, 32
TOKEN_LSTRIP, TOKEN_RSTRIP = 128, 256

_log = logging.getLogger("toolgram.llama_cpp")
_ERROR = 4  # ggml_log_level
_PATIENCE = 60.0  # seconds; it takes a tenth of one

_LogCallback = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)


@dataclass(frozen=True)
class Library:
    """The loaded shared object: `c` has the functions, `errors` the last lines that llama.cpp logged as errors."""

    c: ctypes.CDLL
    errors: deque[str] = field(default_factory=lambda: deque[str](maxlen=8))
    keep: list[Any] = field(default_factory=list[Any])  # callbacks that C holds must outlive every call

    def address(self, function: str) -> int:
        """Where a function is, for others that call it from C."""
        address = ctypes.cast(getattr(self.c, function), c_void_p).value
        assert address is not None  # noqa: S101 - a symbol that was found has an address
        return address


class OtherLibrary(EngineError):
    """An xllamacpp is installed, but not the one whose C interface we know."""


@cache
def library() -> Library:
    """llama.cpp, loaded once in a process. Raises MissingPackage, and OtherLibrary for another version."""
    # Threads that wait spin for 0.1 ms: those that spin longer ruin a machine that others use too.
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    path = _shared_object()
    _check(path)
    lib = Library(ffi_layout.opened(str(path)))
    listen(lib)
    lib.c.llama_backend_init()
    return lib


def _check(path: Path) -> None:
    """Ask the library about its layout in another process, where it may crash."""
    command = [sys.executable, "-I", ffi_layout.__file__, str(path)]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)  # noqa: S603 - ours
    except subprocess.TimeoutExpired as error:
        raise OtherLibrary(f"llama.cpp in {path} does not answer within {_PATIENCE:.0f} s") from error
    if reason := asked.stdout or (asked.returncode and f"asking it ended with status {asked.returncode}"):
        if next(iter(ffi_layout.SIGNATURES)) in str(reason):  # the first that is looked for
            raise OtherLibrary(f"{path} shows none of llama.cpp's C functions, as in wheels of xllamacpp for Windows")
        raise OtherLibrary(f"llama.cpp in {path} is not that of xllamacpp {XLLAMACPP}: {reason}")


def _shared_object() -> Path:
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackage("the embedded engine", "xllamacpp", "embedded")
    version = importlib.metadata.version("xllamacpp")
    if version.partition("+")[0] != XLLAMACPP:  # what follows tells a build, such as one for a GPU
        raise OtherLibrary(
            f"xllamacpp {version} is installed, but the embedded engine is made for the C interface of {XLLAMACPP}: "
            f"pip install xllamacpp=={XLLAMACPP}"
        )
    folder = Path(spec.submodule_search_locations[0])
    found = [path for path in sorted(folder.glob("xllamacpp*")) if path.suffix in {".so", ".pyd", ".dylib"}]
    if not found:
        raise OtherLibrary(f"there is no shared object of xllamacpp in {folder}")
    return found[0]


def listen(lib: Library) -> None:
    """Take what llama.cpp says from now on; once more where other code of this process may have asked for it since."""

    def take(level: int, text: bytes, _: object) -> None:
        line = text.decode(errors="replace").strip()
        if level == _ERROR:
            lib.errors.append(line)  # an exception will say it; the log is for the rest
        if line:
            _log.debug("%s", line)

    callback = _LogCallback(take)
    lib.c.llama_log_set(ctypes.cast(callback, c_void_p), None)
    lib.keep[:] = [callback]  # now that the one before is not called any more
