"""Models on the Hugging Face Hub, as far as its own cache goes without a network."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from toolgram.errors import MissingPackage, ModelError
from toolgram.models.catalog import resolve
from toolgram.models.hub import on_the_hub

FILES = (
    *("model-Q4_K_M.gguf", "model-UD-Q4_K_XL.gguf", "mmproj-model-f16.gguf", "README-f16.md"),
    *(f"large/model-q8_0-0000{number}-of-00003.gguf" for number in (1, 2, 3)),
    *(f"cut-BF16-0000{number}-of-00002.gguf" for number in (1,)),
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache, with one file; there is no network."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--org--repo" / "snapshots" / ("0" * 40)
    (snapshot / "folder").mkdir(parents=True)
    (snapshot / "folder" / "m.gguf").write_bytes(b"GGUF")
    for name in FILES:
        (snapshot / name).parent.mkdir(exist_ok=True)
        (snapshot / name).write_bytes(b"GGUF")
    refs = tmp_path / "models--org--repo" / "refs"
    refs.mkdir()
    (refs / "main").write_text("0" * 40)
    return tmp_path


def test_a_file_of_the_cache(cache: Path) -> None:
    assert resolve("org/repo:folder/m.gguf").read_bytes() == b"GGUF"


@pytest.mark.parametrize(
    ("wanted", "file"),
    [
        ("Q4_K_M", "model-Q4_K_M.gguf"),
        ("q4_k_m", "model-Q4_K_M.gguf"),
        ("UD-Q4_K_XL", "model-UD-Q4_K_XL.gguf"),
        ("Q8_0", "large/model-q8_0-00001-of-00003.gguf"),
        ("large/model-q8_0-00002-of-00003.gguf", "large/model-q8_0-00001-of-00003.gguf"),
    ],
)
def test_a_quantisation_of_the_cache_and_the_first_of_several_parts(cache: Path, wanted: str, file: str) -> None:
    assert resolve(f"org/repo:{wanted}").relative_to(cache / "models--org--repo/snapshots" / ("0" * 40)) == Path(file)


def test_a_projector_is_looked_for_among_projectors(cache: Path) -> None:
    assert resolve("org/repo:F16", projector=True).name == "mmproj-model-f16.gguf"
    with pytest.raises(ModelError, match="no GGUF file whose name ends with Q4_K_M"):
        resolve("org/repo:Q4_K_M", projector=True)
    with pytest.raises(ModelError, match="no GGUF file whose name ends with F16"):
        resolve("org/repo:F16")


def test_where_the_hub_can_be_asked_it_tells_the_files(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(repository: str) -> list[str]:
        assert repository == "org/repo"
        return ["other-Q4_K_M.gguf", "folder/m.gguf"]

    monkeypatch.setattr("huggingface_hub.list_repo_files", listed)
    with pytest.raises(ModelError, match=r"org/repo:Q4_K_M cannot be fetched"):  # that one is not in the cache
        resolve("org/repo:Q4_K_M")
    told = "org/repo has no GGUF file whose name ends with Q5_K_M; there are: folder/m.gguf, other-Q4_K_M.gguf"
    with pytest.raises(ModelError, match=f"^{told}$"):
        resolve("org/repo:Q5_K_M")
    assert resolve("org/repo:m").name == "m.gguf"


@pytest.mark.parametrize("error", [OSError("No route."), RuntimeError("No route."), ValueError("No route.")])
def test_where_it_cannot_be_asked_the_cache_is_looked_at(
    cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(_: str) -> list[str]:
        raise error

    monkeypatch.setattr("huggingface_hub.list_repo_files", fails)
    assert resolve("org/repo:Q4_K_M").name == "model-Q4_K_M.gguf"
    with pytest.raises(ModelError, match=r"^org/other:Q4_K_M cannot be fetched from the Hugging Face Hub: No route\.$"):
        resolve("org/other:Q4_K_M")


def test_what_is_not_there_in_whole_is_told(cache: Path) -> None:
    with pytest.raises(ModelError, match=r"^org/repo:BF16 cannot be fetched from the Hugging Face Hub: "):
        resolve("org/repo:BF16")
    with pytest.raises(
        ModelError, match=r"ends with F16; there are: cut-BF16-00001-of-00002\.gguf, folder/m\.gguf, large/"
    ):
        resolve("org/repo:F16")


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
