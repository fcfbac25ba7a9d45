r"""Patterns of Python types, which pydantic gives to the `regex` crate of Rust, as those of JSON Schema.

There `\w`, `\b`, `\s` and `.` are of all of Unicode, which `(?u)` says of a pattern here (`regex_syntax`). So is `\d`,
but where nothing else differs, the ten digits of ASCII are what is meant.
"""

from __future__ import annotations

import re

_OUTSIDE = {
    r"\A": "^",
    r"\z": "$",
    r"\Z": "$",
    r"\a": r"\x07",
    r"\<": r"(?:(?<!\w)(?=\w))",
    r"\>": r"(?:(?<=\w)(?!\w))",
}
_OF_PYTHON = {r"\A": "^", r"\Z": "$", r"\a": r"\x07", "(?P": "(?"}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "word": "0-9A-Z_a-z",
    "xdigit": "0-9A-Fa-f",
}
_PIECE = re.compile(
    rf"\[:(?P<posix>{'|'.join(_POSIX)}):\]"
    r"|(?P<opened>\[\^?(?:\]-?)?)"  # a bracket that comes first is one of the class, and so is a dash behind it
    r"|(?P<half>\\b\{)"
    r"|(?P<of_sets>&&|--|~~)"
    r"|\\(?:x\{(?P<point>[0-9A-Fa-f]{1,6})\}|U(?P<long>[0-9A-Fa-f]{8})|(?P<property>[pP])(?P<short>[A-Z])|p\{[^}]*\}|.)"
    r"|\(\?P<(?P<name>\w+)>|.",
    re.DOTALL,
)
_UNICODE = re.compile(r"\\[wWsSDbB]|\.|\[\^[^\]]*\\d")
_NOT_READ = "(?s:{})"  # as the pattern, and not read: what it asks for is reported then


def of_python(pattern: str | re.Pattern[str]) -> str:
    """As `of_rust`, of a pattern that Python's `re` reads: it has neither the sets nor the escapes of Rust's own."""
    if isinstance(pattern, re.Pattern):
        if pattern.flags & ~re.UNICODE:
            return _NOT_READ.format(pattern.pattern)
        pattern = pattern.pattern
    return _marked(re.sub(r"\\.|\(\?P(?=<\w+>)", lambda found: _OF_PYTHON.get(found[0], found[0]), pattern))


def of_rust(pattern: str) -> str:
    """The pattern in ECMA-262 and `(?u)`; with a modifier, which is not read, where these have no such thing."""
    made, inside = list[str](), False  # of a class
    for piece in _PIECE.finditer(pattern):  # it matches any character
        if not inside:
            if piece["half"]:
                return _NOT_READ.format(pattern)
            inside = piece["opened"] is not None
            made.append(piece[0].replace("]", r"\]").replace("-", r"\-") if inside else _outside(piece))
        elif piece["opened"] or piece["of_sets"]:
            return _NOT_READ.format(pattern)
        else:
            inside = piece[0] != "]"
            made.append(_POSIX.get(piece["posix"]) or _escape(piece))
    return _marked("".join(made))


def _marked(written: str) -> str:
    written = written.removeprefix("(?u)")
    return f"(?u){written}" if _UNICODE.search(written) else written


def _outside(piece: re.Match[str]) -> str:
    return "(?:" if piece["name"] else _OUTSIDE.get(piece[0]) or _escape(piece)


def _escape(piece: re.Match[str]) -> str:
    if code := piece["point"] or piece["long"]:
        return rf"\u{{{int(code, 16):x}}}"
    return rf"\{piece['property']}{{{piece['short']}}}" if piece["short"] else piece[0]
