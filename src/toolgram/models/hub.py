"""Models on the Hugging Face Hub, named `org/repo:file`."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolgram.errors import ModelError, needing

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


def fetch(name: str) -> Path:
    """The file of such a name, in huggingface_hub's own cache: fetched on first use, with its token if there is one.

    Raises ModelError where it cannot be fetched, MissingPackage where huggingface_hub is not installed.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise ModelError(f"{name!r} is no file on the Hugging Face Hub: write org/repo:file")
    with needing("hub", "a model of the Hugging Face Hub"):
        from huggingface_hub import hf_hub_download  # pyright: ignore[reportUnknownVariableType] - of its progress bar
    with _failing(name):
        return Path(hf_hub_download(found["repo"], found["file"]))


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
