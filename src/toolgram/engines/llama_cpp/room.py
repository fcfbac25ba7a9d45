"""How much memory takes what a model has read, by what its file says of it.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, and `gguf.constants` of the package `gguf`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from toolgram import gguf_header
from toolgram.engines.llama_cpp import machine
from toolgram.errors import ModelError
from toolgram.gguf_files import size_of

SHARE = 4  # one of so many parts of the free memory is for what requests remember, one more for what ended
SMALL_CONTEXT = 4096  # tokens, where nobody knows how much memory there is
_OF_ATTENTION, _OF_STATE = 2, 4  # bytes of a number


class Room(NamedTuple):
    """How many tokens of context a model was `trained` for, and the bytes that each takes, and each sequence.

    Those of a sequence are the states of layers that are recurrent. `free` are the bytes of memory that are left, and
    `share` the part of them, without the model, that is for requests; None where the system does not tell. The
    `architecture` is llama.cpp's name for it.
    """

    trained: int
    bytes_per_token: int
    bytes_per_sequence: int
    free: int | None
    share: int | None
    architecture: str


def room_of(path: Path, *beside: Path) -> Room:
    """Of a model's file, where others are in memory `beside` it. Raises ModelError for a damaged one."""
    try:
        with path.open("rb") as file:
            about = gguf_header.fields(file)
            family = about.get("general.architecture")
            said = _Said({key: _numbers(file, about.get(f"{family}.{key}")) for key in _KEYS})
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be loaded: {error}") from error
    free = machine.free_memory()
    share = None if free is None else max(free - sum(map(size_of, (path, *beside))), 0) // SHARE
    taken = _bytes_per_token(said), _bytes_per_sequence(said)
    return Room(said.most("context_length"), *taken, free, share, str(family))


def _numbers(file: BinaryIO, value: Any) -> tuple[int, ...]:
    """A value of the metadata, or one of each layer; none where it is not said."""
    numbers = gguf_header.numbers(file, value) if isinstance(value, gguf_header.Array) else (value,)
    return tuple(number for number in numbers if isinstance(number, int))


_KEYS = (
    "context_length",
    "block_count",
    "embedding_length",
    "full_attention_interval",
    *(f"attention.{key}" for key in ("head_count", "head_count_kv", "recurrent_layers", "shared_kv_layers")),
    *(f"attention.{part}_length{swa}" for part in ("key", "value") for swa in ("", "_swa")),
    "attention.sliding_window_pattern",
    *(f"ssm.{key}" for key in ("conv_kernel", "inner_size", "state_size", "group_count")),
    *("shortconv.l_cache", "wkv.head_size", "token_shift_count"),
)


class _Said(NamedTuple):
    """The numbers that a file says of its model."""

    numbers: Mapping[str, tuple[int, ...]]

    def most(self, key: str) -> int:
        """The largest of them, 0 where none is said."""
        return max(self.numbers[key], default=0)

    def heads(self) -> list[int]:
        """How many heads of keys and values each layer has: none where it has no attention."""
        layers = self.most("block_count")
        heads = self.numbers["attention.head_count_kv"] or self.numbers["attention.head_count"]
        if len(heads) > 1:
            return list(heads)
        recurrent = self.numbers["attention.recurrent_layers"]
        every = self.most("full_attention_interval") or 1
        return [
            0 if (recurrent[layer] if layer < len(recurrent) else (layer + 1) % every) else sum(heads)
            for layer in range(layers)
        ]


def _bytes_per_token(said: _Said) -> int:
    """A key and a value for each head of each layer, but for the last ones where these share those of others.

    Where attention slides, in a window, they may be of another length (Gemma 4); llama.cpp keeps all of them.
    """
    usual = said.most("embedding_length") // max(said.most("attention.head_count"), 1)
    both = sum(said.most(f"attention.{part}_length") or usual for part in ("key", "value"))
    sliding = sum(said.most(f"attention.{part}_length_swa") for part in ("key", "value")) or both
    heads = said.heads()
    own = heads[: len(heads) - said.most("attention.shared_kv_layers")]
    slides = said.numbers["attention.sliding_window_pattern"]
    in_each = (count * (sliding if layer < len(slides) and slides[layer] else both) for layer, count in enumerate(own))
    return max(_OF_ATTENTION * sum(in_each), 1)


def _bytes_per_sequence(said: _Said) -> int:
    """The state of each layer without attention, or of each where all have some of it beside it."""
    heads = said.heads()
    return _OF_STATE * _numbers_of_state(said) * (heads.count(0) or len(heads))


def _numbers_of_state(said: _Said) -> int:
    """As llama.cpp counts them (`n_embd_r` and `n_embd_s` in llama-hparams.cpp)."""
    width = said.most("embedding_length")
    if head := said.most("wkv.head_size"):  # RWKV
        return width * (said.most("token_shift_count") + head)
    if length := said.most("shortconv.l_cache"):  # LFM2
        return width * (length - 1)
    inner, state = said.most("ssm.inner_size"), said.most("ssm.state_size")
    before = max(said.most("ssm.conv_kernel") - 1, 0)
    return before * (inner + 2 * said.most("ssm.group_count") * state) + inner * state
