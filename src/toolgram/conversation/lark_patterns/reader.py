"""Reads a grammar in Lark."""

from __future__ import annotations

import re
from typing import NoReturn

from toolgram.conversation.lark_patterns.common import COMMON
from toolgram.conversation.lark_patterns.text import pattern_of_range, pattern_of_regex, pattern_of_string, unquoted
from toolgram.conversation.lark_patterns.tree import Choice, LarkGrammar, Name, Node, Pattern, Repeat, Sequence
from toolgram.errors import GrammarError

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\f\r]+|//[^\n]*|\#[^\n]*)
    |(?P<line>\n(?:[ \t\f\r\n]|//[^\n]*\n|\#[^\n]*\n)*)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?)
    |(?P<regex>/(?!/)(?:\\.|[^/\\\n])+/[imslux]*)
    |(?P<name>_?[A-Za-z][A-Za-z0-9_]*|_[A-Za-z0-9_]*)
    |(?P<number>\d+)
    |(?P<directive>%[a-z]+)
    |(?P<sign>->|\.\.|[:|()\[\]*+?~.,!{}-])
    """,
    re.VERBOSE,
)
_MOST_DIGITS = 9
_OPERATORS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def read(text: str) -> LarkGrammar:
    """The definitions of a grammar; aliases, priorities and marks for the tree are read past.

    Raises GrammarError, with the offset, for what is malformed or not known.
    """
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._kind = ""
        self._said = ""
        self._begin = 0
        self._definitions: dict[str, Node] = {}
        self._ignored: list[Node] = []
        self._next()

    def read(self) -> LarkGrammar:
        while self._kind != "end":
            if self._kind == "directive":
                self._directive()
            elif self._kind != "line":
                self._definition()
            if self._kind not in ("line", "end"):
                self._fail("expected the end of the line")
            self._next()
        return LarkGrammar(self._definitions, tuple(self._ignored))

    def _directive(self) -> None:
        match self._said:
            case "%ignore":
                self._next()
                self._ignored.append(self._options())
            case "%import":
                self._next()
                self._import()
            case other:
                self._fail(f"{other} is not read: only %ignore and %import common.… are")

    def _import(self) -> None:
        if self._said != "common":
            self._fail("only what is in common can be imported")
        self._next()
        if self._takes("."):
            begin = self._begin
            name = self._expect("name")
            self._imported(name, self._expect("name") if self._takes("->") else name, begin)
            return
        self._sign("(")
        while True:
            begin = self._begin
            name = self._expect("name")
            self._imported(name, name, begin)
            if not self._takes(","):
                break
        self._sign(")")

    def _imported(self, name: str, called: str, begin: int) -> None:
        if name not in COMMON:
            self._fail(f"there is no {name} in common: {', '.join(COMMON)}", begin)
        self._define(called, Pattern(COMMON[name]), begin)

    def _definition(self) -> None:
        while self._kind == "sign" and self._said in "!?":
            self._next()
        begin = self._begin
        name = self._expect("name")
        if self._takes("."):
            self._takes("-")
            self._expect("number")
        if self._said == "{":
            self._fail("templates are not read")
        self._sign(":")
        self._define(name, self._options(), begin)

    def _define(self, name: str, node: Node, begin: int) -> None:
        if name in self._definitions:
            self._fail(f"{name} is defined twice", begin)
        self._definitions[name] = node

    def _options(self) -> Node:
        options = [self._option()]
        while self._takes("|"):
            options.append(self._option())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _option(self) -> Node:
        items: list[Node] = []
        while self._kind in ("string", "regex", "name") or (self._kind == "sign" and self._said in "(["):
            items.append(self._repeated(self._item()))
        if self._takes("->"):
            self._expect("name")
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _repeated(self, item: Node) -> Node:
        while True:
            if self._kind == "sign" and self._said in _OPERATORS:
                item = Repeat(item, *_OPERATORS[self._said])
                self._next()
            elif self._takes("~"):
                low = self._count()
                high = self._count() if self._takes("..") else low
                if high < low:
                    self._fail("the highest count is below the lowest")
                item = Repeat(item, low, high)
            else:
                return item

    def _count(self) -> int:
        begin = self._begin
        said = self._expect("number")
        if len(said) > _MOST_DIGITS:
            self._fail(f"a count has more than {_MOST_DIGITS} digits", begin)
        return int(said)

    def _item(self) -> Node:
        begin, said = self._begin, self._said
        match self._kind:
            case "name":
                self._next()
                return Name(said, begin)
            case "regex":
                self._next()
                return Pattern(pattern_of_regex(said, begin))
            case "string":
                self._next()
                if not self._takes(".."):
                    return Pattern(pattern_of_string(said, begin))
                return Pattern(pattern_of_range(unquoted(said, begin), unquoted(self._expect("string"), begin), begin))
            case _:
                self._next()
                inner = self._options()
                self._sign(")" if said == "(" else "]")
                return inner if said == "(" else Repeat(inner, 0, 1)

    def _next(self) -> None:
        while True:
            self._begin = self._at
            if self._at >= len(self._text):
                self._kind, self._said = "end", ""
                return
            found = _TOKEN.match(self._text, self._at)
            if found is None or found.lastgroup is None:
                self._fail("this is not Lark")
            self._at = found.end()
            continued = found.lastgroup == "line" and self._text.startswith("|", self._at)
            if found.lastgroup != "space" and not continued:
                self._kind, self._said = found.lastgroup, found[0]
                return

    def _takes(self, sign: str) -> bool:
        found = self._kind == "sign" and self._said == sign
        if found:
            self._next()
        return found

    def _sign(self, sign: str) -> None:
        if not self._takes(sign):
            self._fail(f"expected {sign}")

    def _expect(self, kind: str) -> str:
        said = self._said
        if self._kind != kind:
            self._fail(f"expected a {kind}")
        self._next()
        return said

    def _fail(self, reason: str, position: int | None = None) -> NoReturn:
        raise GrammarError(reason, self._begin if position is None else position)
