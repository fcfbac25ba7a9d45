"""What a server is, and which model it runs, as far as it says so itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from toolgram.engines.remote.http import Http, Json

ServerKind = Literal["vllm", "sglang", "llama-server", "ollama", "toolgram", "other"]

_SECONDS = 5.0
# What each server writes into `owned_by` of its list of models.
_OWNERS: dict[str, ServerKind] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama-server",
    "toolgram": "toolgram",
}
NAMES: dict[ServerKind, str] = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llama-server": "llama-server",
    "ollama": "Ollama",
    "toolgram": "a server of toolgram",
    "other": "a server of an unknown kind",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server at `url` says of itself; what it does not tell is empty.

    `tokenizer` is where the tokenizer's files are: a folder on the server's machine, or `org/repo`; `weights` is where
    those of the model are, which goes by any name. `tool_use` is the chat template for conversations with tools, where
    there is another one. `backend` is what enforces grammars there.
    """

    url: str
    kind: ServerKind
    version: str = ""
    models: tuple[str, ...] = ()
    template: str = ""
    bos_token: str = ""
    eos_token: str = ""
    tokenizer: str = ""
    tool_use: str = ""
    backend: str = ""
    weights: str = ""

    @property
    def name(self) -> str:
        """What the server is, for people."""
        return f"{NAMES[self.kind]} {self.version}".strip()


async def identify(http: Http) -> Identity:
    """Asks a server what it is. Raises Unavailable where none answers yet, EngineError where it refuses to tell."""
    listed = await http.look("/v1/models", timeout=_SECONDS)
    cards = [card for card in _list(listed, "data") if isinstance(card.get("id"), str)]
    models = tuple(card["id"] for card in cards)
    kind = next((_OWNERS[card["owned_by"]] for card in cards if card.get("owned_by") in _OWNERS), None)
    match kind or await _other_kind(http):
        case "llama-server":
            return await _llama_server(http, models)
        case "vllm":
            return await _vllm(http, models, str(cards[0].get("root") or "") if cards else "")
        case "sglang":
            return await _sglang(http, models)
        case "ollama":
            version = await http.look("/api/version", timeout=_SECONDS)
            return Identity(http.url, "ollama", _text(version, "version"), models)
        case "toolgram":
            return Identity(http.url, "toolgram", models=models)
        case _:
            return Identity(http.url, "other", models=models)


async def _other_kind(http: Http) -> ServerKind:
    """The kind of a server whose list of models does not tell it."""
    signs: Sequence[tuple[str, str, ServerKind]] = (
        ("/props", "chat_template", "llama-server"),
        ("/get_model_info", "model_path", "sglang"),
        ("/api/version", "version", "ollama"),
    )
    for path, key, kind in signs:
        if key in (await http.look(path, timeout=_SECONDS) or {}):
            return kind
    return "other"


async def _llama_server(http: Http, models: tuple[str, ...]) -> Identity:
    props = await http.look("/props", timeout=_SECONDS)
    return Identity(
        http.url,
        "llama-server",
        _text(props, "build_info"),
        models,
        template=_text(props, "chat_template"),
        bos_token=_text(props, "bos_token"),
        eos_token=_text(props, "eos_token"),
        tool_use=_text(props, "chat_template_tool_use"),
        weights=_text(props, "model_path"),
    )


async def _vllm(http: Http, models: tuple[str, ...], root: str) -> Identity:
    """`/tokenizer_info` is there if the server was started with --enable-tokenizer-info-endpoint."""
    version = await http.look("/version", timeout=_SECONDS)
    config = await http.look("/tokenizer_info", timeout=_SECONDS)
    return Identity(
        http.url,
        "vllm",
        _text(version, "version"),
        models,
        template=_text(config, "chat_template"),
        bos_token=_token(config, "bos_token"),
        eos_token=_token(config, "eos_token"),
        tokenizer=root,
        weights=root,
    )


async def _sglang(http: Http, models: tuple[str, ...]) -> Identity:
    model, server = await _either(http, "model_info"), await _either(http, "server_info")
    weights = _text(model, "model_path")
    tokenizer = _text(model, "tokenizer_path") or weights
    version, backend = _text(server, "version"), _text(server, "grammar_backend")
    return Identity(http.url, "sglang", version, models, tokenizer=tokenizer, backend=backend, weights=weights)


async def _either(http: Http, name: str) -> Json | None:
    """What SGLang tells under a name, or under the one that it had before."""
    return await http.look(f"/{name}", timeout=_SECONDS) or await http.look(f"/get_{name}", timeout=_SECONDS)


def _list(document: Json | None, key: str) -> list[Json]:
    found = (document or {}).get(key)
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def _text(document: Json | None, key: str) -> str:
    found = (document or {}).get(key)
    return found if isinstance(found, str) else ""


def _token(config: Json | None, key: str) -> str:
    """A special token, which is a text or an object with `content`."""
    found = (config or {}).get(key)
    return _text(cast("Json", found), "content") if isinstance(found, dict) else _text(config, key)
