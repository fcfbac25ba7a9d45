"""Reads GBNF as llama.cpp does (`src/llama-grammar.cpp`), and refuses what it refuses or hangs on.

Names of rules may have an underscore, as XGrammar takes them and vLLM's documents write them.
"""

from __future__ import annotations

import re
from typing import NoReturn

from toolgram.errors import GrammarError
from toolgram.grammar.ir import CharSet, Expr, Literal, Ref, Rules, Token, chars, choice, not_chars, repeat, seq
from toolgram.grammar.shape import left_recursion, shortest
from toolgram.grammar.walk import uses

MOST_REPEATS = 2000
"""llama.cpp refuses a repetition with a higher count."""

_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_COUNTS = re.compile(r"\{[ \t]*(\d+)[ \t]*(?:(,)[ \t]*(\d+)?[ \t]*)?\}")
_TOKEN = re.compile(r"<(?:\[(\d+)\]|[^<>\r\n]+)>")
_ESCAPE = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([nrt"\\\[\]-]))')
_SHORT = {"n": "\n", "r": "\r", "t": "\t"}
_OPERATORS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def read_gbnf(text: str) -> Rules:
    """The rules of a GBNF text, in its order. `<[id]>` and `<name>` become `Token`s whose text is what stands there.

    Raises GrammarError, with the offset, for what is malformed, a rule that is not defined or is defined twice, and
    left recursion.
    """
    return _Reader(text).read()


class _Reader:
    """Reads the text of one grammar from left to right; `read` gives its rules."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._defined: dict[str, int] = {}
        self._used: dict[str, int] = {}

    def read(self) -> Rules:
        rules: dict[str, Expr] = {}
        self._skip(_SPACE_AND_LINES)
        while self._at < len(self._text):
            begin = self._at
            name = self._expect(_NAME, "a rule's name")[0]
            if name in rules:
                self._fail(f"rule {name} is defined twice", begin)
            self._defined[name] = begin
            self._skip(_SPACE)
            self._expect(re.compile("::="), "::=")
            self._skip(_SPACE_AND_LINES)
            rules[name] = self._alternatives(nested=False)
            if self._at < len(self._text) and self._text[self._at] not in "\r\n":
                self._fail("expected the end of the line")
            self._skip(_SPACE_AND_LINES)
        self._check(rules)
        return rules

    def _check(self, rules: Rules) -> None:
        if "root" not in rules:
            self._fail("there is no rule root", 0)
        for name, begin in self._used.items():
            if name not in rules:
                self._fail(f"rule {name} is not defined", begin)
        if cycle := left_recursion(rules, shortest(rules, uses(rules))):
            self._fail(f"left recursion: {' → '.join(cycle)}", self._defined[cycle[0]])

    def _alternatives(self, nested: bool) -> Expr:
        options = [self._sequence(nested)]
        while self._peek() == "|":
            self._at += 1
            self._skip(_SPACE_AND_LINES)
            options.append(self._sequence(nested))
        return choice(*options)

    def _sequence(self, nested: bool) -> Expr:
        items: list[Expr] = []
        while (char := self._peek()) and char not in "|)\r\n":
            if char in "*+?{":
                if not items:
                    self._fail("there is nothing to repeat")
                items[-1] = repeat(items[-1], *self._counts())
            else:
                items.append(self._item())
            self._skip(_SPACE_AND_LINES if nested else _SPACE)
        return seq(*items)

    def _item(self) -> Expr:
        begin = self._at
        match self._peek():
            case '"':
                return self._literal()
            case "[":
                return self._char_class()
            case ".":
                self._at += 1
                return not_chars()
            case "<":
                token = self._expect(_TOKEN, "a token, as <[id]> or <text>")
                return Token(token[0], int(token[1]) if token[1] else None)
            case "(":
                return self._group()
            case _:
                name = self._expect(_NAME, "a literal, a class, a group or a rule's name")[0]
                self._used.setdefault(name, begin)
                return Ref(name)

    def _group(self) -> Expr:
        begin = self._at
        self._at += 1
        self._skip(_SPACE_AND_LINES)
        inner = self._alternatives(nested=True)
        if self._peek() != ")":
            self._fail("expected )" if self._peek() else "a group is not closed", self._at if self._peek() else begin)
        self._at += 1
        return inner

    def _counts(self) -> tuple[int, int | None]:
        begin = self._at
        if (operator := self._peek()) in _OPERATORS:
            self._at += 1
            return _OPERATORS[operator]
        found = self._expect(_COUNTS, "{m}, {m,} or {m,n}")
        low = int(found[1])
        high = low if found[2] is None else None if found[3] is None else int(found[3])
        if high is not None and high < low:
            self._fail("the highest count is below the lowest", begin)
        if max(low, high or 0) > MOST_REPEATS:
            self._fail(f"a count is above {MOST_REPEATS}", begin)
        return low, high

    def _literal(self) -> Expr:
        begin = self._at
        self._at += 1
        out: list[str] = []
        while (char := self._peek()) != '"':
            if not char:
                self._fail("a literal is not closed", begin)
            out.append(self._char())
        self._at += 1
        return Literal("".join(out))

    def _char_class(self) -> CharSet:
        begin = self._at
        self._at += 1
        negated = self._peek() == "^"
        self._at += negated
        pieces: list[tuple[int, int]] = []
        while (char := self._peek()) != "]":
            if not char:
                self._fail("a class is not closed", begin)
            pieces.append(self._range())
        if not pieces:
            self._fail("a class is empty", begin)
        self._at += 1
        return not_chars(*pieces) if negated else chars(*pieces)

    def _range(self) -> tuple[int, int]:
        begin = self._at
        low = high = ord(self._char())
        if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
            self._at += 1
            high = ord(self._char())
        if high < low:
            self._fail("a range is upside down", begin)
        return low, high

    def _char(self) -> str:
        begin = self._at
        char = self._peek()
        if char != "\\":
            self._at += 1
        else:
            escape = self._expect(_ESCAPE, 'an escape: \\n \\r \\t \\\\ \\" \\[ \\] \\- \\xNN \\uNNNN or \\UNNNNNNNN')
            digits = escape[1] or escape[2] or escape[3]
            if digits and int(digits, 16) > 0x10FFFF:
                self._fail("no such code point", begin)
            char = chr(int(digits, 16)) if digits else _SHORT.get(escape[4], escape[4])
        if "\ud800" <= char <= "\udfff":
            self._fail("a surrogate is not a character", begin)
        return char

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _expect(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if not found:
            self._fail(f"expected {what}")
        self._at = found.end()
        return found

    def _fail(self, reason: str, position: int | None = None) -> NoReturn:
        raise GrammarError(reason, self._at if position is None else position)
