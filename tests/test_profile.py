"""Profiles: read, written, bound to their model and template, and filling in what a request leaves open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import toolgram
from situations import CHATML, WEATHER, tool
from toolgram import Profile, ProfileError
from toolgram.cli.app import app
from toolgram.cli.inputs import BadInput
from toolgram.cli.profiles import profile_of, profiles_of
from toolgram.engines.replay import Replay
from toolgram.models.profiles import by_name, shipped
from toolgram.planning.profile import Measured, template_hash

MEASURED = Measured("all", 10, 8, (0.49, 0.943), 2, (0.057, 0.51), (0.2, 1.0))
PROFILE = Profile(
    "Some Model",
    template_hash(CHATML),
    style="compact",
    own_calls=True,
    parallel_tool_calls=False,
    tool_bias=6.06,
    measured=(MEASURED,),
)
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "tools": [tool("get_weather", WEATHER)]}
FENCED = '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'
RESULT = [
    {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "get_weather", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "Rain."},
]


def planned(**more: Any) -> toolgram.Plan:
    return toolgram.plan(BODY | more, CHATML, profile=PROFILE)


@pytest.mark.parametrize(
    "profile", [PROFILE, Profile('a "b" 🙂\x7f', "sha256:0"), replace(PROFILE, tool_bias=-7, parallel_tool_bias=2)]
)
def test_what_is_written_reads_back_equal(profile: Profile) -> None:
    assert Profile.read(profile.write()) == profile


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model =", "is not TOML"),
        ('modle = "a"', "has no key 'modle'; did you mean 'model'?"),
        ('model = "a"', "/template: Field required"),
        ('model = 1\ntemplate = "b"', "/model: "),
        (
            'model = "a"\ntemplate = "b"\nstyle = "compcat"',
            "/style: there is no style 'compcat'; did you mean 'compact'",
        ),
        ('model = "a"\ntemplate = "b"\ntool_bias = 101', "/tool_bias: must be between -100 and 100, not 101"),
        ('model = "a"\ntemplate = "b"\nown_calls = "yes"', "/own_calls: "),
        (PROFILE.write().replace("right", "rigth"), "/measured/0/right: Field required"),
        (PROFILE.write() + "color = 1\n", "/measured/0/color: Unexpected keyword argument"),
    ],
)
def test_what_is_no_profile_is_refused(text: str, says: str) -> None:
    with pytest.raises(ProfileError, match=r"^the profile ") as raised:
        Profile.read(text)
    assert raised.value.reason.startswith(says)


def test_a_profile_is_of_one_template_and_one_model() -> None:
    PROFILE.check(CHATML, "Some Model")
    with pytest.raises(ProfileError, match=r"is of the model 'Some Model', not of 'Other': run `toolgram tune`"):
        PROFILE.check(CHATML, "Other")
    newer = replace(CHATML, source=CHATML.source + " ")
    with pytest.raises(ProfileError, match=r"another chat template of 'Some Model' than this one .* tune` again"):
        toolgram.plan(BODY, newer, profile=PROFILE)


def test_a_plan_has_what_the_request_leaves_open_from_the_profile() -> None:
    made = planned()
    assert (made.style.name, made.why) == ("compact", "the profile says so")
    assert made.request.tool_bias == 6.06
    assert not made.parallel
    assert "declared in TypeScript" in (made.format_prompt or "")
    assert made.constraint is not None
    assert made.constraint.grammar.accepts(FENCED)
    assert [call.name for call in made.parse(FENCED).tool_calls] == ["get_weather"]


def test_a_request_goes_first() -> None:
    made = planned(parallel_tool_calls=True, tool_bias=0)
    assert made.parallel
    assert made.request.tool_bias == 0
    named = toolgram.plan(BODY, CHATML, "long", profile=PROFILE)
    assert (named.style.name, named.request.tool_bias, named.parallel) == ("long", None, True)


def test_the_bias_is_for_questions_not_for_results() -> None:
    assert planned(messages=[*BODY["messages"], *RESULT]).request.tool_bias is None
    assert planned(messages=[*BODY["messages"], *RESULT], tool_bias=1).request.tool_bias == 1


def test_a_bias_of_the_profile_is_not_told_where_the_choice_has_no_place_of_its_own() -> None:
    coder = Profile("Some Model", template_hash(CHATML), style="qwen_coder", tool_bias=-1.1)
    schema = {"type": "object", "properties": {"rain": {"type": "boolean"}}, "required": ["rain"]}
    body = BODY | {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}
    assert toolgram.plan(BODY, CHATML, profile=coder).request.tool_bias == -1.1
    assert toolgram.plan(body, CHATML, profile=coder).request.tool_bias is None
    assert toolgram.plan(body | {"tool_bias": 2}, CHATML, profile=coder).request.tool_bias == 2


@pytest.mark.parametrize(
    ("more", "biases"),
    [
        ({}, (6.06, 2.5)),
        ({"parallel_tool_calls": False}, (6.06, None)),
        ({"tool_choice": "required"}, (None, 2.5)),
        ({"tool_choice": "none"}, (None, None)),
        ({"tools": []}, (None, None)),
        ({"tools": [], "response_format": {"type": "json_object"}}, (None, None)),
    ],
)
def test_a_bias_is_filled_in_where_there_is_something_to_choose(more: dict[str, Any], biases: tuple[Any, Any]) -> None:
    profile = replace(PROFILE, parallel_tool_calls=None, parallel_tool_bias=2.5)
    made = toolgram.plan(BODY | more, CHATML, profile=profile).request
    assert (made.tool_bias, made.parallel_tool_bias) == biases


def test_a_bias_towards_another_call_is_filled_in_as_that_towards_a_call() -> None:
    profile = replace(PROFILE, parallel_tool_calls=None, parallel_tool_bias=2.5)
    bodies = (BODY, BODY | {"parallel_tool_bias": -1}, BODY | {"messages": [*BODY["messages"], *RESULT]})
    found = [toolgram.plan(body, CHATML, profile=profile).request.parallel_tool_bias for body in bodies]
    assert found == [2.5, -1, None]


def test_reasoning_is_bounded_unless_it_stays_in_the_content() -> None:
    short = replace(PROFILE, reasoning_max_tokens=64)
    assert toolgram.plan(BODY, CHATML, profile=short).request.reasoning_max_tokens == 64
    left_in = BODY | {"reasoning_format": "none"}
    assert toolgram.plan(left_in, CHATML, profile=short).request.reasoning_max_tokens is None


@pytest.mark.parametrize("profile", by_name().values(), ids=list(by_name()))
def test_what_ships_was_measured(profile: Profile) -> None:
    assert {each.questions for each in profile.measured} == {"with a call", "without a call", "all"}


def test_only_what_helped_is_used_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    useless = replace(PROFILE, measured=(replace(MEASURED, gain=(-0.1, 0.4)),))
    for profile, found in [(PROFILE, PROFILE), (useless, None), (replace(PROFILE, measured=()), None)]:
        monkeypatch.setattr("toolgram.models.profiles.by_name", lambda profile=profile: {"some": profile})
        assert shipped("Some Model", CHATML) == found
        assert shipped("Other", CHATML) is None
        assert shipped("Some Model", replace(CHATML, source="{{ messages }}")) is None


def test_commands_find_the_profile_of_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("toolgram.models.profiles.by_name", lambda: {"some": PROFILE})
    monkeypatch.setattr("toolgram.cli.profiles.by_name", lambda: {"some": PROFILE})
    other = replace(PROFILE, model="Other", tool_bias=None)
    (tmp_path / "other.toml").write_text(other.write())
    file = str(tmp_path / "other.toml")
    bound = ("Some Model", CHATML)
    assert profile_of(None, bound) == PROFILE
    assert profile_of("some", bound) == PROFILE
    assert profile_of("none", bound) is None
    assert profile_of(None, bound, "long") is None
    assert profiles_of([file], [bound, ("Other", CHATML)]) == (PROFILE, other)
    assert profile_of(file, (None, CHATML)) == other
    with pytest.raises(ProfileError, match="is of the model 'Other', not of 'Some Model'"):
        profile_of(file, bound)
    with pytest.raises(BadInput, match="--profile or --style, not both"):
        profile_of(file, bound, "long")
    with pytest.raises(BadInput, match=r"^sone is neither a file nor a profile that ships; did you mean 'some'\?"):
        profile_of("sone", bound)
    with pytest.raises(BadInput, match="cannot be read"):
        profile_of(str(tmp_path), bound)
    (tmp_path / "other.toml").write_text("modle = 1")
    with pytest.raises(BadInput, match=r"other\.toml: the profile has no key 'modle'"):
        profile_of(file, bound)


def test_ask_says_what_it_uses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {
        "catalog.cached": Path("m.gguf"),
        "profiles.by_name": {"some": PROFILE},
        "profiles.gguf_metadata": {"general.name": "Some Model"},
    }.items():
        monkeypatch.setattr(f"toolgram.models.{name}", lambda *_, value=value: value)
    monkeypatch.setattr("toolgram.cli.inputs.load_engine", lambda *_, **__: Replay(FENCED))
    monkeypatch.setattr("toolgram.template.chat_template.ChatTemplate.from_gguf", lambda *_: CHATML)
    (tmp_path / "tools.py").write_text("def get_weather(city: str) -> str:\n    'Get the weather.'\n")
    words = ["ask", "Oslo?", "--tools", str(tmp_path / "tools.py"), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert '"name": "get_weather"' in result.stdout
    told = 'Some Model: profile: style "compact", own_calls true, parallel_tool_calls false, tool_bias 6.06'
    assert f"{told} (8 of 10 answers right, 2 without it)" in result.stderr
    without = CliRunner().invoke(app, [*words, "--profile", "none"])
    assert '"tool_calls"' not in without.stdout
    assert "profile" not in without.stderr
