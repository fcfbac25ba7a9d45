"""Models on the Hugging Face Hub, named `org/repo:file`."""

from __future__ import annotations

import re
from pathlib import Path

from toolgram.errors import ModelError, needing

_NAME = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+):(?P<file>[^:]+)")


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
    try:
        return Path(hf_hub_download(found["repo"], found["file"]))
    except (OSError, ValueError) as error:  # all that it raises is one of these
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(f"{name} cannot be fetched from the Hugging Face Hub: {reason}") from error
