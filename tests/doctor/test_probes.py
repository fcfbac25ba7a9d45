"""The probes, each on recorded answers: one that the question is answered with yes for, and one with no."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from situations import CHATML
from toolgram import ChatTemplate
from toolgram.doctor.examine import examine, planned
from toolgram.doctor.probe import TURN_END, Finding, Probe
from toolgram.doctor.probes import PROBES
from toolgram.engines.base import Capabilities, Chunk, Engine, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.replay import Replay
from toolgram.errors import ToolgramError
from toolgram.planning.profile import Profile, template_hash

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "templates"
NAMED = {probe.name: probe for probe in PROBES}
THINKING = ChatTemplate(
    CHATML.source.replace("assistant\n' }}{% endif %}", "assistant\n<think>\n' }}{% endif %}"),
    CHATML.bos_token,
    CHATML.eos_token,
)


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


RAIN = call("get_weather", '{"city": "Paris", "days": 3}')
LONG = tuple("on and on " * 40)
# For each probe the answers, in pieces, for which it is answered with yes, and those for which it is not.
ANSWERS: dict[str, tuple[Sequence[str | Sequence[str]], Sequence[str | Sequence[str]]]] = {
    "answers": (["Paris"], [""]),
    "ends": (["Hello."], [LONG]),
    "clean": (["Paris", "Bye.", "Carl"], ["Paris", "Bye.", "<think>Anna is"]),
    "max_tokens": ([tuple("one, two")], []),
    "stop": ([("one", ", ", "two")], []),
    "streams": ([("one", ", two"), (RAIN[:30], RAIN[30:])], ["one, two", RAIN]),
    "characters": (["naïve café, Zürich, 東京, 🦜"], ["naïve café, Zürich, \ufffd\ufffd, 🦜"]),
    "history": (["Ada!"], ["I am a model."]),
    "system": (["I am Zork."], ["<name>Zork</name>"]),
    "grammar": (["zq123456"], ["Paris"]),
    "choice": (["purple"], ["yes"]),
    "bounds": (["107"], ["7"]),
    "schema": (['{"color": "teal", "code": "AB-123", "sizes": [1, 2]}'], ['{"color": "yellow"}']),
    "large_grammar": (['{"kind": "zq7", "size": 1, "note": "b7"}'], ['{"kind": "zq7", "size": 1, "note": "b8"}']),
    "json_object": (['{"in": "France"}'], ["In France."]),
    "required": ([call("get_weather", '{"city": "Oslo", "days": 1}')], ["Hello."]),
    "named": ([call("set_timer", '{"minutes": 3}')], [RAIN]),
    "none": (["Rain."], []),
    "one_call": ([RAIN], [f"{RAIN}\n{RAIN}"]),
    "enum": (
        [call("get_temperature", '{"city": "Paris", "unit": "kelvin"}')],
        [call("get_temperature", '{"city": "Paris", "unit": "celsius"}')],
    ),
    "strict": ([call("get_weather", '{"city": "Oslo"}')], [call("get_weather", '{"city": "Berlin"}')]),
    "text": ([call("save_note", '{"text": "\\"Hi!\\""}')], [call("save_note", '{"text": ""Hi!""}')]),
    "call_or_answer": (['"gnu"'], ['"fine"']),
    "calls": ([RAIN], ["It will rain."]),
    "refrains": (["Bye."], [RAIN]),
    "picks": ([call("set_timer", '{"minutes": 5}')], [RAIN]),
    "arguments": ([RAIN], [call("get_weather", '{"city": "Paris", "days": 2}')]),
    "parallel": ([f"{RAIN}\n{RAIN}"], [RAIN]),
    "ends_after_call": ([RAIN], [f"{RAIN}\n{RAIN}"]),
    "results": (["Snow, -7."], ['<tool_call_2>{"snow"']),
    "arguments_stream": ([tuple(RAIN)], [RAIN]),
    "together": ([RAIN] * 4, [RAIN, RAIN, RAIN, ""]),
    "leaving": ([LONG, "Paris"], []),
    "repeatable": (["one, two"] * 2, ["one, two", "one and two"]),
}
REASONED = {
    "reasons": (["Ben is between.\n</think>\n\nCarl"], ["\n</think>\n\nCarl"]),
    "reasons_then_calls": ([f"Rain?\n</think>\n\n{RAIN}"], ["Rain?\n</think>\n\nRain."]),
}
BY_NUMBERS = {"user_text", "reasoning_ends", "remembers", "forces", "weighs"}


def found(probe: Probe, engine: Engine, template: ChatTemplate = CHATML, style: str | None = None) -> Finding:
    async def only() -> list[Finding]:
        return [finding async for finding in examine([probe], engine, template, style)]

    (finding,) = asyncio.run(only())
    return finding


class Counting:
    """An engine that tells how a prompt and an answer were counted, one request after the other."""

    capabilities = Capabilities(dialects=("gbnf",), token_ids=True)

    def __init__(self, *usages: Usage, log_odds: float | None = None) -> None:
        self._usages = iter(usages)
        self._log_odds = log_odds

    async def generate(self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling) -> Any:
        usage = next(self._usages)
        finish = "length" if usage.completion_tokens == sampling.max_tokens else "stop"
        yield Chunk(RAIN if constraint else "Hm.", finish=finish, usage=usage, log_odds=self._log_odds)

    async def aclose(self) -> None:
        pass


def test_what_is_asked_is_planned_with_the_profile() -> None:
    ask = NAMED["calls"].asks[0]
    profile = Profile("some-model", template_hash(CHATML), style="compact", tool_bias=3.0)
    made = planned(ask, CHATML, profile=profile)
    assert (made.style.name, made.request.tool_bias) == ("compact", 3.0)


def test_there_are_some_thirty_and_each_is_judged_here() -> None:
    assert len(PROBES) == len(NAMED) >= 30
    assert NAMED.keys() == ANSWERS.keys() | REASONED.keys() | BY_NUMBERS
    assert all(probe.question.endswith("?") for probe in PROBES)


@pytest.mark.parametrize("name", ANSWERS)
def test_yes(name: str) -> None:
    finding = found(NAMED[name], Replay(*ANSWERS[name][0]))
    assert finding.outcome == "yes", finding.evidence
    assert finding.evidence


@pytest.mark.parametrize("name", [name for name, (_, no) in ANSWERS.items() if no])
def test_no(name: str) -> None:
    finding = found(NAMED[name], Replay(*ANSWERS[name][1]))
    assert finding.outcome == "no", finding.evidence
    assert finding.evidence


@pytest.mark.parametrize("name", REASONED)
def test_reasoning(name: str) -> None:
    good, bad = (found(NAMED[name], Replay(*answers), THINKING, "hermes") for answers in REASONED[name])
    assert (good.outcome, bad.outcome) == ("yes", "no"), (good.evidence, bad.evidence)
    assert found(NAMED[name], Replay("Carl")).outcome == "untried"  # this template has no place for it


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("user_text", (Usage(10), Usage(150)), (Usage(10), Usage(30))),
        ("remembers", (Usage(10), Usage(10, cached_tokens=9)), (Usage(10), Usage(10))),
        ("max_tokens", (Usage(completion_tokens=4),), (Usage(completion_tokens=96),)),
        ("forces", (Usage(forced_tokens=3, forward_passes=4),), (Usage(forward_passes=4),)),
    ],
)
def test_what_the_engine_counts(name: str, good: Iterable[Usage], bad: Iterable[Usage]) -> None:
    assert found(NAMED[name], Counting(*good)).outcome == "yes"
    assert found(NAMED[name], Counting(*bad)).outcome == "no"


def test_what_the_engine_does_not_tell_is_no_evidence() -> None:
    assert found(NAMED["user_text"], Counting(Usage(), Usage())).outcome == "untried"
    assert found(NAMED["weighs"], Counting(Usage())).outcome == "no"
    assert found(NAMED["weighs"], Counting(Usage(), log_odds=-2.0)).evidence == "log odds -2.0"


def test_an_engine_that_fails_is_evidence() -> None:
    finding = found(NAMED["answers"], Replay("Paris", fail_after=0))
    assert (finding.outcome, finding.evidence) == ("no", "failed after 0 pieces, as asked")


def test_a_template_that_refuses_is_not_tried() -> None:
    refusing = ChatTemplate(
        "{% if messages | length > 1 %}{{ raise_exception('one only') }}{% endif %}" + CHATML.source
    )
    finding = found(NAMED["history"], Replay("Ada"), refusing)
    assert (finding.outcome, "one only" in finding.evidence) == ("untried", True)


def test_the_grammar_is_not_told() -> None:
    (ask,) = NAMED["grammar"].asks
    hidden, told = planned(ask, CHATML, None), planned(replace(ask, hidden=None), CHATML, None)
    assert hidden.prompt == told.prompt
    assert told.constraint is None
    assert hidden.constraint is not None
    assert "zq" not in hidden.prompt
    assert hidden.constraint.grammar.accepts("zq123456")


def test_the_end_of_a_turn_is_that_of_the_template() -> None:
    plan = planned(NAMED["user_text"].asks[1], CHATML, None)
    assert plan.request.messages[0]["content"].count("<|im_end|>") == 20
    assert TURN_END not in plan.prompt


@pytest.mark.skipif(not TEMPLATES.exists(), reason="the templates are not part of the repository")
def test_most_can_be_tried_with_every_template() -> None:
    """What a template does not take is refused by a ToolgramError alone, and that is not much."""
    untried: dict[str, int] = {}
    for file in sorted(TEMPLATES.glob("*.jinja"))[::6]:
        template = ChatTemplate.from_file(file)
        for probe in PROBES:
            try:
                plans = [planned(ask, template, None) for ask in probe.asks]
            except ToolgramError:
                untried[file.stem] = untried.get(file.stem, 0) + 1
            else:
                assert all(plan.prompt for plan in plans)
    assert max(untried.values(), default=0) <= 3, untried
