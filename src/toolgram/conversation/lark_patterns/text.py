"""Strings and regular expressions of Lark as regular expressions of ECMA-262."""

from __future__ import annotations

import re

from toolgram.errors import GrammarError

_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_SPECIAL = re.compile(r"[\\^$.*+?()[\]{}|/\-]")
_ANCHORS = ("\\A", "\\Z", "\\z")
_PIECE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[pP]\{[^}]{0,64}\}|.)|\[\^?|\(\?P<\w+>|.", re.DOTALL)
"""What a regular expression of Python or Rust is made of, as far as flags look at it."""


def unquoted(said: str, at: int) -> str:
    """The text of a string, which has no flags."""
    if said.endswith("i"):
        raise GrammarError("a range has no flags", at)
    return _text(said[1:-1], at)


def pattern_of_string(said: str, at: int) -> str:
    """What matches a string in its quotes; an `i` after them takes letters of both cases."""
    body, folded = (said[1:-2], True) if said.endswith("i") else (said[1:-1], False)
    return "".join([_both_cases(char) if folded else escaped(char) for char in _text(body, at)])


def pattern_of_range(first: str, last: str, at: int) -> str:
    """What matches one character of a range."""
    if len(first) != 1 or len(last) != 1 or first > last:
        raise GrammarError("a range goes from one character to a later one", at)
    return f"[{escaped(first)}-{escaped(last)}]"


def pattern_of_regex(said: str, at: int) -> str:
    """What matches a regular expression between slashes, with the flags `i`, `s` and `u`."""
    body, _, flags = said[1:].rpartition("/")
    if unknown := set(flags) - set("isu"):
        raise GrammarError(f"the flag {min(unknown)} of a regular expression is not read", at)
    pieces: list[str] = []
    inside = False
    for piece in _PIECE.findall(body):
        if piece in _ANCHORS:
            raise GrammarError(f"{piece} is not read: a terminal is matched whole", at)
        if piece.startswith("(?P<"):
            piece = "("
        elif not inside and piece.startswith("["):
            inside = True
        elif piece == "]":
            inside = False
        elif piece == "." and not inside:
            piece = r"[\s\S]" if "s" in flags else r"[^\n]"
        elif "i" in flags and len(piece) == 1 and piece.isalpha():
            piece = piece.lower() + piece.upper() if inside else _both_cases(piece)
        pieces.append(piece)
    text = "".join(pieces)
    if "i" in flags:
        text = re.sub(r"([a-z])([A-Z])-([a-z])([A-Z])", r"\1-\3\2-\4", text)
    return f"(?:{text})"


def escaped(char: str) -> str:
    """What matches this character, in a class and outside."""
    if char == "\n":
        return "\\n"
    return f"\\{char}" if _SPECIAL.match(char) else char


def _both_cases(char: str) -> str:
    cases = sorted({char, char.lower(), char.upper()})
    return f"[{''.join(cases)}]" if len(cases) > 1 and all(len(case) == 1 for case in cases) else escaped(char)


def _text(body: str, at: int) -> str:
    def char(escape: re.Match[str]) -> str:
        if digits := escape[1] or escape[2] or escape[3]:
            return chr(int(digits, 16))
        if escape[4] not in _SHORT and escape[4].isalnum():
            raise GrammarError(f"there is no escape \\{escape[4]}", at)
        return _SHORT.get(escape[4], escape[4])

    return _ESCAPE.sub(char, body)
