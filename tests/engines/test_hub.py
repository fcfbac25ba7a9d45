"""Models on the Hugging Face Hub, as far as its own cache goes without a network."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from toolgram.errors import MissingPackage, ModelError
from toolgram.models.catalog import resolve
from toolgram.models.hub import on_the_hub


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache, with one file; there is no network."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--org--repo" / "snapshots" / ("0" * 40)
    (snapshot / "folder").mkdir(parents=True)
    (snapshot / "folder" / "m.gguf").write_bytes(b"GGUF")
    refs = tmp_path / "models--org--repo" / "refs"
    refs.mkdir()
    (refs / "main").write_text("0" * 40)
    return tmp_path


def test_a_file_of_the_cache(cache: Path) -> None:
    assert resolve("org/repo:folder/m.gguf").read_bytes() == b"GGUF"


def test_what_cannot_be_fetched_is_told(cache: Path) -> None:
    for name in ("org/repo:other.gguf", "org/other:m.gguf", "org/-repo:m.gguf"):
        with pytest.raises(ModelError, match=f"{name} cannot be fetched from the Hugging Face Hub: "):
            resolve(name)


def test_without_its_package_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingPackage, match=r"pip install 'toolgram\[hub\]'"):
        resolve("org/repo:m.gguf")


def test_which_names_are_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert on_the_hub("org/repo:m.gguf")
    assert not any(map(on_the_hub, ("smollm2", "a/b.gguf", "/a/b:c.gguf", "a/b/c:d", "a:b", "org/repo:")))
    file = tmp_path / "org" / "repo:m.gguf"
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    assert resolve("org/repo:m.gguf") == Path("org/repo:m.gguf")  # a file of that name goes before
