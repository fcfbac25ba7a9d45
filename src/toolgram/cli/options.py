"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """The kinds of servers that can run the model; `openai` is any that completes prompts."""

    vllm = "vllm"
    sglang = "sglang"
    llama_server = "llama-server"
    openai = "openai"


class Backend(StrEnum):
    """The backends that can enforce grammars in vLLM."""

    xgrammar = "xgrammar"
    guidance = "guidance"
