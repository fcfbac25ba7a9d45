"""XGrammar takes by the structural tag of a turn what the grammar of the turn accepts, and nothing else."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import toolgram
from oracles import structural_tag_accepts
from properties.test_native_styles import CASES, Case
from situations import Situation, situations, tool
from toolgram import Message, ToolCall
from toolgram.grammar.constraint import Constraint

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "templates"
NAMES = sorted(path.name for path in TEMPLATES.glob("*.jinja"))
CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Oslo"]}}, "required": ["city"]}


def check(constraint: Constraint, rng: random.Random, samples: int = 6) -> None:
    """Both say the same of sentences, and of sentences with a piece cut out."""
    tag, grammar = constraint.structural_tag(), constraint.grammar
    sentences = [text for text in map(grammar.sample, range(samples)) if len(text) < 1500]
    cut = [text[: rng.randrange(len(text) + 1)] + text[rng.randrange(len(text) + 1) :] for text in sentences]
    for text in {*sentences, *cut}:
        assert structural_tag_accepts(tag, text) == grammar.accepts(text), text


@pytest.mark.parametrize("case", CASES, ids=str)
def test_of_every_native_style(case: Case) -> None:
    check(Constraint(case.turn.grammar), random.Random(str(case)))


@pytest.mark.parametrize("situation", situations(), ids=str)
def test_of_every_generic_style(situation: Situation) -> None:
    assert situation.plan.constraint is not None
    check(situation.plan.constraint, random.Random(str(situation)))


@pytest.mark.skipif(not NAMES, reason="the shared templates are not beside this checkout")
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_name_and_a_wrong_argument_are_refused(name: str) -> None:
    request = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("look", CITY)]}
    template = toolgram.ChatTemplate.from_file(TEMPLATES / name)
    for choice in ("auto", "required"):
        plan = toolgram.plan(request | {"tool_choice": choice}, template)
        assert plan.constraint is not None
        tag = plan.constraint.structural_tag()
        texts = filter(None, map(plan.write, calls()))
        text = next(filter(plan.constraint.grammar.accepts, texts))
        assert "Oslo" in text
        assert structural_tag_accepts(tag, text)
        assert not structural_tag_accepts(tag, text.replace("look", "loot"))
        assert not structural_tag_accepts(tag, text.replace("Oslo", "Rome"))
        assert not structural_tag_accepts(tag, text.replace("Oslo", ""))


def calls() -> list[Message]:
    """A call, with ids in the forms that formats have, with and without a thought before it."""
    ids = (None, "a1b2c3d4e", "functions.look:0", "0")
    made = [Message(None, None, (ToolCall("look", '{"city": "Oslo"}', each),)) for each in ids]
    return [*made, *(Message(None, "Hm.", message.tool_calls) for message in made)]


def planned(**more: Any) -> Constraint:
    """The constraint of a request in the format of Hermes, for a model that reasons."""
    template = toolgram.ChatTemplate(
        "{% for message in messages %}{{ message.reasoning_content or '' }}{{ message.content }}{% endfor %}"
    )
    tools = [tool("look", CITY), tool("get", None)]
    plan = toolgram.plan({"messages": [{"role": "user", "content": "?"}], "tools": tools, **more}, template, "hermes")
    assert plan.constraint is not None
    return plan.constraint


def test_the_skeleton_is_told_apart_from_the_values() -> None:
    tags = [
        {
            "type": "tag",
            "begin": '<tool_call>\n{"name": "look", "arguments": ',
            "content": {"type": "grammar", "grammar": 'root ::= "{\\"city\\": \\"" ("Paris\\"" | "Oslo\\"") "}"\n'},
            "end": "}\n</tool_call>",
        },
        {
            "type": "tag",
            "begin": '<tool_call>\n{"name": "get", "arguments": ',
            "content": {"type": "grammar", "grammar": 'root ::= "{}"\n'},
            "end": "}\n</tool_call>",
        },
    ]
    thought = {
        "type": "tag",
        "begin": "<think>",
        "content": {"type": "any_text", "excludes": ["</think>"]},
        "end": "</think>",
    }
    several = {"type": "tags_with_separator", "tags": tags, "separator": "\n", "at_least_one": True}
    end = {"type": "grammar", "grammar": 'root ::= "\\n" "\\n"? | ""\n'}
    assert planned(parallel_tool_calls=True).structural_tag()["format"]["elements"] == [
        {"type": "optional", "content": thought},
        {"type": "any_text", "excludes": ["<tool_call>", "<think>"]},
        {"type": "optional", "content": {"type": "sequence", "elements": [several, end]}},
    ]


def test_marks_that_are_tokens_are_written_as_tokens_of_one_grammar() -> None:
    bound = planned(tool_choice="required").bind({"<tool_call>": 7, "</tool_call>": 8})
    assert bound.structural_tag()["format"] == {"type": "grammar", "grammar": bound.grammar.to("ebnf")}
    assert "Token(7)" in bound.grammar.to("ebnf")


def test_a_tag_can_be_changed_without_harm() -> None:
    constraint = planned()
    constraint.structural_tag()["format"].clear()
    assert constraint.structural_tag()["format"]


def test_many_tools_with_many_parameters_do_not_explode() -> None:
    properties = {f"p{i}": {"type": "string"} for i in range(40)}
    tools = [tool(f"f{i}", {"type": "object", "properties": properties}) for i in range(20)]
    template = toolgram.ChatTemplate("{% for message in messages %}{{ message.content }}{% endfor %}")
    for style in ("hermes", "kimi_k3", "glm_4_7", "deepseek_v3_2", "gemma_4"):
        request = {"messages": [{"role": "user", "content": "?"}], "tools": tools, "tool_choice": "required"}
        plan = toolgram.plan(request, template, style)
        assert plan.constraint is not None
        tag = plan.constraint.structural_tag()
        assert len(json.dumps(tag)) < 20 * len(plan.constraint.grammar.to("ebnf")), style
        for text in itertools.islice(map(plan.constraint.grammar.sample, range(3)), 3):
            assert structural_tag_accepts(tag, text)
