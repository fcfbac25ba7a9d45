"""How JSON values are written: one spelling for each, and the expressions that admit exactly these spellings.

No free white space; strings are raw, with the short escapes and `\\u00xx` for the other controls; an exponent has one
digit before the point, a sign and no leading zero (`1.5e+30`, `2e-7`), unless the spelling is free.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Literal

from toolgram.caching import counted
from toolgram.grammar.hashing import HashedOnce, value
from toolgram.grammar.ir import (
    EMPTY,
    MAX_CODE_POINT,
    NOTHING,
    CharSet,
    Choice,
    Expr,
    chars,
    choice,
    not_chars,
    repeat,
    seq,
)
from toolgram.schema.writing.notation import BARE_WORD, JSON, Encoding
from toolgram.schema.writing.numbers import same_length

_LONGEST_NAME = 40  # of a rule
_SHORT = {'"': '\\"', "'": "\\'", "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HEX = "0123456789abcdef"
KEY_START = chars("_", (ord("A"), ord("Z")), (ord("a"), ord("z")))
KEY_CHAR = chars("_", (ord("A"), ord("Z")), (ord("a"), ord("z")), (ord("0"), ord("9")))
_OTHER_KEY = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_NAME = re.compile("[a-z][a-z0-9]*(?:-[a-z0-9]+)*").fullmatch
_CAMEL = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_OTHERS = re.compile("[^a-z0-9]+")
QUOTES = "\"'"  # between which strings with escapes stand
_ESCAPED = {quote: re.compile(rf"[{quote}\\\x00-\x1f]") for quote in QUOTES}


@value
class Spelling(HashedOnce):
    """The choices that a template leaves open, and the notation.

    `ascii` writes all beyond ASCII as `\\uxxxx`. The digit caps bound numbers that the schema does not bound; None is
    no cap. A `free` one also admits what people and programs write: exponents without a plus, with an `E`, with a zero
    before their one digit, with three digits before the point or a zero there, since a model that means `8.99e9` must
    not be led to `8.99e-9`, nor one that copies `1.5E-3` to `1.5`; and any escape of a character, since one that copies
    `Z\\u00fcrich` must not be led to a control character.
    """

    item_separator: str = ", "
    key_separator: str = ": "
    ascii: bool = False
    integer_digits: int | None = None
    fraction_digits: int | None = None
    exponents: bool = True
    free: bool = False
    encoding: Encoding = JSON

    @property
    def by_quote(self) -> tuple[Spelling, ...]:
        """The spelling, and where strings may stand between other quotes, that with those."""
        return (self, *(replace(self, encoding=other) for other in self.encoding.by_quote[1:]))

    @property
    def inner(self) -> Spelling:
        """The spelling of what is inside the outermost value, which is the same where members stand on lines."""
        notation = self.encoding
        return replace(self, encoding=replace(notation, margins=(), last_margins=("",))) if notation.margins else self

    def frame(self, *, outermost: bool = False) -> Frame:
        """How an object is written; the outermost one may be the arguments of a function."""
        comma, notation = self.item_separator, self.encoding
        if outermost and notation.keyword_arguments:
            return Frame("(", ")", "=", "keyword", comma)
        keys = "bare" if notation.bare_keys else "quoted"
        if outermost and notation.margins:
            comma = comma.rstrip()
            return Frame("{", "}", self.key_separator, keys, comma, notation.margins, notation.last_margins)
        return Frame("{", "}", self.key_separator, keys, comma)


@value
class Frame:
    """How an object is written: its brackets, what stands between key and value, how keys are written, and what stands
    between members. Before each member stands one of the `margins`, if there are any, and before the closing bracket of
    an object that has members one of the `last` ones; the first of them is the one that is written."""

    opener: str
    closer: str
    between: str
    keys: Literal["quoted", "bare", "keyword"]
    comma: str
    margins: tuple[str, ...] = ()
    last: tuple[str, ...] = ("",)

    def member(self, key: Expr | str, value: Expr) -> Expr:
        """A member, of its key as that is written."""
        return seq(choice(*self.margins) if self.margins else EMPTY, key, self.between, value)

    def around(self, members: Expr) -> Expr:
        """The object of these members, which may be none."""
        if not self.margins:
            return seq(self.opener, members, self.closer)
        some = members.options if isinstance(members, Choice) else (members,)
        last = choice(*self.last)
        whole = choice(*(seq(self.opener, one, last, self.closer) for one in some if one != EMPTY))
        return choice(whole, seq(self.opener, self.closer)) if EMPTY in some else whole

    def text(self, members: Iterable[str]) -> str:
        """The object of these members as text."""
        margin = self.margins[0] if self.margins else ""
        written = self.comma.join(margin + member for member in members)
        return self.opener + written + (self.last[0] if written else "") + self.closer

    def key(self, name: str, spelling: Spelling, *, declared: bool) -> str | None:
        """The key as it is written; None where that cannot be."""
        if not writable(name):
            return None
        if self.keys == "quoted":
            return quoted(name, spelling)
        if not declared:
            return name if _OTHER_KEY.fullmatch(name) else None
        if BARE_WORD.fullmatch(name) and spelling.encoding.quote not in name:
            return name
        return quoted(name, spelling) if self.keys == "keyword" else None


class RuleNames:
    """Hands out the rule names of one grammar: legal in every dialect, unique, and legible.

    `given` are the names so far, each with the hint that it was made from, and the key of one that is shared.
    """

    def __init__(self, *taken: str) -> None:
        self.given: dict[str, tuple[str, Hashable]] = {}
        self._taken = frozenset(taken)
        self._counts: dict[str, int] = {}  # how often a name was wanted, so that no number is tried twice
        self._shared: dict[Hashable, str] = {}

    def fresh(self, hint: str) -> str:
        """A new name like the hint."""
        words = hint if _PLAIN_NAME(hint) else _OTHERS.sub("-", _CAMEL.sub("-", hint).lower()).strip("-")
        if len(words) > _LONGEST_NAME:  # its end says more
            words = words[-_LONGEST_NAME:].partition("-")[2] or words[-_LONGEST_NAME:]
        base = words if words[:1].isalpha() else f"r-{words}".rstrip("-")
        count = self._counts.get(base, 0) + 1
        while (name := base if count == 1 else f"{base}-{count}") in self.given or name in self._taken:
            count += 1
        self._counts[base] = count
        self.given[name] = hint, None
        return name

    def shared(self, hint: str, key: Hashable) -> str:
        """The name of a rule that is the same wherever the hint and the key are the same."""
        return self.known(hint, (hint, key))

    def known(self, hint: str, key: Hashable) -> str:
        """The name of a rule that is the same wherever the key is the same; at first it is like the hint."""
        if (name := self._shared.get(key)) is None:
            name = self._shared[key] = self.fresh(hint)
            self.given[name] = hint, key
        return name

    def again(self, given: Mapping[str, tuple[str, Hashable]]) -> dict[str, str]:
        """Gives the names that another has `given`, in the same order; those of its names that are others here."""
        others: dict[str, str] = {}
        for name, (hint, key) in given.items():
            if key is None and not others and name not in self.given and name not in self._taken:
                self.given[name] = hint, None  # nearly always, and in a tenth of the time
                continue
            like = _like(hint, others) if others else hint
            new = self.fresh(like) if key is None else self.known(like, key)
            if new != name:
                others[name] = new
        return others


def _like(hint: str, others: Mapping[str, str]) -> str:
    """A hint that begins with a name which is another now, with that one."""
    end = len(hint)
    while (end := hint.rfind("-", 0, end)) > 0:
        if hint[:end] in others:
            return others[hint[:end]] + hint[end:]
    return hint


def writable(text: str) -> bool:
    """Whether the text is Unicode: a lone surrogate is not, and no grammar or engine can carry it."""
    return text.isascii() or not _SURROGATE.search(text)


def quoted(text: str, spelling: Spelling) -> str:
    """The string in the notation; a raw one must not contain the quote."""
    if not spelling.encoding.escapes:
        return f"{spelling.encoding.quote}{text}{spelling.encoding.quote}"
    quote = spelling.encoding.quote
    if not _ESCAPED[quote].search(text) and (text.isascii() or not spelling.ascii):
        return f"{quote}{text}{quote}"
    return f"{quote}{''.join(_char(char, spelling) for char in text)}{quote}"


def _char(char: str, spelling: Spelling) -> str:
    if char in _SHORT and (char not in QUOTES or char == spelling.encoding.quote):
        return _SHORT[char]
    if char >= " " and (char < "\x80" or not spelling.ascii):
        return char
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def one_char(charset: CharSet, spelling: Spelling) -> Expr:
    """One of these characters, as a string holds it."""
    if not spelling.encoding.escapes:
        return charset
    others = not_chars(*charset.ranges)
    raw = raw_chars(others, spelling)
    return choice(raw if raw.ranges else NOTHING, escapes(others, spelling))


def raw_chars(but: str | CharSet, spelling: Spelling) -> CharSet:
    """The characters that a string holds as they are, without these."""
    return _raw_chars(but, spelling.ascii, spelling.encoding.quote)


@counted(1024)
def _raw_chars(but: str | CharSet, ascii_only: bool, quote: str) -> CharSet:
    return not_chars(*_pieces(but), quote + "\\", (0, 0x1F), *([(0x80, MAX_CODE_POINT)] if ascii_only else []))


def _pieces(charset: str | CharSet) -> tuple[str | tuple[int, int], ...]:
    return (charset,) if isinstance(charset, str) else charset.ranges


def escapes(but: str | CharSet, spelling: Spelling) -> Expr:
    """The characters that a string holds escaped, without these, each in its one escape."""
    return _escapes(but, spelling.ascii, spelling.encoding.quote)


@counted(1024)
def _escapes(but: str | CharSet, ascii_only: bool, quote: str) -> Expr:
    codes = [code for code in (*range(0x20), ord(quote), ord("\\")) if chr(code) not in but]
    short = "".join(_SHORT[chr(code)][1] for code in codes if chr(code) in _SHORT)
    controls = [f"{code:02x}" for code in codes if chr(code) not in _SHORT]
    options: list[Expr] = [seq("\\", chars(short))] if short else []
    by_high = {high: "".join(code[1] for code in controls if code[0] == high) for high in "01"}
    options.extend(seq(f"\\u00{high}", chars(lows)) for high, lows in by_high.items() if lows)
    if ascii_only:
        beyond = not_chars(*_pieces(but), (0, 0x7F)).ranges
        options.extend(_escaped_range(low, high) for low, high in beyond)
    return choice(*options)


@counted(64)
def any_escape(spelling: Spelling) -> Expr:
    """Any escape of one character, a surrogate pair included; where Python's quotes are, those of Python, too."""
    if not spelling.free:
        return escapes("", spelling)
    hex_ = chars("0123456789abcdefABCDEF")
    alone = choice(seq(chars("0123456789abcefABCEF"), hex_), seq(chars("dD"), chars("01234567")))
    lead = seq("\\u", chars("dD"), chars("89abAB"), repeat(hex_, 2, 2))
    trail = seq("\\u", chars("dD"), chars("cdefCDEF"), repeat(hex_, 2, 2))
    others = "/" if spelling.encoding.is_json else "'" if spelling.encoding.other_quote else ""
    short = seq("\\", chars('"\\bfnrt' + others))
    in_json = choice(short, seq("\\u", alone, repeat(hex_, 2, 2)), seq(lead, trail))
    if not spelling.encoding.other_quote:
        return in_json
    beyond = choice(seq("0", chars("123456789abcdefABCDEF")), "10")  # for the basic plane there is \u
    return choice(in_json, seq("\\x", repeat(hex_, 2, 2)), seq("\\U00", beyond, repeat(hex_, 4, 4)))


def _escaped_range(low: int, high: int) -> Expr:
    """`\\uxxxx` for the code points of a range beyond ASCII, as surrogate pairs beyond the basic plane."""
    options: list[Expr] = []
    if low <= 0xFFFF:
        options.append(seq("\\u", same_length(f"{low:04x}", f"{min(high, 0xFFFF):04x}", _HEX)))
    low, blocks = max(low, 0x10000), list[tuple[int, int, int, int]]()
    while low <= high:  # runs of whole lead surrogates, and the ragged ends
        lead, trail = divmod(low - 0x10000, 0x400)
        last_lead, last_trail = divmod(high - 0x10000, 0x400)
        if lead == last_lead or trail:
            last_lead, last_trail = lead, last_trail if lead == last_lead else 0x3FF
        elif last_trail != 0x3FF:
            last_lead, last_trail = last_lead - 1, 0x3FF
        blocks.append((lead, last_lead, trail, last_trail))
        low = 0x10000 + last_lead * 0x400 + last_trail + 1
    for lead, last_lead, trail, last_trail in blocks:
        leads = same_length(f"{0xD800 + lead:x}", f"{0xD800 + last_lead:x}", _HEX)
        trails = same_length(f"{0xDC00 + trail:x}", f"{0xDC00 + last_trail:x}", _HEX)
        options.append(seq("\\u", leads, "\\u", trails))
    return choice(*options)
