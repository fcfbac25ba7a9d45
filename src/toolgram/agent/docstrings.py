"""What a docstring says of a function and of its parameters, in Google's, NumPy's or Sphinx's way of writing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from toolgram.errors import needing

if TYPE_CHECKING:
    from docstring_parser import Docstring
    from docstring_parser.google import GoogleParser

_KEYWORDS = ("Keyword Args", "Keyword Arguments", "Other Parameters")
_TOLD = ("notes", "warnings")  # of NumPy's sections, those that say how a function is to be used


def described(text: str) -> tuple[str, Mapping[str, str]]:
    """What the function does and returns, notes on it too, and a description for each parameter that has one.

    `text` is a docstring as `inspect.getdoc` cleans it. Where it has no section of parameters, it is as a whole what
    the function does. Raises MissingPackage.
    """
    if not text:
        return "", {}
    with needing("agent", "a docstring"):  # a function without one does without
        import docstring_parser
    try:
        parsed = docstring_parser.parse(text)
        if parsed.style is docstring_parser.DocstringStyle.GOOGLE:
            parsed = _google().parse(text)
    except docstring_parser.ParseError:
        return text, {}
    if not parsed.params:
        return text, {}
    parameters = {
        name.strip(" `*"): entry.description
        for entry in parsed.params
        if entry.description
        for name in entry.arg_name.split(",")  # NumPy describes several at once: "x, y : float"
    }
    does = [(parsed.description or "").strip(), *_beside(parsed, text)]
    if parsed.returns and parsed.returns.description:  # a model that calls it is to read what it returns
        does.append(f"Returns: {parsed.returns.description}")
    return "\n\n".join(filter(None, does)), parameters


def _google() -> GoogleParser:
    """A parser that knows a second list of parameters too."""
    from docstring_parser.google import DEFAULT_SECTIONS, GoogleParser, Section, SectionType

    return GoogleParser([*DEFAULT_SECTIONS, *(Section(title, "param", SectionType.MULTIPLE) for title in _KEYWORDS)])


def _beside(parsed: Docstring, text: str) -> Iterator[str]:
    """What is said beside the description and the sections that are read: notes, and text that follows a section."""
    from docstring_parser import DocstringStyle
    from docstring_parser.google import DEFAULT_SECTIONS

    kinds = ((next(iter(each.args), ""), each.description) for each in parsed.meta)
    yield from (f"{kind.capitalize()}: {said}" for kind, said in kinds if kind in _TOLD and said)
    if parsed.style is not DocstringStyle.GOOGLE:
        return
    known = [str(section.title) for section in DEFAULT_SECTIONS]  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    titles = {f"{title}:" for title in (*_KEYWORDS, *known)}
    begun = is_read = False
    said: list[str] = []
    for line in text.splitlines():
        if line.rstrip() in titles:
            begun = is_read = True
        elif re.match(r"\S", line):
            is_read = False
        if begun and not is_read:
            said.append(line)
    yield "\n".join(said).strip()
