"""Why a style fits a template or does not: a verdict, and where the style loses what the template writes."""

from __future__ import annotations

import pytest

import toolgram
from made_up import JSON, MADE_UP, NAME, OBJECT, SHARED, Family, each
from situations import CHATML
from toolgram.styles.choose import choose_style
from toolgram.styles.detect import fit
from toolgram.styles.explain import FitReport, Trial, explain_fit
from toolgram.styles.native.hermes import HERMES
from toolgram.styles.registry import find_style

NAMES = sorted(path.name for path in SHARED.glob("*.jinja"))

_NAME_ALONE = '{{ "{" }}"name": "' + NAME + '"{{ "}" }}'
# How a family writes calls nearly as Hermes: the words after which Hermes loses a call, and the trouble.
NEAR_MISSES = {
    "another tag": (
        f"<tool_calls>\n{OBJECT}\n</tool_calls>",
        "<tool_call",
        "this is read as content, since it is not '<tool_call>'",
    ),
    "no arguments": (
        f"<tool_call>\n{_NAME_ALONE}\n</tool_call>",
        "</tool_call",
        "the call ends here with other arguments, {}",
    ),
    "the name before the JSON": (
        f"<tool_call>{NAME}\n{JSON}\n</tool_call>",
        "<tool_call>",
        "a JSON object was expected",
    ),
    "another key for the name": (
        f"<tool_call>\n{OBJECT}\n</tool_call>".replace('"name"', '"tool"'),
        "</tool_call",
        "this makes no call of a tool",
    ),
    "no closing tag": (f"<tool_call>\n{OBJECT}", "7301}}", "the text ends, but the call does not"),
    "words after the call": (
        f"<tool_call>\n{OBJECT}\n</tool_call>That was it.",
        "</tool_call>",
        "more follows the calls",
    ),
}


def of_hermes(call: str) -> FitReport:
    return explain_fit(Family(each(call, "\n")).template, HERMES)


def trial(report: FitReport, turn: str) -> Trial:
    return next(trial for trial in report.trials if trial.turn == turn)


@pytest.mark.parametrize("what", NEAR_MISSES)
def test_a_near_miss_is_lost_where_it_differs(what: str) -> None:
    call, before, trouble = NEAR_MISSES[what]
    report = of_hermes(call)
    lost = trial(report, "a call")
    assert lost.lost_at is not None
    assert lost.text[: lost.lost_at].endswith(before)
    assert lost.text.count(before) == 1 or before == "<tool_call"
    assert lost.trouble == trouble
    line, column = lost.place
    assert lost.text.split("\n")[line - 1][: column - 1].endswith(before)
    assert report.verdict == f"hermes does not fit: it loses a call at line {line}, column {column}: {trouble}"
    assert lost.written == (
        '<tool_call>\n{"name": "zqfirst", "arguments": {"zqkeya": "zqvalue", "zqkeyb": 7301}}\n</tool_call>'
    )


def test_what_was_read_of_it_is_shown() -> None:
    assert trial(of_hermes(NEAR_MISSES["no arguments"][0]), "a call").read == toolgram.Message(
        tool_calls=(toolgram.ToolCall("zqfirst", "{}"),)
    )
    plural = trial(of_hermes(NEAR_MISSES["another tag"][0]), "a call")
    assert plural.read is not None
    assert plural.read.content == plural.text


def test_one_that_fits_reads_every_turn_that_is_shown() -> None:
    report = of_hermes(f"<tool_call>\n{OBJECT}\n</tool_call>")
    assert report.verdict == "hermes fits, and is the style chosen"
    assert {trial.turn: trial.missing for trial in report.trials if trial.lost_at is None} == {
        "a call": "",
        "two calls": "",
        "an answer and a call": "",
        "a call and its result": "",
        "reasoning and a call": "the template leaves out the reasoning",
        "an answer": "",
        "reasoning and an answer": "the template leaves out the reasoning",
    }


def test_what_the_template_writes_nowhere_is_named() -> None:
    report = explain_fit(CHATML, HERMES)
    assert report.verdict == (
        "hermes does not fit: the template writes no calls, nor does it ask the model for '<tool_call>'"
    )
    assert report.announcement == "the template does not show them: they are listed in the system message"
    assert trial(report, "a call").missing == "the template leaves out the call"
    shown = explain_fit(MADE_UP["a fence"].template, HERMES).announcement
    assert shown == "the template shows them, but does not mention '<tool_call>', which hermes writes"


def test_of_two_that_fit_it_says_what_the_other_has() -> None:
    template = Family(f"<tool_calls>[{each(OBJECT, ', ')}]</tool_calls>").template
    chosen, _ = choose_style(template)
    assert chosen.name == "hunyuan"
    apriel = find_style("apriel")
    assert apriel is not None
    assert explain_fit(template, apriel).verdict == (
        "apriel fits, but hunyuan is chosen: it also writes a call as the template does"
    )


def test_a_generic_style_goes_with_any_template() -> None:
    compact, short = (find_style(name) for name in ("compact", "short"))
    assert compact is not None
    assert short is not None
    assert explain_fit(CHATML, compact).verdict.endswith("announces the tools itself, and is the style chosen")
    assert explain_fit(CHATML, short).verdict.endswith("announces the tools itself, but compact is chosen")


def test_the_reason_for_a_style_names_the_family_that_comes_near() -> None:
    near = "hermes come near (`toolgram styles --why` says where it fails)"
    assert near in choose_style(Family(each(NEAR_MISSES["words after the call"][0])).template)[1]
    assert "near" not in choose_style(MADE_UP["a fence"].template)[1]
    assert "near" not in choose_style(Family(each(f"<tool_call>\n{OBJECT}\n</tool_call>", "\n")).template)[1]


@pytest.mark.skipif(not NAMES, reason="the shared templates are not beside this checkout")
def test_the_templates_are_there() -> None:
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_on_a_real_template_is_that_of_the_choice(name: str) -> None:
    template = toolgram.ChatTemplate.from_file(SHARED / name)
    chosen, why = choose_style(template)
    for style in {chosen, HERMES, *filter(None, map(find_style, ("qwen_xml", "llama_3", "mistral_nemo", "glm_4_5")))}:
        report = explain_fit(template, style)
        assert (report.chosen, report.why) == (chosen, why)
        assert style.is_generic or (" does not fit: " in report.verdict) == (fit(template, style) == 0)
        assert report.verdict.endswith("is the style chosen") == (style is chosen)
        call = report.trials[0]
        reads = not call.missing and call.lost_at is None
        assert reads or call.missing or call.trouble
        if template.capabilities.supports_tool_calls and style is chosen:
            assert reads
        lost = {trial.turn: trial for trial in report.trials if trial.lost_at is not None}
        assert all(0 <= trial.lost_at <= len(trial.text) for trial in lost.values() if trial.lost_at is not None)
        if style is chosen:  # some templates write an answer after the call, or as reasoning
            assert set(lost) <= {"an answer and a call"}


@pytest.mark.skipif(not NAMES, reason="the shared templates are not beside this checkout")
def test_a_real_template_shows_where_another_family_loses_it() -> None:
    template = toolgram.ChatTemplate.from_file(SHARED / "Qwen3-Coder.jinja")
    report = explain_fit(template, HERMES)
    lost = report.trials[0]
    assert lost.lost_at is not None
    assert lost.text[lost.lost_at :].startswith("<function=zqfirst>")
    assert report.verdict.endswith("a JSON object was expected")
    assert report.chosen.name == "qwen_xml"
