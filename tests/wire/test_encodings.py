"""Each encoding is one value with a reader, a grammar and a writer that agree, and nobody asks which it is."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from situations import CHATML, tool
from toolgram import Message, ToolCall, ToolStyle
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import seq
from toolgram.schema import RuleNames, Spelling
from toolgram.schema.reading.normalize import normalize
from toolgram.schema.types import Canonical
from toolgram.styles.registry import NATIVE
from toolgram.wire import format as wire
from toolgram.wire.encodings import JSON, PYTHON, AnyEncoding, Elements, Encoding, Entities, Tagged
from toolgram.wire.encodings.base import ArgumentsReader, ToolArguments
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.encodings.json import RawValue, Sink, Status
from toolgram.wire.format import Arguments, Call, Content, Many, Mark, Name, Opt, Seq, WireFormat
from toolgram.wire.writer import spelling_of, write_freely

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "short": {"type": "string", "pattern": "^[a-c1]{1,3}$"},
        "count": {"type": "integer"},
        "flag": {"type": ["boolean", "null"]},
        "list": {"type": "array", "items": {"type": "integer"}},
        "deep": {"type": "object", "properties": {"inner": {"type": "string"}}, "additionalProperties": False},
        "either": {"type": ["string", "integer"]},
    },
    "required": ["text"],
    "additionalProperties": False,
}
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
SOME = ["1", "null", "&", "&amp;lt;", "&l", " a\n", "<x>", '"', "</parameter>", "it's", "{}", "[1]"]
TEXTS = st.text(max_size=12) | st.sampled_from(SOME)
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "short": st.from_regex(r"[a-c1]{1,3}", fullmatch=True),
    "count": st.integers(-(10**9), 10**9),
    "flag": st.none() | st.booleans(),
    "list": st.lists(st.integers(0, 99), max_size=3),
    "deep": st.dictionaries(st.just("inner"), TEXTS, max_size=1),
    "either": TEXTS | st.integers(0, 99),
}
VALUES = st.fixed_dictionaries({"text": TEXTS}, optional=OPTIONAL)
HTML = Entities((("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;"), ('"', "&#34;")))
OWN = (
    JSON,
    PYTHON,
    Encoding("gemma", quote='<|"|>', escapes=False, bare_keys=True),
    Tagged("typed", "<arg k=", (("string", " s>"), ("", " j>")), "</arg>"),
    Tagged("fenced", "<p>", (("", "="),), "</p>", fence=("<![CDATA[", "]]>")),
    Tagged("keys", "<", (("", ">"),), "</{key}>\n"),
    Tagged("attributes", '<arg name="', (("", '" value="'),), '"/>'),
    Tagged("quoted", "<", (("", ">"),), "</{key}>", quoted=True),
    Tagged("quoted in attributes", '<arg name="', (("", '" value='),), "/>", quoted=True),
    Tagged("entities", '<arg name="', (("", '" value="'),), '"/>', entities=HTML),
    Tagged("entities of strings", "<", (("", ">"),), "</{key}>", entities=replace(HTML, in_json=False)),
    Tagged("entities and quotes", '<arg name="', (("", '" value="'),), '"/>', quoted=True, entities=HTML),
    Elements("elements", "@@"),
)
OF_STYLES = (
    node.encoding for style in NATIVE for node in wire.walk(style.wire.turn) if isinstance(node, wire.Arguments)
)
ENCODINGS = tuple(dict.fromkeys((*OWN, *OF_STYLES)))
each_encoding = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
BEHIND = "</>"  # tags end where none begins; another one stands behind them


def made(encoding: AnyEncoding) -> tuple[Canonical, ToolArguments, Grammar]:
    """The type of the arguments of a tool with the schema, the arguments, and their grammar."""
    spelling = spelling_of(wire.PLAIN, encoding)
    canonical = normalize(SCHEMA, closed=True, parameters=True, encoding=spelling.encoding).type
    arguments = encoding.arguments(canonical, spelling, RuleNames("root"), "x", exact=True)
    return canonical, arguments, Grammar({"root": arguments.expr, **arguments.rules}, ())


MADE = {encoding: made(encoding) for encoding in ENCODINGS}


def read(encoding: AnyEncoding, text: str, step: int = 10**6) -> Any:
    """What the reader hands on of a text, `step` characters at a time."""
    canonical = MADE[encoding][0]
    pieces: list[str] = []
    reader = encoding.reader(Expected(canonical, canonical.root), pieces.append)
    buffer, i, status = "", 0, Status.MORE
    whole = text + BEHIND
    for at in range(0, len(whole), step):
        buffer = buffer[i:] + whole[at : at + step]
        i, status = reader.consume(buffer, 0)
        if status is not Status.MORE:
            rest = buffer[i:] + whole[at + step :]
            assert (status, rest.strip(" \n")) == (Status.DONE, BEHIND), text
            break
    return json.loads("".join(pieces))


@each_encoding
@given(value=VALUES, step=st.integers(1, 5))
def test_what_is_written_is_admitted_and_reads_back(encoding: AnyEncoding, value: dict[str, Any], step: int) -> None:
    _, arguments, grammar = MADE[encoding]
    text = arguments.spell(value)
    if text is None:
        texts = [value["text"], value.get("either"), value.get("deep", {}).get("inner")]
        assert encoding.notation != encoding or any(isinstance(each, str) and encoding.tags for each in texts)
        return
    assert grammar.accepts(text)
    assert read(encoding, text) == value
    assert read(encoding, text, step) == value


@each_encoding
def test_every_sentence_is_read_to_a_valid_value_and_can_be_written(encoding: AnyEncoding) -> None:
    _, arguments, grammar = MADE[encoding]
    for seed in range(60):
        value = read(encoding, grammar.sample(seed))
        VALIDATOR.validate(value)
        again = arguments.spell(value)
        assert again is not None
        assert grammar.accepts(again)


@each_encoding
def test_arguments_begin_with_the_opener(encoding: AnyEncoding) -> None:
    text = MADE[encoding][1].spell({"text": "x", "count": 3})
    assert text is not None
    assert text.startswith(encoding.opener)
    assert any(tag in text for tag in encoding.tags) or not encoding.tags


@each_encoding
def test_history_is_written_as_it_would_be_now(encoding: AnyEncoding) -> None:
    value = {"text": "x y", "count": -3, "flag": None, "list": [1, 2]}
    assert encoding.write(value, spelling_of(wire.PLAIN, encoding)) == MADE[encoding][1].spell(value)


@each_encoding
def test_only_numbers_that_have_a_place_are_said_to_be_capped(encoding: AnyEncoding) -> None:
    spelling = replace(spelling_of(wire.PLAIN, encoding), integer_digits=19, fraction_digits=17)

    def capped(schema: dict[str, Any]) -> bool:
        canonical = normalize(schema, parameters=True, encoding=spelling.encoding).type
        return encoding.arguments(canonical, spelling, RuleNames("root"), "x", exact=False).capped

    text = {"type": "object", "properties": {"text": {"type": "string"}}}
    assert capped({"properties": {"count": {"type": "integer"}}, "additionalProperties": False})
    assert not capped({**text, "additionalProperties": False})
    assert capped(text) is encoding.shows_types  # what is not declared has no tags


@each_encoding
def test_what_is_cut_off_is_handed_on(encoding: AnyEncoding) -> None:
    canonical, arguments, _ = MADE[encoding]
    text = arguments.spell({"text": "some words", "count": 3})
    assert text is not None
    pieces: list[str] = []
    reader = encoding.reader(Expected(canonical, canonical.root), pieces.append)
    shown = text[: text.index("words") + len("words")]
    end, status = reader.consume(shown, 0)
    reader.cut(shown[end:])
    assert status is Status.MORE
    first = '{"count": 3, ' if encoding.notation.sorts_keys else "{"
    assert "".join(pieces) == first + '"text": "some words'


ESCAPED = next(encoding for encoding in OWN if encoding.name == "entities")


@pytest.mark.parametrize("step", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("&lt;b&gt; &amp;amp; &#34;", '<b> &amp; "'),
        ("&quot;&apos;&#x27;", "\"''"),  # which the template does not write
        ("AT&T & &l & &copy;", "AT&T & &l & &copy;"),
        ("&am", "&am"),
    ],
)
def test_entities_are_read_whichever_they_are_and_however_cut(inside: str, text: str, step: int) -> None:
    assert read(ESCAPED, f'<arg name="text" value="{inside}"/>', step) == {"text": text}
    assert read(ESCAPED, f'<arg name="either" value="{inside}"/><arg name="text" value=""/>', step)["either"] == text


def test_the_half_of_an_entity_is_not_handed_on() -> None:
    canonical = MADE[ESCAPED][0]
    pieces: list[str] = []
    reader = ESCAPED.reader(Expected(canonical, canonical.root), pieces.append)
    reader.consume('<arg name="text" value="a &lt;b&g', 0)
    reader.cut("")
    assert "".join(pieces) == '{"text": "a <b'


@pytest.mark.parametrize("encoding", [each for each in OWN if isinstance(each, Tagged)], ids=lambda each: each.name)
def test_what_is_no_object_has_no_parameters(encoding: AnyEncoding) -> None:
    with pytest.raises(ValueError, match="only an object"):
        encoding.write([1], spelling_of(wire.PLAIN, encoding))


@dataclass(frozen=True)
class Quoted(AnyEncoding):
    """JSON between guillemets: an encoding that nothing but this file knows."""

    name: str = "quoted"

    @property
    def notation(self) -> Encoding:
        return JSON

    @property
    def opener(self) -> str:
        return "«"

    def reader(self, expected: Expected, sink: Sink) -> ArgumentsReader:
        return QuotedReader(sink)

    def arguments(
        self, canonical: Canonical, spelling: Spelling, names: RuleNames, hint: str, *, exact: bool
    ) -> ToolArguments:
        inside = JSON.arguments(canonical, spelling, names, hint, exact=exact)

        def spell(value: Any) -> str | None:
            text = inside.spell(value)
            return None if text is None else f"«{text}»"

        return replace(inside, expr=seq("«", inside.expr, "»"), spell=spell)

    def write(self, value: Any, spelling: Spelling) -> str:
        return f"«{JSON.write(value, spelling)}»"


class QuotedReader:
    """Passes on the JSON between the guillemets."""

    def __init__(self, sink: Sink) -> None:
        self._value = RawValue(sink)
        self._done = False

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        i, status = start + buffer.startswith("«", start), Status.MORE
        if not self._done:
            i, status = self._value.consume(buffer, i)
            self._done = status is Status.DONE
        if self._done and i < len(buffer):
            return i + 1, Status.DONE if buffer[i] == "»" else Status.FAILED
        return i, Status.MORE

    def cut(self, rest: str) -> None:
        """All was handed on."""


@pytest.mark.parametrize("key", ['q"q', "a&b", "&amp;", "&quot;", '" type="string"<|sep|>'])
def test_keys_are_escaped_as_the_template_escapes_them(key: str) -> None:
    style = next(style for style in NATIVE if style.name == "kimi_k3")
    schema = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    plan = toolgram.plan(
        {"messages": [{"role": "user", "content": "Hi"}], "tools": [tool("f", schema)]}, CHATML, style=style
    )
    message = Message(tool_calls=(ToolCall("f", json.dumps({key: '"v" & w'}), "0"),))
    text = plan.write(message)
    assert text is not None
    shown = key.replace("&", "&amp;").replace('"', "&quot;")  # chat template of moonshotai/Kimi-K3, `escape_attr`
    assert f'key="{shown}" type="string"<|sep|>"v" & w<' in text
    assert plan.writable(message)
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)


def test_a_new_encoding_is_one_new_value() -> None:
    call = Call(Seq(Mark("<call>"), Name(), Arguments(Quoted())))
    style = ToolStyle("own", WireFormat(Seq(Opt(Content()), Many(call))), "", announce=lambda _: "Call.")
    request = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("look", SCHEMA)]}
    plan = toolgram.plan(request, CHATML, style)
    text = '<call>look«{"text": "a » b", "count": 3}»'
    message = Message(tool_calls=(ToolCall("look", '{"text": "a » b", "count": 3}'),))
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)
    assert not plan.constraint.grammar.accepts(text.replace("3", "null"))
    assert plan.parse(text) == message
    assert plan.write(message) == text
    assert write_freely(style.wire, message) == text


SOURCE = Path(toolgram.__file__).parent


def classes_of(folder: Path) -> set[str]:
    """The names of the classes of a folder that a value may be told apart by, states of a reader aside."""
    trees = (ast.parse(path.read_text("utf-8")) for path in folder.rglob("*.py"))
    found = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return {name for name in found if not name.startswith("_")} - {"Status", "Expected"}


def asks_for(tree: ast.AST) -> set[tuple[str, int]]:
    """The classes that code asks whether a value is of, and where."""
    found: list[tuple[ast.AST, int]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("isinstance" | "issubclass"), [_, kinds]):
                found += [(each, node.lineno) for each in ast.walk(kinds)]
            case ast.MatchClass(kind):
                found.append((kind, node.lineno))
            case ast.Compare(ast.Call(ast.Name("type"))):
                found += [(each, node.lineno) for other in node.comparators for each in ast.walk(other)]
            case _:
                pass
    names = ((each.id if isinstance(each, ast.Name) else getattr(each, "attr", ""), line) for each, line in found)
    return {(name, line) for name, line in names if name}


def test_nobody_outside_asks_which_encoding_it_is() -> None:
    encodings = SOURCE / "wire/encodings"
    classes = classes_of(encodings)
    assert {"Encoding", "Tagged", "Elements", "RawValue", "TaggedReader", "AnyEncoding"} <= classes
    asked = [
        f"{path.relative_to(SOURCE)}:{line} asks for {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.is_relative_to(encodings)
        for name, line in sorted(asks_for(ast.parse(path.read_text("utf-8"))))
        if name in classes
    ]
    assert not asked


@pytest.mark.parametrize(
    "code",
    ["isinstance(x, Tagged)", "isinstance(x, a.Tagged | B)", "match x:\n case Tagged(): pass", "type(x) is Tagged"],
)
def test_whoever_asks_is_found(code: str) -> None:
    assert "Tagged" in {name for name, _ in asks_for(ast.parse(code))}
