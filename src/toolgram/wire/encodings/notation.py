"""Arguments as JSON, or in another notation for its values: Python's keyword arguments, strings between own quotes.

What is not JSON becomes JSON text as it arrives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from toolgram.schema import compile_type
from toolgram.schema.types import Canonical
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.notation import BARE_WORD
from toolgram.schema.writing.notation import Encoding as Notation
from toolgram.schema.writing.values import spell, spell_as
from toolgram.wire.encodings.base import AnyEncoding, ArgumentsReader, ToolArguments
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.encodings.json import ClosedByItself, RawValue, Sink, Status, StringValue, escape, skip_space
from toolgram.wire.encodings.raw import begins_number
from toolgram.wire.marks import Marks

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_BARE_TEXT = re.compile(r"""[^\s,(){}\[\]="'][^,(){}\[\]="']*""")  # a string whose quotes were forgotten
_CLOSERS = {"(": ")", "{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Encoding(Notation, AnyEncoding):
    """Arguments in a notation for JSON values, with the fields of the notation; the defaults are JSON's own."""

    @property
    def notation(self) -> Notation:
        """The encoding itself."""
        return self

    @property
    def opener(self) -> str:
        """The bracket of the outermost object."""
        return "(" if self.keyword_arguments else "{"

    @property
    def tags(self) -> tuple[str, ...]:
        """The quote, where it is not JSON's."""
        return () if self.escapes else (self.quote,)

    @property
    def shows_types(self) -> bool:
        """Strings stand between quotes."""
        return True

    def reader(self, expected: Expected, sink: Sink) -> ArgumentsReader:
        """JSON is passed on as it is."""
        del expected
        return RawValue(sink, mends=True) if self.is_json else Transcoder(self, sink)

    def arguments(
        self, canonical: Canonical, spelling: Spelling, names: RuleNames, hint: str, *, exact: bool
    ) -> ToolArguments:
        """The values of the type."""
        made = compile_type(canonical, spelling=spelling, names=names, root_name=hint, exact=exact)
        return ToolArguments(
            made.expr, partial(spell_as, canonical, spelling=spelling), made.rules, made.relaxations, made.capped
        )

    def write(self, value: Any, spelling: Spelling) -> str:
        """The value in this notation."""
        return spell(value, spelling)

    def response_template(self, pattern: Callable[[str], str]) -> dict[str, Any] | None:
        """JSON, or the dialect of it that transformers knows: bare keys, and another quote."""
        del pattern
        if self.is_json:
            return {"content": "json"}
        if self.keyword_arguments or not self.bare_keys or self.escapes:
            return None
        return {"content": "json", "content_args": {"unquoted_keys": True, "string_delims": [[self.quote, self.quote]]}}


JSON = Encoding("json")
PYTHON = Encoding("python", true="True", false="False", null="None", keyword_arguments=True, other_quote="'")


@dataclass(slots=True)
class _Container:
    closer: str
    json_closer: str
    between: str
    """What stands between key and value; "" in a list."""
    expect: Literal["first", "item", "between", "value", "comma"] = "first"


class Transcoder(ClosedByItself):
    """Reads one outermost object of a notation and hands its JSON text on in pieces."""

    __slots__ = ("_encoding", "_sink", "_stack", "_string", "_words")

    def __init__(self, encoding: Notation, sink: Sink) -> None:
        self._encoding = encoding
        self._sink = sink
        self._stack: list[_Container] = []
        self._string: StringValue | _RawString | None = None
        # Models mix in JSON's own words, and Python's; the encoding's mean what it says.
        self._words = {
            "True": "true",
            "False": "false",
            "None": "null",
            **{word: word for word in ("true", "false", "null")},
            **{each: word for word in ("true", "false", "null") for each in encoding.words(word)},
        }

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take as much as can be read; FAILED where the text is not in this notation."""
        i = start
        while True:
            if self._string is not None:
                i, status = self._string.consume(buffer, i)
                if status is Status.MORE:
                    return i, status
                self._string = None
                self._sink('"')
                continue
            i = skip_space(buffer, i)
            if i == len(buffer):
                return i, Status.MORE
            if not self._stack:
                opener = "(" if self._encoding.keyword_arguments else "{"
                if buffer[i] != opener:
                    return i, Status.FAILED
                self._open(opener, outermost=True)
                i += 1
                continue
            taken = self._step(self._stack[-1], buffer, i)
            if taken is None:
                return i, Status.FAILED
            if taken == 0 and self._string is None:
                return i, Status.MORE
            i += taken
            if not self._stack:
                return i, Status.DONE

    def cut(self, rest: str) -> None:
        """The text is over: hand on the part that is there of a key, or of a value that is no string."""
        if self._string is not None or not self._stack or not (word := rest.strip()):
            return
        top = self._stack[-1]
        before = ", " if top.expect == "item" else ""
        is_key = bool(top.between) and top.expect in ("first", "item")
        if begins_number(word) and not is_key:
            self._sink(before + word)
        elif not any(known.startswith(word) for known in (self._encoding.quote, *(() if is_key else self._words))):
            self._sink(f'{before}"{escape(word)}')

    def _open(self, char: str, *, outermost: bool = False) -> None:
        is_map = outermost or char == "{"
        between = ("=" if outermost and self._encoding.keyword_arguments else ":") if is_map else ""
        self._stack.append(_Container(_CLOSERS[char], "}" if is_map else "]", between))
        self._sink("{" if is_map else "[")

    def _step(self, top: _Container, buffer: str, i: int) -> int | None:
        """One step: how many characters it takes, 0 where more text is needed, None where it cannot go on."""
        char = buffer[i]
        if top.expect != "value" and top.expect != "between" and char == top.closer:
            self._stack.pop()
            self._sink(top.json_closer)
            return 1
        match top.expect:
            case "first" | "item":
                first = top.expect == "first"
                if not top.between:
                    top.expect = "comma"
                    return self._value(buffer, i, "" if first else ", ", top, "first" if first else "item")
                return self._key(top, buffer, i, "" if first else ", ")
            case "between":
                if char != top.between:
                    return None
                top.expect = "value"
                self._sink(": ")
                return 1
            case "value":
                top.expect = "comma"
                return self._value(buffer, i, "", top, "value")
            case "comma":
                top.expect = "item"
                if char == ",":
                    return 1
                # Some templates forget it after a string.
                return self._step(top, buffer, i) if top.between == "=" else None

    def _key(self, top: _Container, buffer: str, i: int, before: str) -> int | None:
        quote = self._quote_at(buffer, i)
        if quote is None:
            return 0
        if quote:
            top.expect = "between"
            return self._begin_string(quote, before)
        match = BARE_WORD.match(buffer, i)
        if match is None:
            return None
        if match.end() == len(buffer):
            return 0
        top.expect = "between"
        self._sink(f'{before}"{escape(match[0])}"')
        return match.end() - i

    def _value(
        self, buffer: str, i: int, before: str, top: _Container, undo: Literal["first", "item", "value"]
    ) -> int | None:
        """Begin or take the value at i; where it is not whole yet, the container expects it still."""
        char = buffer[i]
        if char in _CLOSERS:
            self._sink(before)
            self._open(char)
            return 1
        quote = self._quote_at(buffer, i)
        if quote:
            return self._begin_string(quote, before)
        bare = _BARE_TEXT if top.between == "=" else BARE_WORD
        match = bare.match(buffer, i) if quote is not None else None
        if match is None or match.end() == len(buffer):
            top.expect = undo
            return 0 if quote is None or match else None
        word = match[0].rstrip()
        if word in self._words:
            self._sink(before + self._words[word])
        elif _NUMBER.fullmatch(word):
            self._sink(before + word)
        else:
            self._sink(f'{before}"{escape(word)}"')
        return len(word)

    def _quote_at(self, buffer: str, i: int) -> str | None:
        """The quote that opens a string at i, "" if there is none, None if more text must tell.

        Where strings are raw, one as JSON or Python has it is read too.
        """
        quote = self._encoding.quote
        if not self._encoding.escapes:
            if buffer.startswith(quote, i):
                return quote
            if len(buffer) - i < len(quote) and quote.startswith(buffer[i:]):
                return None
        return buffer[i] if buffer[i] in "\"'" else ""

    def _begin_string(self, quote: str, before: str) -> int:
        self._sink(before + '"')
        if self._encoding.escapes or quote != self._encoding.quote:
            self._string = StringValue(lambda text: self._sink(escape(text)), quote)
            return 0
        self._string = _RawString(quote, self._sink)
        return len(quote)


class _RawString:
    """A string without escapes, up to its closing quote."""

    __slots__ = ("_marks", "_quote", "_sink")

    def __init__(self, quote: str, sink: Sink) -> None:
        self._quote = quote
        self._marks = Marks.of((quote,))
        self._sink = sink

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        end = buffer.find(self._quote, start)
        if end >= 0:
            self._sink(escape(buffer[start:end]))
            return end + len(self._quote), Status.DONE
        keep = self._marks.held_back(buffer, start)
        self._sink(escape(buffer[start:keep]))
        return keep, Status.MORE
