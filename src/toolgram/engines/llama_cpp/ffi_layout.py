"""What the C interface of the pinned llama.cpp looks like, and whether a library has it.

Source of the layouts: include/llama.h of the llama.cpp that the wheel holds, checked against the values that
`llama_*_default_params` give before anything is passed by value. A library of another layout may crash when asked, so
that this file is also a script, to be run in a process of its own: `python ffi_layout.py LIBRARY` prints what does
not fit, and nothing if all does. It imports nothing of ours, to start quickly.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int8, c_int32, c_size_t, c_uint32, c_void_p
from typing import Any, ClassVar


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
MODEL_DEFAULTS = {"n_gpu_layers": -1, "split_mode": 1, "load_mode": -1, "reserved": 1, "use_extra_bufts": True}
CONTEXT_DEFAULTS = {
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

SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
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
    "llama_model_meta_val_str": (c_int32, (c_void_p, c_char_p, c_char_p, c_size_t)),
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
    "llama_state_seq_get_size_ext": (c_size_t, (c_void_p, c_int32, c_uint32)),
    "llama_state_seq_get_data_ext": (c_size_t, (c_void_p, c_char_p, c_size_t, c_int32, c_uint32)),
    "llama_state_seq_set_data_ext": (c_size_t, (c_void_p, c_char_p, c_size_t, c_int32, c_uint32)),
    "llama_decode": (c_int32, (c_void_p, Batch)),
    "llama_get_logits_ith": (c_void_p, (c_void_p, c_int32)),
}


def opened(path: str) -> ctypes.CDLL:
    """The library, its functions declared. Raises OSError, or AttributeError for a function that it does not have."""
    library = ctypes.CDLL(path)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def misfits(library: ctypes.CDLL) -> Iterator[str]:
    """What is laid out otherwise than here."""
    yield from _other("llama_model_params", library.llama_model_default_params(), MODEL_DEFAULTS)
    yield from _other("llama_context_params", library.llama_context_default_params(), CONTEXT_DEFAULTS)


def _other(name: str, value: ctypes.Structure, defaults: Mapping[str, float]) -> Iterator[str]:
    for key, *_ in type(value)._fields_:
        found, expected = getattr(value, key), defaults.get(key, 0)
        if (found or 0) != expected:
            yield f"in {name}, {key} is {found} by default, not {expected}"


def main(path: str) -> str:
    """What does not fit, or nothing."""
    try:
        return "; ".join(misfits(opened(path)))
    except (OSError, AttributeError) as error:
        return str(error)


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1]))
