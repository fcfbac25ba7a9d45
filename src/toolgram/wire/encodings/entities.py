"""Characters of values for which something else stands between tags: `&lt;` for `<`, as templates write that escape."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from toolgram.grammar.excepts import in_trees
from toolgram.grammar.ir import (
    CharSet,
    Expr,
    Literal,
    Ref,
    Rules,
    Text,
    Token,
    chars,
    choice,
    less,
    not_chars,
    repeat,
    seq,
)
from toolgram.grammar.raw_text import RawText
from toolgram.grammar.regular.automata import Automaton
from toolgram.grammar.regular.to_expr import expression, numbered
from toolgram.grammar.walk import with_children
from toolgram.work import remembered

# Models write those of HTML, whichever of them their templates do.
_OF_HTML = {
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&apos;": "'",
    "&#34;": '"',
    "&#39;": "'",
    "&#x22;": '"',
    "&#x27;": "'",
}


@dataclass(frozen=True)
class Entities:
    """Characters, each with what stands for it, that of the entities themselves first: ("&", "&amp;").

    Without `in_json` they are those of strings alone, and what is JSON is as it is. Those in `bare` end nothing: a
    model that was not taught the entities may write them as they are.
    """

    pairs: tuple[tuple[str, str], ...]
    in_json: bool = True
    bare: str = ""

    def written(self, text: str) -> str:
        """A text as it stands between tags."""
        for char, entity in self.pairs:
            text = text.replace(char, entity)
        return text

    def read(self, text: str) -> str:
        """The text that stands between tags."""
        return self._find.sub(lambda match: self._chars[match[0]], text)

    def whole(self, text: str) -> int:
        """Up to where the text is read alike whatever follows: no entity has begun there."""
        at = max(text.rfind("&"), len(text) - self._longest)
        begun = text[at:]
        return at if any(each != begun and each.startswith(begun) for each in self._chars) else len(text)

    @cached_property
    def _chars(self) -> Mapping[str, str]:
        return {**_OF_HTML, **{entity: char for char, entity in self.pairs}}

    @cached_property
    def _find(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self._chars)))

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._chars))

    # As expressions

    def char(self, charset: CharSet) -> Expr:
        """One of these characters, as it is written."""
        plain = less(charset, [char for char, _ in self.pairs if char not in self.bare])
        entities = [Literal(entity) for char, entity in self.pairs if char in charset]
        return choice(*([plain] if plain.ranges else []), *entities)

    def literal(self, text: str) -> Expr:
        """This text, as it is written."""
        return seq(*(self.char(chars(char)) if char in self.bare else self.written(char) for char in text))

    def text(self, language: Automaton | None, least: int = 0, most: int | None = None) -> RawText:
        """The texts of a language (None: all) of `least` to `most` characters (None: any number).

        Raises TooLarge where it takes too many states.
        """
        return _text(self, language, least, most)

    def rules(self, rules: Rules, name: Callable[[str], str]) -> dict[str, Expr]:
        """Rules with all their characters as they are written, by the names that `name` gives them."""
        plain = in_trees(rules)
        names = {each: name(each) for each in plain}
        return {names[each]: self._escaped(expr, names) for each, expr in plain.items()}

    def _escaped(self, expr: Expr, names: Mapping[str, str]) -> Expr:
        match expr:
            case Literal(text):
                return self.literal(text)
            case CharSet():
                return self.char(expr)
            case Ref(name):
                return Ref(names[name])
            case Text() | Token():
                raise TypeError("no part of JSON")
            case _:
                return with_children(expr, lambda part: self._escaped(part, names))


@remembered(maxsize=256)
def _text(entities: Entities, language: Automaton | None, least: int, most: int | None) -> RawText:
    if language is None:
        return RawText(repeat(entities.char(not_chars()), least, most))
    expr, bodies = numbered(lambda rule: expression(language, entities.char, rule, "", least, most))
    return RawText(seq(expr), bodies)
