"""A llama of random weights with a vocabulary as SentencePiece makes them: a space before each text, and bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType

SIZE, WIDE, HEADS = 32, 64, 4
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
MARKERS = ("<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
_WORDS = ("▁Hi", "▁{", "▁<", "▁[", '▁"', '{"', "tool", "call", "name", "arguments", '":', '",', "▁Bob", "city")
_LETTERS = "▁" + "".join(map(chr, range(0x21, 0x7F))) + "\n"


def tokens() -> list[tuple[str, TokenType]]:
    """The tokens in order, the first ones of a word before the whole."""
    found: dict[str, TokenType] = {"<unk>": TokenType.UNKNOWN}
    found |= dict.fromkeys(MARKERS, TokenType.CONTROL)
    found["<tag>"] = TokenType.USER_DEFINED
    found |= {f"<0x{byte:02X}>": TokenType.BYTE for byte in range(256)}
    found |= dict.fromkeys(_LETTERS, TokenType.NORMAL)
    for word in _WORDS:
        found |= {word[:end]: TokenType.NORMAL for end in range(2, len(word) + 1)}
    return list(found.items())


def write(path: Path) -> Path:
    """Write the model as GGUF."""
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(1024)
    writer.add_embedding_length(SIZE)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(SIZE // HEADS)
    add_vocabulary(writer)
    writer.add_add_space_prefix(True)  # noqa: FBT003 - gguf knows no name for it
    _add_weights(writer, len(tokens()))
    return closed(writer, path)


def add_vocabulary(writer: GGUFWriter) -> None:
    """Say what the tokens are, and how a conversation is written."""
    listed = tokens()
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in listed])
    writer.add_token_types([kind for _, kind in listed])
    writer.add_token_scores([-float(number) for number in range(len(listed))])
    writer.add_eos_token_id([text for text, _ in listed].index("</s>"))
    writer.add_eot_token_id([text for text, _ in listed].index("<|end|>"))
    writer.add_chat_template(TEMPLATE)


def closed(writer: GGUFWriter, path: Path) -> Path:
    """The file, written."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_weights(writer: GGUFWriter, size: int) -> None:
    random = np.random.default_rng(0)
    shapes = {"attn_q": (SIZE, SIZE), "attn_k": (SIZE, SIZE), "attn_v": (SIZE, SIZE), "attn_output": (SIZE, SIZE)}
    shapes |= {"ffn_gate": (WIDE, SIZE), "ffn_up": (WIDE, SIZE), "ffn_down": (SIZE, WIDE)}
    every = {f"blk.0.{name}": shape for name, shape in shapes.items()}
    for name, shape in {**every, "token_embd": (size, SIZE), "output": (size, SIZE)}.items():
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) / 8).astype(np.float16))
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(SIZE, np.float32))
