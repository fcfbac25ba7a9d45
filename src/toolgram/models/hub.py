"""Models on the Hugging Face Hub, named `org/repo:file`, or `org/repo:Q4_K_M` by a quantisation of the repository."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolgram.errors import ModelError, nearest, needing
from toolgram.gguf_files import parts_of

_NAME = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+):(?P<file>[^:]+)")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_TOKENIZER_FILES = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template*",
    "additional_chat_templates/*",
    "generation_config.json",
)


def on_the_hub(name: str) -> bool:
    """Whether a name is one of a file on the hub."""
    return _NAME.fullmatch(name) is not None


def fetch(name: str, *, projector: bool = False) -> Path:
    """The file of such a name, in huggingface_hub's own cache: fetched on first use, with its token if there is one.

    Of a model in several parts it is the first; all of them are fetched. By a quantisation a `projector` is looked for
    among those of the repository alone, and a model among all others. Raises ModelError where it cannot be fetched,
    MissingPackage where huggingface_hub is not installed.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise ModelError(f"{name!r} is no file on the Hugging Face Hub: write org/repo:file, or org/repo:Q4_K_M")
    with needing("hub", "a model of the Hugging Face Hub"):
        from huggingface_hub import hf_hub_download  # pyright: ignore[reportUnknownVariableType] - of its progress bar
    repository, file = found["repo"], found["file"]
    with _failing(name):
        if not file.lower().endswith(".gguf"):
            file = _in_quantisation(repository, file, projector=projector)
        first, *_ = [hf_hub_download(repository, part) for part in parts_of(file)]
        return Path(first)


def _in_quantisation(repository: str, wanted: str, *, projector: bool) -> str:
    """The GGUF file of a repository that has this quantisation in its name, as `model-Q4_K_M.gguf` does.

    Raises ModelError where there is none, and as huggingface_hub does.
    """
    files = sorted(file for file in _files_of(repository) if file.endswith(".gguf") and ("mmproj" in file) == projector)
    pattern = re.compile(rf"(?:.*[-._/])?{re.escape(wanted)}(?:-\d{{5}}-of-\d{{5}})?\.gguf", re.IGNORECASE)
    found = [file for file in files if pattern.fullmatch(file)]
    if not found:
        models = [file for file in files if parts_of(file)[0] == file]
        if not models:
            raise ModelError(f"{repository} has no GGUF file")
        raise ModelError(f"{repository} has no GGUF file whose name ends with {wanted}; {nearest(wanted, models)}")
    return min(found, key=len)


def _files_of(repository: str) -> list[str]:
    """The files of a repository; those that are in the cache where it cannot be asked."""
    from huggingface_hub import list_repo_files, snapshot_download  # pyright: ignore[reportUnknownVariableType] - as above

    try:
        return list_repo_files(repository)
    except Exception as error:  # noqa: BLE001 - those of its HTTP library come through, and it has had several
        try:
            folder = Path(snapshot_download(repository, local_files_only=True))
        except OSError:
            raise OSError(f"{error}") from error
        return [file.relative_to(folder).as_posix() for file in folder.rglob("*.gguf")]


def is_repository(name: str) -> bool:
    """Whether a name may be one of a repository on the hub."""
    return _REPOSITORY.fullmatch(name) is not None


def tokenizer(repository: str, *, fetch: bool = True) -> Path:
    """A folder with the chat template and the special tokens of a repository; without `fetch` only what is there.

    Raises as `fetch` does.
    """
    with needing("hub", "the chat template of a model on the Hugging Face Hub"):
        from huggingface_hub import snapshot_download  # pyright: ignore[reportUnknownVariableType] - as above
    with _failing(repository):
        return Path(snapshot_download(repository, allow_patterns=list(_TOKENIZER_FILES), local_files_only=not fetch))


@contextmanager
def _failing(name: str) -> Generator[None]:
    """Work of huggingface_hub, all of whose errors are one of these."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(f"{name} cannot be fetched from the Hugging Face Hub: {reason}") from error
