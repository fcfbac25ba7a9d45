"""How much memory what was read takes, of models that have other layers than attention, too; and of a server's."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from gguf import GGUFWriter

from engines import hybrid_model, sentencepiece_model
from toolgram.engines.llama_cpp.bundled_server import _fitting
from toolgram.engines.llama_cpp.engine import _KEPT, LlamaCpp
from toolgram.engines.llama_cpp.room import room_of
from toolgram.errors import ModelError

FREE = "toolgram.engines.llama_cpp.machine.free_memory"
LARGE = (0, 0, 8, 0) * 6  # heads of keys and values


def said(path: Path, family: str, keys: Mapping[str, Any]) -> Path:
    """A file that says this of its model, and has no weights."""
    writer = GGUFWriter(path, family)
    for key, value in keys.items():
        if isinstance(value, list):
            writer.add_array(f"{family}.{key}", value)
        else:
            writer.add_uint32(f"{family}.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


FAMILIES: dict[str, tuple[dict[str, Any], int, int]] = {
    "llama": (
        {"context_length": 8192, "block_count": 30, "embedding_length": 576, "attention.head_count": 9}
        | {"attention.head_count_kv": 3},
        4 * 30 * 3 * 64,
        0,
    ),
    "lfm2": (
        {"context_length": 128000, "block_count": 24, "embedding_length": 2048, "attention.head_count": 32}
        | {"attention.head_count_kv": list(LARGE), "shortconv.l_cache": 3},
        4 * 6 * 8 * 64,
        4 * 18 * 2 * 2048,
    ),
    "qwen35": (  # every fourth layer has attention
        {"context_length": 262144, "block_count": 32, "embedding_length": 2560, "attention.head_count": 16}
        | {"attention.head_count_kv": 4, "attention.key_length": 256, "attention.value_length": 256}
        | {"full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.inner_size": 4096, "ssm.state_size": 128}
        | {"ssm.group_count": 16},
        4 * 8 * 4 * 256,
        4 * 24 * (3 * (4096 + 2 * 16 * 128) + 128 * 4096),
    ),
    "gemma4": (  # every sixth layer sees all; the last 18 have what others have
        {"context_length": 131072, "block_count": 42, "embedding_length": 2560, "attention.head_count": 8}
        | {"attention.head_count_kv": 2, "attention.shared_kv_layers": 18}
        | {"attention.key_length": 512, "attention.value_length": 512}
        | {"attention.key_length_swa": 256, "attention.value_length_swa": 256}
        | {"attention.sliding_window_pattern": [layer % 6 != 5 for layer in range(42)]},
        4 * 2 * (20 * 256 + 4 * 512),
        0,
    ),
    "falcon-h1": (  # all layers have both
        {"context_length": 4096, "block_count": 36, "embedding_length": 1024, "attention.head_count": 8}
        | {"attention.head_count_kv": 2, "ssm.conv_kernel": 4, "ssm.inner_size": 1536, "ssm.state_size": 128}
        | {"ssm.group_count": 1},
        4 * 36 * 2 * 128,
        4 * 36 * (3 * (1536 + 2 * 128) + 128 * 1536),
    ),
    "rwkv7": (  # none has attention
        {"context_length": 4096, "block_count": 12, "embedding_length": 768, "attention.head_count": 0}
        | {"wkv.head_size": 64, "token_shift_count": 2},
        1,
        4 * 12 * 768 * (2 + 64),
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_and_sequences_take_what_the_layers_of_a_family_take(tmp_path: Path, family: str) -> None:
    keys, of_token, of_sequence = FAMILIES[family]
    room = room_of(said(tmp_path / "m.gguf", family, keys))
    assert room[:3] == (keys["context_length"], of_token, of_sequence)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hybrid_model.write(tmp_path_factory.mktemp("model") / "hybrid.gguf", 100_000)


def test_a_model_whose_first_layer_has_no_attention_takes_the_memory_it_takes(
    hybrid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tokens were taken for nothing, and as many kept as are no more than so."""
    of_token = 4 * 8 * 16
    monkeypatch.setattr(FREE, lambda: hybrid.stat().st_size + 4 * (50_000 * of_token + (32 + _KEPT) * 1024))
    engine = LlamaCpp(hybrid, parallel=32)
    assert (engine.context, engine._model.room) == (50_000, 50_000)
    assert engine.memory.startswith("context of 50000 tokens (trained for 100000); 0.0 GB of memory for requests")
    engine.close()


def test_there_are_as_many_sequences_as_states_fit(hybrid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FREE, lambda: hybrid.stat().st_size + 4 * 2 * 10 * 1024)
    engine = LlamaCpp(hybrid, context=16, parallel=32)
    assert engine._model.sequences == 10
    engine.close()


@pytest.mark.parametrize(
    ("tokens", "fitting"), [(9999, (1024, 4)), (2500, (1024, 2)), (300, (300, 1)), (0, (1024, 1)), (None, (1024, 4))]
)
def test_a_server_of_llama_cpp_has_the_context_that_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: int | None, fitting: tuple[int, int]
) -> None:
    path = sentencepiece_model.write(tmp_path / "tiny.gguf")
    free = None if tokens is None else path.stat().st_size + 4 * tokens * 4 * sentencepiece_model.SIZE
    monkeypatch.setattr(FREE, lambda: free)
    assert _fitting(room_of(path), 4) == fitting


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7])
def test_a_file_that_ends_too_early_is_told(tmp_path: Path, part: float) -> None:
    path = said(tmp_path / "m.gguf", "lfm2", FAMILIES["lfm2"][0])
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(ModelError, match="cannot be loaded: it ends inside its metadata"):
        room_of(path)
