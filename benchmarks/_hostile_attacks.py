"""Attacks on a server, by name: bodies that cost it as much as they can, and that llama.cpp's own server takes too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 8}

Attack = Callable[[int], tuple[str, bytes | AsyncGenerator[bytes, None]]]
"""A path and a body, whole or as it comes; each copy of an attack has a number, so that nothing is remembered."""


def _chat(**fields: Any) -> tuple[str, bytes]:
    return CHAT, json.dumps({**HI, **fields}).encode()


def _function(name: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def many_tools(copy: int) -> tuple[str, bytes]:
    """Two thousand of them."""
    properties: dict[str, Any] = {"a": {"type": "string"}, "b": {"type": "integer"}}
    return _chat(tools=[_function(f"tool_{copy}_{i}", properties, ["a"]) for i in range(2000)])


def many_optional(copy: int) -> tuple[str, bytes]:
    """A tool with a thousand optional properties."""
    return _chat(tools=[_function("f", {f"p{copy}_{i}": {"type": "string"} for i in range(1000)}, [])])


def nested_counts(copy: int) -> tuple[str, bytes]:
    """Patterns with counts inside of counts."""
    patterns = [f"^((a|b){{2,{9 + i}}}){{3,{30 + copy}}}$" for i in range(59)]
    return _chat(
        tools=[_function(f"f{i}", {"a": {"type": "string", "pattern": p}}, ["a"]) for i, p in enumerate(patterns)]
    )


def long_text(copy: int) -> tuple[str, bytes]:
    """Fifteen megabytes in a message."""
    return _chat(messages=[{"role": "user", "content": f"{copy} " + "word, " * 2_500_000}])


def long_tokenize(copy: int) -> tuple[str, bytes]:
    """Fifteen megabytes to be tokenized."""
    return "/tokenize", json.dumps({"content": f"{copy} " + "word, " * 2_500_000}).encode()


def many_messages(copy: int) -> tuple[str, bytes]:
    """Two hundred thousand messages."""
    return _chat(messages=[{"role": "user", "content": str(copy)}] * 200_000)


def empty_tools(copy: int) -> tuple[str, bytes]:
    """Four hundred thousand tools that are none."""
    return _chat(tools=[{}] * 400_000, seed=copy)


def many_biases(copy: int) -> tuple[str, bytes]:
    """A million entries of `logit_bias`."""
    return _chat(logit_bias={str(i): copy for i in range(1_000_000)})


def many_ids(copy: int) -> tuple[str, bytes]:
    """Five million ids."""
    return COMPLETIONS, json.dumps({"prompt": [5 + copy] * 5_000_000, "max_tokens": 1}).encode()


def long_grammar(copy: int) -> tuple[str, bytes]:
    """A megabyte of GBNF."""
    rules = "".join(f'a{i} ::= "x{copy}" | a{i + 1}\n' for i in range(30_000))
    return COMPLETIONS, json.dumps(
        {"prompt": "Hi", "grammar": f'root ::= a0\n{rules}a30000 ::= "y"', "max_tokens": 4}
    ).encode()


def deep_groups(copy: int) -> tuple[str, bytes]:
    """Three thousand parentheses."""
    grammar = f'root ::= {"(" * 3000}"x{copy}"{")" * 3000}'
    return COMPLETIONS, json.dumps({"prompt": "Hi", "grammar": grammar, "max_tokens": 4}).encode()


def some_choices(copy: int) -> tuple[str, bytes]:
    """As many answers as there are slots, all long."""
    story = [{"role": "user", "content": "Tell me a long story of the sea."}]
    return _chat(messages=story, n=4, seed=copy, temperature=1, max_tokens=256)


def many_choices(copy: int) -> tuple[str, bytes]:
    """128 answers to one question: more than there are slots, which llama.cpp's server refuses."""
    return _chat(n=128, seed=copy, temperature=1)


def one_choice(copy: int) -> tuple[str, bytes]:
    """One of them."""
    return _chat(seed=copy, temperature=1)


def endless_body(copy: int) -> tuple[str, AsyncGenerator[bytes, None]]:
    """One that never ends, and holds a connection."""

    async def body() -> AsyncGenerator[bytes, None]:
        while True:
            yield b'{"a": "%d", ' % copy
            await asyncio.sleep(2)

    return CHAT, body()


ATTACKS: dict[str, Attack] = {
    "2,000 tools": many_tools,
    "1,000 optional properties": many_optional,
    "nested counts": nested_counts,
    "15 MB of text": long_text,
    "15 MB to tokenize": long_tokenize,
    "200,000 messages": many_messages,
    "400,000 empty tools": empty_tools,
    "1,000,000 biases": many_biases,
    "5,000,000 ids": many_ids,
    "1 MB of grammar": long_grammar,
    "3,000 parentheses": deep_groups,
    "4 long choices": some_choices,
    "128 choices": many_choices,
    "128 requests": one_choice,
    "endless bodies": endless_body,
}
TIMES = {"128 requests": 128, "endless bodies": 100}
"""How many requests a copy of an attack consists of, where it is not one: the work of 128 choices, or connections."""
