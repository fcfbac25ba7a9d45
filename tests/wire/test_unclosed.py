"""A call that begins in reasoning which nobody closed: it is one from its opener and its tool's whole name on."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from made_up import SHARED
from oracles import TokenOracles, ebnf_accepts, lark_accepts, structural_tag_accepts
from situations import CHATML, WEATHER, fed, joined, tool
from toolgram import Message, ToolCall
from toolgram.conversation.events import ReasoningDelta
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Expr, choice, optional, repeat, seq
from toolgram.styles.native import NATIVE
from toolgram.wire.format import CallAhead, walk
from toolgram.wire.free_text import closed_or_called, opener, unclosed_text
from toolgram.wire.unclosed import closed_by_calls

TOOLS = [tool("get_weather", WEATHER), tool("get", {"type": "object", "properties": {"key": {"type": "string"}}})]
CALL = """\
<tool_call>
<function=get_weather>
<parameter=city>
Oslo
</parameter>
</function>
</tool_call>"""
EMPTY = "<tool_call>\n<function=get>\n</function>\n</tool_call>"
QUOTES = [
    "I could write <tool_call>.",
    "Is it <tool_call> or <tool_call>\n<function=?",
    "<tool_call>\n<function=look>\n<parameter=key>\n5\n</parameter>\n</function>\n</tool_call> is no tool.",
    "<tool_call>\n<function=get_weather_of>\n<parameter=city>",
    "<tool_call>\n<function=get_weather> as the tag",
    "<tool_call><function=get>\n</function></tool_call>",
    "<function=get>\n</function>",
]


@pytest.fixture(scope="module")
def template() -> toolgram.ChatTemplate:
    """The template of Qwen 3.5, which opens the reasoning in its prompt."""
    return named("Qwen3.5-4B")


def named(name: str) -> toolgram.ChatTemplate:
    """A template of the shared ones."""
    path = SHARED / f"{name}.jinja"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    return toolgram.ChatTemplate.from_file(path)


def planned(template: toolgram.ChatTemplate, **more: Any) -> toolgram.Plan:
    return toolgram.plan({"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS, **more}, template)


def accepted(plan: toolgram.Plan, text: str) -> bool:
    """Whether the grammar admits a text, on which the dialects agree."""
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    yes = grammar.accepts(text)
    assert lark_accepts(grammar.to("lark"), text) == yes
    assert ebnf_accepts(grammar.to("ebnf"), text) == yes
    assert structural_tag_accepts(plan.constraint.structural_tag(), text) == yes
    assert (gbnf_accepted(grammar.to("gbnf"), {text}) == {text}) == yes
    return yes


def parse(plan: toolgram.Plan, text: str) -> Message:
    """The message, which is the same however the text is cut."""
    whole = fed(plan.reader(), text, None)
    assert joined(whole) == joined(fed(plan.reader(), text, [1] * len(text)))
    return Message.from_events(whole)


def called(message: Message) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in message.tool_calls]


@pytest.mark.parametrize("thought", ["", "I look.\n", "I look. ", *(quote + "\n" for quote in QUOTES)])
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_call_ends_the_reasoning(template: toolgram.ChatTemplate, thought: str, choice: str) -> None:
    plan = planned(template, tool_choice=choice)
    for text in (thought + CALL, thought + CALL + "\n" + EMPTY, thought + EMPTY + "\n"):
        assert accepted(plan, text)
        message = parse(plan, text)
        assert called(message)[-1] == (
            ("get", {}) if "get>" in text[len(thought) :] else ("get_weather", {"city": "Oslo"})
        )
        assert (message.reasoning or "") == thought.removesuffix("\n")
        assert message.content is None


def test_the_writer_closes_it(template: toolgram.ChatTemplate) -> None:
    plan = planned(template)
    message = parse(plan, "I look.\n" + CALL)
    assert plan.writable(message)
    assert plan.write(message) == f"I look.\n</think>\n\n{CALL}"


@pytest.mark.parametrize("quote", QUOTES)
def test_a_quoted_tag_lures_nothing(template: toolgram.ChatTemplate, quote: str) -> None:
    plan = planned(template)
    text = f"{quote}\n</think>\n\nNoon."
    assert accepted(plan, text)
    assert parse(plan, text) == Message("Noon.", quote)
    assert plan.writable(Message("Noon.", quote))


def test_reasoning_with_a_whole_call_cannot_be_written(template: toolgram.ChatTemplate) -> None:
    plan = planned(template)
    assert not accepted(plan, f"As {CALL}\n</think>\n\nNoon.")
    assert not plan.writable(Message("Noon.", f"As {CALL}"))


def test_only_the_beginning_of_a_call_is_held_back(template: toolgram.ChatTemplate) -> None:
    text = "So <tool_call>\n<function=get_wea"
    reader, told = planned(template).reader(), ""
    for char in text:
        told += "".join(event.text for event in reader.feed(char) if isinstance(event, ReasoningDelta))
    assert told == "So "
    events = reader.feed("lth")
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == [text[3:] + "lth"]


@pytest.mark.parametrize("broken", ["<tool_call>\n<function=get_weather>\nOslo, please", CALL[:40], CALL[:-30]])
def test_a_malformed_call_is_one_that_was_cut(template: toolgram.ChatTemplate, broken: str) -> None:
    message = parse(planned(template), "I look.\n" + broken)
    assert message.reasoning == "I look."
    assert [(call.name, call.incomplete) for call in message.tool_calls] == [("get_weather", True)]


def test_the_request_decides(template: toolgram.ChatTemplate) -> None:
    text = "I look.\n" + CALL
    off = planned(template, calls_close_reasoning=False)
    assert not accepted(off, text)
    assert parse(off, text) == Message(None, text)
    ministral = named("mistralai-Ministral-3-14B-Reasoning-2512")
    text = '[THINK]I look.[TOOL_CALLS]get[ARGS]{"key": "a"}'
    assert not parse(planned(ministral), text).tool_calls
    on = planned(ministral, calls_close_reasoning=True)
    assert accepted(on, text)
    assert called(parse(on, text)) == [("get", {"key": "a"})]
    quoting = '[THINK]I look. [TOOL_CALLS]got[ARGS]{"key": "a"}[/THINK]Noon.'
    assert accepted(on, quoting)
    assert parse(on, quoting).content == "Noon."


def test_where_no_call_may_come_none_ends_the_reasoning(template: toolgram.ChatTemplate) -> None:
    plan = planned(template, tool_choice="none")
    text = f"As {CALL}\n</think>\n\nNoon."
    assert parse(plan, text) == Message("Noon.", f"As {CALL}")
    only = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get"}}]}
    allowed = planned(template, tool_choice={"type": "allowed_tools", "allowed_tools": only})
    assert not parse(allowed, "I look.\n" + CALL).tool_calls
    assert parse(allowed, "I look.\n" + EMPTY).tool_calls


def test_an_answer_in_a_schema_may_follow_closed_reasoning_alone(template: toolgram.ChatTemplate) -> None:
    plan = planned(template, response_format={"type": "json_object"})
    assert accepted(plan, "Hm.\n" + CALL)
    assert accepted(plan, 'Hm.\n</think>\n\n{"a": 1}')
    assert not accepted(plan, 'Hm.\n{"a": 1}')


def test_reasoning_that_is_cut_short_is_closed_by_its_closer(template: toolgram.ChatTemplate) -> None:
    reader = planned(template).reader()
    reader.feed("I look. <tool_call>\n<func")
    assert reader.reasoning_closers == ("\n</think>",)


@pytest.mark.parametrize("as_tokens", [("</think>",), ("<tool_call>", "</tool_call>", "</think>")])
def test_tags_that_are_tokens_are_quoted_and_call_alike(
    template: toolgram.ChatTemplate, as_tokens: tuple[str, ...]
) -> None:
    """The tokens of tags are text to the models that have them: no control tokens."""
    plan = planned(template)
    assert plan.constraint is not None
    oracles = TokenOracles(as_tokens, control=())
    bound = plan.constraint.bind(oracles.ids)
    for text in ("So <tool_call>, <tool_call>\n<function=look>\n" + CALL, f"<tool_call>?\n</think>\n\n{CALL}"):
        tokens = oracles.tokenized(text)
        assert oracles.lark_accepts(bound.grammar.to("lark"), tokens)
        assert oracles.ebnf_accepts(bound.grammar.to("ebnf"), tokens)


def test_in_which_styles_calls_can_close_reasoning() -> None:
    def can(style: Any) -> bool:
        turn = closed_by_calls(style.wire, ("get",)).turn
        return any(isinstance(node, CallAhead) for node in walk(turn))

    reasoning = {style.name for style in NATIVE if style.wire.reasoning}
    cannot = {style.name for style in NATIVE if style.wire.reasoning and not can(style)}
    # Ids before names, headers that say what follows, and tokens that come again within an opener.
    assert cannot == {"command_r7b", "command_a_text", "harmony", "kimi_k3", "minimax_m3"}
    closing = {style.name for style in NATIVE if style.calls_close_reasoning}
    assert closing == {
        "qwen_xml",
        "glm_4_5",
        "glm_4_7",
        "kimi_k2",
        "deepseek_v3_1",
        "deepseek_v3_2",
        "deepseek_v4",
        "gemma_4",
    }
    assert closing <= reasoning - cannot


THINKING = {"chat_template_kwargs": {"thinking": True, "enable_thinking": True}}
BEGUN_IN_THOUGHT = {  # by template: what opens the reasoning, if the prompt has not, and a call
    "moonshotai-Kimi-K2": (
        "<think>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
    ),
    "deepseek-ai-DeepSeek-V3.1": (
        "",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        '{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    ),
    "deepseek-ai-DeepSeek-V3.2": (
        "",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">'
        "Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ),
    "GLM-4.7-Flash": (
        "",
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>",
    ),
    "google-gemma-4-31B-it": (
        "<|channel>thought\n",
        '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>',
    ),
}


@pytest.mark.parametrize("name", BEGUN_IN_THOUGHT)
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_the_calls_of_models_that_forget_to_close_their_thoughts(name: str, choice: str) -> None:
    opened, call = BEGUN_IN_THOUGHT[name]
    plan = planned(named(name), tool_choice=choice, reasoning_max_tokens=500, **THINKING)
    text = f"{opened}I look it up.{call}"
    assert accepted(plan, text)
    message = parse(plan, text)
    assert called(message) == [("get_weather", {"city": "Oslo"})]
    assert (message.reasoning, message.content) == ("I look it up.", None)
    assert plan.writable(message)
    quoting = f"{opened}I look it up.{call.replace('get_weather', 'get_snow')}"
    assert not accepted(plan, quoting)
    assert not parse(plan, quoting).tool_calls


def test_a_name_that_begins_another_is_told_from_it(template: toolgram.ChatTemplate) -> None:
    plan = planned(template, tools=[TOOLS[1], tool("get_weather_of", WEATHER)])
    text = f"So {CALL}\n</think>\n\nNoon."
    assert accepted(plan, text)
    assert parse(plan, text).reasoning == f"So {CALL}"
    assert parse(plan, CALL.replace("get_weather", "get_weather_of")).tool_calls[0] == ToolCall(
        "get_weather_of", '{"city": "Oslo"}'
    )


@pytest.mark.parametrize("markers", [("</t>",), ("</t>", "call>")], ids=["from an opener on", "apart"])
def test_turns_that_are_told_by_what_follows_an_opener_are_the_same_turns(markers: tuple[str, ...]) -> None:
    ahead = CallAhead("<call>", ("one(", "two("))
    begun = seq("<t>", unclosed_text(markers, ahead))
    calls = choice("one(1)", "two(2)")
    called = seq(calls, repeat(seq(" ", "<call>", calls)), optional(" "))
    closed = seq(optional(seq(begun, "</t>")), "so ", optional(seq("<call>", called)))
    rules: dict[str, Expr] = {}
    apart = Grammar({"root": choice(closed, seq(begun, opener(ahead), called))})
    joined_ = Grammar({"root": closed_or_called(closed, begun, ahead, called, rules), **rules})
    assert bool(rules) is (len(markers) == 1)
    for seed in range(60):
        for text in (apart.sample(seed), joined_.sample(seed)):
            for near in (text, text[:-1], text[1:], text.replace("one", "on", 1), text.replace("</t>", "", 1)):
                assert apart.accepts(near) is joined_.accepts(near), near
    for text in ("<t>a</t>so ", "<t>a<call>one(1) <call>two(2)", "<t><call>two(2) ", "so <call>one(1)"):
        assert joined_.accepts(text), text
    assert joined_.accepts("<t><call>x<call>two(2)") is bool(rules)
    for text in ("<t>a", "<t><call>on</t>", "<t><call>one(1) so ", "<t></t><call>one(1)"):
        assert not joined_.accepts(text), text


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_glm_calls_amid_its_thoughts(choice: str) -> None:
    said = {"role": "assistant", "content": "Noon.", "reasoning_content": "I know that."}
    asked = {"role": "user", "content": "Rain?"}
    body = {"messages": [asked, said, asked], "tools": TOOLS, "tool_choice": choice}
    plan = toolgram.plan(body, CHATML, style="glm_4_5")
    call = "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>"
    text = f"\n<think>I may <tool_call> it.\n{call}"
    assert accepted(plan, text)
    message = parse(plan, text)
    assert [(each.name, each.arguments) for each in message.tool_calls] == [("get_weather", '{"city": "Oslo"}')]
    assert (message.content, (message.reasoning or "").strip()) == (None, "I may <tool_call> it.")


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_tag_may_follow_the_name_at_once(choice: str) -> None:
    plan = planned(named("GLM-4.7-Flash"), tool_choice=choice)
    city, key = (f"<arg_key>{name}</arg_key><arg_value>Oslo</arg_value>" for name in ("city", "key"))
    calls = {
        f"<tool_call>get_weather{city}</tool_call>": ("get_weather", {"city": "Oslo"}),
        f"<tool_call>get{key}</tool_call>": ("get", {"key": "Oslo"}),
        "<tool_call>get</tool_call>": ("get", {}),
    }
    quotes = [
        "I may <tool_call>get it",
        "<tool_call>get<arg_value>",
        "<tool_call>get_weather<arg_k",
        "<tool_call>get_weather<<arg_key>",
        "<tool_call>got<arg_key>city</arg_key></tool_call>",
        "<tool_call>get_weather_of</tool_call>",
        "<tool_call>get</think",
    ]
    for call, meant in calls.items():
        for thought in ("", "I look.", *quotes):
            assert accepted(plan, thought + call)
            message = parse(plan, thought + call)
            assert called(message) == [meant]
            assert ((message.reasoning or ""), message.content) == (thought, None)
    for quote in quotes:
        text = f"{quote}</think>Noon."
        assert accepted(plan, text) is (choice == "auto")
        assert parse(planned(named("GLM-4.7-Flash")), text) == Message("Noon.", quote)
    for broken in ("<tool_call>get<arg_key>kay</arg_key>", "<tool_call>get</tool_call></think>Noon."):
        assert not accepted(plan, f"So {broken}")
