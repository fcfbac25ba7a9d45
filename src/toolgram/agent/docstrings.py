"""What a docstring says of a function and of its parameters, in Google's, NumPy's or Sphinx's way of writing."""

from __future__ import annotations

from collections.abc import Mapping

from toolgram.errors import needing


def described(text: str) -> tuple[str, Mapping[str, str]]:
    """What the function does and returns, and a description for each parameter that has one.

    `text` is a docstring as `inspect.getdoc` cleans it. Where it has no section of parameters, it is as a whole what
    the function does. Raises MissingPackage.
    """
    if not text:
        return "", {}
    with needing("agent", "a docstring"):  # a function without one does without
        import docstring_parser
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text, {}
    if not parsed.params:
        return text, {}
    parameters = {
        name.strip(): entry.description
        for entry in parsed.params
        if entry.description
        for name in entry.arg_name.split(",")  # NumPy describes several at once: "x, y : float"
    }
    does = [(parsed.description or "").strip()]
    if parsed.returns and parsed.returns.description:  # a model that calls it is to read what it returns
        does.append(f"Returns: {parsed.returns.description}")
    return "\n\n".join(filter(None, does)), parameters
