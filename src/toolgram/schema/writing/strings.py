"""Strings between quotes as expressions: any, those of some lengths, of a language, and all but some.

Where a notation has two kinds of quotes, there is a `Strings` for each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from toolgram.errors import UnsupportedSchema
from toolgram.grammar.excepts import Letters, OtherTexts
from toolgram.grammar.ir import (
    NOTHING,
    CharSet,
    Choice,
    Except,
    Expr,
    Ref,
    Text,
    Token,
    choice,
    not_chars,
    repeat,
    seq,
)
from toolgram.grammar.regular import to_expr
from toolgram.grammar.regular.automata import Automaton, intersection
from toolgram.grammar.regular.languages import without
from toolgram.schema.writing.document_rules import DocumentRules
from toolgram.schema.writing.json_style import (
    QUOTES,
    Spelling,
    any_escape,
    escapes,
    quoted,
    raw_chars,
    writable,
)
from toolgram.schema.writing.plain_strings import one_of, plain_string

_SHARED_SIZE = 12  # a larger language gets a rule

Known = Callable[[Automaton, int, int | None], Expr | None]
"""The texts of a language that have so many characters, where it is known how they are written."""


@dataclass(slots=True)
class Languages:
    """The languages of one document as expressions, each written once."""

    rules: DocumentRules
    _texts: dict[Hashable, Expr] = field(default_factory=dict[Hashable, Expr])

    def written(
        self,
        automaton: Automaton,
        char: Callable[[CharSet], Expr],
        hint: str,
        lengths: tuple[int, int | None] = (0, None),
        known: Known | None = None,
        kind: Hashable = None,
    ) -> Expr:
        """The texts of a language, as `known` has them, if it does; rules are the same wherever the language is.

        Where characters are written in several ways, `kind` says in which.
        """
        key = (hint, automaton, *lengths) if kind is None else (hint, automaton, *lengths, kind)
        if key not in self._texts:
            count = itertools.count(1)

            def rule(_: str, make: Callable[[], Expr]) -> Ref:
                return self.rules.shared_later(f"{hint}-{next(count)}", make, key)

            body = known and known(automaton, *lengths)
            body = body or to_expr.expression(automaton, char, rule, hint, *lengths)
            shared = to_expr.size(body) > _SHARED_SIZE
            self._texts[key] = self.rules.shared(hint, lambda: body, key) if shared else body
        return self._texts[key]


@dataclass(slots=True)
class Strings:
    """Strings between the quotes of a spelling; `kind` is None for those that the document is written with."""

    spelling: Spelling
    rules: DocumentRules
    languages: Languages
    kind: str | None = None
    _chars: dict[CharSet, Expr] = field(default_factory=dict[CharSet, Expr])
    _other: dict[str, Expr] = field(default_factory=dict[str, Expr])  # ends of strings, by what they do not begin with

    def text(self, value: str) -> Expr:
        """This one."""
        encoding = self.spelling.encoding
        if not writable(value) or not encoding.can_quote(value):
            return NOTHING
        if encoding.escapes:
            return seq(quoted(value, self.spelling))
        return seq(Token(encoding.quote), value, Token(encoding.quote))

    def every(self, low: int = 0, high: int | None = None) -> Expr:
        """All of so many characters."""
        encoding = self.spelling.encoding
        quote = encoding.quote
        if encoding.escapes:
            return seq(quote, repeat(self._char(), low, high), quote)
        if (low, high) == (0, None):
            return seq(Token(quote), Text((quote,)), Token(quote))
        if not encoding.counts_characters:
            raise UnsupportedSchema("", "minLength" if low else "maxLength", "raw characters are not counted")
        return seq(Token(quote), repeat(not_chars(quote), low, high), Token(quote))

    def of(self, automaton: Automaton, low: int = 0, high: int | None = None) -> Expr:
        """Those of a language that have so many characters; a raw string does not hold its quote."""
        encoding = self.spelling.encoding
        quote = encoding.quote if encoding.escapes else Token(encoding.quote)
        if not encoding.escapes:
            automaton = intersection(automaton, without((encoding.quote,)))
        return seq(quote, self._language(automaton, low, high), quote)

    def but(self, texts: list[str], hint: str) -> Expr:
        """All but these texts."""
        quote = self.spelling.encoding.quote
        if all(quoted(text, self.spelling) == f"{quote}{text}{quote}" for text in texts):
            raw = raw_chars("", self.spelling)
            hint = "key-char" if self.spelling.free else "string-char"
            char = self._shared(hint, lambda: choice(raw, self._escape()))
            return Except(char, raw, self._escape(), tuple(texts), quote)

        def spelled(char: str) -> str:
            return quoted(char, self.spelling)[1:-1]

        letters = Letters(self._rest_but, self._rest_but, spelled, quote)
        others = OtherTexts(letters, lambda make: self.rules.later(hint, lambda _: make()))
        return seq(quote, others.after_prefix(texts))

    def _shared(self, hint: str, make: Callable[[], Expr], key: Hashable = None) -> Ref:
        """The rule that is the same wherever spelling, quote, hint and key are."""
        if self.kind is not None:
            key = self.kind if key is None else (self.kind, key)
        return self.rules.shared(hint, make, key)

    def _char(self, but: str = "") -> Expr:
        """One character of a string that is none of `but`."""
        if not but:
            return self._shared("string-char", lambda: choice(raw_chars("", self.spelling), self._any_escape()))
        quote = self.spelling.encoding.quote
        raw = quoted(but, self.spelling) == f"{quote}{but}{quote}"
        return choice(raw_chars(but, self.spelling), self._escape() if raw else escapes(but, self.spelling))

    def _any_escape(self) -> Ref:
        shared = self.rules.shared if self.spelling.free else self._shared  # free ones are the same in all quotes
        return shared("string-escape", lambda: any_escape(self.spelling))

    def _escape(self) -> Ref:
        """The one escape of a character that needs one: so none is spelled that is ruled out as it is."""
        if not self.spelling.free:
            return self._any_escape()
        return self._shared("key-escape", lambda: escapes("", self.spelling))

    def _rest_but(self, but: str) -> Expr:
        """The rest of a string, of which the next character is none of `but`."""
        if but not in self._other:
            quote = self.spelling.encoding.quote
            rest = self._shared("string-rest", lambda: seq(repeat(self._char()), quote))
            self._other[but] = seq(self._char(but), rest)
        return self._other[but]

    def _language(self, automaton: Automaton, low: int, high: int | None) -> Expr:
        """What stands between the quotes, which is the same between others where no text holds any."""
        kind = self.kind if self.kind and _has_quotes(automaton) else None

        def known(automaton: Automaton, low: int, high: int | None) -> Expr | None:
            return plain_string(automaton, self.spelling, low, high)

        return self.languages.written(automaton, self._one_of, "text", (low, high), known, kind)

    def _one_of(self, charset: CharSet) -> Expr:
        """One of these characters."""
        if charset not in self._chars:
            self._chars[charset] = self._one_char(charset)
        return self._chars[charset]

    def _one_char(self, charset: CharSet) -> Expr:
        made = one_of(charset, self.spelling)
        if made is None:
            return self._char()
        return self._shared("string-char", lambda: made, charset) if isinstance(made, Choice) else made


def _has_quotes(automaton: Automaton) -> bool:
    """Whether some text of a language has one of the quotes in it."""
    return any(quote in charset for state in automaton.states for charset, _ in state.edges for quote in QUOTES)
