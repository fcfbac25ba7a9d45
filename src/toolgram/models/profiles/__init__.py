"""The profiles that ship with toolgram: each made by `toolgram tune`, for one model with its own chat template."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from toolgram.gguf_files import name_of
from toolgram.planning.profile import Profile, template_hash
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.sources import gguf_metadata


def model_name(file: Path) -> str:
    """The name by which profiles know the model of a GGUF file: its own, else that of the file.

    Raises TemplateError for a file that cannot be read.
    """
    name = gguf_metadata(file).get("general.name")
    return name if isinstance(name, str) and name else name_of(file)


def shipped(model: str, template: ChatTemplate) -> Profile | None:
    """The profile of a model with a chat template, if there is one and it helped where it was measured."""
    bound = (model, template_hash(template))
    return next((each for each in by_name().values() if (each.model, each.template) == bound and each.helps), None)


@cache
def by_name() -> Mapping[str, Profile]:
    """All of them, those too that did not help."""
    found = sorted(each.name for each in files(__name__).iterdir() if each.name.endswith(".toml"))
    texts = {name: files(__name__).joinpath(name).read_text(encoding="utf-8") for name in found}
    return {name.removesuffix(".toml"): Profile.read(text) for name, text in texts.items()}
