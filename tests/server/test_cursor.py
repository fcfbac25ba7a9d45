"""What Cursor sends to `/v1/chat/completions`, and how it takes the answer.

Its agent sends bodies of `/v1/responses` and reads chat completions (BerriAI/litellm#34029); in other modes custom
tools as that API has them stand beside functions. It reads each call as that of a function, and what it has said of its
ApplyPatch comes back so (icebear0828/codex-proxy#708).
"""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

import toolgram
from live_server import serving
from toolgram.engines.replay import Replay
from toolgram.errors import InvalidRequest

CHAT = "/v1/chat/completions"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
GRAMMAR = r"""
start: begin_patch hunk end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?
hunk: "*** Update File: " filename LF change
filename: /(.+)/
change: ("@@" LF)? line+
line: /[+ -]/ /(.*)/ LF
%import common.LF
"""
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
FLAT: Any = {"type": "function", "name": "Read", "description": "Reads a file.", "parameters": PATH, "strict": False}
NESTED: Any = {"type": "function", "function": {"name": "Read", "description": "Reads a file.", "parameters": PATH}}
APPLY: Any = {
    "type": "custom",
    "name": "ApplyPatch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR},
}
ASKED: Any = [
    {"type": "message", "role": "developer", "content": "You are a coding agent."},
    {"role": "user", "content": [{"type": "input_text", "text": "Make x two."}]},
]
AGENT: Any = {
    "model": "recorded",
    "style": "hermes_2_pro",
    "input": ASKED,
    "tools": [FLAT, APPLY],
    "reasoning": {"effort": "medium", "summary": "auto"},
    "text": {"verbosity": "low"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
    "stream_options": {"include_usage": True, "include_obfuscation": False},
    "prompt_cache_retention": "24h",
    "metadata": {"session": "s"},
    "user": "u",
}
READS = '<tool_call>\n{"name": "Read", "arguments": {"path": "a.py"}}\n</tool_call>'
PATCHES = (
    f'<tool_call>\n{{"name": "ApplyPatch", "arguments": {{"input": {json.dumps(PATCH + chr(10))}}}}}\n</tool_call>'
)


def streamed(address: str, body: dict[str, Any]) -> tuple[list[dict[str, str]], str, str | None, Any]:
    """The calls, the text, how it ended, and the usage that the stream of an answer tells."""
    calls: list[dict[str, str]] = []
    text, finish, usage = "", None, None
    lines = httpx2.post(address + CHAT, json={**body, "stream": True}).raise_for_status().text.splitlines()
    assert lines[-2] == "data: [DONE]"
    for line in filter(lambda line: line.startswith("data: {"), lines):
        chunk = json.loads(line.removeprefix("data: "))
        assert chunk["object"] == "chat.completion.chunk"
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            finish = choice["finish_reason"] or finish
            text += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls", ()):
                if len(calls) == call["index"]:
                    assert call["type"] == "function"
                    calls.append({"id": call["id"], "name": call["function"]["name"], "arguments": ""})
                calls[call["index"]]["arguments"] += call["function"]["arguments"]
    return calls, text, finish, usage


def test_its_agent_reads_a_file_and_patches_it() -> None:
    engine = Replay(READS, PATCHES, "Done.")
    with serving(engine) as address:
        (read,), _, finish, usage = streamed(address, AGENT)
        assert (read["name"], json.loads(read["arguments"]), finish) == ("Read", {"path": "a.py"}, "tool_calls")
        assert usage["completion_tokens"]
        said: Any = [
            *ASKED,
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAA"},
            {"type": "function_call", "call_id": read["id"], "name": "Read", "arguments": read["arguments"]},
            {"type": "function_call_output", "call_id": read["id"], "output": "x = 1"},
        ]
        (patch,), _, finish, _ = streamed(address, {**AGENT, "input": said})
        assert (patch["name"], patch["arguments"], finish) == ("ApplyPatch", PATCH + "\n", "tool_calls")
        said += [
            {"type": "function_call", "call_id": patch["id"], "name": "ApplyPatch", "arguments": patch["arguments"]},
            {"type": "function_call_output", "call_id": patch["id"], "output": "patched"},
        ]
        assert streamed(address, {**AGENT, "input": said})[1:3] == ("Done.", "stop")
    assert json.dumps(PATCH + "\n") in engine.calls[2].text  # the patch is told as the model wrote it


@pytest.mark.parametrize("messages", [{}, {"messages": []}])
def test_an_answer_at_once_is_a_chat_completion(messages: dict[str, Any]) -> None:
    body = {**AGENT, **messages, "max_tokens": 500}
    with serving(Replay(PATCHES)) as address:
        answer = httpx2.post(address + CHAT, json=body).raise_for_status()
    told = answer.json()
    assert told["object"] == "chat.completion"
    (call,) = told["choices"][0]["message"]["tool_calls"]
    assert (call["type"], call["function"]) == ("function", {"name": "ApplyPatch", "arguments": PATCH + "\n"})
    assert answer.headers["x-toolgram-ignored"] == "text.verbosity"


def test_in_its_other_modes_shapes_are_mixed() -> None:
    history: Any = [
        {"role": "user", "content": "Make x two."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "ApplyPatch", "arguments": PATCH}},
                {"id": "c2", "type": "function", "function": {"name": "Read", "arguments": '{"path": "a.py"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "patched"},
        {"role": "tool", "tool_call_id": "c2", "content": "x = 2"},
        {"role": "user", "content": "And again."},
    ]
    choice = {"type": "custom", "name": "ApplyPatch"}
    body = {"model": "recorded", "style": "hermes_2_pro", "messages": history, "tools": [NESTED, APPLY]}
    engine = Replay(PATCHES)
    with serving(engine) as address:
        (call,), _, _, _ = streamed(address, {**body, "tool_choice": choice})
    assert call["arguments"] == PATCH + "\n"
    assert json.dumps(PATCH) in engine.calls[0].text
    assert engine.calls[0].constraint is not None
    assert not engine.calls[0].constraint.grammar.accepts(READS)


def test_its_custom_tool_is_held_to_its_grammar() -> None:
    engine = Replay(PATCHES)
    with serving(engine) as address:
        streamed(address, {**AGENT, "tool_choice": {"type": "custom", "name": "ApplyPatch"}})
    (constraint,) = [call.constraint for call in engine.calls]
    assert constraint is not None
    assert constraint.grammar.accepts(PATCHES)
    assert not constraint.grammar.accepts(PATCHES.replace("*** End Patch", "*** End"))
    assert not constraint.grammar.accepts(READS)


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ({"name": "Read", "input_schema": PATH}, "/tools/0: is a tool of another API"),
        ({"name": "Read", "inputSchema": PATH}, "/tools/0: is a tool of another API"),
        ({"type": "function", "function": {"name": "Read", "input_schema": PATH}}, "has input_schema, but no param"),
        ({"type": "function", "name": "Read", "arguments": PATH}, "has arguments, but no parameters"),
        ({"type": "custom", "name": "f", "format": {"type": "grammar"}}, "/tools/0/format: must be"),
        (
            {"type": "custom", "name": "f", "format": {**APPLY["format"], "definition": "start: a"}},
            "/format/definition",
        ),
    ],
)
def test_a_tool_that_means_another_shape_is_told_so(tool: dict[str, Any], reason: str) -> None:
    template = toolgram.ChatTemplate("{{ messages[0].content }}", "", "</s>")
    with pytest.raises(InvalidRequest, match=reason):
        toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], "tools": [tool]}, template)


def test_a_tool_that_says_beside_its_name_that_it_takes_nothing_takes_nothing() -> None:
    template = toolgram.ChatTemplate("{{ messages[0].content }}", "", "</s>")
    tool = {"type": "function", "function": {"name": "now", "arguments": {}}}
    assert toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], "tools": [tool]}, template).constraint
