"""With the registered styles left aside: what discovery finds of the real templates, and how it reads their outputs."""

from __future__ import annotations

import pytest

import toolgram
from conformance.test_chat_cases import body, cases, needs_cases, plain, template
from made_up import SHARED
from toolgram.styles.discovery import discover

NAMES = sorted(path.name for path in SHARED.glob("*.jinja"))

NO_STYLE = {
    "the template writes no tool calls": (
        "HuggingFaceTB-SmolLM3-3B.jinja",
        "Kimi-K2-Instruct.jinja",
        "LFM2-8B-A1B.jinja",
        "LFM2.5-Instruct.jinja",
        "google-gemma-2-2b-it.jinja",
        "ibm-granite-granite-3.3-2B-Instruct.jinja",
        "llama-cpp-rwkv-world.jinja",
        "microsoft-Phi-3.5-mini-instruct.jinja",
    ),
}

# Outputs that do not come out as expected, by reason. One that does come out must be taken off the list.
NOT_READ = {
    "spellings that the template never writes": frozenset({419, *range(423, 434)}),
    "the opener of the call is missing, and no prompt holds it": frozenset({119, 120, 121}),
    "a call inside reasoning that is never closed: a mark inside reasoning is no call": frozenset({11}),
    "the reasoning is expected to hold a <think> tag of its own": frozenset({14}),
    "a reasoning that the template has no place for cannot be continued": frozenset({239, 240}),
    "a union of text and object is read as the object that it looks like": frozenset({333}),
    "stray control tokens are kept as content": frozenset({86, 88, 89, 342}),
}
KNOWN = {case: reason for reason, found in NOT_READ.items() for case in found}


@pytest.mark.parametrize("name", NAMES)
def test_a_style_is_found_where_calls_are_written(name: str) -> None:
    found = discover(template(name))
    reasons = [reason for reason, names in NO_STYLE.items() if name in names]
    assert (found.style is None) == bool(reasons), found.why
    assert all(reason in found.why for reason in reasons)
    assert found.style is None or len(found.readings) >= 5


@pytest.mark.skipif(not NAMES, reason="the shared templates are not beside this checkout")
def test_most_templates_have_a_style_to_be_found() -> None:
    assert sum(discover(template(name)).style is not None for name in NAMES) >= 35


@needs_cases
def test_what_is_found_reads_real_outputs() -> None:
    """All outputs of the templates that a style was found of; few are left, each for a reason."""
    wrong: dict[int, object] = {}
    read = 0
    for case in cases():
        style = discover(template(case["template"])).style
        if style is None:
            continue
        try:
            message = toolgram.plan(body(case["request"]), template(case["template"]), style).parse(case["output"])
        except toolgram.ToolgramError as error:
            wrong[case["id"]] = error
            continue
        read += plain(message) == plain(case["expect"])
        if plain(message) != plain(case["expect"]):
            wrong[case["id"]] = message
    assert wrong.keys() == KNOWN.keys(), {case: wrong.get(case) for case in wrong.keys() ^ KNOWN.keys()}
    assert read > 200
