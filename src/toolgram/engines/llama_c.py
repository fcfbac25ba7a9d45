"""The C interface of llama.cpp in the pinned xllamacpp wheel, by ctypes: no compiler, no header.

Source of the layouts: include/llama.h of the llama.cpp that the wheel holds, checked against the values that
`llama_*_default_params` give before anything is passed by value.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import logging
import os
from collections import deque
from collections.abc import Mapping
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int8, c_int32, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from toolgram.errors import EngineError

XLLAMACPP = "2026.10.11549"
TOKEN_UNKNOWN, TOKEN_UNUSED, TOKEN_CONTROL, TOKEN_USER_DEFINED = 1, 2, 8, 16
TOKEN_LSTRIP, TOKEN_RSTRIP = 128, 256

_log = logging.getLogger("toolgram.llama_cpp")
_ERROR = 4  # ggml_log_level


class ModelParams(ctypes.Structure):
    """`llama_model_params`."""

    _fields_: ClassVar = [
        ("devices", c_void_p),
        ("tensor_buft_overrides", c_void_p),
        ("n_gpu_layers", c_int32),
        ("split_mode", c_int32),
        ("load_mode", c_int32),
        ("reserved", c_int32),  # not needed here, and so not named
        ("main_gpu", c_int32),
        ("tensor_split", c_void_p),
        ("progress_callback", c_void_p),
        ("progress_callback_user_data", c_void_p),
        ("kv_overrides", c_void_p),
        ("vocab_only", c_bool),
        ("check_tensors", c_bool),
        ("use_extra_bufts", c_bool),
        ("no_host", c_bool),
        ("no_alloc", c_bool),
        ("load_mtp", c_bool),
    ]


class ContextParams(ctypes.Structure):
    """`llama_context_params`."""

    _fields_: ClassVar = [
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_rs_seq", c_uint32),
        ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32),
        ("n_threads", c_int32),
        ("n_threads_batch", c_int32),
        ("ctx_type", c_int32),
        ("rope_scaling_type", c_int32),
        ("pooling_type", c_int32),
        ("attention_type", c_int32),
        ("flash_attn_type", c_int32),
        ("rope_freq_base", c_float),
        ("rope_freq_scale", c_float),
        ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float),
        ("yarn_beta_fast", c_float),
        ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_uint32),
        ("defrag_thold", c_float),
        ("cb_eval", c_void_p),
        ("cb_eval_user_data", c_void_p),
        ("type_k", c_int32),
        ("type_v", c_int32),
        ("abort_callback", c_void_p),
        ("abort_callback_data", c_void_p),
        ("reserved", c_void_p),  # not needed here, and so not named
        ("embeddings", c_bool),
        ("offload_kqv", c_bool),
        ("no_perf", c_bool),
        ("op_offload", c_bool),
        ("swa_full", c_bool),
        ("kv_unified", c_bool),
        ("samplers", c_void_p),
        ("n_samplers", c_size_t),
        ("ctx_other", c_void_p),
    ]


class Batch(ctypes.Structure):
    """`llama_batch`."""

    _fields_: ClassVar = [
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", c_void_p),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    ]


# Values that are not 0, null or false. Every other field must be.
_MODEL_DEFAULTS = {"n_gpu_layers": -1, "split_mode": 1, "load_mode": -1, "reserved": 1, "use_extra_bufts": True}
_CONTEXT_DEFAULTS = {
    "n_ctx": 512,
    "n_batch": 2048,
    "n_ubatch": 512,
    "n_seq_max": 1,
    "n_outputs_max_per_seq": 1,
    "n_threads": 4,
    "n_threads_batch": 4,
    "rope_scaling_type": -1,
    "pooling_type": -1,
    "attention_type": -1,
    "flash_attn_type": -1,
    "yarn_ext_factor": -1.0,
    "yarn_attn_factor": -1.0,
    "yarn_beta_fast": -1.0,
    "yarn_beta_slow": -1.0,
    "defrag_thold": -1.0,
    "type_k": 1,
    "type_v": 1,
    "offload_kqv": True,
    "no_perf": True,
    "op_offload": True,
    "swa_full": True,
}

_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "llama_backend_init": (None, ()),
    "llama_log_set": (None, (c_void_p, c_void_p)),
    "llama_model_default_params": (ModelParams, ()),
    "llama_context_default_params": (ContextParams, ()),
    "llama_model_load_from_file": (c_void_p, (c_char_p, ModelParams)),
    "llama_model_free": (None, (c_void_p,)),
    "llama_model_get_vocab": (c_void_p, (c_void_p,)),
    "llama_model_has_encoder": (c_bool, (c_void_p,)),
    "llama_model_is_recurrent": (c_bool, (c_void_p,)),
    "llama_model_is_hybrid": (c_bool, (c_void_p,)),
    "llama_model_n_ctx_train": (c_int32, (c_void_p,)),
    "llama_init_from_model": (c_void_p, (c_void_p, ContextParams)),
    "llama_free": (None, (c_void_p,)),
    "llama_set_abort_callback": (None, (c_void_p, c_void_p, c_void_p)),
    "llama_set_n_threads": (None, (c_void_p, c_int32, c_int32)),
    "llama_vocab_n_tokens": (c_int32, (c_void_p,)),
    "llama_vocab_eos": (c_int32, (c_void_p,)),
    "llama_vocab_is_eog": (c_bool, (c_void_p, c_int32)),
    "llama_vocab_get_attr": (c_int32, (c_void_p, c_int32)),
    "llama_token_to_piece": (c_int32, (c_void_p, c_int32, c_char_p, c_int32, c_int32, c_bool)),
    "llama_tokenize": (c_int32, (c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool)),
    "llama_get_memory": (c_void_p, (c_void_p,)),
    "llama_memory_clear": (None, (c_void_p, c_bool)),
    "llama_memory_seq_rm": (c_bool, (c_void_p, c_int32, c_int32, c_int32)),
    "llama_memory_seq_cp": (None, (c_void_p, c_int32, c_int32, c_int32, c_int32)),
    "llama_decode": (c_int32, (c_void_p, Batch)),
    "llama_get_logits_ith": (POINTER(c_float), (c_void_p, c_int32)),
}

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


@cache
def library() -> Library:
    """llama.cpp, loaded once in a process. Raises EngineError where it is missing or of another version."""
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")  # or idle threads spin, and ruin a machine that others use too
    path = _shared_object()
    try:
        lib = Library(ctypes.CDLL(str(path)))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(lib.c, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise EngineError(f"llama.cpp cannot be loaded from {path}: {error}") from error
    _check("llama_model_params", lib.c.llama_model_default_params(), _MODEL_DEFAULTS)
    _check("llama_context_params", lib.c.llama_context_default_params(), _CONTEXT_DEFAULTS)
    _capture_log(lib)
    lib.c.llama_backend_init()
    return lib


def _shared_object() -> Path:
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        raise EngineError("the embedded engine needs xllamacpp: pip install 'toolgram[embedded]'")
    version = importlib.metadata.version("xllamacpp")
    if version != XLLAMACPP:
        raise EngineError(
            f"xllamacpp {version} is installed, but the embedded engine is made for the C interface of {XLLAMACPP}: "
            f"pip install xllamacpp=={XLLAMACPP}"
        )
    folder = Path(spec.submodule_search_locations[0])
    found = [path for path in sorted(folder.glob("xllamacpp*")) if path.suffix in {".so", ".pyd", ".dylib"}]
    if not found:
        raise EngineError(f"there is no shared object of xllamacpp in {folder}")
    return found[0]


def _check(name: str, value: ctypes.Structure, defaults: Mapping[str, float]) -> None:
    for key, *_ in type(value)._fields_:
        found, expected = getattr(value, key), defaults.get(key, 0)
        if (found or 0) != expected:
            raise EngineError(
                f"llama.cpp has another layout of {name} than that of xllamacpp {XLLAMACPP}: "
                f"{key} is {found} by default, not {expected}"
            )


def _capture_log(lib: Library) -> None:
    def take(level: int, text: bytes, _: object) -> None:
        line = text.decode(errors="replace").strip()
        if level == _ERROR:
            lib.errors.append(line)  # an exception will say it; the log is for the rest
        if line:
            _log.debug("%s", line)

    callback = _LogCallback(take)
    lib.keep.append(callback)
    lib.c.llama_log_set(ctypes.cast(callback, c_void_p), None)
