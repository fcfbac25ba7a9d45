"""`toolgram lint --tools`: each defect of a set of tools is told by its name, with an edit that mends it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from situations import CHATML
from toolgram.cli.app import app
from toolgram.doctor.tools import costs, lint_tools

ROOT = Path(__file__).resolve().parents[2]
SETS = ROOT.parent / "shared/conformance/tool_sets.jsonl"


def tool(name: str = "get_weather", about: str = "The weather of a city.", **properties: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": {"type": "object", "properties": properties}},
    }


SHORT = {"type": "string", "maxLength": 20}
GOOD = [tool(city=SHORT), tool("set_timer", "Starts a timer.", minutes={"type": "integer"})]
# Each defect, with its place and a word of its mend.
DEFECTS: dict[str, tuple[list[Any], str, str]] = {
    "no-function": ([{"type": "web_search"}], "/0", "OpenAI"),
    "name": ([tool("get weather!")], "/0/function/name", '"name": "get_weather_"'),
    "same-name": ([*GOOD, tool()], "/2/function/name", "rename"),
    "alike": ([*GOOD, tool("getWeather")], "/2/function/name", "another word"),
    "no-description": ([tool(about=" ")], "/0/function", '"description"'),
    "schema": ([tool(n={"minimum": "1"})], "/0/function/parameters", "mend the schema"),
    "unbounded-string": (
        [tool(a=SHORT, city={"type": "string"})],
        "/0/function/parameters/properties/city",
        "maxLength",
    ),
    "unbounded-array": (
        [tool(ids={"type": "array", "items": SHORT})],
        "/0/function/parameters/properties/ids",
        "maxItems",
    ),
    "not-enforced": (
        [tool(ids={"type": "array", "maxItems": 4, "uniqueItems": True, "items": SHORT})],
        "/0/function/parameters/properties/ids",
        "check it when the call comes",
    ),
    "outside-properties": (
        [{"type": "function", "function": {"name": "f", "description": "F.", "parameters": {"city": SHORT}}}],
        "/0/function/parameters",
        '"properties": {"city": …}',
    ),
    "not-described": (
        [tool(place={"type": "object", "properties": {"city": SHORT}, "required": ["city", "citty"]})],
        "/0/function/parameters/properties/place",
        '"citty" among "properties"',
    ),
    "costly-pattern": (
        [tool(code={"type": "string", "pattern": "a.{4}b.{4}c"})],
        "/0/function/parameters/properties/code",
        "smaller counts",
    ),
}


@pytest.mark.parametrize("code", DEFECTS)
def test_a_defect_is_told_with_its_place_and_a_mend(code: str) -> None:
    tools, pointer, mend = DEFECTS[code]
    (found,) = (each for each in lint_tools(tools) if each.code == code)
    assert found.pointer == pointer
    assert mend in found.mend


def test_arguments_that_no_value_matches_are_an_error() -> None:
    impossible = tool(n=SHORT)
    impossible["function"]["parameters"] = {"type": "object", "required": ["n"], "properties": {"n": False}}
    assert [each.code for each in lint_tools([impossible])] == ["schema"]


def test_nothing_is_said_of_what_is_good() -> None:
    assert lint_tools(GOOD) == ()


def test_a_key_that_is_described_around_its_branch_is_described() -> None:
    either = [{"properties": {"a": {"const": 1}}, "required": ["a", "b"]}, {"required": ["c"]}]
    place = {"type": "object", "properties": {"a": {"type": "integer"}, "b": SHORT, "c": SHORT}, "anyOf": either}
    assert lint_tools([tool(place=place)]) == ()


def test_the_mend_mends() -> None:
    """What a mend shows as JSON is put where it points to, and the finding is gone."""
    for code in ("unbounded-string", "unbounded-array"):
        tools = copy.deepcopy(DEFECTS[code][0])
        (found,) = (each for each in lint_tools(tools) if each.code == code)
        target: Any = tools
        for step in found.pointer.split("/")[1:]:
            target = target[int(step) if step.isdigit() else step]
        target |= json.loads(f"{{{found.mend}}}")
        assert code not in {each.code for each in lint_tools(tools)}


def test_several_of_a_kind_are_one_finding() -> None:
    (found,) = lint_tools([tool(a={"type": "string"}, b={"type": "string"}, c={"items": {"type": "string"}})])
    assert found.what.endswith(", and 2 more")


def test_what_each_costs() -> None:
    large = tool("search", "Searches. " * 40, **{f"p{n}": {"enum": ["a", "b", f"c{n}"]} for n in range(20)})
    small, big = costs([GOOD[1], large], CHATML)
    assert (small.tool, big.tool) == ("set_timer", "search")
    assert big.prompt > 5 * small.prompt > 0
    assert big.grammar > 2 * small.grammar > 0
    (alone,) = costs(GOOD[:1], CHATML, lambda plan: plan.prompt.count("weather"))
    assert alone.prompt > 0


@pytest.mark.skipif(not SETS.exists(), reason="the tool sets are not part of the repository")
def test_the_tools_of_public_servers_have_no_errors() -> None:
    with SETS.open(encoding="utf-8") as lines:
        sets = [json.loads(line) for line in lines][:12]
    for each in sets:
        tools = each["tools"]
        assert [found for found in lint_tools(tools) if found.level == "error"] == [], each.get("name")


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["lint", *words], terminal_width=120)


def test_the_command(tmp_path: Path) -> None:
    file, template = tmp_path / "tools.json", tmp_path / "t.jinja"
    file.write_text(json.dumps([tool(city={"type": "string"})]))
    template.write_text(CHATML.source)
    shown = run("--tools", str(file), str(template))
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("1 tool: 1 note\n\ntool         prompt, characters  grammar, characters")
    assert '[unbounded-string]\n  at /0/function/parameters/properties/city\n  mend: "maxLength": 200\n' in shown.stdout
    file.write_text(json.dumps([tool(), tool()]))
    assert run("--tools", str(file)).exit_code == 1
    found = json.loads(run("--tools", str(file), "--json").stdout)
    assert [each["code"] for each in found["findings"]] == ["same-name"]
    assert found["costs"] == []
    assert "give a template or --tools FILE" in run().stderr
