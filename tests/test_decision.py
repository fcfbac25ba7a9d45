"""To call or not to call: with what a call begins, its odds, and the bias that moves them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from math import log
from typing import Any

import pytest

import toolgram
from made_up import SHARED
from situations import CHATML, WEATHER, tool
from toolgram.chat import generate_sync, relaxations_of
from toolgram.conversation.message import Message, ToolCall
from toolgram.engines.base import Capabilities, Choice, Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.replay import Replay
from toolgram.errors import InvalidRequest
from toolgram.planning.readable_names import some_id
from toolgram.styles.registry import all_styles
from toolgram.wire.writer import write_freely

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "tools": [tool("get_weather", WEATHER)]}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
# Of others the calls stand in a list of JSON or Python, or nothing ends them: a brace may also end an argument.
CALLS_HAVE_AN_END = [
    "compact",
    "deepseek_r1",
    "deepseek_v3_1",
    "function_gemma",
    "gemma_4",
    "glm_4_5",
    "glm_4_7",
    "hermes",
    "hermes_2_pro",
    "kimi_k2",
    "kimi_k3",
    "long",
    "mixtral",
    "qwen_coder",
    "qwen_xml",
    "short",
]
VOCABULARY = {"<": 1, "<tool_call>": 2, "`": 3, "```": 4, "{": 5, '{"': 6, "Hi": 7}


class Chooser:
    """An engine that knows its tokens, and remembers what it was asked."""

    capabilities = Capabilities(dialects=("lark",), choice=True)

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self.tokens = vocabulary
        self.choice: Choice | None = None
        self.later: Choice | None = None

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        del prompt, constraint
        self.choice, self.later = sampling.choice, sampling.later
        yield Chunk("No." if self.choice else CALL, (7,))
        odds, later = (None if choice is None else log(3) for choice in (self.choice, self.later))
        yield Chunk("", finish="stop", usage=Usage(), log_odds=odds, later_log_odds=later)

    async def aclose(self) -> None:
        pass


def planned(style: str = "long", **more: Any) -> toolgram.Plan:
    return toolgram.plan(BODY | more, CHATML, style)


@pytest.mark.parametrize(
    ("style", "openers"),
    [
        ("long", ('<tool_call>\n{"name": "',)),
        ("llama_3", ('{"name": "', "<|python_tag|>")),
        ("mistral_small", ("[TOOL_CALLS]",)),
        ("pythonic", ("[", "<|python_start|>")),
        (
            "qwen_coder",
            (
                '<tool_call>\n{"name": "',
                '```json\n{\n  "name": "',
                '{\n  "name": "',
                '```json\n{\n    "name": "',
                '{\n    "name": "',
                '```json\n{"name": "',
                '{"name": "',
            ),
        ),
        ("functionary_v2", ()),  # a call and an answer begin alike, up to a name
    ],
)
def test_a_call_begins_with_what_no_answer_begins_with(style: str, openers: tuple[str, ...]) -> None:
    decision = planned(style).decision
    assert decision is not None
    assert decision.openers == openers
    assert decision.at_once


@pytest.mark.parametrize(
    ("style", "openers", "at_once"),
    [
        ("mistral_small", ("[TOOL_CALLS]",), True),
        ("llama_3", ("<|python_tag|>",), False),
        ("pythonic", ("<|python_start|>",), False),
        ("qwen_coder", ('<tool_call>\n{"name": "',), False),
    ],
)
def test_a_call_that_begins_as_an_answer_in_a_schema_may_is_not_told_by_that(
    style: str, openers: tuple[str, ...], at_once: bool
) -> None:
    decision = planned(style, response_format={"type": "json_object"}).decision
    assert decision is not None
    assert (decision.openers, decision.at_once) == (openers, at_once)


@pytest.mark.parametrize("choice", ["required", "none", {"type": "function", "function": {"name": "get_weather"}}])
def test_who_must_or_must_not_call_decides_nothing(choice: Any) -> None:
    assert planned(tool_choice=choice).decision is None


def test_where_reasoning_may_come_first_the_choice_is_not_the_first() -> None:
    path = SHARED / "Qwen-Qwen3-0.6B.jinja"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    template = toolgram.ChatTemplate.from_file(path)
    for thinks in (True, False):
        decision = toolgram.plan(BODY | {"chat_template_kwargs": {"enable_thinking": thinks}}, template).decision
        assert decision is not None
        assert decision.at_once != thinks


def test_where_the_prompt_opened_the_answer_a_call_begins_with_its_end() -> None:
    template = toolgram.ChatTemplate(
        "{% for message in messages %}{{ message.content }}{% endfor %}"
        "{% if add_generation_prompt %}<|open|>response<|sep|>{% endif %}"
    )
    decision = toolgram.plan(BODY, template, style="kimi_k3").decision
    assert decision is not None
    assert decision.openers == ('<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="',)
    assert decision.at_once


def test_an_opener_is_bound_to_the_longest_token_that_it_begins_with() -> None:
    decision = planned("qwen_coder").decision
    assert decision is not None
    assert decision.bind(VOCABULARY) == (2, 4, 5, 6)
    assert decision.bind({"<": 1}) == (1,)
    assert decision.bind({"Hi": 7}) == ()


def test_the_engine_is_given_tokens_and_a_bias_and_the_reply_tells_the_odds() -> None:
    engine = Chooser(VOCABULARY)
    reply = generate_sync(planned(tool_bias=-1.5), engine)
    assert engine.choice == Choice((2,), -1.5)
    assert reply.call_log_odds == log(3)
    assert not reply.relaxations
    assert generate_sync(planned(), engine).call_log_odds == log(3)
    assert engine.choice == Choice((2,), 0.0)


@pytest.mark.parametrize(
    ("engine", "more"),
    [
        (Replay("No."), {}),
        (Chooser({"Hi": 7}), {}),
        (Chooser(VOCABULARY), {"tool_choice": "required"}),
    ],
    ids=["another engine", "no token", "no choice"],
)
def test_a_bias_that_is_not_applied_is_reported(engine: Any, more: Any) -> None:
    plan = planned(tool_bias=2, **more)
    assert [one.pointer for one in relaxations_of(plan, engine)] == ["/tool_bias"]
    assert not relaxations_of(planned(**more), engine)


def test_no_odds_where_nothing_is_chosen() -> None:
    engine = Chooser(VOCABULARY)
    assert generate_sync(planned(tool_choice="required"), engine).call_log_odds is None
    assert engine.choice is None


@pytest.mark.parametrize("name", ["tool_bias", "parallel_tool_bias"])
@pytest.mark.parametrize("bias", ["much", 101, -1000, True])
def test_a_bias_is_a_moderate_number(name: str, bias: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"/{name}"):
        planned(**{name: bias})


@pytest.mark.parametrize(
    ("style", "after", "opener"),
    [
        ("long", "}}\n</tool_call>\n", '<tool_call>\n{"name": "'),
        ("qwen_xml", ">\n</function>\n</tool_call>\n", "<tool_call>\n"),
        ("kimi_k2", "}<|tool_call_end|>", "<|tool_call_begin|>functions."),
        (
            "deepseek_r1",
            "}\n```<｜tool▁call▁end｜>\n",
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        ),
    ],
)
def test_another_call_comes_behind_the_text_that_ends_one(style: str, after: str, opener: str) -> None:
    another = planned(style, parallel_tool_calls=True).another_call
    assert another is not None
    assert (another.after, another.opener) == (after, opener)


@pytest.mark.parametrize(
    ("style", "more"),
    [
        ("mistral_nemo", {}),  # a list of JSON
        ("pythonic", {}),
        ("long", {"parallel_tool_calls": False}),
        ("long", {"tool_choice": "none"}),
    ],
)
def test_there_is_no_place_for_another_call(style: str, more: dict[str, Any]) -> None:
    assert planned(style, **more).another_call is None


def test_which_styles_have_a_place_for_another_call() -> None:
    assert sorted(style.name for style in all_styles() if planned(style.name).another_call) == CALLS_HAVE_AN_END


@pytest.mark.parametrize("style", CALLS_HAVE_AN_END)
def test_a_turn_of_two_calls_goes_on_where_another_call_begins_and_one_of_a_call_does_not(style: str) -> None:
    plan = planned(style, tool_choice="required")
    another = plan.another_call
    assert another is not None
    calls = [ToolCall("get_weather", f'{{"city": "{city}"}}', some_id("get_weather", plan.format)) for city in "ab"]
    two, one = (write_freely(plan.format, Message(tool_calls=tuple(calls[:count]))) or "" for count in (2, 1))
    assert two.count(another.after + another.opener) == 1
    assert another.after + another.opener not in one


def test_another_call_is_bound_to_all_tokens_that_it_may_begin_with() -> None:
    another = planned().another_call
    assert another is not None
    assert another.bind(VOCABULARY) == (1, 2)
    assert another.bind({"Hi": 7}) == ()


def test_the_engine_is_given_the_later_choice_and_the_reply_tells_its_odds() -> None:
    engine = Chooser(VOCABULARY)
    reply = generate_sync(planned(tool_choice="required", parallel_tool_bias=2), engine)
    assert engine.later == Choice((1, 2), 2.0, "}}\n</tool_call>\n")
    assert (reply.call_log_odds, reply.another_call_log_odds) == (None, log(3))
    assert not reply.relaxations
    generate_sync(planned(parallel_tool_calls=False), engine)
    assert engine.later is None


@pytest.mark.parametrize(
    ("engine", "style"), [(Replay("No."), "long"), (Chooser({"Hi": 7}), "long"), (Chooser(VOCABULARY), "mistral_nemo")]
)
def test_a_bias_towards_another_call_that_is_not_applied_is_reported(engine: Any, style: str) -> None:
    plan = planned(style, parallel_tool_bias=2)
    assert [one.pointer for one in relaxations_of(plan, engine)] == ["/parallel_tool_bias"]
    assert not relaxations_of(planned(style), engine)
