"""A projector for images with random weights, which llama.cpp puts before any model: what is shown means nothing.

It has the parts of LLaVA's (`clip.cpp`, projector type `mlp`): one layer that sees 16 squares of 16 pixels.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import gguf
import numpy as np

TOKENS_OF_IMAGE = 16
_SIDE, _PATCH, _WIDTH, _INNER = 64, 16, 32, 64


def write_projector(path: Path, width: int) -> None:
    """Write one for a model whose embeddings have this width."""
    writer: Any = gguf.GGUFWriter(path, "clip")
    writer.add_string("general.type", "mmproj")
    for name in ("clip.has_vision_encoder", "clip.use_gelu"):
        writer.add_bool(name, val=True)
    writer.add_string("clip.projector_type", "mlp")
    numbers = {
        "image_size": _SIDE,
        "patch_size": _PATCH,
        "embedding_length": _WIDTH,
        "feed_forward_length": _INNER,
        "projection_dim": width,
        "attention.head_count": 2,
        "block_count": 1,
    }
    for name, number in numbers.items():
        writer.add_uint32(f"clip.vision.{name}", number)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_array("clip.vision.image_mean", [0.5] * 3)
    writer.add_array("clip.vision.image_std", [0.5] * 3)
    random = np.random.default_rng(0)
    for name, shape in _shapes(width).items():
        writer.add_tensor(name, (random.standard_normal(shape) * 0.02).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _shapes(width: int) -> dict[str, tuple[int, ...]]:
    square = {f"v.blk.0.attn_{name}": (_WIDTH, _WIDTH) for name in ("q", "k", "v", "out")}
    weights = {
        **square,
        "v.blk.0.ffn_up": (_INNER, _WIDTH),
        "v.blk.0.ffn_down": (_WIDTH, _INNER),
        "mm.0": (width, _WIDTH),
        "mm.2": (width, width),
    }
    norms = dict.fromkeys(("v.pre_ln", "v.post_ln", "v.blk.0.ln1", "v.blk.0.ln2"), (_WIDTH,))
    return {
        "v.class_embd": (_WIDTH,),
        "v.patch_embd.weight": (_WIDTH, 3, _PATCH, _PATCH),
        "v.position_embd.weight": (TOKENS_OF_IMAGE + 1, _WIDTH),
        **{f"{name}.weight": shape for name, shape in (*weights.items(), *norms.items())},
        **{f"{name}.bias": shape[:1] for name, shape in (*weights.items(), *norms.items())},
    }


def png(colour: tuple[int, int, int]) -> bytes:
    """A square of one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + bytes(colour) * _SIDE) * _SIDE
    head = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
