"""How a model's tokens are chosen by default, as its files say."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import pytest

from toolgram.cli.inputs import defaults_of
from toolgram.engines.base import Sampling, SamplingDefaults
from toolgram.errors import EngineError
from toolgram.models.defaults import sampling_of_folder, sampling_of_gguf


def test_the_metadata_of_a_gguf_file(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_float32("general.sampling.temp", 0.5)
    writer.add_int32("general.sampling.top_k", 20)
    writer.add_float32("general.sampling.penalty_repeat", 1.25)
    writer.add_string("general.sampling.sequence", "top_k;temp")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    values = sampling_of_gguf(tmp_path / "m.gguf")
    assert values == {"temperature": 0.5, "top_k": 20, "repetition_penalty": 1.25}
    defaults = SamplingDefaults.of(values, "m.gguf")
    assert str(defaults) == "temperature 0.5, repetition_penalty 1.25, top_k 20"
    asked = defaults.filling(Sampling(temperature=1, seed=3), {"top_k"})
    assert asked == Sampling(temperature=1, top_k=20, seed=3)


def test_a_folder_of_hugging_face(tmp_path: Path) -> None:
    config = {"do_sample": True, "temperature": 0.6, "top_k": 20, "min_p": None, "eos_token_id": [1]}
    (tmp_path / "generation_config.json").write_text(json.dumps(config))
    assert sampling_of_folder(tmp_path) == {"temperature": 0.6, "top_k": 20}
    (tmp_path / "generation_config.json").write_text("[")
    assert sampling_of_folder(tmp_path) == {}
    assert sampling_of_folder(tmp_path / "none") == {}


def test_a_model_without_a_configuration_is_a_little_warm() -> None:
    assert str(SamplingDefaults.of({}, "m.gguf")) == "temperature 0.7"


def test_a_configuration_that_cannot_be_used_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EngineError, match="top_p must be above 0"):
        SamplingDefaults.of({"top_p": 0.0}, "m.gguf")
    assert defaults_of({"top_p": 0.0}, "m.gguf") == SamplingDefaults()
    assert capsys.readouterr().err == "note: m.gguf is not used: top_p must be above 0 and at most 1\n"
