"""What docstrings say of tools."""

from __future__ import annotations

import sys
from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from toolgram.agent import tool_of
from toolgram.errors import MissingPackage


class Place(BaseModel):
    """Somewhere."""

    name: str


GOOGLE = """Get the weather.

Of many days: as you like.

Args:
    city: The name of the city,
        as a person says it.
    days (int, optional): How many days.
        Defaults to 3.

Returns:
    What the weather will be.

Raises:
    ValueError: Never.
"""
NUMPY = """Get the weather.

Of many days: as you like.

Parameters
----------
city : str
    The name of the city,
    as a person says it.
days, hours : int, optional
    How many days.
    Defaults to 3.

Returns
-------
str
    What the weather will be.
"""
REST = """Get the weather.

Of many days: as you like.

:param str city: The name of the city,
    as a person says it.
:param days: How many days.
    Defaults to 3.
:type days: int
:returns: What the weather will be.
:raises ValueError: Never.
"""


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_docstrings_describe_parameters(docstring: str) -> None:
    def tool(city: str, days: Annotated[int, Field(ge=1)] = 3) -> None: ...

    tool.__doc__ = docstring
    made = tool_of(tool)
    assert made.description == ("Get the weather.\n\nOf many days: as you like.\n\nReturns: What the weather will be.")
    assert {name: each["description"] for name, each in made.parameters["properties"].items()} == {
        "city": "The name of the city,\nas a person says it.",
        "days": "How many days.\nDefaults to 3.",
    }


BESIDE = """Get the weather.

Args:
    city: Its name.

Keyword Args:
    days: How many days.

Note:
    Only of Europe.
Ask once: it is slow.

Returns:
    What it will be.

Say which day.
"""
NUMPY_BESIDE = """Get the weather.

Parameters
----------
city : str
    Its name.
days : int
    How many days.

Notes
-----
Only of Europe.
"""


@pytest.mark.parametrize(
    ("docstring", "says"),
    [
        (
            BESIDE,
            "Get the weather.\n\nNote:\n    Only of Europe.\nAsk once: it is slow.\n\nSay which day.\n\n"
            "Returns: What it will be.",
        ),
        (NUMPY_BESIDE, "Get the weather.\n\nNotes: Only of Europe."),
    ],
    ids=["google", "numpy"],
)
def test_what_is_said_beside_the_sections_is_told_too(docstring: str, says: str) -> None:
    def tool(city: str, *, days: int = 3) -> None: ...

    tool.__doc__ = docstring
    made = tool_of(tool)
    assert made.description == says
    described = {name: each["description"] for name, each in made.parameters["properties"].items()}
    assert described == {"city": "Its name.", "days": "How many days."}


@pytest.mark.parametrize(
    "docstring", ["Look: now.\n\nNote: it\n    is so.", "Look.\n\nReturns:\n    What is seen.", "-", ":"]
)
def test_a_docstring_without_parameters_is_the_description_as_it_is(docstring: str) -> None:
    def tool(city: str) -> None: ...

    tool.__doc__ = docstring
    assert tool_of(tool).description == docstring


def test_what_stands_nearest_describes_a_parameter() -> None:
    def tool(
        a: Annotated[str, Field(description="by Field"), "by text"], b: Annotated[str, "by text"], c: str, d: Place
    ) -> None:
        """Do it.

        Args:
            a: by docstring
            b: by docstring
            c: by docstring
            d: by docstring
        """

    properties = tool_of(tool).parameters["properties"]
    assert {name: each["description"] for name, each in properties.items()} == {
        "a": "by Field",
        "b": "by text",
        "c": "by docstring",
        "d": "by docstring",
    }


def test_without_a_parser_a_docstring_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docstring_parser", None)

    def silent(city: str) -> None: ...

    def documented(city: str) -> None:
        """Do it."""

    assert tool_of(silent).description == ""
    with pytest.raises(MissingPackage, match=r"pip install 'toolgram\[agent\]'"):
        tool_of(documented)
