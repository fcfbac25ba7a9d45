"""Finding a profile: the bias that best tells calls from answers, the race, the report, and the command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from situations import CHATML
from toolgram import ChatTemplate, Profile
from toolgram.bench.asking import Answer
from toolgram.bench.questions import KINDS, Question, questions
from toolgram.bench.tables import gain
from toolgram.cli.app import app
from toolgram.cli.inputs import BadInput
from toolgram.cli.tune import seconds_of, tuned
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.planning.profile import Measured
from toolgram.styles.generic import GENERIC
from toolgram.tune.candidates import styles, variants
from toolgram.tune.trials import Asker, Trial, best_bias, best_parallel_bias, halves, is_worth_it, score
from toolgram.tune.tuning import tune

ANSWER = Answer(
    "1",
    "simple",
    "?",
    "",
    tools=True,
    number=True,
    text="",
    finish_reason="stop",
    prompt_tokens=10,
    tokens=5,
    seconds=0.1,
)
BY_ASK = {question.ask: question for kind in KINDS for question in questions(kind)}
HERMES = ChatTemplate(
    "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}{% for message in messages %}<|im_start|>"
    "{{ message.role }}\n{{ message.content or '' }}{% for call in message.tool_calls or [] %}"
    "\n<tool_call>\n{{ call.function | tojson }}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ODDS_OF_CALLS, ODDS_OF_OTHERS = -2.0, -8.0
ODDS_OF_MORE, ODDS_OF_ONE = -1.5, -4.5


def call(log_odds: float | None, *, right: bool = True) -> Trial:
    return Trial(calls=True, right=right, log_odds=log_odds, answer=ANSWER)


def other(log_odds: float | None) -> Trial:
    return Trial(calls=False, right=True, log_odds=log_odds, answer=ANSWER)


def value(expected: Any) -> Any:
    """A value that is right, without what may be left out."""
    if isinstance(expected, dict):
        if "any" in expected:
            return value(expected["any"][0])
        return {name: value(each) for name, each in expected.items() if not name.endswith("?")}
    return [value(each) for each in expected] if isinstance(expected, list) else expected


class Model:
    """Calls rightly if tools are listed without a word, as `short` does; it wants to call where it should, a little."""

    capabilities = Capabilities(dialects=("lark",), choice=True)
    tokens = {"<": 1}  # noqa: RUF012 - as engines have it

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        text = "".join(part for part, _ in prompt)
        question = next(each for ask, each in BY_ASK.items() if ask in text)
        odds = ODDS_OF_CALLS if question.calls else ODDS_OF_OTHERS
        called = sampling.choice is not None and odds + sampling.choice.bias > 0
        known = None if sampling.choice is None else odds
        more = None if sampling.later is None else ODDS_OF_MORE if len(question.calls) > 1 else ODDS_OF_ONE
        goes_on = sampling.later is not None and more is not None and more + sampling.later.bias > 0
        calls = self.call(question) if goes_on else self.call(question).partition("\n<tool_call>")[0]
        yield Chunk(calls if called and "Here are the tools available" in text else "Hm.", (1,))
        usage = Usage(prompt_tokens=len(text))
        yield Chunk("", finish="stop", usage=usage, log_odds=known, later_log_odds=more)

    def call(self, question: Question) -> str:
        calls = question.calls or questions("simple")[0].calls
        each = (json.dumps({"name": call.name, "arguments": value(call.arguments)}) for call in calls)
        return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in each)

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize(
    ("trials", "bias"),
    [
        ([call(-3.0), call(-4.0), other(-8.0), other(-9.0)], 6.0),
        ([call(9.0), other(3.0), other(5.0)], -6.5),
        ([call(-1.0), call(-2.0), call(-9.0), other(-5.0), other(-6.0)], 3.75),
        ([call(-3.0), other(-2.0)], 0.0),
        ([call(-3.0)], 0.0),
        ([call(None), other(None)], 0.0),
        ([], 0.0),
    ],
)
def test_the_bias_lies_in_the_middle_between_calls_and_others(trials: list[Trial], bias: float) -> None:
    assert best_bias(trials) == bias


def test_the_bias_lies_nearer_to_the_kind_that_spreads_less() -> None:
    spread = [3.0 * (at % 2) for at in range(10)]
    even = [*(call(-3.0 + by) for by in spread), *(other(-9.0 + by) for by in spread)]
    assert best_bias(even) == pytest.approx(4.5, abs=0.05)  # half way
    wide = [*(call(-3.0 + by) for by in spread), *(other(-20.0 + 2 * by) for by in spread)]
    assert 6.0 < best_bias(wide) < 7.5  # the middle is at 8.5
    assert best_bias(wide[:9] + wide[10:]) == pytest.approx(best_bias([call(-3.0), other(-17.0)]))  # too few show it


def test_questions_that_are_far_from_a_call_leave_the_bias_where_it_is() -> None:
    calls = [call(-3.0 + 0.25 * at) for at in range(12)]
    near = [other(-6.0 - 0.25 * at) for at in range(12)]
    far = [*near[:8], *(other(-20.0 - at) for at in range(4))]
    assert best_bias([*calls, *far]) == pytest.approx(best_bias([*calls, *near]), abs=0.05)


def test_what_parts_all_but_an_odd_one_is_the_bias() -> None:
    calls = [call(-3.0 + 0.1 * at) for at in range(30)]
    others = [other(-6.0 - 0.5 * at) for at in range(10)]
    bias = best_bias([*calls, *others])
    assert 3.0 < bias < 6.0
    assert best_bias([*calls, *others, other(-1.0)]) == pytest.approx(bias, abs=0.5)


def counted(kind: str, *odds: float | None) -> list[tuple[Question, Answer]]:
    question = questions(kind)[0]
    return [(question, replace(ANSWER, another_call_log_odds=each)) for each in odds]


@pytest.mark.parametrize(
    ("one", "several", "bias"),
    [
        ([-4.0, -3.5, None], [-2.0, -5.0], 3.5),
        ([-4.0] * 19 + [-1.0], [-2.0], 4.0),  # one in twenty may be disturbed
        ([-4.0] * 18 + [-1.0], [-2.0], 0.0),
        ([2.25], [4.0], -2.25),
        ([-2.0], [-3.0], 0.0),
        ([], [-3.0], 0.0),
        ([-3.0], [None], 0.0),
    ],
)
def test_the_bias_towards_another_call_leaves_questions_of_one_alone(
    one: list[float | None], several: list[float | None], bias: float
) -> None:
    assert best_parallel_bias([*counted("simple", *one), *counted("several", *several)]) == bias


@pytest.mark.parametrize(
    ("several", "is_worth"),
    [
        ([(False, True)], True),
        ([(False, False), (True, True)], False),
        ([(False, True), (True, False)], False),
        ([(False, True)] + [(False, False)] * 18, True),
        ([(False, True)] + [(False, False)] * 20, False),  # it disturbs as many of one call
    ],
)
def test_a_bias_towards_another_call_makes_more_right_than_it_disturbs(
    several: list[tuple[bool, bool]], *, is_worth: bool
) -> None:
    assert is_worth_it(several) == is_worth


def test_both_kinds_of_questions_count_the_same() -> None:
    calls = [call(-1.0), call(-1.0, right=False), call(-5.0), call(-5.0)]
    trials = [*calls, other(-3.0)]
    assert score(trials, 2.0) == pytest.approx((1 / 4 + 1) / 2)
    assert score(trials, 10.0) == pytest.approx((3 / 4 + 0) / 2)
    assert score(trials, -10.0) == pytest.approx(1 / 2)
    assert score([call(None), call(None, right=False)], 100.0) == 1 / 2


def test_the_halves_share_nothing_and_have_all_kinds_early() -> None:
    first, other = halves()
    assert not {q.id for q in first} & {q.id for q in other}
    assert {q.id for q in (*first, *other)} == {q.id for kind in KINDS if kind != "schema" for q in questions(kind)}
    for half in (first, other):
        assert {q.kind for q in half[:15]} == {*KINDS} - {"schema"}
        assert sum(not q.calls for q in half[:25]) == 5


def test_the_candidates_are_what_the_template_admits() -> None:
    plain = styles("m", CHATML)
    assert [each.style for each in plain] == ["compact", *(style.name for style in GENERIC if style.name != "compact")]
    native = [each.style for each in styles("m", HERMES)]
    assert native[0] == "hermes"
    spaced = ChatTemplate(CHATML.source.replace("+ message['content']", "+ ' ' + message['content']"))
    assert [each.style for each in styles("m", spaced)] == [each.style for each in plain]  # made to fit, none twice
    assert "compact" not in native  # the template shows the tools for it, as for its own
    assert [each.style for each in styles("m", CHATML, ["short", "long"])] == ["short", "long"]
    made = variants(plain[0], CHATML)
    assert len(made) == len(set(made)) == 4
    assert {(each.own_calls, each.parallel_tool_calls) for each in made} == {
        (own, parallel) for own in (False, True) for parallel in (None, False)
    }


def found(model: Model, *styles: str) -> tuple[Profile, list[str]]:
    said: list[str] = []
    return asyncio.run(tune("m", Asker(CHATML, model, Sampling()), 60, said.append, styles)), said


def test_the_best_style_and_its_bias_are_found_and_measured_on_other_questions() -> None:
    profile, said = found(Model())
    assert profile.style == "short"
    assert profile.tool_bias == pytest.approx(-(ODDS_OF_CALLS + ODDS_OF_OTHERS) / 2)
    assert profile.parallel_tool_bias == -ODDS_OF_ONE
    with_call, without, all_ = profile.measured
    assert (with_call.right, with_call.without) == (with_call.of, 0)
    assert without.right == without.without == without.of
    assert all_.of == with_call.of + without.of == len(halves()[1])
    assert profile.helps
    assert any(line.startswith("variants") for line in said)
    assert Profile.read(profile.write()) == profile


def test_a_budget_that_cannot_be_kept_is_told() -> None:
    said: list[str] = []
    asyncio.run(tune("m", Asker(CHATML, Model(), Sampling()), 0, said.append, ["short", "long"]))
    assert said[1].startswith("2 are asked 5 questions each, whatever the budget: some ")
    assert not any("whatever" in line for line in found(Model(), "short", "long")[1])


def test_no_bias_leads_to_other_calls_that_are_wrong() -> None:
    class Repeating(Model):
        """Wants another call where it should, and makes the same one again."""

        def call(self, question: Question) -> str:
            return "\n".join([super().call(question).partition("\n<tool_call>")[0]] * 2)

    profile, _ = found(Repeating(), "short")
    assert profile.tool_bias == pytest.approx(-(ODDS_OF_CALLS + ODDS_OF_OTHERS) / 2)
    assert profile.parallel_tool_bias is None


def test_further_tools_are_offered_beside_those_of_a_question() -> None:
    seen: list[str] = []

    class Seeing(Model):
        async def generate(
            self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
        ) -> AsyncGenerator[Chunk, None]:
            seen.append("".join(part for part, _ in prompt))
            async for chunk in super().generate(prompt, constraint, sampling):
                yield chunk

    question = questions("simple")[0]
    further = {"type": "function", "function": {"name": "open_door", "parameters": {"type": "object"}}}
    same = question.tools[0]
    asyncio.run(Asker(CHATML, Seeing(), Sampling(), (further, same)).ask(question, None))
    assert seen[0].count("open_door") == 1
    assert seen[0].count(same["function"]["description"]) == 1


def test_how_much_larger_a_share_is() -> None:
    assert gain([True] * 4, [True] * 4) == (0, 0)
    low, high = gain([True, True, True, False], [False, False, True, True])
    assert (low + high) / 2 == pytest.approx(0.25)
    assert low < 0 < high


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_a_budget_is_a_time(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["10", "m", "-1m", "1d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--budget is a time such as"):
        seconds_of(text)


def test_the_command_writes_a_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("toolgram.models.catalog.cached", lambda *_: Path("some-model.gguf"))
    monkeypatch.setattr("toolgram.models.profiles.gguf_metadata", lambda *_: {})
    monkeypatch.setattr("toolgram.cli.inputs.load_engine", lambda *_, **__: Model())
    monkeypatch.setattr("toolgram.template.chat_template.ChatTemplate.from_gguf", lambda *_: CHATML)
    file = tmp_path / "profile.toml"
    result = CliRunner().invoke(app, ["tune", "--budget", "1m", "--output", str(file)])
    assert result.exit_code == 0, result.output
    profile = Profile.read(file.read_text())
    assert (profile.model, profile.style) == ("some-model", "short")
    assert "questions that a call answers: " in result.stdout
    assert "questions that no tool fits: " in result.stdout


@pytest.mark.parametrize(("right", "warns"), [(11, True), (12, False)])
def test_a_profile_that_leaves_fewer_right_is_told(
    right: int, warns: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def worse(*_: Any) -> Profile:
        all_ = Measured("all", 20, right, (0.0, 1.0), 12, (0.0, 1.0), (-0.1, 0.0))
        return Profile("some-model", "sha256:0", measured=(all_,))

    monkeypatch.setattr("toolgram.cli.tune.tune", worse)
    tuned("some-model", Asker(CHATML, Model(), Sampling()), 60, tmp_path / "profile.toml")
    assert ("more of these answers were right without the profile" in capsys.readouterr().err) is warns


def test_styles_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("toolgram.models.catalog.cached", lambda *_: Path("some-model.gguf"))
    monkeypatch.setattr("toolgram.models.profiles.gguf_metadata", lambda *_: {})
    monkeypatch.setattr("toolgram.cli.inputs.load_engine", lambda *_, **__: Model())
    monkeypatch.setattr("toolgram.template.chat_template.ChatTemplate.from_gguf", lambda *_: CHATML)
    file = tmp_path / "profile.toml"
    words = ["tune", "--budget", "1m", "--output", str(file), "--style"]
    assert CliRunner().invoke(app, [*words, "mixtral"]).exit_code == 0
    assert Profile.read(file.read_text()).style == "mixtral"
    assert "there is no style 'mixtrla'" in CliRunner().invoke(app, [*words, "mixtrla"]).stderr
