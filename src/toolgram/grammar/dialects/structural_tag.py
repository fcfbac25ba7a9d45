"""Structural tags of XGrammar 0.2, as vLLM and SGLang take them too (`xgrammar/structural_tag.py` describes the form).

The skeleton of a turn becomes sequences, choices, tags and free text; the values between, arguments and answers, become
grammars of their own: XGrammar's `json_schema` drops keywords that ours enforces, and allows other spellings. Only what
cannot be taken apart (rules that refer to themselves, or that would be written out too often), and what has tokens of
the vocabulary for markers, is a grammar as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeGuard

from toolgram.errors import GrammarError
from toolgram.grammar.components import components
from toolgram.grammar.dialects.ebnf import write_ebnf
from toolgram.grammar.ir import (
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    Token,
    children,
    is_empty,
    seq,
)
from toolgram.grammar.orders import in_rules
from toolgram.grammar.simplify import simplify
from toolgram.grammar.tidy import tidy
from toolgram.grammar.walk import names_in, uses

Format = dict[str, Any]
_MOST_NODES = 400
"""A rule that is larger when all that it refers to is written out stays a grammar."""


def write_structural_tag(rules: Rules) -> Format:
    """The rules as the `format` of a structural tag. Raises GrammarError as `tidy` does, and for too deep rules."""
    try:
        tidied = tidy(in_rules(rules))
        if any("root" in names_in(expr) for expr in tidied.values()) or any(map(_has_tokens, tidied.values())):
            return {"type": "grammar", "grammar": write_ebnf(simplify(tidied))}
        return _Writer(tidied).format(tidied["root"])
    except RecursionError as error:
        raise GrammarError("the grammar is nested too deeply to be written as a structural tag") from error


def _has_tokens(expr: Expr) -> bool:
    """Whether a marker is a token of the vocabulary.

    XGrammar up to 0.2.8 takes one such part of a structural tag for another, since it keeps what it finds of one; and
    its free text takes a marker that such a token begins as letters.
    """
    if isinstance(expr, Token):
        return expr.id is not None
    return any(map(_has_tokens, children(expr)))


@dataclass(slots=True)
class _Writer:
    """Writes the rules of one grammar as formats; `format` gives that of an expression."""

    rules: Rules
    _sizes: dict[str, float] = field(default_factory=dict[str, float])
    _marked: dict[str, bool] = field(default_factory=dict[str, bool])

    def __post_init__(self) -> None:
        """What each rule is, found after those that it uses: thousands may use one another in a row."""
        used = uses(self.rules)
        for group in components(used):
            self._marked.update(dict.fromkeys(group, False))  # in a circle another way round decides
            marked = any(map(self._has_marks, map(self.rules.__getitem__, group)))
            self._marked.update(dict.fromkeys(group, marked))
            in_circle = len(group) > 1 or group[0] in used[group[0]]
            self._sizes.update(dict.fromkeys(group, inf if marked and in_circle else 1))
            if marked and not in_circle:
                self._sizes[group[0]] = self._size(self.rules[group[0]])

    def format(self, expr: Expr) -> Format:
        match expr:
            case Literal(text) | Token(text):
                return {"type": "const_string", "value": text}
            case Text(without, ""):
                return {"type": "any_text", "excludes": list(without)}
            case Ref(name) if self._opens(expr):
                return self.format(self.rules[name])
            case Sequence() if self._opens(expr):
                return self._sequence(expr)
            case Choice(options) if self._opens(expr):
                return self._choice(options)
            case Repeat(item, low, high) if self._opens(expr):
                most = -1 if high is None else high
                return {"type": "repeat", "min": low, "max": most, "content": self.format(item)}
            case _:
                return {"type": "grammar", "grammar": write_ebnf(simplify({**self.rules, "root": expr}))}

    def _opens(self, expr: Expr) -> bool:
        """Whether the expression has marks, and is small enough to be written out."""
        return self._has_marks(expr) and self._size(expr) <= _MOST_NODES

    def _has_marks(self, expr: Expr) -> bool:
        if isinstance(expr, Token):
            return True
        return self._marked[expr.name] if isinstance(expr, Ref) else any(map(self._has_marks, children(expr)))

    def _size(self, expr: Expr) -> float:
        """How many nodes the expression has when its references are written out; those to itself never are."""
        return self._sizes[expr.name] if isinstance(expr, Ref) else 1 + sum(map(self._size, children(expr)))

    def _choice(self, options: tuple[Expr, ...]) -> Format:
        some = [self.format(option) for option in options if not is_empty(option)]
        whole = some[0] if len(some) == 1 else {"type": "or", "elements": some}
        return whole if len(some) == len(options) else {"type": "optional", "content": whole}

    def _sequence(self, whole: Sequence) -> Format:
        """A tag where there is text at both ends, else a sequence."""
        pieces = list(self._pieces(whole))
        match pieces:
            case [{"type": "const_string", "value": begin}, *between, {"type": "const_string", "value": end}]:
                return {"type": "tag", "begin": begin, "content": _in_a_row(between), "end": end}
            case _:
                return _in_a_row(pieces)

    def _pieces(self, whole: Sequence) -> Iterator[Format]:
        """The parts of a sequence: tags with a separator, and between structures the values with texts around them."""
        items = list(whole.items)
        while items:
            if len(items) > 1 and (tags := self._tags(items[0], items[1])) is not None:
                yield tags
                del items[:2]
                continue
            if self._is_structure(items[0]):
                yield self.format(items.pop(0))
                continue
            count = next((i for i, item in enumerate(items) if self._is_structure(item)), len(items))
            run, items = items[:count], items[count:]
            begin = next((i for i, item in enumerate(run) if not _is_text(item)), count)
            end = count - next((i for i, item in enumerate(reversed(run[begin:])) if not _is_text(item)), 0)
            for part in (run[:begin], run[begin:end], run[end:]):
                if part:
                    yield self.format(seq(*(item.text if _is_text(item) else item for item in part)))

    def _is_structure(self, expr: Expr) -> bool:
        return isinstance(expr, Text) or (self._opens(expr) and not _is_text(expr))

    def _tags(self, first: Expr, more: Expr) -> Format | None:
        """Tags with a separator between, any number of them: "x (separator x)*"."""
        if not (isinstance(more, Repeat) and (more.min, more.max) == (0, None)):
            return None
        separator = _before(first, more.item)
        if separator is None or not self._opens(first):
            return None
        tags = self.format(first)
        options = [_as_tag(option) for option in (tags["elements"] if tags["type"] == "or" else [tags])]
        if any(option["type"] != "tag" for option in options):
            return None
        return {"type": "tags_with_separator", "tags": options, "separator": separator, "at_least_one": True}


def _in_a_row(formats: list[Format]) -> Format:
    formats = list(_closed(formats))
    if not formats:  # between two texts; XGrammar refuses a sequence of nothing
        return {"type": "const_string", "value": ""}
    return formats[0] if len(formats) == 1 else {"type": "sequence", "elements": formats}


def _closed(formats: list[Format]) -> Iterator[Format]:
    """Each text before a string as a tag that this ends: else XGrammar ends it where the tag around it may end, too."""
    left = list(formats)
    while left:
        match left:
            case [{"type": "any_text"} as text, {"type": "const_string", "value": end}, *_] if _ends(text, end):
                yield {"type": "tag", "begin": "", "content": text, "end": end}
                del left[:2]
            case _:
                yield left.pop(0)


def _ends(text: Format, end: str) -> bool:
    """Whether a text before this string is over where that is first found: the text holds none of its beginnings."""
    found_earlier = [end[:at] for at in range(1, len(end) + 1) if end.startswith(end[at:])]  # what of it is text then
    return bool(end) and all(any(marker in begun for marker in text["excludes"]) for begun in found_earlier)


def _as_tag(format_: Format) -> Format:
    """A text as a tag: that of a tool without parameters, say."""
    if format_["type"] != "const_string":
        return format_
    return {"type": "tag", "begin": format_["value"], "content": {"type": "const_string", "value": ""}, "end": ""}


def _is_text(expr: Expr) -> TypeGuard[Literal | Token]:
    return isinstance(expr, Literal | Token)


def _before(item: Expr, joined: Expr) -> str | None:
    """The text that `joined` has before the item; None where it is another item, or has more than text before it."""
    if joined == item:
        return ""
    match joined:
        case Sequence((Literal(text), rest)) if rest == item:
            return text
        case _:
            return None
