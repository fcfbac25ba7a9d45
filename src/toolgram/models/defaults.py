"""How a model's tokens are to be chosen, as its own files say: GGUF metadata, or `generation_config.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from toolgram.template.sources import gguf_metadata

_GGUF = {
    "general.sampling.temp": "temperature",
    "general.sampling.top_k": "top_k",
    "general.sampling.top_p": "top_p",
    "general.sampling.min_p": "min_p",
    "general.sampling.penalty_repeat": "repetition_penalty",
    "general.sampling.penalty_freq": "frequency_penalty",
    "general.sampling.penalty_present": "presence_penalty",
}
_CONFIG = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty")


def sampling_of_gguf(file: Path) -> Mapping[str, float]:
    """The values of a GGUF file, by the names of Sampling; none if it has none. Raises TemplateError if unreadable."""
    found = gguf_metadata(file)
    return {name: found[key] for key, name in _GGUF.items() if _is_number(found.get(key))}


def sampling_of_folder(folder: Path) -> Mapping[str, float]:
    """The values of a folder in Hugging Face's layout; none if it has no `generation_config.json`, or a broken one."""
    try:
        found: object = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    config = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return {name: config[name] for name in _CONFIG if _is_number(config.get(name))}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
