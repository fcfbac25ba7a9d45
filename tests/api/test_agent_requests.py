"""What coding agents send: the shapes of their requests, with texts of our own. None of them is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

import toolgram
from situations import CHATML
from toolgram.api.messages.request import read_messages_request
from toolgram.api.responses.request import read_responses_request
from toolgram.api.responses.response import ResponseWriter
from toolgram.chat import Reply
from toolgram.conversation.events import ArgumentsDelta, ToolCallEnd, ToolCallStart
from toolgram.conversation.message import Message, ToolCall
from toolgram.engines.base import Usage

NOW = datetime(2026, 1, 1)
RUN = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"], "additionalProperties": False}
ID = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
PATCH = 'start: "*** Begin Patch" LF line+ "*** End Patch" LF?\nline: /[+ -][^\\n]*/ LF\nLF: /\\n/\n'
BEGIN, END = "*** Begin Patch", "*** End Patch"
READ = {"type": "function", "name": "read", "parameters": ID}
CODEX: dict[str, Any] = {
    "model": "local",
    "stream": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"turn_id": "t"},
    "reasoning": {"summary": "auto"},
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "input": [
        {"type": "message", "id": "m1", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"type": "message", "id": "m2", "role": "user", "content": [{"type": "input_text", "text": "Look."}]},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "call_id": "c1", "name": "close", "namespace": "agents", "arguments": '{"id": "7"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "closed 7"},
        {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "custom_tool_call",
            "call_id": "c2",
            "name": "apply_patch",
            "input": f"{BEGIN}\n+a\n{END}",
        },
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "encrypted_content", "data": "x"}]},
    ],
    "tools": [
        {"type": "function", "name": "exec_command", "description": "Runs.", "strict": False, "parameters": RUN},
        {
            "type": "namespace",
            "name": "agents",
            "description": "Agents.",
            "tools": [
                {"type": "function", "name": "close", "strict": False, "parameters": ID},
                {"type": "function", "name": "wait", "strict": False, "parameters": ID},
            ],
        },
        {
            "type": "namespace",
            "name": "mcp__files__",
            "tools": [{"type": "function", "name": "read", "parameters": ID}],
        },
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": PATCH}},
        {"type": "web_search", "external_web_access": False},
        {"type": "image_generation"},
    ],
}
SEEN = ["exec_command", "agents__close", "agents__wait", "mcp__files__read", "apply_patch"]


def test_a_request_of_codex_is_planned() -> None:
    read = read_responses_request(CODEX)
    plan = read.generation.plan(CHATML, "hermes_2_pro", NOW)
    assert [tool.name for tool in plan.request.tools] == SEEN
    left_out = ("tools.web_search", "tools.image_generation", "input.web_search_call", "output.encrypted_content")
    assert read.generation.ignored == left_out
    assert '"name": "agents__close", "arguments": {"id": "7"}' in plan.prompt
    assert "*** Begin Patch" in plan.prompt
    assert "closed 7" in plan.prompt
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    assert grammar.accepts('<tool_call>\n{"name": "mcp__files__read", "arguments": {"id": "a"}}\n</tool_call>')
    patch = r"*** Begin Patch\n+a\n*** End Patch"
    call = '<tool_call>\n{"name": "apply_patch", "arguments": {"input": "%s"}}\n</tool_call>'
    assert grammar.accepts(call % patch)
    assert not grammar.accepts(call % "no patch")


def test_thoughts_that_have_no_place_are_told_by_their_item() -> None:
    thoughts = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]}
    items = [thoughts if item["type"] == "reasoning" else item for item in CODEX["input"]]
    read = read_responses_request({**CODEX, "input": items})
    assert read.generation.plan(CHATML, "hermes_2_pro", NOW).left_out == ("/input/2",)


def events(name: str) -> Iterator[Any]:
    yield ToolCallStart(0, name, "call_1")
    yield ArgumentsDelta(0, '{"id": "7"}')
    yield ToolCallEnd(0, "call_1")
    yield Reply(Message(None, None, (ToolCall(name, '{"id": "7"}', "call_1"),)), "", "tool_calls", Usage())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("agents__close", {"name": "close", "namespace": "agents"}),
        ("mcp__files__read", {"name": "read", "namespace": "mcp__files__"}),
        ("exec_command", {"name": "exec_command"}),
    ],
)
def test_a_call_is_answered_with_name_and_namespace_apart(name: str, told: dict[str, str]) -> None:
    read = read_responses_request(CODEX)
    writer = ResponseWriter("resp_1", 1, "m", read.echo, read.places)
    said = [event for item in events(name) for event in writer.feed(item)]
    items = [event["item"] for event in said if event["type"] == "response.output_item.done"]
    items += said[-1]["response"]["output"]
    assert len(items) == 2
    for item in items:
        assert {key: item[key] for key in ("name", "namespace") if key in item} == told


def test_names_of_namespaces_and_of_plain_tools_do_not_meet() -> None:
    body = {**CODEX, "tools": [*CODEX["tools"], {"type": "function", "name": "agents__close", "parameters": ID}]}
    read = read_responses_request(body)
    names = [tool.name for tool in read.generation.request.tools]
    assert len(set(names)) == len(names) == 6
    assert set(read.places.values()) >= {("agents", "close")}
    assert "agents__close" not in read.places


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"type": "function", "name": "close", "namespace": "agents"}, ("agents__close",)),
        ({"type": "custom", "name": "apply_patch"}, ("apply_patch",)),
        (
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "web_search"}, {"type": "function", "name": "exec_command"}],
            },
            ("exec_command",),
        ),
    ],
)
def test_a_choice_may_name_what_is_in_a_namespace(choice: dict[str, Any], names: tuple[str, ...]) -> None:
    read = read_responses_request({**CODEX, "tool_choice": choice})
    assert read.generation.request.tool_choice.only == names


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"tool_choice": {"type": "web_search"}}, "/tool_choice"),
        ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp"}]}}, "/tool_choice/tools"),
        ({"tool_choice": {"type": "function", "name": "close"}}, "/tool_choice/name"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "/input/0/id"),
        ({"previous_response_id": "resp_1"}, "/previous_response_id"),
        ({"tools": [{"type": "namespace", "name": "a", "tools": [{"type": "function"}]}]}, "/tools/0/tools/0/name"),
    ],
)
def test_what_cannot_be_answered_honestly_is_refused(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(toolgram.InvalidRequest) as raised:
        read_responses_request({**CODEX, **fields})
    assert raised.value.pointer == pointer


def test_tools_may_be_added_in_the_conversation() -> None:
    inner = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
    body = {"input": [{"type": "additional_tools", "tools": [inner]}, {"role": "user", "content": "Run."}]}
    read = read_responses_request(body)
    assert [(tool.name, tool.pointer) for tool in read.generation.request.tools] == [
        ("functions__exec", "/input/0/tools/0/tools/0")
    ]


def test_of_tools_of_one_name_that_are_added_the_last_one_holds() -> None:
    def f(about: str) -> dict[str, Any]:
        return {"type": "function", "name": "f", "description": about, "parameters": {"type": "object"}}

    found = {
        "type": "tool_search_output",
        "call_id": "c",
        "execution": "client",
        "tools": [f("2"), {**f("3"), "name": "g"}],
    }
    searched = {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "f"}}
    body = {"input": [{"role": "user", "content": "Run."}, searched, found], "tools": [f("1")]}
    read = read_responses_request(body).generation
    assert [(tool.name, tool.description) for tool in read.request.tools] == [("f", "2"), ("g", "3")]
    assert read.ignored == ("input.tool_search_call",)
    with pytest.raises(toolgram.InvalidRequest, match="two tools are named 'f'"):
        read_responses_request({**body, "tools": [f("1"), f("1")]})


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
CLAUDE: dict[str, Any] = {
    "model": "local",
    "max_tokens": 32000,
    "stream": True,
    "metadata": {"user_id": "u"},
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "high"},
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=abc;"},
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
    ],
    "tools": [
        {"name": "Read", "description": "Reads.", "input_schema": ID, "cache_control": {"type": "ephemeral"}},
        {"name": "Later", "input_schema": ID, "defer_loading": True},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Look.", "cache_control": {"type": "ephemeral"}}]},
        {"role": "system", "content": "Mind the time."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                {"type": "text", "text": "I read."},
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"id": "1"}},
                {"type": "tool_use", "id": "t2", "name": "bash", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "seen"}, IMAGE]},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [
                        {"type": "tool_reference", "tool_name": "Later"},
                        {
                            "type": "document",
                            "source": {"type": "base64", "media_type": "a/pdf", "data": "A"},
                        },
                    ],
                },
                {"type": "text", "text": "Go on."},
            ],
        },
    ],
}


def test_a_request_of_claude_code_is_planned() -> None:
    generation = read_messages_request(CLAUDE)
    plan = generation.plan(CHATML, "hermes_2_pro", NOW)
    assert [tool.name for tool in plan.request.tools] == ["Read", "Later", "bash", "str_replace_based_edit_tool"]
    assert set(generation.ignored) == {
        *("context_management", "system.x-anthropic-billing-header", "tools.web_search_20250305"),
        *("messages.server_tool_use", "messages.web_search_tool_result", "tool_result.document"),
    }
    assert plan.left_out == ("/messages/3/content/0/content/1", "/messages/2/content/0")
    assert "billing" not in plan.prompt
    for text in ("Be brief.", "Mind the time.", "seen", "[image_url: it cannot be shown to this model]", "Go on."):
        assert text in plan.prompt
    assert plan.constraint is not None
    call = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
    assert plan.constraint.grammar.accepts(call)


def test_the_prompt_does_not_change_with_the_words_for_the_clients_maker() -> None:
    head = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=def;\n"}
    other = {**CLAUDE, "system": [head, CLAUDE["system"][1]]}
    prompts = [read_messages_request(body).plan(CHATML, None, NOW).prompt for body in (CLAUDE, other)]
    assert prompts[0] == prompts[1]
    kept = read_messages_request({**CLAUDE, "system": "A header: x-anthropic-billing-header: a"})
    assert "system.x-anthropic-billing-header" not in kept.ignored
    both = read_messages_request({**CLAUDE, "system": "x-anthropic-billing-header: a\nBe kind."})
    assert both.request.messages[0]["content"] == "Be kind."


SEARCH = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
LATER: list[dict[str, Any]] = [
    {"name": "ToolSearch", "description": "Finds tools.", "input_schema": SEARCH},
    {"name": "Later", "description": "Does it later.", "input_schema": ID, "defer_loading": True},
    {"name": "Placeholder", "description": "Stands for others.", "input_schema": {}, "defer_loading": True},
    {"name": "Read", "description": "Reads.", "input_schema": ID},
]
FOUND: list[dict[str, Any]] = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {"query": "l"}}]},
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": "Later"}]}
        ],
    },
]


def conversation(*turns: Any, tools: Any = LATER, **fields: Any) -> toolgram.Plan:
    body = {"max_tokens": 9, "tools": tools, "messages": [{"role": "user", "content": "Look."}, *turns], **fields}
    return read_messages_request(body).plan(CHATML, "hermes_2_pro", NOW)


def may_call(plan: toolgram.Plan, name: str) -> bool:
    call = '<tool_call>\n{"name": "%s", "arguments": {"id": "1"}}\n</tool_call>'
    assert plan.constraint is not None
    return plan.constraint.grammar.accepts(call % name)


def system(*blocks: Any) -> dict[str, Any]:
    return {"role": "system", "content": [{"type": "text", "text": "There is news."}, *blocks]}


def added(**tool: Any) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": tool}


def test_a_tool_that_is_deferred_is_shown_where_it_is_found() -> None:
    before, found = conversation(tools=[LATER[0], LATER[2], LATER[3]]), conversation(*FOUND)
    assert "Placeholder" not in found.prompt
    assert [may_call(before, name) for name in ("Read", "Later", "Placeholder")] == [True, False, False]
    assert [may_call(found, name) for name in ("Read", "Later", "Placeholder")] == [True, True, False]
    asked = before.prompt.removesuffix("<|im_start|>assistant\n")
    assert found.prompt.startswith(asked)  # nothing that was read is read again
    shown = found.prompt.removeprefix(asked)
    assert "The tool Later may be called: " in shown
    assert "Does it later." in shown


def test_tools_that_the_maker_itself_would_find_are_all_shown() -> None:
    plan = conversation(tools=[*LATER, {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}])
    assert "Does it later." in plan.prompt
    assert may_call(plan, "Later")


def test_a_list_of_deferred_tools_alone_is_announced_when_one_is_found() -> None:
    plan = conversation(system(added(type="tool_reference", name="Later")), tools=[LATER[1]])
    assert plan.prompt.index("Does it later.") < plan.prompt.index("Look.")
    assert may_call(plan, "Later")


def test_a_result_that_names_a_tool_which_has_gone_says_so() -> None:
    plan = conversation(*FOUND, tools=[LATER[0]])
    assert "There is no tool Later." in plan.prompt
    assert not may_call(plan, "Later")


def test_a_system_turn_adds_and_removes_tools() -> None:
    definition = {"name": "New", "description": "Is new.", "input_schema": ID}
    news = system(added(type="tool_reference", name="Later"), added(type="tool_definition", definition=definition))
    gone = system({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "Read"}})
    before, after = conversation(), conversation(news, gone)
    assert after.prompt.startswith(before.prompt.removesuffix("<|im_start|>assistant\n"))
    assert [may_call(after, name) for name in ("ToolSearch", "Later", "New", "Read")] == [False, True, True, False]
    assert "The tool Read may not be called any more." in after.prompt
    assert after.prompt.index("There is news.") < after.prompt.index("Does it later.") < after.prompt.index("Is new.")
    again = conversation(news, gone, system(added(type="tool_reference", name="Read")))
    assert may_call(again, "Read")
    with pytest.raises(toolgram.InvalidRequest) as raised:
        conversation(gone, tool_choice={"type": "tool", "name": "Read"})
    assert raised.value.pointer == "/tool_choice/name"


def test_what_is_wrong_with_a_tool_of_a_system_turn_is_told_by_its_place() -> None:
    definition = {"name": "New", "input_schema": {"type": "object", "properties": 1}}
    with pytest.raises(toolgram.InvalidSchema) as raised:
        conversation(system(added(type="tool_definition", definition=definition)))
    assert raised.value.pointer == "/messages/1/content/1/tool/definition/input_schema"
    with pytest.raises(toolgram.InvalidRequest) as refused:
        conversation(system(IMAGE))
    assert refused.value.pointer == "/messages/1/content/1/type"


def test_a_choice_of_a_tool_that_is_left_out_is_refused() -> None:
    with pytest.raises(toolgram.InvalidRequest) as raised:
        read_messages_request({**CLAUDE, "tool_choice": {"type": "tool", "name": "web_search"}})
    assert raised.value.pointer == "/tool_choice/name"


def test_an_image_in_a_result_is_told_in_words_where_a_template_shows_none() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a"}, image]},
    ]
    plan = toolgram.plan({"messages": messages}, CHATML)
    assert plan.left_out == ("/messages/2/content/1",)
    assert "a[image_url: it cannot be shown to this model]" in plan.prompt
    with pytest.raises(toolgram.InvalidRequest):
        toolgram.plan({"messages": [{"role": "user", "content": [image]}]}, CHATML)
