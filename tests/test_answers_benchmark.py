"""The benchmark of answers: it marks as BFCL does, reads both servers, and tells which is better. No model is asked."""

from __future__ import annotations

import json
import random
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from situations import CHATML
from toolgram.engines.replay import Replay
from toolgram.server.app import create_app
from toolgram.server.models import Served

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
bfcl: Any = import_module("_answers_bfcl")
compare: Any = import_module("_answers_compare")
sides: Any = import_module("_answers_sides")
tables: Any = import_module("_answers_tables")
check: Any = import_module("_answers_check")
benchmark: Any = import_module("answers")

PARAMETERS = {
    "type": "dict",
    "properties": {
        "to": {"type": "string", "description": "Where to"},
        "km": {"type": "float", "description": "How far."},
        "stops": {"type": "array", "items": {"type": "string"}},
        "legs": {"type": "array", "items": {"type": "dict", "properties": {"by": {"type": "string"}}}},
        "car": {"type": "dict", "properties": {"make": {"type": "string"}, "seats": {"type": "integer"}}},
        "hills": {"type": "tuple", "items": {"type": "float"}, "optional": True},
        "seats": {"type": "integer"},
        "fast": {"type": "boolean"},
        "note": {"type": "any"},
    },
    "required": ["to"],
}
LINE = {
    "id": "simple_0",
    "question": [[{"role": "user", "content": "Drive to St. Pölten."}]],
    "function": [{"name": "car.drive", "description": "Drive", "parameters": PARAMETERS}],
}
TRUTH = {
    "to": ["St. Pölten", "st_poelten's"],
    "km": [65.0, ""],
    "stops": [["Tulln", "Krems-Süd"], ""],
    "legs": [[{"by": ["road"]}, {"by": ["rail", ""]}], ""],
    "car": [{"make": ["VW", ""], "seats": [4, 5]}, ""],
    "hills": [[1.5, 2.0], ""],
    "seats": [4, ""],
    "fast": [True, ""],
    "note": ["", 7],
}
TO = {"to": "St. Pölten"}


def question(*truth: dict[str, Any], name: str = "car.drive") -> Any:
    return bfcl.question(LINE, [{name: one} for one in truth or (TRUTH,)])


def fault(asked: Any, *calls: tuple[str, Any]) -> str:
    return compare.fault(asked.expected, [compare.Call(*call) for call in calls], asked.schemas)


def test_functions_become_tools() -> None:
    (tool,) = question().tools
    assert tool["function"]["name"] == "car_drive"
    schema = tool["function"]["parameters"]
    assert schema["type"] == "object"
    assert schema["required"] == ["to"]
    assert schema["properties"]["km"] == {
        "type": "number",
        "format": "float",
        "description": "How far. This is a float type value.",
    }
    assert schema["properties"]["legs"]["items"] == {"type": "object", "properties": {"by": {"type": "string"}}}
    assert schema["properties"]["hills"] == {"type": "array", "items": {"type": "number"}}
    assert schema["properties"]["note"] == {"type": "string"}


def test_a_parameter_may_have_the_name_of_a_keyword() -> None:
    described = {"type": "dict", "properties": {"optional": {"type": "float"}, "type": {"type": "mystery"}, "x": {}}}
    properties = bfcl.json_schema(described)["properties"]
    assert [one["type"] for one in properties.values()] == ["number", "string", "string"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"to": "st pölten"},
        {"to": 'ST-POELTEN"s.'},
        {"km": 65},
        {"km": 65.0},
        {"stops": ["tulln", "Krems Süd"]},
        {"stops": []},  # as where it is left out
        {"legs": [{"by": "Road"}, {}]},
        {"car": {"seats": 5}},
        {"car": {"seats": 4, "make": "v.w."}},
        {"hills": [1.5, 2.0]},
        {"fast": True},
        {"note": ""},
        {"note": 7},  # the possible answer's own type
    ],
)
def test_what_is_right(given: dict[str, Any]) -> None:
    assert fault(question(), ("car_drive", TO | given)) == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"to": "Linz"}, "to is 'Linz'"),
        ({"to": 5}, "to is 5"),
        ({"to": None}, "to is None"),
        ({"km": 66}, "km is 66"),
        ({"km": "65"}, "km is '65'"),
        ({"seats": 4.0}, "seats is 4.0"),
        ({"seats": True}, "seats is True"),
        ({"fast": 1}, "fast is 1"),
        ({"stops": ["Krems-Süd", "Tulln"]}, "stops is"),
        ({"stops": "Tulln"}, "stops is"),
        ({"stops": ["Tulln", 5]}, "stops is"),
        ({"legs": [{"by": "road"}]}, "legs is"),
        ({"legs": [{}, {"by": "rail"}]}, "legs is"),
        ({"car": {"make": "VW"}}, "car is"),
        ({"car": {"seats": 4, "doors": 2}}, "car is"),
        ({"car": {}}, "car is"),
        ({"speed": 5}, "speed is not expected"),
    ],
)
def test_what_is_wrong(given: dict[str, Any], said: str) -> None:
    assert said in fault(question(), ("car_drive", TO | given))


def test_an_integer_is_no_number_in_a_list_that_must_come() -> None:
    one, other = question(TRUTH | {"hills": [[1.5, 2.0]]}), question()
    assert fault(one, ("car_drive", TO | {"hills": [1.5, 2.0]})) == ""
    assert "hills is" in fault(one, ("car_drive", TO | {"hills": [1.5, 2]}))
    assert fault(other, ("car_drive", TO | {"hills": [1.5, 2]})) == ""  # nor does BFCL look where it may be left out


def test_what_is_missing_or_another_tool() -> None:
    assert "to is missing" in fault(question(), ("car_drive", {}))
    assert "seats is missing" in fault(question({"to": ["Linz"], "seats": [4]}), ("car_drive", {"to": "Linz"}))
    assert "car_stop is called" in fault(question(), ("car_stop", TO))
    assert "no JSON object" in fault(question(), ("car_drive", None))


def test_calls_come_in_any_order_and_in_equal_number() -> None:
    linz, graz = ({"to": [town]} for town in ("Linz", "Graz"))
    asked = question(linz, graz)
    calls = [("car_drive", {"to": town}) for town in ("Graz", "Linz")]
    assert fault(asked, *calls) == fault(asked, *calls[::-1]) == ""
    assert fault(asked, calls[0], calls[0])
    assert fault(asked, *calls, calls[0]) == "3 calls, not 2"
    assert fault(asked, calls[0]) == "1 calls, not 2"


def test_no_call_is_right_where_no_tool_answers() -> None:
    asked = bfcl.question(LINE, [])
    assert fault(asked) == ""
    assert fault(asked, ("car_drive", TO))


def test_questions_are_read_from_the_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "made_up.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for kind in ("parallel", "irrelevance"):
            archive.writestr(f"bfcl_eval/data/BFCL_v4_{kind}.json", f"{json.dumps(LINE)}\n" * 3)
        truth = {"id": "simple_0", "ground_truth": [{"car.drive": TRUTH}, {"car.drive": TRUTH}]}
        archive.writestr("bfcl_eval/data/possible_answer/BFCL_v4_parallel.json", json.dumps(truth))
    assert bfcl.wheel(wheel) == wheel
    first, _ = bfcl.questions(wheel, "parallel", 2)
    assert [one.name for one in first.expected] == ["car_drive", "car_drive"]
    assert [one.expected for one in bfcl.questions(wheel, "irrelevance")] == [[], [], []]


def test_calls_that_are_changed_for_the_check() -> None:
    asked, rng = question(), random.Random(1)
    for _ in range(50):
        calls = check._expected(rng, asked)
        assert compare.fault(asked.expected, calls, asked.schemas) == ""
        for name in ("a call more", "a call fewer"):
            assert compare.fault(asked.expected, check.CHANGES[name](rng, calls, asked), asked.schemas)
        for change in check.CHANGES.values():
            change(rng, calls, asked)
        assert compare.fault(asked.expected, calls, asked.schemas) == ""  # they are left as they were


def test_a_plain_request() -> None:
    body = benchmark.request(question(), "auto", "0", None)
    assert set(body) == {"messages", "tools", "tool_choice", "max_tokens", "temperature"}
    told = benchmark.request(question(), "auto", "default", "false")
    assert set(told) == {"messages", "tools", "tool_choice", "max_tokens", "seed", "parallel_tool_calls"}


def test_the_server_is_asked() -> None:
    written = '<tool_call>\n{"name": "car_drive", "arguments": {"to": "Linz"}}\n</tool_call>'
    served = Served("recorded", CHATML, Replay(written))
    said = sides.overheard(served)
    ask = sides.asgi(create_app([served]), said)
    asked = question({"to": ["Linz"]})
    answer = ask(benchmark.request(asked, "required", "0", None))
    assert (answer.text, answer.finish, answer.error) == (written, "tool_calls", "")
    assert compare.fault(asked.expected, answer.calls, asked.schemas) == ""
    refused = ask({"messages": "none"})
    assert "messages" in refused.error
    marked = tables.marked(("m", "required/simple", "0", "toolgram"), asked, refused)
    assert marked.fault.startswith("an error")


def test_answers_that_were_cut_off_are_read() -> None:
    functions = [{"name": "car_drive", "arguments": '{"to": "Li'}, {"name": "car_drive", "arguments": "[]"}]
    message = {"content": "", "tool_calls": [{"function": one} for one in functions]}
    usage = {"prompt_tokens": 90, "completion_tokens": 9}
    body = {"choices": [{"message": message, "finish_reason": "length"}], "usage": usage}
    answer = sides.read(body, 1.0)
    assert [call.arguments for call in answer.calls] == [None, None]
    assert '{"to": "Li' in answer.text
    marked = tables.marked(("m", "c", "0", "llama.cpp"), question(), answer)
    assert (marked.valid, marked.more, marked.finish) == (False, True, "length")


@pytest.mark.parametrize(
    ("one", "other", "p"), [(0, 0, 1), (3, 3, 1), (5, 0, 0.0625), (0, 6, 0.03125), (1, 7, 18 / 256)]
)
def test_the_sign_test(one: int, other: int, p: float) -> None:
    assert tables.sign_test(one, other) == pytest.approx(p)


def marked(side: str, at: int, *, right: bool) -> Any:
    call = compare.Call("car_drive", {"to": "Linz" if right else "Graz"})
    asked = bfcl.question({**LINE, "id": f"simple_{at}"}, [{"car.drive": {"to": ["Linz"]}}])
    return tables.marked(
        ("small", "required/simple", "0", side), asked, sides.Answer((call,), "…", "tool_calls", 90, 8, 0.5)
    )


def test_the_tables_tell_who_is_worse(capsys: pytest.CaptureFixture[str]) -> None:
    found = [marked(side, at, right=side == "llama.cpp" or at > 5) for at in range(10) for side in sides.SIDES]
    tables.tell("small", found)
    tables.tell_wrong(found)
    tables.tell_worse(found)
    told = capsys.readouterr().out
    assert "toolgram is worse than llama.cpp in: small required/simple (temperature 0)" in told
    assert "to is 'Graz'" in told
    ours = [one for one in found if one.side == "toolgram"]
    tables.tell("small", ours)
    tables.tell_worse(ours)
    assert "worse" not in capsys.readouterr().out


def test_answers_are_kept_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [marked("toolgram", at, right=True) for at in range(3)]
    kept, again = tmp_path / "kept.json", tmp_path / "again.json"
    kept.write_text(json.dumps([tables.asdict(one) for one in found]))
    monkeypatch.setattr(sys, "argv", ["answers.py", "--show", str(kept), "--json", str(again)])
    benchmark.main()
    assert json.loads(again.read_text()) == json.loads(kept.read_text())
