"""The commands, on recorded answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner, Result

import toolgram
from engines.projector import png
from made_up import IRREGULAR, JSON, MADE_UP, NAME, OBJECT, Family, each
from situations import CHATML
from toolgram.cli.app import app
from toolgram.cli.inputs import BadInput, read_tools
from toolgram.engines.replay import Replay
from toolgram.grammar.constraint import Constraint
from toolgram.styles.discovery import discover

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TOOLS = """
def get_weather(city: str) -> str:
    "Get the weather."

def get_time() -> str:
    "Get the time."
"""
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["n"]}
COMMANDS = ("ask", "explain", "styles", "report", "pull")


EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


@pytest.fixture
def template(tmp_path: Path) -> Path:
    return write(tmp_path / "chatml.jinja", CHATML.source)


PRINTS = """
from typing import Literal
from toolgram.styles.registry import find_style

print("I was run")
STYLE = find_style("hermes")
Kind = Literal["a", "b"]

def f(kind: Kind) -> str:
    "Do it."
    return kind
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    return write(tmp_path / "tools.py", TOOLS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder in Hugging Face's layout: a template that comes with its tokens."""
    folder = tmp_path / "model"
    folder.mkdir()
    write(folder / "chat_template.jinja", CHATML.source)
    write(folder / "tokenizer_config.json", {"eos_token": "<|im_end|>"})
    return folder


def to(value: Any) -> Callable[..., Any]:
    """A function that gives this, whatever it is asked."""
    return lambda *_, **_more: value


def answering(monkeypatch: pytest.MonkeyPatch, *answers: str) -> Replay:
    """The engine that `ask` gets, in the place of a model."""
    engine = Replay(*answers)
    monkeypatch.setattr("toolgram.cli.ask.model_file", to(Path("recorded.gguf")))
    monkeypatch.setattr("toolgram.cli.inputs.load_engine", to(engine))
    monkeypatch.setattr("toolgram.models.profiles.gguf_metadata", to({}))
    return engine


def no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))


# ask


def test_ask_prints_the_message_on_stdout_and_all_else_on_stderr(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tools: Path
) -> None:
    engine = answering(monkeypatch, CALL)
    result = run(
        "ask", "Will it rain?", "--template", folder, "--tools", tools, "--tool-choice", "required", "--stream"
    )
    assert result.exit_code == 0
    message = json.loads(result.stdout)
    function = message["tool_calls"][0]["function"]
    assert function == {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    assert CALL in result.stderr
    assert "finish: tool_calls" in result.stderr
    assert engine.closed


def test_ask_says_nothing_raw_without_stream(monkeypatch: pytest.MonkeyPatch, folder: Path, tools: Path) -> None:
    answering(monkeypatch, CALL)
    result = run("ask", "Will it rain?", "--template", folder, "--tools", tools, "--no-stream")
    assert "<tool_call>" not in result.stderr


def test_the_options_of_ask_reach_plan_and_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path, tools: Path
) -> None:
    engine = answering(monkeypatch, '{"n": 3}')
    schema = write(tmp_path / "schema.json", SCHEMA)
    options = ("--system", "Be brief.", "--temperature", "0.5", "--seed", "7", "--max-tokens", "20")
    result = run(
        "ask", "Q?", "--template", folder, "--tools", tools, "--tool-choice", "none", "--schema", schema, *options
    )
    assert json.loads(json.loads(result.stdout)["content"]) == {"n": 3}
    call = engine.calls[0]
    assert (call.sampling.temperature, call.sampling.seed, call.sampling.max_tokens) == (0.5, 7, 20)
    assert "Be brief." in call.text
    assert '"minimum": 1' in call.text


def test_ask_tells_an_answer_that_was_cut_off(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    engine = answering(monkeypatch)
    engine._answers.append(("one ", "two ", "three"))  # pyright: ignore[reportPrivateUsage] - answers in pieces
    result = run("ask", "Count.", "--template", folder, "--max-tokens", "2")
    assert json.loads(result.stdout)["content"] == "one two "
    assert "cut off" in result.stderr


def test_a_named_tool_is_the_only_one(monkeypatch: pytest.MonkeyPatch, folder: Path, tools: Path) -> None:
    engine = answering(monkeypatch, CALL)
    run("ask", "Q?", "--template", folder, "--tools", tools, "--tool-choice", "get_weather", "--no-parallel")
    constraint = engine.calls[0].constraint
    assert isinstance(constraint, Constraint)
    assert constraint.grammar.accepts(CALL)
    assert not constraint.grammar.accepts(f"{CALL}\n{CALL}")
    assert not constraint.grammar.accepts('<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>')


# explain, styles, report, pull


def test_explain_shows_the_whole_plan(template: Path, tools: Path) -> None:
    result = run("explain", "Will it rain?", "--template", template, "--tools", tools)
    titles = ["Style", "Format prompt", "Prompt", "Size", "Stops", "Grammar (gbnf)", "Relaxations"]
    assert [line[2:] for line in result.stdout.splitlines() if line.startswith("# ")] == titles
    assert "compact: " in result.stdout
    assert "chosen because" in result.stdout
    assert "Will it rain?<|im_end|>" in result.stdout
    assert "root ::=" in result.stdout


@pytest.mark.parametrize(("dialect", "start"), [("gbnf", "root ::="), ("lark", "start:"), ("ebnf", "root ::=")])
def test_explain_writes_every_dialect(template: Path, tools: Path, dialect: str, start: str) -> None:
    result = run("explain", "Q?", "--template", template, "--tools", tools, "--dialect", dialect)
    assert f"# Grammar ({dialect})" in result.stdout
    assert start in result.stdout


def test_explain_shows_where_an_image_stands(tmp_path: Path, template: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64encode(png((9, 9, 9))).decode()}"}}
    asked = {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]}
    result = run("explain", "--request", write(tmp_path / "request.json", asked), "--template", template)
    assert "What is it?[image/png]<|im_end|>" in result.stdout
    assert "characters; the tokens of an image are known once it is read" in result.stdout


def test_explain_takes_a_request(tmp_path: Path, template: Path) -> None:
    request = write(tmp_path / "request.json", {"messages": [{"role": "user", "content": "Hello there."}]})
    result = run("explain", "--request", request, "--template", template)
    assert "Hello there." in result.stdout
    assert "none: there are no tools" in result.stdout


def test_ask_prints_each_relaxation(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    answering(monkeypatch, '{"n": 1, "tags": []}')
    tags = {"type": "array", "uniqueItems": True}
    schema = write(tmp_path / "schema.json", {"type": "object", "properties": {"n": {"type": "integer"}, "tags": tags}})
    at = "/response_format/json_schema/schema"
    said = run("ask", "Q?", "--template", folder, "--schema", schema).stderr.splitlines()
    assert f"note: {at}/properties/tags: uniqueItems is not enforced: items may be equal" in said
    (digits,) = [line for line in said if "digits" in line]
    assert digits.startswith(f"note: {at}: type is stricter than asked: numbers of at most 19 digits")


def test_explain_shows_what_of_a_schema_is_relaxed(tmp_path: Path) -> None:
    unique = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    schema = write(tmp_path / "schema.json", {"type": "object", "properties": {"tags": unique}})
    result = run("explain", "--schema", schema)
    titles = ["Grammar (gbnf)", "Relaxations", "Exact mode"]
    assert [line[2:] for line in result.stdout.splitlines() if line.startswith("# ")] == titles
    assert "\n/properties/tags: uniqueItems is not enforced: items may be equal\n" in result.stdout
    assert (
        "\nrefuses it: /properties/tags: uniqueItems: cannot be enforced for items that are not finitely many"
        in result.stdout
    )
    exact = run("explain", "--schema", write(tmp_path / "exact.json", SCHEMA)).stdout
    assert "\nnone: the schemas are enforced exactly\n" in exact
    assert exact.endswith("# Exact mode\ntakes it\n")


def test_explain_tells_what_is_no_schema(tmp_path: Path) -> None:
    said = refused("explain", "--schema", write(tmp_path / "schema.json", {"items": {"type": "text"}}))
    assert '/items: type: "text" is not one of' in said


def test_styles_lists_them_and_says_which_fits(template: Path) -> None:
    listed = run("styles").stdout
    for name in toolgram.style_names():
        assert name in listed
    assert (
        "chosen: compact (generic), because the template writes no tool calls"
        in run("styles", "--template", template).stdout
    )


def test_styles_tells_what_was_found_and_what_it_read(tmp_path: Path) -> None:
    found = run("styles", "--template", write(tmp_path / "t.jinja", MADE_UP["a fence"].template.source)).stdout
    assert "chosen: discovered (discovered), because it was found from the template" in found
    assert "two calls: read back" in found
    odd = IRREGULAR["a different tag for every other call"].template.source
    assert "(generic), because the format found does not read a call of the template" in (
        run("styles", "--template", write(tmp_path / "odd.jinja", odd)).stdout
    )


def test_styles_says_why_one_does_not_fit(tmp_path: Path) -> None:
    call = each(f"<tool_calls>\n{OBJECT}\n</tool_calls>", "\n")
    file = write(tmp_path / "t.jinja", Family(call).template.source)
    lines = run("styles", "--template", file, "--why", "hermes").stdout.splitlines()
    assert lines[0].startswith("hermes does not fit: it loses a call at line 1, column 11: this is read as content")
    assert lines[2].startswith("chosen: minimax_m1 (native), because ")
    assert lines[3] == "tools: the template shows them, but does not mention '<tool_call>', which hermes writes"
    at = lines.index("  the template writes")
    assert lines[at + 1 : at + 3] == ["    <tool_calls>", "              ^"]
    assert lines[lines.index("  hermes reads") + 1].startswith("    content '<tool_calls>")
    assert lines[lines.index("  hermes writes") + 1] == "    <tool_call>"
    assert "an answer: read back" in lines
    fits = run("styles", "--template", file, "--why", "minimax_m1").stdout
    assert fits.startswith("minimax_m1 fits, and is the style chosen\n")


def test_the_caret_stands_under_wide_characters_too(tmp_path: Path) -> None:
    wide = each(f"<｜tool▁calls▁begin｜>{'工' * 60}{NAME}{JSON}<｜tool▁calls▁end｜>")
    file = write(tmp_path / "t.jinja", Family(wide).template.source)
    lines = run("styles", "--template", file, "--why", "deepseek_v3_1").stdout.splitlines()
    at = lines.index("  the template writes")
    assert cell_len(lines[at + 2]) == cell_len("    <｜tool▁calls▁begin｜>") + 1
    assert "'<｜tool▁call▁begin｜>' was expected" in lines[0]
    assert lines[at + 1].endswith("…")


def test_why_wants_a_template_and_a_style_that_is_there(template: Path) -> None:
    assert "--why needs a template: give --template FILE" in refused("styles", "--why", "hermes")
    assert "give --print or --why, not both" in refused("styles", "--print", "--why", "hermes")
    unknown = refused("styles", "--template", template, "--why", "hermess")
    meant = "there is no style 'hermess'; did you mean 'hermes' or 'hermes_2_pro'? There are: hunyuan, apriel, "
    assert meant in unknown


def test_a_style_is_printed_as_a_file_that_makes_it(tmp_path: Path) -> None:
    template = MADE_UP["typed parameters"].template
    printed = run("styles", "--print", "--template", write(tmp_path / "My model-7B.jinja", template.source))
    made: dict[str, Any] = {}
    exec(printed.stdout, made)  # noqa: S102 - our own text
    style = discover(template).style
    assert style is not None
    assert made["STYLE"].wire == style.wire
    assert made["STYLE"].name == "my_model_7b"


def test_there_may_be_no_style_to_print(tmp_path: Path, template: Path) -> None:
    refused = run("styles", "--print", "--template", template)
    assert refused.exit_code == 2
    assert "no style was found: the template writes no tool calls" in refused.stderr
    assert "--print needs a template" in run("styles", "--print").stderr


def test_report_is_markdown(tmp_path: Path, template: Path) -> None:
    request = write(tmp_path / "request.json", {"messages": [{"role": "user", "content": "Hi."}]})
    result = run("report", "--templates", template.parent, "--request", request, "--style", "short", "--style", "long")
    assert "# chatml / short" in result.stdout
    assert "# chatml / long" in result.stdout


def test_pull_prints_the_path_of_what_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("toolgram.models.catalog.cached", to(tmp_path / "m.gguf"))
    assert run("pull").stdout.strip() == str(tmp_path / "m.gguf")


# help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command: str) -> None:
    text = run(command, "--help").stdout
    assert f"Example: toolgram {command}" in text


def test_help_imports_neither_engines_nor_planning() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom toolgram.cli.app import app\n"
        "CliRunner().invoke(app, ['--help'])\n"
        "costly = {'numpy', 'llguidance', 'xllamacpp', 'gguf', 'asyncio', 'pydantic', 'jinja2', 'toolgram.planning'}\n"
        "sys.exit(' '.join(costly & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_python_m_toolgram_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "toolgram", "styles"], check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert "thoughtful_steps" in done.stdout


# what is wrong


def refused(*arguments: str | Path) -> str:
    """The one line that a bad command says."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("[{", "tools.json: not JSON: Expecting property name enclosed in double quotes at line 1, column 3"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ('[{"a": 1, "a": 2}]', "the key 'a' occurs twice"),
        ("{}", "must be a list of tools"),
        ('[{"type": "function", "function": {}}]', "/tools/0/function/name: is missing"),
        ('[{"function": {"name": "f"}}, {"function": {"name": "f"}}]', "/tools/1/function/name: two tools"),
        ('[{"function": {"name": "f", "parameters": {"type": "thing"}}}]', "/tools/0/function/parameters: type"),
        ("\xff", "tools.json"),
    ],
)
def test_bad_tools_are_told(tmp_path: Path, template: Path, source: str, says: str) -> None:
    file = tmp_path / "tools.json"
    file.write_bytes(source.encode("latin-1"))
    assert says in refused("explain", "Q?", "--template", template, "--tools", file)


def test_bad_tools_are_told_before_a_model_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_model(monkeypatch, tmp_path)
    file = write(tmp_path / "tools.json", [{"type": "function", "function": {}}])
    assert "/tools/0/function/name" in refused("ask", "Q?", "--tools", file)


@pytest.mark.parametrize(
    "command",
    [
        ("lint", "--json", "--tools", "FILE"),
        ("tools", "list", "--json", "FILE"),
        ("explain", "Q?", "--template", "TEMPLATE", "--tools", "FILE"),
        ("explain", "--schema", "FILE:Kind"),
        ("explain", "Q?", "--template", "TEMPLATE", "--style", "FILE"),
    ],
    ids=" ".join,
)
def test_what_a_users_file_prints_is_no_part_of_the_output(
    command: tuple[str, ...], tmp_path: Path, template: Path
) -> None:
    file = write(tmp_path / "loud.py", PRINTS)
    words = [word.replace("FILE", str(file)).replace("TEMPLATE", str(template)) for word in command]
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    assert "I was run" in result.stderr
    assert "I was run" not in result.stdout


def test_a_function_that_cannot_be_a_tool_is_told(tmp_path: Path, template: Path) -> None:
    file = write(tmp_path / "tools.py", "def f(*x): pass")
    assert "f, parameter 'x': a tool is called with named arguments only" in refused(
        "explain", "Q?", "--template", template, "--tools", file
    )


EVEN = """
from pydantic import BaseModel, field_validator

class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def check(cls, value):
        if value % 2:
            raise ValueError("it is odd")
        return value

seven = 7
"""


def test_a_type_of_a_python_file_is_a_schema(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path) -> None:
    kind = f"{write(tmp_path / 'even.py', EVEN)}:Even"
    assert '"{\\"number\\": " integer' in run("explain", "--schema", kind).stdout
    assert "number" in run("explain", "Q?", "--schema", kind, "--template", folder).stdout
    for answer, refuses in (('{"number": 2}', False), ('{"number": 3}', True)):
        answering(monkeypatch, answer)
        result = run("ask", "Q?", "--schema", kind, "--template", folder)
        assert json.loads(result.stdout) == {
            "role": "assistant",
            "content": answer,
            **({"valid": False} if refuses else {}),
        }
        assert result.exit_code == (3 if refuses else 0)
        assert ("note: the type refuses the answer: /number: Value error, it is odd" in result.stderr) is refuses


def test_the_example_has_a_type_and_a_function(folder: Path) -> None:
    file = EXAMPLES / "trip.py"
    shown = run("explain", "Q?", "--template", folder, "--tools", file, "--schema", f"{file}:Trip").stdout
    for text in ("type book = ", "How many people go", "Where somebody wants to go.", "book-call ::="):
        assert text in shown


def test_what_is_not_a_type_of_a_python_file_is_told(tmp_path: Path) -> None:
    file = write(tmp_path / "even.py", EVEN)
    assert f"which of its types? Give {file}:NAME" in refused("explain", "--schema", file)
    for name in ("seven", "eight"):
        assert f"{name!r} is not a type in it" in refused("explain", "--schema", f"{file}:{name}")
    assert "none.py: no such file" in refused("explain", "--schema", tmp_path / "none.py:Even")


@pytest.mark.parametrize("option", ["--tools", "--schema"])
def test_a_missing_file_is_told(tmp_path: Path, template: Path, option: str) -> None:
    missing = tmp_path / "missing.json"
    assert "missing.json: no such file" in refused("explain", "Q?", "--template", template, option, missing)


def test_a_tool_choice_that_does_not_exist_is_told(template: Path, tools: Path) -> None:
    said = refused("explain", "Q?", "--template", template, "--tools", tools, "--tool-choice", "fly")
    assert "/tool_choice/function/name: there is no tool named 'fly'; there are: get_weather, get_time" in said


def test_a_request_that_is_wrong_is_told(tmp_path: Path, template: Path) -> None:
    request = write(tmp_path / "request.json", {"messages": [{"role": "robot", "content": "x"}]})
    assert "/messages/0/role: must be 'system', 'developer'" in refused(
        "explain", "--request", request, "--template", template
    )
    for option in (("Q?",), ("--system", "Be brief."), ("--no-parallel",)):
        assert "--request is the whole request" in refused("explain", *option, "--request", request)
    assert "nothing to explain" in refused("explain")


def test_a_schema_that_is_none_is_told(tmp_path: Path, template: Path) -> None:
    schema = write(tmp_path / "schema.json", {"type": "object", "properties": {"x": {"minLength": "long"}}})
    assert "/properties/x: minLength" in refused("explain", "--schema", schema)
    said = refused("explain", "Q?", "--schema", schema, "--template", template)
    assert "/response_format/json_schema/schema/properties/x: minLength" in said


def test_a_template_that_does_not_compile_is_told(tmp_path: Path) -> None:
    template = write(tmp_path / "bad.jinja", "\n{% for x in %}")
    assert "line 2" in refused("styles", "--template", template)
    assert "none.jinja: cannot be read" in refused("styles", "--template", tmp_path / "none.jinja")


def test_a_file_that_a_shell_of_windows_wrote_is_told(tmp_path: Path) -> None:
    template = tmp_path / "wide.jinja"
    template.write_text("{{ messages }}", encoding="utf-16")
    schema = tmp_path / "wide.json"
    schema.write_text("{}", encoding="utf-16")
    for said in (refused("styles", "--template", template), refused("explain", "--schema", schema)):
        assert "cannot be read: byte 0 is not UTF-8, in which it must be saved" in said


def test_a_template_is_named_as_for_the_server(template: Path) -> None:
    one, other = (
        run("explain", "Q?", "--dialect", "lark", name, template) for name in ("--template", "--chat-template")
    )
    assert one.exit_code == 0
    assert one.output == other.output


def test_an_unknown_style_is_told(template: Path) -> None:
    assert "there is no style 'nope'" in refused("explain", "Q?", "--template", template, "--style", "nope")


def test_a_model_that_is_missing_or_damaged_is_told(tmp_path: Path) -> None:
    assert "neither a file nor a known model" in refused("ask", "Q?", "--model", tmp_path / "none.gguf")
    damaged = write(tmp_path / "damaged.gguf", "GGUF\3\0\0\0 and no more")
    assert "damaged.gguf" in refused("ask", "Q?", "--model", damaged)
    assert "no model is known as 'nope'" in refused("pull", "nope")


def test_explain_never_fetches_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_model(monkeypatch, tmp_path)
    assert "toolgram pull" in refused("explain", "Q?")


def test_sampling_out_of_range_is_told(template: Path) -> None:
    assert "temperature must be" in refused("ask", "Q?", "--template", template, "--temperature", "-1")
    assert "max_tokens must be" in refused("ask", "Q?", "--template", template, "--max-tokens", "0")


# tools in several shapes, styles from files, text and JSON, what was cut off

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Get the weather."}
OPENAI = {"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}


@pytest.mark.parametrize(
    "given",
    [
        [OPENAI],
        OPENAI,
        {"tools": [OPENAI]},
        {"type": "function", **WEATHER, "parameters": PARAMETERS},
        {"tools": [{**WEATHER, "input_schema": PARAMETERS}]},
        {"tools": [{**WEATHER, "title": "Weather", "inputSchema": PARAMETERS, "annotations": {"readOnlyHint": True}}]},
    ],
)
def test_tools_are_read_as_others_write_them(given: Any, tmp_path: Path) -> None:
    assert read_tools(write(tmp_path / "tools.json", given)) == [OPENAI]


def test_a_file_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('[{"type": "function", "function": {"name": "f"}}]', encoding="utf-8-sig")
    assert [tool["function"]["name"] for tool in read_tools(tmp_path / "tools.json")] == ["f"]


def test_a_file_of_something_else_holds_no_tools(tmp_path: Path) -> None:
    for given in ({"servers": {}}, "tools", 7):
        with pytest.raises(BadInput, match="must be a list of tools"):
            read_tools(write(tmp_path / "tools.json", json.dumps(given)))


def test_strict_refuses_what_is_not_enforced(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path, tools: Path
) -> None:
    answering(monkeypatch, CALL)
    unique = write(tmp_path / "unique.json", {"type": "array", "uniqueItems": True})
    asking = ("ask", "Q?", "--template", folder, "--strict")
    assert "uniqueItems: cannot be enforced for items" in run(*asking, "--schema", unique).stderr
    elsewhere = {"properties": {"a": {"$ref": "other.json"}}}
    referring = write(tmp_path / "tools.json", {"name": "f", "inputSchema": elsewhere})
    assert "$ref: cannot be enforced: there is no document" in run(*asking, "--tools", referring).stderr
    write(tmp_path / "types.py", "from typing import Literal\nAnswer = Literal['yes', 'no']\n")
    assert "--strict is for a JSON Schema" in run(*asking, "--schema", f"{tmp_path}/types.py:Answer").stderr
    assert run(*asking, "--tools", tools, "--tool-choice", "required").exit_code == 0


STYLE_FILE = """
from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Opt, Seq, WireFormat

CALLED = Call(Seq(Mark("[call "), Name(), Lit("]"), Arguments(), Mark("[/call]")))
MINE = ToolStyle("mine", WireFormat(Seq(Opt(Content()), Many(CALLED))), "calls in brackets", lambda _: "Use the tools.")
"""


def test_a_style_may_be_a_file(monkeypatch: pytest.MonkeyPatch, folder: Path, tools: Path, tmp_path: Path) -> None:
    answering(monkeypatch, '[call get_weather]{"city": "Paris"}[/call]')
    style = write(tmp_path / "mine.py", STYLE_FILE)
    result = run("ask", "Q?", "--template", folder, "--tools", tools, "--style", style)
    assert "style: mine;" in result.stderr
    assert json.loads(result.stdout)["tool_calls"][0]["function"]["name"] == "get_weather"
    assert (
        "mine: calls in brackets"
        in run("explain", "Q?", "--template", folder, "--tools", tools, "--style", style).stdout
    )
    write(style, STYLE_FILE + "\nOTHER = ToolStyle('other', MINE.wire, 'another')\n")
    assert "has 2 styles; name the one that is meant STYLE" in refused("ask", "Q?", "--style", style)
    assert "has 0 styles" in refused("ask", "Q?", "--style", write(tmp_path / "none.py", ""))


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the runner puts in the place of stdout says that it is a terminal."""
    monkeypatch.setattr("typer.testing._NamedTextIOWrapper.isatty", lambda _: True)


def test_on_a_terminal_the_answer_is_text(monkeypatch: pytest.MonkeyPatch, folder: Path, tools: Path) -> None:
    on_a_terminal(monkeypatch)
    answering(monkeypatch, "It rains.", f"I look.\n{CALL}", "It rains.")
    assert run("ask", "Q?", "--template", folder).stdout == "It rains.\n"
    calling = run("ask", "Q?", "--template", folder, "--tools", tools)
    assert calling.stdout == 'I look.\nget_weather({"city": "Paris"})\n'
    assert json.loads(run("ask", "Q?", "--template", folder, "--json").stdout)["content"] == "It rains."
    answering(monkeypatch, "a\x1b[2J b\xa0c")
    assert run("ask", "Q?", "--template", folder).stdout == "a[2J b\xa0c\n"


def test_an_answer_that_is_cut_off_exits_with_3_and_says_so(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    engine = Replay(tuple("It rains."))
    monkeypatch.setattr("toolgram.cli.ask.model_file", to(Path("recorded.gguf")))
    monkeypatch.setattr("toolgram.models.profiles.gguf_metadata", to({}))
    monkeypatch.setattr("toolgram.cli.inputs.load_engine", to(engine))
    result = run("ask", "Q?", "--template", folder, "--max-tokens", "4")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {"role": "assistant", "content": "It r", "finish_reason": "length"}


def test_a_question_may_come_from_stdin(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    engine = answering(monkeypatch, "Yes.")
    asked = CliRunner().invoke(app, ["ask", "-", "--template", str(folder)], input="Does it\nrain?\n")
    assert asked.exit_code == 0
    assert "Does it\nrain?<|im_end|>" in engine.calls[0].text
    empty = CliRunner().invoke(app, ["ask", "-", "--template", str(folder)], input="")
    assert empty.stderr == "error: there is no question in the standard input\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sevre"], "No such command 'sevre'. Did you mean 'serve'? (toolgram --help)"),
        (["ask"], "Missing argument 'question'. (toolgram ask --help)"),
        (["ask", "Q?", "--max-tokens", "x"], "Invalid value for '--max-tokens'"),
        (["ask", "Q?", "--tols", "x"], "No such option: --tols"),
        (["ask", "Q?", "--model", "smolm2"], "did you mean 'smollm2'?"),
        (["pull", "smol"], "did you mean 'smollm2'?"),
        (["styles", "--template", "TEMPLATE", "--why", "hermess"], "did you mean 'hermes'"),
    ],
)
def test_what_is_typed_wrongly_is_one_line(command: list[str], said: str, template: Path) -> None:
    result = run(*[str(template) if word == "TEMPLATE" else word for word in command])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith("error: ")
    assert said in result.stderr


def test_a_tool_choice_that_there_is_not_is_told_with_the_nearest(template: Path, tools: Path) -> None:
    said = refused("ask", "Q?", "--template", template, "--tools", tools, "--tool-choice", "get_wether")
    assert "there is no tool named 'get_wether'; did you mean 'get_weather'" in said


def test_the_version() -> None:
    assert run("--version").stdout == f"toolgram {toolgram.__version__}\n"
    assert "Usage: " in run().output


def test_an_interrupt_in_the_first_moment_says_nothing(tmp_path: Path) -> None:
    write(tmp_path / "typer.py", "raise KeyboardInterrupt\n")
    done = subprocess.run(
        [sys.executable, "-m", "toolgram", "styles"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(sys.platform != "linux", reason="it needs a shell and /dev/full")
@pytest.mark.parametrize(
    ("command", "code", "out", "said"),
    [
        ("explain é😀 --template T > /dev/full", 2, "", "error: the output: No space left on device\n"),
        ("styles > /dev/full", 2, "", "error: the output: No space left on device\n"),
        ("styles >&-", 0, "", ""),
        ("ask - <&-", 2, "", "error: there is no question in the standard input\n"),
        ("tools serve F <&-", 0, "", ""),
        ("styles --template none 2>&-", 2, "", ""),
        ("tools list F", 0, "f: é\\ud83d\\ude00 costs 1 \\u20ac\n", ""),
    ],
)
def test_streams_that_are_closed_or_full_or_of_another_encoding(
    command: str, code: int, out: str, said: str, tmp_path: Path, template: Path
) -> None:
    write(tmp_path / "f.py", 'def f() -> None:\n    "é😀 costs 1 €"\n')
    words = command.replace(" T", f" {template}").replace(" F", f" {tmp_path / 'f.py'}")
    made = {**os.environ, "PYTHONIOENCODING": "latin-1:strict", "PYTHONUTF8": "1"}
    line = ["sh", "-c", f"{sys.executable} -m toolgram {words}"]
    done = subprocess.run(line, check=False, capture_output=True, encoding="latin-1", env=made)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, said)
