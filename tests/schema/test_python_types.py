"""Python types as JSON Schemas, and JSON back to their values."""

from __future__ import annotations

import gc
import json
import re
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import (
    UUID4,
    AliasChoices,
    AliasPath,
    Base64Bytes,
    Base64UrlBytes,
    BaseModel,
    ConfigDict,
    Field,
    FileUrl,
    HttpUrl,
    IPvAnyAddress,
    NaiveDatetime,
    WebsocketUrl,
    computed_field,
    create_model,
    field_validator,
)

from toolgram import InvalidOutput, schema_grammar
from toolgram.schema.python_types import NoSchema, PythonType, python_type

T = TypeVar("T")


class Level(Enum):
    LOW = 1


class Unit(Enum):
    C = "celsius"
    F = "fahrenheit"


class Cat(BaseModel):
    """An animal."""

    kind: Literal["cat"] = "cat"
    lives: Annotated[int, Field(ge=0, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Box(BaseModel, Generic[T]):
    item: T


class Titled(BaseModel):
    model_config = ConfigDict(title="What is told of a title")
    title: str
    year: int = Field(title="When it came out")


class Aliased(BaseModel):
    first: str = Field(alias="firstName")
    second: str = Field(default="", validation_alias=AliasChoices("secondName", "second"), serialization_alias="other")

    @computed_field
    @property
    def both(self) -> str:
        return self.first + self.second


@dataclass
class Pair:
    unit: Unit
    box: Box[int] | None = None
    far: float = float("inf")


class Defaults(BaseModel):
    """Of which null is one where it may be written, and a number is a number."""

    count: int = None  # pyright: ignore[reportAssignmentType] - as people write it
    note: str | None = None
    price: Decimal = Decimal("1.50")


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
CAT = {
    "type": "object",
    "properties": {
        "kind": {"const": "cat", "type": "string", "default": "cat"},
        "lives": {"type": "integer", "maximum": 9, "minimum": 0},
    },
    "required": ["lives"],
    "description": "An animal.",
}
TOLD_APART = CAT | {"required": ["kind", "lives"]}  # by the kind, which pydantic then wants to see
DOG = {
    "type": "object",
    "properties": {"kind": {"const": "dog", "type": "string"}, "name": {"type": "string"}},
    "required": ["kind", "name"],
}
NODE = {
    "type": "object",
    "properties": {
        "value": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
    },
    "required": ["value"],
}
SCHEMAS: list[tuple[Any, dict[str, Any]]] = [
    (int, {"type": "integer"}),
    (Cat, CAT),
    (Unit, {"enum": ["celsius", "fahrenheit"], "type": "string"}),
    (Node, {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}}),
    (Pet, {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}], "$defs": {"Cat": TOLD_APART, "Dog": DOG}}),
    (
        Titled,
        {
            "type": "object",
            "properties": {"title": {"type": "string"}, "year": {"type": "integer", "title": "When it came out"}},
            "required": ["title", "year"],
            "title": "What is told of a title",
        },
    ),
    (
        Aliased,
        {
            "type": "object",
            "properties": {"firstName": {"type": "string"}, "secondName": {"type": "string", "default": ""}},
            "required": ["firstName"],
        },
    ),
    (
        Pair,
        {
            "type": "object",
            "properties": {
                "unit": {"$ref": "#/$defs/Unit"},
                "box": {"anyOf": [{"$ref": "#/$defs/Box_int_"}, {"type": "null"}], "default": None},
                "far": {"type": "number"},
            },
            "required": ["unit"],
            "$defs": {
                "Unit": {"enum": ["celsius", "fahrenheit"], "type": "string"},
                "Box_int_": {"type": "object", "properties": {"item": {"type": "integer"}}, "required": ["item"]},
            },
        },
    ),
    (Decimal, {"type": "number"}),
    (Annotated[Decimal, Field(ge=0, decimal_places=2)], {"type": "number", "minimum": 0.0, "multipleOf": 0.01}),
    (
        Annotated[Decimal, Field(max_digits=5, decimal_places=2, gt=0)],
        {"type": "number", "exclusiveMinimum": 0.0, "multipleOf": 0.01, "exclusiveMaximum": 1000},
    ),
    (
        dict[int, str],
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "propertyNames": {"pattern": "^(?:0|-?[1-9][0-9]{0,18})$"},
        },
    ),
    (
        Defaults,
        {
            "type": "object",
            "properties": {
                "count": {"type": "integer"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "price": {"type": "number", "default": 1.5},
            },
            "description": "Of which null is one where it may be written, and a number is a number.",
        },
    ),
]


@pytest.mark.parametrize(("hint", "schema"), SCHEMAS, ids=lambda value: str(value)[:40])
def test_a_schema_says_what_is_validated_and_nothing_twice(hint: Any, schema: dict[str, Any]) -> None:
    made = python_type(hint).schema
    assert made == schema
    assert list(made) == list(schema)


def test_values_are_those_that_pydantic_makes() -> None:
    assert python_type(list[Pet]).read('[{"kind": "dog", "name": "Rex"}, {"kind": "cat", "lives": 7}]') == [
        Dog(kind="dog", name="Rex"),
        Cat(lives=7),
    ]
    assert python_type(Pair).read('{"unit": "celsius", "box": {"item": 3}}') == Pair(Unit.C, Box[int](item=3))
    assert python_type(NaiveDatetime).read('"2024-02-29T23:59:00"') == datetime(2024, 2, 29, 23, 59)
    assert python_type(Decimal).read("0.1") == Decimal("0.1")
    assert python_type(dict[int, str]).read('{"-1": "a"}') == {-1: "a"}


class Not(BaseModel):
    op: Literal["not"] = "not"
    of: Query


class All(BaseModel):
    op: Literal["all", "any"] = "all"
    of: list[Query | None] = []


Query = Annotated[Not | All, Field(discriminator="op")]
Not.model_rebuild()
All.model_rebuild()


class Siamese(BaseModel):
    kind: Literal["cat"] = "cat"
    breed: Literal["siamese"] = "siamese"
    toms: list[Annotated[Siamese | Manx, Field(discriminator="breed")]] = []


class Manx(BaseModel):
    kind: Literal["cat"] = "cat"
    breed: Literal["manx"] = "manx"


Siamese.model_rebuild()
Bred = Annotated[Siamese | Manx, Field(discriminator="breed")]
Owned = Annotated[Bred | Dog, Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("hint", "text", "without"),
    [
        (Pet, '{"kind": "cat", "lives": 7}', '{"lives": 7}'),
        (list[Query], '[{"op": "not", "of": {"op": "all", "of": [null]}}]', '[{"op": "not", "of": {"of": [null]}}]'),
        (Pet | None, '{"kind": "cat", "lives": 7}', '{"lives": 7}'),
        (
            Siamese,
            '{"breed": "siamese", "toms": [{"breed": "siamese"}]}',
            '{"breed": "siamese", "toms": [{}]}',
        ),
        (Owned, '{"kind": "cat", "breed": "manx"}', '{"breed": "manx"}'),
        (Annotated[Decimal, Field(max_digits=5, decimal_places=2)], "-999.99", "1000"),
        (Annotated[Decimal, Field(max_digits=3)], "999", "1000"),
        (Annotated[Decimal, Field(max_digits=3, decimal_places=2, le=5)], "5", "5.01"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_grammar_admits_what_pydantic_takes(hint: Any, text: str, without: str) -> None:
    kind = python_type(hint)
    grammar = schema_grammar(kind.schema)
    assert grammar.accepts(text)
    assert not grammar.accepts(without)
    kind.read(text)
    with pytest.raises(InvalidOutput):
        kind.read(without)


TEXTS = (
    *(
        "Müller",
        "Ärger",
        "abc",
        "foobar",
        "foox",
        "日本",
        "é",
        "e\u0301",
        "می\u200cخواهم",
        "Ⓐ",
        "Ⅷ",
        "²",
        "_",
        "a_b",
        "ς",
    ),
    *("1234", "٣", "5", "+5", "555-1234", "a", "b", "&", "]", "[", "\\", "-", "a[b", "A😀", "j@ü.de", "x y"),
    *("\r", "\n", "\u2028", "\x85x", "\ufeffx", "\u3000x", "", " x"),
)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            r"^\w+$",
            r"^\W+$",
            r"^\bÄrger\b$",
            r"^\bfoo\B",
            r"^\<abc\>$",
            r"^.$",
            r"^\s\S$",
            r"^[^\s@]+$",
            r"^\D$",
            r"^[^\d]$",
        ),
        *(
            r"^[^\W\d_]+$",
            r"^[\w.-]+@[\w-]+\.\w+$",
            r"^[\w\u200c]+$",
            r"\w",
            r"^[^]a]$",
            r"^[]a]$",
            r"^a\[b$",
            r"^[\[\]]$",
        ),
        *(
            r"\A[0-9]{4}\z",
            r"^(?P<year>[0-9]{4})$",
            r"^[[:alpha:]]+$",
            r"^[[:^alpha:]]$",
            r"^\pL+$",
            r"^\x{41}\U0001F600$",
        ),
        *(
            r"^[]-a]$",
            r"^[^]-a]$",
            r"^\b{start}a$",
            r"^[a-z&&[^aeiou]]+$",
            r"^[a-z--[a]]+$",
            r"^[a-z[0-9]]+$",
            r"(?i)^ABC$",
        ),
    ],
)
def test_patterns_are_those_of_pydantic(pattern: str) -> None:
    """Or are not enforced, which is told."""
    kind = python_type(Annotated[str, Field(pattern=pattern)])
    grammar = schema_grammar(kind.schema, mode="relaxed")
    for text in TEXTS:
        written = json.dumps(text, ensure_ascii=False)
        try:
            kind.read(written)
        except InvalidOutput:
            assert grammar.relaxations or not grammar.accepts(written), text
        else:
            assert grammar.accepts(written), text


def test_a_pattern_of_many_letters_is_no_larger_than_it_need_be() -> None:
    """Where it counts them in several loops, its length is left out, which is told."""
    kind = python_type(Annotated[str, Field(pattern=r"^\w+(\.\w+)*$", max_length=64)])
    grammar = schema_grammar(kind.schema, mode="relaxed")
    assert [told.keyword for told in grammar.relaxations] == ["maxLength"]
    assert all(len(grammar.to(dialect)) < 50_000 for dialect in ("lark", "ebnf", "gbnf"))
    counted = python_type(Annotated[str, Field(pattern=r"^\w+$", max_length=64)])
    assert schema_grammar(counted.schema, mode="relaxed").relaxations == ()


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"^\w+$", ["Müller", "日本"]),
        (r"^a\<\Z", ["a<"]),
        (r"\A(?P<n>[0-9])$", ["7"]),
    ],
)
def test_patterns_of_pythons_re_are_read_as_it_reads_them(pattern: str, texts: list[str]) -> None:
    class Model(BaseModel):
        model_config = ConfigDict(regex_engine="python-re")
        text: Annotated[str, Field(pattern=pattern)]

    compiled = python_type(Annotated[str, Field(pattern=re.compile(pattern))])
    for text in texts:
        assert schema_grammar(compiled.schema).accepts(json.dumps(text, ensure_ascii=False))
        assert compiled.read(json.dumps(text)) == text
        written = json.dumps({"text": text}, ensure_ascii=False)
        assert schema_grammar(python_type(Model).schema).accepts(written)
        assert python_type(Model).read(written).text == text


def test_the_digits_of_a_pattern_are_the_ten_where_nothing_else_is_of_unicode() -> None:
    assert python_type(Annotated[str, Field(pattern=r"^\d{3}$")]).schema["pattern"] == r"^\d{3}$"
    assert python_type(Annotated[str, Field(pattern=re.compile(r"^\w+$"))]).schema["pattern"] == r"(?u)^\w+$"
    flags = python_type(Annotated[str, Field(pattern=re.compile("^abc$", re.IGNORECASE))])
    assert [told.keyword for told in schema_grammar(flags.schema, mode="relaxed").relaxations] == ["pattern"]


@pytest.mark.parametrize(
    ("hint", "text", "other"),
    [
        (IPvAnyAddress, '"::1"', '"localhost"'),
        (Annotated[IPvAnyAddress, Field(description="Of the host.")], '"10.0.0.1"', '"10.0.0"'),
        (Base64Bytes, '"aGk="', '"aGk"'),
        (Annotated[Base64Bytes, Field(max_length=3)], '"aGk="', '"aGk"'),
        (dict[IPvAnyAddress, int], '{"::1": 1}', '{"x": 1}'),
        (Base64UrlBytes, '"_-8="', '"_-8"'),
        (HttpUrl, '"https://a.example/b?c"', '"ftp://a.example"'),
        (WebsocketUrl, '"wss://a.example"', '"https://a.example"'),
        (FileUrl, '"file:///etc/hosts"', '"http://a.example"'),
    ],
    ids=str,
)
def test_types_of_pydantics_own_are_enforced(hint: Any, text: str, other: str) -> None:
    kind = python_type(hint)
    grammar = schema_grammar(kind.schema, mode="relaxed")
    kind.read(text)
    assert grammar.accepts(text)
    with pytest.raises(InvalidOutput):
        kind.read(other)
    assert not grammar.accepts(other)


class Renamed(BaseModel):
    width: int = Field(validation_alias=AliasPath("w"))


class Within(BaseModel):
    width: int = Field(validation_alias=AliasPath("size", "width"))


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_name=True)
    width: int = Field(validation_alias=AliasPath("size", "width"))


class Either(BaseModel):
    width: int = Field(validation_alias=AliasChoices(AliasPath("size", "width"), "w"))


def test_a_field_that_is_read_from_within_another_is_refused() -> None:
    with pytest.raises(NoSchema, match="a field that is read from size/width: make what it is in a model of its own"):
        python_type(Within)
    with pytest.raises(NoSchema, match="read from w:"):
        python_type(Renamed)
    for hint, text in ((ByName, '{"width": 3}'), (Either, '{"w": 3}')):
        assert schema_grammar(python_type(hint).schema).accepts(text)
        assert python_type(hint).read(text).width == 3


class Careless(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def looked_up(cls, number: int) -> int:
        return {2: 2}[number]


def test_what_a_types_own_code_raises_is_what_it_refuses() -> None:
    assert python_type(Careless).read('{"number": 2}').number == 2
    with pytest.raises(InvalidOutput, match="the type's own code raised KeyError: 1"):
        python_type(Careless).read('{"number": 1}')


# A type, a text that is one, and one that is none.
KEYS: list[tuple[Any, str, str]] = [
    (dict[float, int], '{"1.5": 2}', '{"a": 2}'),
    (dict[Decimal, int], '{"-0.5": 2}', '{"": 2}'),
    (dict[bool, int], '{"true": 2}', '{"maybe": 2}'),
    (dict[Annotated[str, Field(pattern="^x")], int], '{"x1": 2}', '{"y1": 2}'),
    (Counter[int], '{"3": 2}', '{"a": 2}'),
    (OrderedDict[int, int], '{"3": 2}', '{"a": 2}'),
    (dict[UUID4, int], '{"12345678-1234-4678-9234-567812345678": 2}', '{"12345678-1234-1678-9234-567812345678": 2}'),
]


@pytest.mark.parametrize(("hint", "text", "other"), KEYS, ids=lambda value: str(value)[:40])
def test_keys_are_those_that_pydantic_takes(hint: Any, text: str, other: str) -> None:
    kind = python_type(hint)
    grammar = schema_grammar(kind.schema, mode="relaxed")
    assert grammar.accepts(text)
    assert not grammar.accepts(other)
    assert list(kind.read(text).values()) == [2]
    with pytest.raises(InvalidOutput):
        kind.read(other)


@pytest.mark.parametrize("keys", [Literal[1, 2], Level, tuple[int, int]])
def test_keys_that_no_text_stands_for_are_refused(keys: Any) -> None:
    with pytest.raises(NoSchema, match="the keys of an object are texts, and none is"):
        python_type(dict[keys, str])


class Deep(BaseModel):
    pets: list[Pet]
    names: dict[str, int]
    where: int | Node | None = None


WRONG: list[tuple[str, list[tuple[str, str]]]] = [
    ("", [("", "Invalid JSON: EOF while parsing a value at line 1 column 0")]),
    ('{"pets": [], "na', [("", "Invalid JSON: EOF while parsing a string at line 1 column 16")]),
    ("[]", [("", "Input should be an object")]),
    ("{}", [("/pets", "Field required"), ("/names", "Field required")]),
    ('{"pets": [{"kind": "cat"}], "names": {}}', [("/pets/0/lives", "Field required")]),
    (
        '{"pets": [{"kind": "cow"}], "names": {}}',
        [("/pets/0", "Input tag 'cow' found using 'kind' does not match any of the expected tags: 'cat', 'dog'")],
    ),
    (
        '{"pets": [], "names": {"a/b~c": "x"}}',
        [("/names/a~1b~0c", "Input should be a valid integer, unable to parse string as an integer")],
    ),
    (
        '{"pets": [], "names": {}, "where": {"value": 1, "children": [{"value": "x"}]}}',
        [
            ("/where", "Input should be a valid integer"),
            ("/where/children/0/value", "Input should be a valid integer, unable to parse string as an integer"),
        ],
    ),
]


@pytest.mark.parametrize(("text", "problems"), WRONG)
def test_problems_have_pointers_without_the_tags_of_unions(text: str, problems: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidOutput) as error:
        python_type(Deep).read(text)
    assert list(error.value.problems) == problems
    assert (error.value.pointer, error.value.reason) == problems[0]
    assert str(error.value) == "; ".join(f"{pointer or '(root)'}: {reason}" for pointer, reason in problems)


def test_of_many_problems_a_message_has_the_first() -> None:
    with pytest.raises(InvalidOutput) as error:
        python_type(list[int]).read(str(["x"] * 100).replace("'", '"'))
    assert len(error.value.problems) == 100
    assert str(error.value).endswith("; and 90 more")
    assert len(str(error.value)) < 1000


BROKEN = Annotated[str, Field(pattern="a{,3}")]


@pytest.mark.parametrize("hint", [Callable[[], int], "Nowhere", list["Nowhere"], 7, object(), BROKEN], ids=type)  # noqa: F821 - the case
def test_what_has_no_schema_is_refused_in_a_line(hint: Any) -> None:
    with pytest.raises(NoSchema) as error:
        python_type(hint)
    assert "\n" not in str(error.value)


class Sky(Enum):
    clear = "clear"


class Spot(Enum):
    home = (0, 0)


@pytest.mark.parametrize("hint", [Literal[Sky.clear], list[Literal[Sky.clear]] | None, Spot, dict[str, Spot]])
def test_members_that_no_json_stands_for_are_refused_by_name(hint: Any) -> None:
    with pytest.raises(NoSchema, match=r"Sky\.clear|Spot\.home"):
        python_type(hint)
    assert python_type(Sky).read('"clear"') is Sky.clear


def test_types_are_made_once_and_equal_ones_in_their_own_order() -> None:
    assert python_type(list[Cat]) is python_type(list[Cat])
    one, other = python_type(int | str), python_type(str | int)
    assert [option["type"] for option in one.schema["anyOf"]] == ["integer", "string"]
    assert [option["type"] for option in other.schema["anyOf"]] == ["string", "integer"]


def test_a_type_that_cannot_be_hashed_is_taken() -> None:
    hint: Any = Annotated
    assert python_type(hint[int, []]).schema == {"type": "integer"}


def test_types_are_not_kept_for_ever() -> None:
    made = [create_model(f"Made{number}", number=(int, number)) for number in range(200)]
    first = weakref.ref(made[0])
    assert [python_type(each).name for each in made][:2] == ["Made0", "Made1"]
    del made
    gc.collect()
    assert first() is None


def test_a_type_is_called_by_its_name() -> None:
    hints: tuple[Any, ...] = (Cat, Unit, Box[int], list[int], int | None)
    assert [PythonType.of(hint).name for hint in hints] == ["Cat", "Unit", "Box[int]", "answer", "answer"]
