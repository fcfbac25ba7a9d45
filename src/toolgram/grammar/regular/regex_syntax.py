"""ECMA-262 patterns as trees.

Read as with the flag `u`, as JSON Schema asks; what that makes an error and the language's Annex B reads in its one way
(`\\-`, `\\:`, a lone brace or bracket, `[\\w-.]`) is read so, since real schemas are full of it.
A pattern that begins with `(?u)`, which ECMA-262 does not have, is read as Rust reads it: `\\w`, `\\b`, `\\d`, `\\s`
and `.` are of all of Unicode (UTS 18, annex C).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from toolgram.grammar.ir import CharSet, chars, not_chars
from toolgram.grammar.regular.character_sets import ECMA, Sets, inverse, unicode
from toolgram.grammar.regular.unicode_classes import UnknownProperty, property_chars

_MAX_NESTING = 60
_MAX_LENGTH = 50_000  # longer than any automaton that may be made of it
_FEW = 4  # times that something may repeat, which are counted whatever that takes


class Unsupported(Exception):
    """A pattern that is well formed, but no regular language, or not known as one."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Malformed(Exception):
    """A text that is no ECMA-262 pattern; `position` is an offset into it."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} at offset {position}")
        self.reason = reason
        self.position = position


@dataclass(frozen=True, slots=True)
class Cat:
    """These, one after the other; none of them is the empty text."""

    items: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """Any of these."""

    options: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Rep:
    """`item`, `min` to `max` times (None: no bound)."""

    item: Tree
    min: int
    max: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """No text, where `body` matches the text that follows, or that went before; with `negative`, where it does not."""

    behind: bool
    negative: bool
    body: Tree


Tree = CharSet | Cat | Alt | Rep | Look

ANY = not_chars()
ANYTHING = Rep(ANY, 0, None)
EMPTY = Cat(())
START = Look(behind=True, negative=True, body=ANY)
END = Look(behind=False, negative=True, body=ANY)


def _boundary(of: CharSet, *, inside: bool) -> Tree:
    """`\\b`, or `\\B` with `inside`, between characters of words and others."""
    sides = [
        Cat(
            (
                Look(behind=True, negative=not word, body=of),
                Look(behind=False, negative=word is not inside, body=of),
            )
        )
        for word in (True, False)
    ]
    return Alt(tuple(sides))


_UNICODE = "(?u)"
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_QUANTIFIER = re.compile(r"(?:(?P<sign>[*+?])|\{(?P<low>[0-9]+)(?P<comma>,(?P<high>[0-9]+)?)?\})\??")
_NUMERIC = re.compile(r"x(?P<hex>[0-9A-Fa-f]{2})|u(?P<unit>[0-9A-Fa-f]{4})|u\{(?P<point>[0-9A-Fa-f]+)\}")
_LOW_SURROGATE = re.compile(r"\\u(?P<unit>[Dd][C-Fc-f][0-9A-Fa-f]{2})")
_PROPERTY = re.compile(r"[pP]\{(?P<name>[^{}]*)\}")
_NAME = re.compile(r"<[^\W\d][\w$]*>|<[$][\w$]*>")
_POSIX = re.compile(r"\[:[a-z]+:\]")
_MODIFIERS = re.compile(r"[ims]*(?:-[ims]*)?:")
_LOOKS = {"(?=": (False, False), "(?!": (False, True), "(?<=": (True, False), "(?<!": (True, True)}
_BRACE = "a brace that is no count; a literal one is written \\{"


def parse(pattern: str) -> Tree:
    """The tree of a pattern. Raises Malformed, and Unsupported for what is not regular."""
    if len(pattern) > _MAX_LENGTH:
        raise Unsupported(f"a pattern of more than {_MAX_LENGTH} characters")
    reader = _Reader(pattern, unicode() if pattern.startswith(_UNICODE) else ECMA)
    reader.take(_UNICODE)
    tree = reader.alternatives()
    if reader.at < len(pattern):
        raise reader.malformed("a closing parenthesis without its opening one")
    return tree


class _Reader:
    """Reads one pattern from left to right, by recursive descent."""

    def __init__(self, text: str, sets: Sets) -> None:
        self.text = text
        self.at = 0
        self._sets = sets
        self._nesting = 0

    def malformed(self, reason: str) -> Malformed:
        return Malformed(reason, self.at)

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def _match(self, regex: re.Pattern[str]) -> re.Match[str] | None:
        if found := regex.match(self.text, self.at):
            self.at = found.end()
        return found

    def alternatives(self) -> Tree:
        options = [self._sequence()]
        while self.take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Alt(tuple(options))

    def _sequence(self) -> Tree:
        items: list[Tree] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            item = self._term()
            items.extend(item.items if isinstance(item, Cat) else (item,))
        return items[0] if len(items) == 1 else Cat(tuple(items))

    def _term(self) -> Tree:
        assertion = self._assertion() if self.text[self.at] in "^$\\(" else None
        return self._quantified(self._atom()) if assertion is None else assertion

    def _assertion(self) -> Tree | None:
        for text, tree in (("^", START), ("$", END)):
            if self.take(text):
                return tree
        for text, inside in (("\\b", False), ("\\B", True)):
            if self.take(text):
                return _boundary(self._sets.of["w"], inside=inside)
        begin = self.at
        for text, (behind, negative) in _LOOKS.items():
            if self.take(text):
                return Look(behind, negative, self._group_body(begin))
        return None

    def _quantified(self, atom: Tree) -> Tree:
        begin = self.at
        found = self._match(_QUANTIFIER)
        if found is None:
            return atom
        if sign := found["sign"]:
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        else:
            low = int(found["low"])
            high = int(found["high"]) if found["high"] else None if found["comma"] else low
        if high is not None and high < low:
            raise Malformed(f"a count from {low} down to {high}", begin)
        return EMPTY if high == 0 else atom if (low, high) == (1, 1) else Rep(atom, low, high)

    def _atom(self) -> Tree:
        char = self.text[self.at]
        if char == "(":
            return self._group()
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise self.malformed("nothing to repeat")
        if char == "{" and self.text[self.at + 1 : self.at + 2].strip("0123456789,") == "":
            raise self.malformed(_BRACE)
        self.at += 1
        return self._sets.dot if char == "." else chars(char)

    def _group(self) -> Tree:
        begin = self.at
        self.at += 1
        if self.take("?") and not self.take(":") and not self._match(_NAME):
            if self._match(_MODIFIERS):
                raise Unsupported("modifiers within a pattern")
            raise self.malformed("a group of a kind that ECMA-262 does not have")
        return self._group_body(begin)

    def _group_body(self, begin: int) -> Tree:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise Unsupported("groups nest too deeply")
        body = self.alternatives()
        self._nesting -= 1
        if not self.take(")"):
            raise Malformed("a group that is not closed", begin)
        return body

    def _escape(self) -> CharSet:
        following = self.text[self.at + 1 : self.at + 2]
        if following in "123456789" and following:
            raise Unsupported(f"the backreference \\{following}")
        if following == "k":
            raise Unsupported("backreferences by name")
        return self._escaped()

    def _escaped(self) -> CharSet:
        """An escape that stands for a character or a set, in a class or out of it."""
        begin = self.at
        self.at += 1
        char = self.text[self.at : self.at + 1]
        if found := self._match(_NUMERIC):
            return _char(self._code_point(found, begin))
        if found := self._match(_PROPERTY):
            try:
                return property_chars(found["name"], negative=char == "P")
            except UnknownProperty as unknown:
                raise Unsupported(str(unknown)) from None
        self.at += 1
        if charset := self._sets.of.get(char):
            return charset
        if char in _CONTROLS:
            return chars(_CONTROLS[char])
        after = self.text[self.at : self.at + 1]
        if char == "c" and after.isascii() and after.isalpha():
            self.at += 1
            return _char(ord(after) % 32)
        if char == "0" and not after.isdigit():
            return _char(0)
        if not char or (char.isascii() and char.isalnum()):
            raise Malformed(f"the escape \\{char}, which ECMA-262 does not have", begin)
        return chars(char)

    def _code_point(self, found: re.Match[str], begin: int) -> int:
        code = int(found["hex"] or found["unit"] or found["point"], 16)
        if code > 0x10FFFF:
            raise Malformed("a code point beyond Unicode", begin)
        if found["unit"] and 0xD800 <= code <= 0xDBFF and (low := self._match(_LOW_SURROGATE)):
            return 0x10000 + (code - 0xD800) * 0x400 + int(low["unit"], 16) - 0xDC00
        return code

    def _class(self) -> CharSet:
        begin = self.at
        self.at += 1
        negative = self.take("^")
        ranges: list[tuple[int, int]] = []
        while not self.take("]"):
            if self.at >= len(self.text):
                raise Malformed("a class that is not closed", begin)
            if _POSIX.match(self.text, self.at):
                raise self.malformed("a class of POSIX")
            at = self.at
            low = self._class_atom()
            ahead = self.text[self.at : self.at + 2]
            if ahead[:1] != "-" or ahead in ("-", "-]"):
                ranges.extend(_ranges(low))
                continue
            self.at += 1
            high = self._class_atom()
            if isinstance(low, CharSet) or isinstance(high, CharSet):
                ranges.extend((*_ranges(low), (0x2D, 0x2D), *_ranges(high)))
            elif high < low:
                raise Malformed("a range that runs backwards", at)
            else:
                ranges.append((low, high))
        charset = chars(*ranges)
        return inverse(charset) if negative else charset

    def _class_atom(self) -> int | CharSet:
        """A code point, which may be a surrogate, or the set of an escape."""
        char = self.text[self.at : self.at + 1]
        if char != "\\":
            self.at += 1
            return ord(char) if char else 0
        if self.take("\\b"):
            return 8
        begin = self.at
        self.at += 1
        if found := self._match(_NUMERIC):
            return self._code_point(found, begin)
        self.at = begin
        charset = self._escaped()
        one = len(charset.ranges) == 1 and charset.ranges[0][0] == charset.ranges[0][1]
        return charset.ranges[0][0] if one else charset


def _char(code: int) -> CharSet:
    return chars((code, code))


def _ranges(atom: int | CharSet) -> tuple[tuple[int, int], ...]:
    return atom.ranges if isinstance(atom, CharSet) else ((atom, atom),)


def rebuild(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """The tree with `change` applied to the trees directly inside it."""
    match tree:
        case Cat(items):
            return Cat(tuple(change(item) for item in items))
        case Alt(options):
            return Alt(tuple(change(option) for option in options))
        case Rep(item, low, high):
            return Rep(change(item), low, high)
        case Look(behind, negative, body):
            return Look(behind, negative, change(body))
        case _:
            return tree


def uncounted(tree: Tree) -> Tree:
    """The tree in which what may repeat often may repeat without end: it matches where the tree does, and elsewhere."""
    match tree:
        case Rep(item, low, high) if high is not None and high > max(low, _FEW):
            return Rep(uncounted(item), low, None)
        case Look(negative=True):
            return tree  # else it would match in fewer places
        case _:
            return rebuild(tree, uncounted)


def inner(tree: Tree) -> tuple[Tree, ...]:
    """The trees directly inside this one."""
    match tree:
        case Cat(items):
            return items
        case Alt(options):
            return options
        case Rep(item):
            return (item,)
        case Look(_, _, body):
            return (body,)
        case _:
            return ()


def charsets(tree: Tree) -> list[CharSet]:
    """All character sets in a tree."""
    return [tree] if isinstance(tree, CharSet) else [charset for part in inner(tree) for charset in charsets(part)]
