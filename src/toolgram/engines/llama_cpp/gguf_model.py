"""A GGUF model in memory, and the sequences it has read; all of it runs on the engine's one worker thread."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np

from toolgram.engines.llama_cpp import ffi, machine
from toolgram.engines.llama_cpp.ffi_layout import Batch
from toolgram.engines.llama_cpp.room import SHARE, SMALL_CONTEXT, Room, room_of
from toolgram.engines.llama_cpp.sampling import Logits
from toolgram.engines.llama_cpp.threads import Cores
from toolgram.engines.llama_cpp.vocabulary import Vocabulary
from toolgram.errors import EngineError, ModelError
from toolgram.gguf_files import size_of

BATCH = 512  # tokens in one call
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
        ffi.library().c.llama_set_abort_callback(context, _STRLEN, self._flag)


_STRLEN = ctypes.cast(ctypes.CDLL("msvcrt" if os.name == "nt" else None).strlen, ctypes.c_void_p)
_NO_ROOM, _ABORTED = 1, 2  # what llama_decode returns
_STATES = 1  # LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY: without the keys and values of attention


class NoRoom(Exception):
    """The sequences hold as many tokens as there is memory for."""


_LITTLE = 16  # what is not more than one of so many parts of the free memory may be cleared at the start
_SHARED = 4  # contexts that many sequences share
_ENOUGH = 16  # sequences at once: beyond, a memory for each is worth more than one more of them

State = ctypes.Array[ctypes.c_char]
"""What a sequence has read, as llama.cpp packs it."""


class Span(NamedTuple):
    """Tokens to append to a sequence that has `start` already; the logits after the `wanted` last ones are kept.

    Before these come those after one `more` of them, counted from 0, where there is one.
    """

    sequence: int
    start: int
    tokens: Sequence[int]
    wanted: int
    more: int | None = None

    @property
    def rows(self) -> list[int]:
        """The tokens, counted from 0, after which the logits are kept."""
        size = len(self.tokens)
        return [*(() if self.more is None else (self.more,)), *range(size - self.wanted, size)]


class Model:
    """A loaded GGUF model with the memory of some sequences, which share what they have in common.

    `context` tokens at most fit into a sequence, and `budget` into all together; None are what the model was `trained`
    for, and a context for each sequence where a sixteenth of the free memory holds them, or else up to four, as far as
    a quarter does. With one for each, each has its memory `apart`, and a pass
    looks for each token at that alone; else `kept` sequences more are there. `at_once` are those that are to be
    written together: `parallel`, or as many, and enough, as can have a memory apart; with `alone` each has one, and
    there are as few as that takes. Of a model whose layers have states, both are no more than these fit. `threads` are
    those of `Cores`. `aside` bytes of sequences that ended may be kept elsewhere.
    Raises ModelError for a file that is missing, damaged, or of a kind that cannot be run, and for a context that is
    larger than the free memory.
    """

    def __init__(
        self,
        path: Path,
        context: int | None,
        threads: int | None,
        *,
        parallel: int = 1,
        kept: int = 0,
        budget: int | None = None,
        alone: bool = False,
    ) -> None:
        self._c = ffi.library().c
        self._model = _load(path)
        self.vocabulary = Vocabulary.of_model(self._model)
        self.architecture = _metadata(self._model, "general.architecture")
        self.trained: int = self._c.llama_model_n_ctx_train(self._model)
        self.asked = context
        room = room_of(path)
        self.bytes_per_token, self.bytes_per_sequence = room.bytes_per_token, room.bytes_per_sequence
        parallel, kept, states = _fitting_states(room, parallel, kept)
        self._share = None if room.share is None else max(room.share - states, 0) // self.bytes_per_token
        self.context = min(self.trained, context or self._share or SMALL_CONTEXT)
        self._check_context(path, room.free)
        fitting = min(parallel, self._fitting() if budget is None else budget // self.context)
        self.apart = alone or (fitting > 1 and fitting >= min(parallel, _ENOUGH))
        self.at_once = max(fitting, 1) if self.apart else parallel
        contexts = self.at_once if self.apart else min(max((self._share or 0) // self.context, 1), _SHARED, parallel)
        self.room = max(self.context, budget or contexts * self.context)  # in tokens
        aside = self.room if self.apart else max(self.room, min(2 * self.room, self._share or 0))
        self.aside = aside * self.bytes_per_token + min(2 * states, room.share or 0)
        self.sequences = self.at_once if self.apart else parallel + kept
        context_pointer = _context(self._model, self.room, self.sequences, unified=not self.apart)
        self._free = weakref.finalize(self, _free, self._model, context_pointer)
        if context_pointer is None:
            self._free()
            raise ModelError(f"{path}: no context of {self.room} tokens can be made; is there memory enough?")
        self._context = context_pointer
        self._memory: int = self._c.llama_get_memory(self._context)
        self._row = ctypes.c_float * len(self.vocabulary.pieces)
        self._cores = Cores(threads, size_of(path))
        self._batch = _Rows.of(BATCH)
        # the state of a recurrent model after a text is not its state after the half of it
        self.shares = not (self._c.llama_model_is_recurrent(self._model) or self._c.llama_model_is_hybrid(self._model))

    def _check_context(self, path: Path, free: int | None) -> None:
        size = self.context * self.bytes_per_token
        if free is not None and size > free:
            self._c.llama_model_free(self._model)
            raise ModelError(
                f"{path}: a context of {self.context} tokens takes {size / 1e9:.1f} GB, and only {free / 1e9:.1f} GB "
                f"of memory are free: give at most {max(free // self.bytes_per_token, 1)} (--ctx-size, context=)"
            )

    def _fitting(self) -> int:
        """How many whole contexts are little of the free memory."""
        return (self._share or 0) * SHARE // _LITTLE // self.context

    def close(self) -> None:
        """Free the memory; nothing else may be called afterwards."""
        self._free()

    def evaluate(self, spans: Sequence[Span], cancel: Cancel) -> list[list[Logits]]:
        """Append spans of at most `BATCH` tokens in all; the logits that each of them wants, valid until the next call.

        Raises Cancelled, NoRoom (nothing was appended then), or EngineError; after both others the sequences may have
        part of the tokens.
        """
        cancel.install(self._context)
        count = self._batch.fill(spans)
        threads = self._cores.of_pass(count)
        self._c.llama_set_n_threads(self._context, threads, threads)
        status = self._c.llama_decode(self._context, self._batch.first(count))
        if status == _NO_ROOM:
            raise NoRoom
        if status == _ABORTED and cancel.is_set():
            raise Cancelled
        if status != 0:
            raise EngineError(f"llama.cpp failed to evaluate {count} tokens (status {status})")
        starts = accumulate((len(span.tokens) for span in spans[:-1]), initial=0)
        return [[self._logits(start + row) for row in span.rows] for span, start in zip(spans, starts, strict=True)]

    def _logits(self, row: int) -> Logits:
        address: int | None = self._c.llama_get_logits_ith(self._context, row)
        if address is None:
            raise EngineError("the model gives no logits: it is not one that writes text")
        return np.frombuffer(memoryview(self._row.from_address(address)), np.float32)

    def copy(self, source: int, target: int, length: int) -> None:
        """Let an empty sequence begin with the first tokens of another; they are shared, unless memories are apart.

        Where the model `shares` nothing, it has all of them.
        """
        if not self.apart:
            self._c.llama_memory_seq_cp(self._memory, source, target, 0, length if self.shares else -1)
        elif self.restore(target, self.save(source)):
            if self.shares:
                self.cut(target, length)
        else:
            raise EngineError("llama.cpp cannot copy what a sequence has read")

    def cut(self, sequence: int, length: int) -> bool:
        """Keep so many tokens of a sequence; False, and nothing is done, for a model that cannot go back."""
        return self._c.llama_memory_seq_rm(self._memory, sequence, length, -1)

    def go_back(self, sequence: int, states: State, length: int) -> bool:
        """Keep so many tokens of a sequence, after which its states were these; False where that is not possible."""
        told = self._c.llama_state_seq_set_data_ext(self._context, states, len(states), sequence, _STATES)
        return told > 0 and self.cut(sequence, length)

    def save(self, sequence: int, *, states: bool = False) -> State:
        """What a sequence has read, to be restored later; or only the states of layers that are recurrent."""
        flags = _STATES if states else 0
        size = self._c.llama_state_seq_get_size_ext(self._context, sequence, flags)
        state = ctypes.create_string_buffer(size)
        if self._c.llama_state_seq_get_data_ext(self._context, state, size, sequence, flags) != size:
            raise EngineError("llama.cpp cannot save what a sequence has read")
        return state

    def restore(self, sequence: int, state: State) -> bool:
        """Let an empty sequence have read what another one had; False, and nothing is done, where there is no room."""
        return self._c.llama_state_seq_set_data_ext(self._context, state, len(state), sequence, 0) > 0

    def clear(self) -> None:
        """Forget all sequences."""
        self._c.llama_memory_clear(self._memory, True)  # noqa: FBT003 - C knows no names


@dataclass(frozen=True, slots=True)
class _Rows:
    """The arrays of a batch, which are filled again and again."""

    tokens: ctypes.Array[ctypes.c_int32]
    positions: ctypes.Array[ctypes.c_int32]
    counts: ctypes.Array[ctypes.c_int32]
    sequences: ctypes.Array[ctypes.c_int32]
    pointers: ctypes.Array[ctypes._Pointer[ctypes.c_int32]]  # pyright: ignore[reportPrivateUsage] - has no other name
    wanted: ctypes.Array[ctypes.c_int8]

    @classmethod
    def of(cls, size: int) -> _Rows:
        numbers = ctypes.c_int32 * size
        sequences = numbers()
        width = ctypes.sizeof(ctypes.c_int32)
        to_number = ctypes.POINTER(ctypes.c_int32)
        pointers = (to_number * size)(
            *(ctypes.cast(ctypes.addressof(sequences) + row * width, to_number) for row in range(size))
        )
        return cls(numbers(), numbers(), numbers(*[1] * size), sequences, pointers, (ctypes.c_int8 * size)())

    def fill(self, spans: Sequence[Span]) -> int:
        """Write the spans one after the other; how many rows they take."""
        row = 0
        for span in spans:
            end = row + len(span.tokens)
            self.tokens[row:end] = span.tokens
            self.positions[row:end] = range(span.start, span.start + len(span.tokens))
            self.sequences[row:end] = [span.sequence] * len(span.tokens)
            self.wanted[row:end] = [0] * len(span.tokens)
            for wanted in span.rows:
                self.wanted[row + wanted] = 1
            row = end
        return row

    def first(self, count: int) -> Batch:
        """The first rows as llama.cpp takes them."""
        return Batch(
            n_tokens=count,
            token=self.tokens,
            pos=self.positions,
            n_seq_id=self.counts,
            seq_id=self.pointers,
            logits=self.wanted,
        )


def check_file(path: Path) -> None:
    """Raises ModelError for a model that cannot be read, is not GGUF, or is larger than the memory there is."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        size = size_of(path)
    except OSError as error:
        raise ModelError(f"{error.filename or path} cannot be read: {error.strerror or error}") from error
    if magic != b"GGUF":
        raise ModelError(f"{path} is not a GGUF file")
    memory = machine.memory()
    if memory is not None and size > memory:
        raise ModelError(f"{path} has {size / 1e9:.1f} GB, and there are only {memory / 1e9:.1f} GB of memory")


def _fitting_states(room: Room, parallel: int, kept: int) -> tuple[int, int, int]:
    """How many sequences there can be, and be kept, whose states take half of the share, and the bytes they take."""
    if room.share is not None and room.bytes_per_sequence:
        most = max(room.share // 2 // room.bytes_per_sequence, 1)
        kept = min(kept, most // 2)
        parallel = min(parallel, most - kept)
    return parallel, kept, (parallel + kept) * room.bytes_per_sequence


def _metadata(model: int, key: str) -> str:
    """A value of the file's metadata as text, empty if there is none."""
    text = ctypes.create_string_buffer(256)
    found = ffi.library().c.llama_model_meta_val_str(model, key.encode(), text, len(text))
    return text.value.decode() if found >= 0 else ""


def _load(path: Path) -> int:
    check_file(path)
    lib = ffi.library()
    with _LOADING:
        ffi.listen(lib)  # llama.cpp's own server, in this process, takes the log for itself
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
    c = ffi.library().c
    if context is not None:
        c.llama_free(context)
    c.llama_model_free(model)


def _context(model: int, size: int, sequences: int, *, unified: bool) -> int | None:
    c = ffi.library().c
    params = c.llama_context_default_params()
    params.n_ctx = max(size, sequences)  # with fewer tokens than sequences llama.cpp ends the whole process
    params.n_batch = params.n_ubatch = BATCH
    params.n_seq_max = sequences
    params.kv_unified = unified
    return c.llama_init_from_model(model, params)
