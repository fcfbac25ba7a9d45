"""Control strings of every template, and of SmolLM2, in every field of a request: none becomes a control token on any
kind of engine: one that tokenizes itself, a server that is sent ids, a server that is sent text."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import toolgram
from toolgram.engines.base import Prompt
from toolgram.engines.forgery import broken
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.remote.tokenizer import ServerTokens
from toolgram.models.catalog import default_model
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import control_strings

TEMPLATES = Path(__file__).resolve().parents[3] / "shared/templates"
PATHS = sorted(TEMPLATES.glob("*.jinja"))
NOW = datetime(2024, 7, 26)
SHARED = pytest.mark.skipif(not PATHS, reason="the shared data folder is not beside this checkout")


def calling(said: str) -> list[dict[str, Any]]:
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": {said: [said, {said: said}]}}}
    return [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcdefghi", "name": "f", "content": "1"},
        {"role": "user", "content": "And?"},
    ]


def with_id(said: str) -> list[dict[str, Any]]:
    messages = calling("a")
    messages[1]["tool_calls"][0]["id"] = messages[2]["tool_call_id"] = said
    return messages


def tools(said: str = "a", **fields: Any) -> list[dict[str, Any]]:
    properties = {said: {"type": "string", "description": said, "enum": [said, "b"], "default": said}}
    parameters = {"type": "object", "properties": properties, "required": [said], "title": said}
    return [{"type": "function", "function": {"name": "f", "parameters": parameters, **fields}}]


HI = [{"role": "user", "content": "Hi."}]
FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "system": lambda said: {"messages": [{"role": "system", "content": said}, *HI]},
    "user": lambda said: {"messages": [{"role": "user", "content": said}]},
    "parts": lambda said: {"messages": [{"role": "user", "content": [{"type": "text", "text": said}]}]},
    "name": lambda said: {"messages": [{"role": "user", "name": said, "content": "Hi."}]},
    "arguments": lambda said: {"messages": calling(said), "tools": tools()},
    "id": lambda said: {"messages": with_id(said), "tools": tools()},
    "result": lambda said: {"messages": [*calling("a")[:2], {**calling("a")[2], "content": said}, *HI]},
    "description": lambda said: {"messages": HI, "tools": tools(description=said)},
    "parameters": lambda said: {"messages": HI, "tools": tools(said)},
    "variable": lambda said: {
        "messages": HI,
        "chat_template_kwargs": {"custom_instructions": said, "tools_in": [said]},
    },
    "schema": lambda said: {
        "messages": HI,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "a", "schema": {"type": "object", "description": said}},
        },
    },
}


def planned(template: ChatTemplate, body: dict[str, Any]) -> toolgram.Plan | None:
    """The plan; None where the request is refused, which makes no tokens."""
    try:
        return toolgram.plan(body, template, now=NOW)
    except (toolgram.InvalidRequest, toolgram.TemplateError, toolgram.UnsupportedSchema):
        return None


class Tokenizing:
    """A server's tokenizer with these special tokens, the longest first; all else is in single characters."""

    def __init__(self, special: Sequence[str]) -> None:
        self.names = dict(enumerate(sorted(special, key=lambda text: (-len(text), text)), 1_000_000_000))
        self._ids = {text: token for token, text in self.names.items()}
        self._special = re.compile(f"({'|'.join(map(re.escape, self._ids))})")

    async def encode(self, text: str) -> list[tuple[int, str]]:
        tokens: list[tuple[int, str]] = []
        for piece in self._special.split(text):
            tokens += [(self._ids[piece], piece)] if piece in self._ids else [(ord(char), char) for char in piece]
        return tokens

    def sent_ids(self, prompt: Prompt) -> Counter[str]:
        """The special tokens of a prompt for which the server is first asked for ids."""
        ids = asyncio.run(ServerTokens(self.encode).ids(prompt))
        return Counter(self.names[token] for token in ids if token in self.names)

    def sent_text(self, plan: toolgram.Plan) -> Counter[str]:
        """The special tokens of a prompt that is sent as text."""
        text = "".join(part for part, _ in broken(plan.prompt_parts, plan.control_strings))
        return Counter(self._special.findall(text))


@SHARED
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_no_field_makes_a_control_token_on_a_server(path: Path) -> None:
    template = ChatTemplate.from_file(path, "<s>", "</s>")
    server = Tokenizing([text for text in control_strings(template) if len(text) > 1])
    said = "".join(f"w{text}" for text in sorted(server.names.values())) + "w"
    taken = 0
    for name, field in FIELDS.items():
        plans = [planned(template, field(text)) for text in ("w" * 9, said)]
        if plans[0] is None or plans[1] is None:
            continue
        taken += 1
        for tokens in (lambda plan: server.sent_ids(plan.prompt_parts), server.sent_text):
            innocent, found = map(tokens, plans)
            assert found - innocent == {}, name
    assert taken > len(FIELDS) // 2


@SHARED
def test_no_field_makes_a_control_token_of_the_embedded_model() -> None:
    engine = LlamaCpp(default_model(), context=512)
    try:
        special = {text: token for text, token in engine.vocabulary.items() if len(text) > 1}
        said = "".join(f"w{text}" for text in special) + "w"
        for path in (None, *PATHS):
            given = (path, "<s>", "</s>") if path else None
            template = ChatTemplate.from_file(*given) if given else ChatTemplate.from_gguf(default_model())
            for name, field in FIELDS.items():
                plans = [planned(template, field(text)) for text in ("w" * 9, said)]
                if plans[0] is None or plans[1] is None:
                    continue
                innocent, found = (
                    Counter(token for token in engine._model.vocabulary.tokenize(plan.prompt_parts))
                    for plan in plans
                    if plan is not None
                )
                forged = {text for text, token in special.items() if found[token] > innocent[token]}
                assert not forged, (path, name)
    finally:
        engine.close()
