"""An LFM2 of random weights, as Liquid's are made: layers of short convolutions, and some of attention between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gguf import GGUFWriter

from engines.sentencepiece_model import add_vocabulary, closed, tokens

SIZE, WIDE, HEADS, LAST = 64, 64, 4, 3  # LAST: how many inputs a convolution sees
LAYERS = (0, 4, 0, 4)  # heads of keys and values


def write(path: Path, context: int = 1024, layers: Sequence[int] = LAYERS) -> Path:
    """Write the model as GGUF, with a vocabulary as SentencePiece makes them."""
    size = len(tokens())
    writer = GGUFWriter(path, "lfm2")
    writer.add_context_length(context)
    writer.add_embedding_length(SIZE)
    writer.add_block_count(len(layers))
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(list(layers))
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(size)
    writer.add_shortconv_l_cache(LAST)
    add_vocabulary(writer)
    _add_weights(writer, size, layers)
    return closed(writer, path)


def _add_weights(writer: GGUFWriter, size: int, layers: Sequence[int]) -> None:
    random = np.random.default_rng(0)
    head = SIZE // HEADS
    ones = {"token_embd_norm": SIZE}
    halves: dict[str, tuple[int, int]] = {"token_embd": (size, SIZE)}
    wholes: dict[str, tuple[int, int]] = {}
    for number, heads in enumerate(layers):
        layer = f"blk.{number}"
        ones |= {f"{layer}.attn_norm": SIZE, f"{layer}.ffn_norm": SIZE}
        halves |= {
            f"{layer}.ffn_gate": (WIDE, SIZE),
            f"{layer}.ffn_up": (WIDE, SIZE),
            f"{layer}.ffn_down": (SIZE, WIDE),
        }
        if heads:
            ones |= {f"{layer}.attn_q_norm": head, f"{layer}.attn_k_norm": head}
            halves |= {f"{layer}.attn_q": (SIZE, SIZE), f"{layer}.attn_output": (SIZE, SIZE)}
            halves |= {f"{layer}.attn_{kind}": (heads * head, SIZE) for kind in "kv"}
        else:
            wholes |= {f"{layer}.shortconv.conv": (SIZE, LAST)}
            halves |= {f"{layer}.shortconv.in_proj": (3 * SIZE, SIZE), f"{layer}.shortconv.out_proj": (SIZE, SIZE)}
    for name, shape in halves.items():
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) / 8).astype(np.float16))
    for name, shape in wholes.items():
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) / 2).astype(np.float32))
    for name, width in ones.items():
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))
