"""A model in several files, as those of more than 50 GB are on the Hugging Face Hub, and many smaller ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from typer.testing import CliRunner

import toolgram
from toolgram.cli.app import app
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.errors import ModelError
from toolgram.gguf_files import name_of, parts_of, size_of
from toolgram.models.catalog import default_model, resolve

PARTS = ("small-00001-of-00003.gguf", "small-00002-of-00003.gguf", "small-00003-of-00003.gguf")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The default model in three files."""
    made = tmp_path_factory.mktemp("parts")
    reader = GGUFReader(default_model())
    kept = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    writer = GGUFWriter(made / "small.gguf", kept.pop("general.architecture").contents(), split_max_tensors=100)
    for name, field in kept.items():
        kind, *inner = field.types
        writer.add_key_value(name, field.contents(), kind, inner[-1] if kind == GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, tensor.data.shape, tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert sorted(file.name for file in made.iterdir()) == list(PARTS)
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("part", PARTS)
def test_any_of_its_parts_names_the_model(folder: Path, part: str) -> None:
    assert resolve(folder / part) == folder / PARTS[0]
    asked = ["ask", "Say hi.", "--model", str(folder / part), "--max-tokens", "4", "--temperature", "0"]
    answers = [CliRunner().invoke(app, each) for each in (asked, [*asked[:3], "smollm2", *asked[4:]])]
    told = [json.loads(answer.stdout)["content"] for answer in answers]
    assert told[0] == told[1] != ""


def test_the_first_has_the_template_and_all_count(folder: Path) -> None:
    assert toolgram.ChatTemplate.from_file(folder / PARTS[0]).source
    assert parts_of(str(folder / PARTS[1])) == tuple(str(folder / part) for part in PARTS)
    assert size_of(folder / PARTS[0]) == sum((folder / part).stat().st_size for part in PARTS)
    assert name_of(folder / PARTS[0]) == "small"
    assert name_of(default_model()) == default_model().stem
    with pytest.raises(ModelError, match=rf"in it there are: {folder / PARTS[0]}$"):
        resolve(folder)


def test_what_is_missing_is_named(folder: Path, tmp_path: Path) -> None:
    for part in PARTS[:2]:
        (tmp_path / part).symlink_to(folder / part)
    with pytest.raises(ModelError, match=rf"^{tmp_path / PARTS[2]} cannot be read: No such file"):
        LlamaCpp(tmp_path / PARTS[0])
    (tmp_path / PARTS[0]).unlink()
    with pytest.raises(ModelError, match=f"is a part of a model, and the first one, {PARTS[0]}, is not beside it"):
        resolve(tmp_path / PARTS[1])
