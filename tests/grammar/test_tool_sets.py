"""Tools of public MCP servers and coding agents: the dialects agree on the turns that call them.

`benchmarks/agents.py --agree 1000` asks about all sets and more templates.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import toolgram
from made_up import MADE_UP
from oracles import ebnf_accepts, lark_accepts
from toolgram import Message, ToolCall
from toolgram.grammar.grammar import Grammar

SHARED = Path(__file__).resolve().parents[3] / "shared"
FILE = SHARED / "conformance" / "tool_sets.jsonl"
TEMPLATES = ("Qwen3-Coder", "Qwen3.5-4B", "GLM-4.6", "Qwen-Qwen3-0.6B", "openai-gpt-oss-120b")
SETS = ("everything", "qwen-code", "slack")
LONGEST = 1_500  # characters of a turn that engines are asked about

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the tool sets are not beside this checkout")


def grammar_of(server: str, template: str, **more: Any) -> Grammar:
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    tools = next(row["tools"] for row in rows if row["server"] == server)
    body = {"messages": [{"role": "user", "content": "Have a look."}], "tools": tools, **more}
    plan = toolgram.plan(body, toolgram.ChatTemplate.from_file(SHARED / "templates" / f"{template}.jinja"))
    assert plan.constraint is not None
    return plan.constraint.grammar


def near(text: str, seed: int) -> list[str]:
    """The text, and with one character left out, put in, or changed."""
    rng = random.Random(seed)
    at, char = rng.randrange(len(text)), rng.choice('<>"{/\n a')
    return [text, text[:at] + text[at + 1 :], text[:at] + char + text[at:], text[:at] + char + text[at + 1 :]]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("server", SETS)
def test_the_dialects_agree_on_turns_and_near_misses(server: str, template: str) -> None:
    grammar = grammar_of(server, template, tool_choice="required")
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    turns = [text for seed in range(4) if len(text := grammar.sample(seed)) < LONGEST]
    assert turns
    for number, turn in enumerate(turns):
        for text in near(turn, number):
            verdicts = grammar.accepts(text), lark_accepts(lark, text), ebnf_accepts(ebnf, text)
            assert len(set(verdicts)) == 1, (verdicts, text)


def test_reasoning_that_any_of_many_calls_may_close_is_written_once() -> None:
    lark = grammar_of("filesystem", "Qwen3.5-4B", chat_template_kwargs={"enable_thinking": True}).to("lark")
    assert len(lark) < 30_000  # and not once more up to the name of each tool
    call = "<tool_call>\n<function=list_allowed_directories>\n</function>\n</tool_call>"
    for text in (call, f"I look.\n{call}", f"<tool_call> I look.\n</think>\n\n{call}"):
        assert lark_accepts(lark, text)
        assert not lark_accepts(lark, text.replace("directories", "things", 1))


@pytest.mark.parametrize("family", ["names and keys as tags", "names as tags around JSON"])
def test_text_that_any_of_many_tools_names_may_end_is_nothing_too_deep_for_llguidance(family: str) -> None:
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    tools = {tool["function"]["name"]: tool for row in rows for tool in row["tools"]}
    body = {"messages": [{"role": "user", "content": "?"}], "tools": [*tools.values()][:64]}
    plan = toolgram.plan(body, MADE_UP[family].template)
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    lark, call = grammar.to("lark"), plan.write(Message("I <look>: ", tool_calls=(ToolCall("read_graph", "{}"),)))
    assert call is not None
    for text in (call, call[:-1], "a < b <read_", "<read_graph", call.replace("read", "red")):
        assert lark_accepts(lark, text) == grammar.accepts(text)
    assert len(lark) < 1_000 * 64  # and the text is not written once more up to each name


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_grammar_is_as_large_as_its_tools(template: str) -> None:
    for server, tools in (("firecrawl", 26), ("notion", 24)):
        assert len(grammar_of(server, template).to("lark")) < 4_000 * tools


def test_what_an_answer_must_not_begin_with_is_nothing_special_in_arguments() -> None:
    bare = grammar_of("notion", "meta-llama-Llama-3.3-70B-Instruct").to("lark")  # whose objects begin `{"type"`, too
    tagged = grammar_of("notion", "Qwen-Qwen3-0.6B").to("lark")
    assert len(bare) < 1.6 * len(tagged)  # in which a call may not follow words as well


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_is_long_is_written_once_between_quotes_or_tags(template: str) -> None:
    lines = grammar_of("firecrawl", template).to("lark").splitlines()
    bodies = [body for line in lines if len(body := line.partition(": ")[2]) > 100]
    assert bodies
    assert len(set(bodies)) == len(bodies)


def test_a_date_in_an_object_with_other_keys_is_one_lexeme_with_its_quotes() -> None:
    keys = {"day": {"type": "string", "format": "date"}, "name": {"type": "string"}}
    event = {"type": "object", "properties": keys, "additionalProperties": True}
    function = {"name": "add", "parameters": {"type": "object", "properties": {"event": event}}}
    body = {"messages": [{"role": "user", "content": "Go."}], "tools": [{"type": "function", "function": function}]}
    template = toolgram.ChatTemplate.from_file(SHARED / "templates" / "google-gemma-4-31B-it.jinja")
    plan = toolgram.plan({**body, "tool_choice": "required"}, template)
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    lark = grammar.to("lark")
    assert '"day:" LEXEME' in lark
    call = plan.write(Message(tool_calls=(ToolCall("add", '{"event": {"day": "2024-02-29", "x": ["a", 1]}}'),)))
    assert call is not None
    for text in (call, call.replace("day", "date"), call.replace("2024", "2023"), call.replace("2024", "x"), call[:-1]):
        assert grammar.accepts(text) is lark_accepts(lark, text), text
        assert grammar.accepts(text) is (text in (call, call.replace("day", "date"))), text
