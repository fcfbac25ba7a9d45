"""What Ollama's API says of models and of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from toolgram.api.errors import ApiError
from toolgram.api.ollama.body import OllamaShowBody
from toolgram.api.ollama.response import timestamp
from toolgram.conversation.fields import json_of, validated
from toolgram.errors import ToolgramError
from toolgram.styles.choose import choose_style
from toolgram.styles.detect import reasons
from toolgram.template.chat_template import ChatTemplate

Json = dict[str, Any]

VERSION = "0.24.0"
"""The version of Ollama whose API this is. Clients want a recent one: Copilot Chat 0.6.4 at least, Codex 0.13.4 before
it asks for responses; some split it at its dots and read numbers."""
_FOR_EVER = "2200-01-01T00:00:00Z"  # until when a model stays: clients count the time to it
_ONE_MODEL = "this server runs the models that it was started with: `toolgram serve --model FILE` serves another one"
_NO_EMBEDDINGS = "no model here makes embeddings: give documents another server"
NOT_HERE: Mapping[str, str] = {
    **dict.fromkeys(("/api/embed", "/api/embeddings"), _NO_EMBEDDINGS),
    **dict.fromkeys(("/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete"), _ONE_MODEL),
}
"""Paths of Ollama's that are not answered, and why."""
_LATEST = ":latest"


def tagged(name: str) -> str:
    """A model's name as Ollama has it, where each has a tag: some clients add what they miss, and look for that."""
    return name if ":" in name else name + _LATEST


def untagged(name: str) -> str:
    """The name without the tag that Ollama takes for granted."""
    return name.removesuffix(_LATEST)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is told of a model, which goes by `name`; what nobody knows is None."""

    name: str
    template: ChatTemplate
    created: int
    context: int | None
    architecture: str | None

    @property
    def details(self) -> Json:
        """Its family; of its size nothing is known here."""
        family = self.architecture or "unknown"
        return {
            "parent_model": "",
            "format": "" if self.architecture is None else "gguf",
            "family": family,
            "families": [family],
            "parameter_size": "",
            "quantization_level": "",
        }

    @property
    def listed(self) -> Json:
        """As in a list of models."""
        return {
            "name": self.name,
            "model": self.name,
            "modified_at": timestamp(self.created),
            "size": 0,
            "digest": sha256(f"{self.name}\n{self.template.source}".encode(errors="surrogatepass")).hexdigest(),
            "details": self.details,
        }

    @property
    def running(self) -> Json:
        """As in a list of models that are loaded, as all are."""
        listed = {key: value for key, value in self.listed.items() if key != "modified_at"}
        return {**listed, "expires_at": _FOR_EVER, "size_vram": 0, "context_length": self.context or 0}

    def shown(self, style: str | None, *, sees: bool = False) -> Json:
        """All of it, for a model that may see images. Copilot Chat shows the base name, and takes the context from
        `model_info`, Continue from the parameters."""
        family = self.details["family"]
        told: Json = {} if self.context is None else {f"{family}.context_length": self.context}
        return {
            "license": "",
            "modelfile": "",
            "parameters": "" if self.context is None else f"num_ctx {self.context}",
            "template": self.template.source,
            "details": self.details,
            "model_info": {"general.architecture": family, "general.basename": untagged(self.name), **told},
            "capabilities": [
                *("completion", "tools"),
                *(["vision"] if sees else []),
                *(["thinking"] if _thinks(self.template, style) else []),
            ],
            "modified_at": timestamp(self.created),
        }


def _thinks(template: ChatTemplate, style: str | None) -> bool:
    try:
        return reasons(template, choose_style(template, style)[0])
    except ToolgramError:  # then requests say what is wrong with the template
        return False


def read_show_request(body: Any) -> str:
    """The name of the model that is asked for. Raises InvalidRequest, and ApiError where none is named."""
    checked = validated(OllamaShowBody, json_of(body))
    if not (name := checked.model or checked.name):
        raise ApiError(400, "invalid_value", "/model: is missing", "/model")
    return name
