"""Engines: what writes text after a prompt, in this process or on a server. Each is loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolgram.engines.llama_cpp.bundled_server import LlamaObject
    from toolgram.engines.llama_cpp.engine import LlamaCpp
    from toolgram.engines.remote.llama_server import LlamaServer
    from toolgram.engines.remote.openai import OpenAICompletions
    from toolgram.engines.remote.sglang import Sglang
    from toolgram.engines.remote.vllm import Vllm
    from toolgram.engines.replay import Replay

__all__ = ["LlamaCpp", "LlamaObject", "LlamaServer", "OpenAICompletions", "Replay", "Sglang", "Vllm"]

_MODULES = {
    "LlamaCpp": "llama_cpp.engine",
    "LlamaObject": "llama_cpp.bundled_server",
    "LlamaServer": "remote.llama_server",
    "OpenAICompletions": "remote.openai",
    "Replay": "replay",
    "Sglang": "remote.sglang",
    "Vllm": "remote.vllm",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
