"""What a server is, and which model it runs, as far as it says so itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import quote

from toolgram.engines.remote.http import Http, Json, Refused, Silent, Unavailable

ServerKind = Literal["vllm", "sglang", "llama-server", "llama-swap", "ollama", "toolgram", "other"]

_SECONDS = 5.0
# What each server writes into `owned_by` of its list of models.
_OWNERS: dict[str, ServerKind] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama-server",
    "llama-swap": "llama-swap",
    "toolgram": "toolgram",
}
NAMES: dict[ServerKind, str] = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llama-server": "llama-server",
    "llama-swap": "llama-swap",
    "ollama": "Ollama",
    "toolgram": "a server of toolgram",
    "other": "a server of an unknown kind",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server at `url` says of itself; what it does not tell is empty.

    `tokenizer` is where the tokenizer's files are: a folder on the server's machine, or `org/repo`; `weights` is where
    those of the model are, which goes by any name. `tool_use` is the chat template for conversations with tools, where
    there is another one. `backend` is what enforces grammars there, and `context` how many tokens a prompt and its
    answer may have together. One that runs several `models` is asked `by_name`: then the rest is about `model`, and
    empty where that is none of them.
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
    context: int | None = None
    by_name: bool = False
    model: str = ""

    @property
    def name(self) -> str:
        """What the server is, for people."""
        return f"{NAMES[self.kind]} {self.version}".strip()


class Loading(Unavailable):
    """A server that still reads the model from its disk."""


async def identify(http: Http, model: str | None = None) -> Identity:
    """Asks a server what it is, and if it runs several models, about the one of this name, which it loads for that.

    Raises Unavailable where none answers yet (Loading while it loads), EngineError where it refuses to tell.
    """
    cards = await _cards(http)
    models = _names(cards)
    kind = next((_OWNERS[card["owned_by"]] for card in cards if card.get("owned_by") in _OWNERS), None)
    match kind or await _other_kind(http):
        case "llama-server":
            return await _llama_server(http, cards, model)
        case "llama-swap":  # each is at an address of its own, `/upstream/NAME`
            only = models[0] if len(models) == 1 else ""
            return Identity(http.url, "llama-swap", models=models, by_name=True, model=only)
        case "vllm":
            return await _vllm(http, cards, model)
        case "sglang":
            return await _sglang(http, cards, model)
        case "ollama":
            version = await http.look("/api/version", timeout=_SECONDS)
            return Identity(http.url, "ollama", _text(version, "version"), models)
        case "toolgram":
            return Identity(http.url, "toolgram", models=models)
        case _:
            return Identity(http.url, "other", models=models)


async def _cards(http: Http) -> list[Json]:
    """The list of models."""
    listed = await http.look("/v1/models", timeout=_SECONDS)
    return [card for card in _list(listed, "data") if isinstance(card.get("id"), str)]


async def _other_kind(http: Http) -> ServerKind:
    """The kind of a server whose list of models does not tell it."""
    signs: Sequence[tuple[str, frozenset[str], ServerKind]] = (
        ("/props", frozenset(("chat_template", "build_info")), "llama-server"),  # a router tells no template
        ("/get_model_info", frozenset(("model_path",)), "sglang"),
        ("/api/version", frozenset(("version",)), "ollama"),
    )
    for path, keys, kind in signs:
        if not keys.isdisjoint(await http.look(path, timeout=_SECONDS) or {}):
            return kind
    return "other"


async def _llama_server(http: Http, cards: Sequence[Json], model: str | None) -> Identity:
    """A router has several models, each with a process of its own, and passes on what names one of them."""
    models = _names(cards)
    props = await http.look("/props", timeout=_SECONDS)
    by_name = _text(props, "role") == "router"
    if by_name:
        version = _text(props, "build_info")
        models = tuple(dict.fromkeys((*models, *(alias for card in cards for alias in _texts(card, "aliases")))))
        model = models[0] if model is None and len(cards) == 1 else model
        if model is None or model not in models:
            return Identity(http.url, "llama-server", version, models, by_name=True)
        props = await _loaded(http, model)
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
        context=_number(_part(props, "default_generation_settings"), "n_ctx"),
        by_name=by_name,
        model=(model or "") if by_name else "",
    )


async def _loaded(http: Http, model: str) -> Json:
    """What a router tells of a model, once that is there. Raises EngineError where it does not load it."""
    try:
        return await http.told(f"/props?model={quote(model, safe='')}", timeout=_SECONDS)
    except Unavailable as error:
        status = _part(_card(await _cards(http), model), "status")
        loads = _text(status, "value") == "loading"
        if not loads and status is not None and status.get("failed"):
            raise Refused(f"{http.url} fails to load {model}: its log says why") from error
        if loads or isinstance(error, Silent):  # it may be there since the list was asked for
            raise Loading(f"it loads {model}") from error
        raise


async def _vllm(http: Http, cards: Sequence[Json], model: str | None) -> Identity:
    """`/tokenizer_info` is there if the server was started with --enable-tokenizer-info-endpoint."""
    root = _text(cards[0] if cards else None, "root")  # an adapter that goes by a name of its own has no tokenizer
    version = await http.look("/version", timeout=_SECONDS)
    config = await http.look("/tokenizer_info", timeout=_SECONDS)
    return Identity(
        http.url,
        "vllm",
        _text(version, "version"),
        _names(cards),
        template=_text(config, "chat_template"),
        bos_token=_token(config, "bos_token"),
        eos_token=_token(config, "eos_token"),
        tokenizer=root,
        weights=root,
        context=_number(_card(cards, model), "max_model_len"),
    )


async def _sglang(http: Http, cards: Sequence[Json], model: str | None) -> Identity:
    about, server = await _either(http, "model_info"), await _either(http, "server_info")
    weights = _text(about, "model_path")
    return Identity(
        http.url,
        "sglang",
        _text(server, "version"),
        _names(cards),
        tokenizer=_text(about, "tokenizer_path") or weights,
        backend=_text(server, "grammar_backend"),
        weights=weights,
        context=_number(_card(cards, model), "max_model_len"),
    )


async def _either(http: Http, name: str) -> Json | None:
    """What SGLang tells under a name, or under the one that it had before."""
    return await http.look(f"/{name}", timeout=_SECONDS) or await http.look(f"/get_{name}", timeout=_SECONDS)


def _names(cards: Sequence[Json]) -> tuple[str, ...]:
    return tuple(card["id"] for card in cards)


def _card(cards: Sequence[Json], model: str | None) -> Json | None:
    """What the list of models has of one; of the first where there is none of this name."""
    named = (card for card in cards if model in (card["id"], *_texts(card, "aliases")))
    return next(named, cards[0] if cards else None)


def _list(document: Json | None, key: str) -> list[Json]:
    found = (document or {}).get(key)
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def _part(document: Json | None, key: str) -> Json | None:
    found = (document or {}).get(key)
    return cast("Json", found) if isinstance(found, dict) else None


def _number(document: Json | None, key: str) -> int | None:
    """A count of tokens; 0 is that there is none."""
    found = (document or {}).get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _texts(document: Json, key: str) -> list[str]:
    found = document.get(key)
    return [item for item in cast("list[Any]", found) if isinstance(item, str)] if isinstance(found, list) else []


def _text(document: Json | None, key: str) -> str:
    found = (document or {}).get(key)
    return found if isinstance(found, str) else ""


def _token(config: Json | None, key: str) -> str:
    """A special token, which is a text or an object with `content`."""
    found = (config or {}).get(key)
    return _text(cast("Json", found), "content") if isinstance(found, dict) else _text(config, key)
