"""A GGUF model in memory, with one sequence of context; all of it runs on the engine's one worker thread."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from toolgram.engines import llama_c
from toolgram.engines.sampling import Logits
from toolgram.engines.vocabulary import Vocabulary
from toolgram.errors import EngineError, ModelError

_BATCH = 512  # tokens in one call
_WORTH_SHARING = 64  # tokens; sharing fewer among cores costs more than it saves, much more on a busy machine
_LOADING = threading.Lock()  # llama.cpp's log does not say which model a line is about


class Cancelled(Exception):
    """The one who asked has gone."""


class Cancel:
    """Tells a generation from another thread to stop, even in the middle of an evaluation.

    llama.cpp asks a C function while it computes. One of Python would need the interpreter's lock at every node of
    the graph; `strlen` of our two bytes gives the same answer for nothing: 0 is to go on, 1 to stop.
    """

    def __init__(self) -> None:
        self._flag = ctypes.create_string_buffer(2)

    def set(self) -> None:
        """Stop."""
        self._flag.value = b"x"

    def is_set(self) -> bool:
        """Whether to stop."""
        return bool(self._flag.value)

    def install(self, context: int) -> None:
        """Let llama.cpp ask this one; it must live as long as the evaluation."""
        llama_c.library().c.llama_set_abort_callback(context, _STRLEN, self._flag)


_STRLEN = ctypes.cast(ctypes.CDLL("msvcrt" if os.name == "nt" else None).strlen, ctypes.c_void_p)
_ABORTED = 2  # what llama_decode returns then


class Model:
    """A loaded GGUF model with one sequence of context.

    `threads` cores are used, or all for many tokens at once and else one. Raises ModelError for a file that is missing,
    damaged, or of a kind that cannot be run.
    """

    def __init__(self, path: Path, context: int, threads: int | None) -> None:
        self._c = llama_c.library().c
        self._model = _load(path)
        self.vocabulary = Vocabulary.of_model(self._model)
        self.context = min(context, self._c.llama_model_n_ctx_train(self._model))
        context_pointer = _context(self._model, self.context)
        self._free = weakref.finalize(self, _free, self._model, context_pointer)
        if context_pointer is None:
            self._free()
            raise ModelError(f"{path}: no context of {self.context} tokens can be made; is there memory enough?")
        self._context = context_pointer
        self._memory: int = self._c.llama_get_memory(self._context)
        self._threads = threads or 1, threads or os.cpu_count() or 1
        self._written: list[int] = []

    def close(self) -> None:
        """Free the memory; nothing else may be called afterwards."""
        self._free()

    def resume(self, prompt: Sequence[int]) -> int:
        """Keep what the context has in common with the prompt; how many tokens that is (never all of them)."""
        common = 0
        for old, new in zip(self._written, prompt[:-1], strict=False):
            if old != new:
                break
            common += 1
        self._shorten(common)
        return len(self._written)

    def evaluate(self, tokens: Sequence[int], cancel: Cancel) -> Logits:
        """Append tokens; the logits after the last one, valid until the next call. Raises Cancelled."""
        cancel.install(self._context)
        for start in range(0, len(tokens), _BATCH):
            self._append(tokens[start : start + _BATCH], cancel)
        logits = self._c.llama_get_logits_ith(self._context, -1)
        if not logits:
            raise EngineError("the model gives no logits: it is not one that writes text")
        return np.ctypeslib.as_array(logits, (len(self.vocabulary.pieces),))

    def _append(self, tokens: Sequence[int], cancel: Cancel) -> None:
        if cancel.is_set():
            raise Cancelled
        threads = self._threads[len(tokens) >= _WORTH_SHARING]
        self._c.llama_set_n_threads(self._context, threads, threads)
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        status = self._c.llama_decode(self._context, llama_c.Batch(n_tokens=len(tokens), token=array))
        if status == _ABORTED and cancel.is_set():
            self._shorten(len(self._written))  # part of the tokens may be there
            raise Cancelled
        if status != 0:
            self._forget()
            raise EngineError(f"llama.cpp failed to evaluate {len(tokens)} tokens (status {status})")
        self._written += tokens

    def _shorten(self, length: int) -> None:
        if self._c.llama_memory_seq_rm(self._memory, 0, length, -1):
            del self._written[length:]
        else:
            self._forget()  # a recurrent model cannot go back

    def _forget(self) -> None:
        self._c.llama_memory_clear(self._memory, True)  # noqa: FBT003 - C knows no names
        self._written.clear()


def _load(path: Path) -> int:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error
    if magic != b"GGUF":
        raise ModelError(f"{path} is not a GGUF file")
    lib = llama_c.library()
    with _LOADING:
        lib.errors.clear()
        model: int | None = lib.c.llama_model_load_from_file(os.fsencode(path), lib.c.llama_model_default_params())
        reasons = list(lib.errors)
    if model is None:
        raise ModelError(f"{path} cannot be loaded: {reasons[0] if reasons else 'llama.cpp gives no reason'}")
    if lib.c.llama_model_has_encoder(model):
        lib.c.llama_model_free(model)
        raise ModelError(f"{path} has an encoder; only models that go on writing a text can be run")
    return model


def _free(model: int, context: int | None) -> None:
    c = llama_c.library().c
    if context is not None:
        c.llama_free(context)
    c.llama_model_free(model)


def _context(model: int, size: int) -> int | None:
    c = llama_c.library().c
    params = c.llama_context_default_params()
    params.n_ctx = size
    params.n_batch = params.n_ubatch = _BATCH
    return c.llama_init_from_model(model, params)
