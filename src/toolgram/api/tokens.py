"""The bodies of `/tokenize` and `/detokenize`, as vLLM and llama-server have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

from toolgram.api.chat.request import ChatRequest, read_chat_request
from toolgram.conversation.fields import Fields, Many, Number, json_of, validated
from toolgram.errors import InvalidRequest


class TextBody(Fields):
    """A raw text: `prompt` as vLLM has it, `content` as llama-server."""

    model: str | None = None
    prompt: str | None = None
    content: str | None = None


class TokensBody(Fields):
    """Ids of tokens."""

    tokens: Many[Annotated[int, Number(0, whole=True)]]
    model: str | None = None


def read_detokenize_request(body: Any) -> TokensBody:
    """Ids of tokens. Raises InvalidRequest."""
    return validated(TokensBody, json_of(body))


@dataclass(frozen=True, slots=True)
class RawText:
    """A text whose tokens are asked for."""

    text: str
    model: str | None


def read_tokenize_request(body: Any) -> ChatRequest | RawText:
    """A conversation, whose prompt is meant, or a raw text. Raises InvalidRequest."""
    if isinstance(body, Mapping) and cast("Mapping[str, Any]", body).get("messages") is not None:
        return read_chat_request(body)
    given = validated(TextBody, json_of(body))
    text = given.content if given.prompt is None else given.prompt
    if text is None:
        raise InvalidRequest("/prompt", "give messages, prompt or content")
    return RawText(text, given.model)
