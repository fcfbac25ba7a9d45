"""Where chat templates are found: a `.jinja` file, a GGUF file's metadata, Hugging Face's folders and JSON files.

GGUF: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, of which only a few strings are read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from toolgram import gguf_header
from toolgram.errors import TemplateError, unreadable
from toolgram.template.markers import odd


class Source(NamedTuple):
    """A template's text, its model's special tokens, and what the model is called."""

    source: str
    bos_token: str
    eos_token: str
    response_template: str = ""
    control_tokens: tuple[str, ...] = ()
    tool_use: str = ""
    model: str = ""


def read_text(path: Path) -> str:
    """The text of a file, without the mark that some editors begin one with; raises `TemplateError` that names it."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(f"{path}: {unreadable(error)}") from error


# GGUF ----------------------------------------------------------------------------------------------------------------

_TEMPLATE = "tokenizer.chat_template"
_NAME = "general.name"
_TOOL_USE = "tool_use"
_TOKENS = "tokenizer.ggml.tokens"
_TYPES = "tokenizer.ggml.token_type"
_SPECIAL_TYPES = frozenset({3, 4})  # control and user-defined


def from_gguf(path: Path, name: str | None = None, source: str | None = None) -> Source:
    """The template of a GGUF file, or its template `name`, with the texts of its bos and eos tokens.

    With a `source` in the place of its own it needs none, and is asked for its tokens alone.
    """
    try:
        with path.open("rb") as file:
            fields = gguf_header.fields(file)
            key = f"{_TEMPLATE}.{name}" if name else _TEMPLATE
            if not isinstance(found := fields.get(key) if source is None else source, str):
                advice = "" if name else ": give one (--template FILE, source=)"
                raise TemplateError(f"{path}: its metadata has no {key}{_others(fields)}{advice}")
            bos, eos, special = _gguf_tokens(file, fields)
    except (OSError, struct.error, ValueError) as error:
        raise TemplateError(f"{path}: not a readable GGUF file: {error}") from error
    with_tools = fields.get(f"{_TEMPLATE}.{_TOOL_USE}") if name is None and source is None else None
    called = fields.get(_NAME)
    model = f"{called}, {path.stem}" if isinstance(called, str) and called else path.stem
    return Source(found, bos, eos, "", special, with_tools if isinstance(with_tools, str) else "", model)


def gguf_metadata(path: Path) -> Mapping[str, Any]:
    """The metadata of a GGUF file, without its arrays. Raises TemplateError where it cannot be read."""
    try:
        return gguf_header.metadata(path)
    except (OSError, ValueError) as error:
        raise TemplateError(f"{path}: not a readable GGUF file: {error}") from error


def _gguf_tokens(file: BinaryIO, fields: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    """The texts of the bos and eos tokens, and the control tokens that do not look like any."""
    bos, eos = (_gguf_token(file, fields, f"tokenizer.ggml.{kind}_token_id") for kind in ("bos", "eos"))
    return bos, eos, odd(_gguf_special(file, fields))


def _gguf_token(file: BinaryIO, fields: Mapping[str, Any], key: str) -> str:
    tokens, token = fields.get(_TOKENS), fields.get(key)
    if not isinstance(tokens, gguf_header.Array) or tokens.kind != gguf_header.STRING or not isinstance(token, int):
        return ""
    if not 0 <= token < tokens.length:
        raise ValueError(f"{key} is {token}, but there are {tokens.length} tokens")
    file.seek(tokens.offset)
    gguf_header.skip_strings(file, token)
    return gguf_header.string(file)


def _gguf_special(file: BinaryIO, fields: Mapping[str, Any]) -> list[str]:
    """The control tokens and the user-defined ones of the vocabulary."""
    tokens, types = fields.get(_TOKENS), fields.get(_TYPES)
    if not isinstance(tokens, gguf_header.Array) or tokens.kind != gguf_header.STRING:
        return []
    if not isinstance(types, gguf_header.Array) or types.kind != gguf_header.INT32 or types.length != tokens.length:
        return []
    file.seek(types.offset)
    kinds = struct.unpack(f"<{types.length}i", file.read(4 * types.length))
    special: list[str] = []
    file.seek(tokens.offset)
    at = 0
    for token in (token for token, kind in enumerate(kinds) if kind in _SPECIAL_TYPES):
        gguf_header.skip_strings(file, token - at)
        special.append(gguf_header.string(file, "replace"))
        at = token + 1
    return special


def _others(fields: Mapping[str, Any]) -> str:
    names = [key for key in fields if key == _TEMPLATE or key.startswith(f"{_TEMPLATE}.")]
    return f" (it has {', '.join(names)})" if names else ""


# Hugging Face --------------------------------------------------------------------------------------------------------


def from_hf(folder: Path, name: str | None = None) -> Source:
    """The template of a model's folder, or its template `name`.

    Templates are `chat_template.jinja`, `additional_chat_templates/NAME.jinja`, `chat_template.json`, or the
    `chat_template` of `tokenizer_config.json`: a text, or a list of named texts. A separate file takes precedence.
    """
    if not folder.is_dir():
        raise TemplateError(f"{folder}: no such folder")
    config = _read_json(folder / "tokenizer_config.json")
    specials = _read_json(folder / "special_tokens_map.json")
    tokens = {key: _hf_token(config.get(key)) or specials.get(key) for key in ("bos_token", "eos_token")}
    special = odd(_hf_special(folder, config))
    made = _hf_source(folder, _hf_templates(folder, config), {**config, **tokens}, special, name)
    return made._replace(model=_model_of(folder))


def _model_of(folder: Path) -> str:
    """What the model of a folder is called; in the hub's cache, where a folder is a revision, as its repository is."""
    whole = folder.absolute()
    return (whole.parents[1] if whole.parent.name == "snapshots" else whole).name


def from_json(path: Path) -> Source:
    """The template in a JSON file of Hugging Face's, `tokenizer_config.json` or `chat_template.json`, and its tokens.

    As Jinja such a file is often a valid template too: one that writes itself, with the conversation in its middle.
    """
    config = _json_of(path)
    return _hf_source(path, _named_templates(config.get("chat_template")), config, odd(_added(config) or []), None)


def _hf_source(
    place: Path, templates: Mapping[str, str], config: Mapping[str, Any], special: tuple[str, ...], name: str | None
) -> Source:
    wanted = name or "default"
    if wanted not in templates:
        known = f"; it has {', '.join(sorted(templates))}" if templates else ""
        raise TemplateError(f"{place}: no chat template{f' named {name!r}' if name else ''}{known}")
    bos, eos = (_hf_token(config.get(key)) for key in ("bos_token", "eos_token"))
    described = config.get("response_template")
    with_tools = templates.get(_TOOL_USE, "") if name is None else ""
    return Source(templates[wanted], bos, eos, "" if described is None else json.dumps(described), special, with_tools)


def _hf_special(folder: Path, config: Mapping[str, Any]) -> list[str]:
    """The tokens added to the vocabulary, from `tokenizer_config.json` or else `tokenizer.json`."""
    added = _added(config)
    if added is None:
        listed = _read_json(folder / "tokenizer.json").get("added_tokens")
        added = [_hf_token(token) for token in cast("list[Any]", listed)] if isinstance(listed, list) else []
    return added


def _added(config: Mapping[str, Any]) -> list[str] | None:
    """The tokens that `tokenizer_config.json` adds to the vocabulary; None where it does not speak of any."""
    decoder = config.get("added_tokens_decoder")
    if not isinstance(decoder, dict):
        return None
    return [_hf_token(token) for token in cast("dict[str, Any]", decoder).values()]


def _hf_templates(folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    templates: dict[str, str] = {}
    for document in (config, _read_json(folder / "chat_template.json")):
        templates |= _named_templates(document.get("chat_template"))
    if (file := folder / "chat_template.jinja").is_file():
        templates["default"] = read_text(file)
    for file in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        templates[file.stem] = read_text(file)
    return templates


def _named_templates(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, dict):
        return {key: text for key, text in cast("dict[str, Any]", value).items() if isinstance(text, str)}
    if not isinstance(value, list):
        return {}
    entries = (cast("dict[str, Any]", entry) for entry in cast("list[Any]", value) if isinstance(entry, dict))
    return {str(entry.get("name", "default")): entry["template"] for entry in entries if "template" in entry}


def _hf_token(value: Any) -> str:
    """The text of a special token, which is a text or an object with `content`."""
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("content")
    return value if isinstance(value, str) else ""


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON file that need not be there."""
    return _json_of(path) if path.is_file() else {}


def _json_of(path: Path) -> dict[str, Any]:
    try:
        document: object = json.loads(read_text(path))
    except ValueError as error:
        raise TemplateError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise TemplateError(f"{path}: must be a JSON object")
    return cast("dict[str, Any]", document)
