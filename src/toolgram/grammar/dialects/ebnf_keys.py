"""Strings that are none of some, in the shape that XGrammar masks quickly.

"Any character but some, then the rest" stands at each letter of the keys that an object declares. It is cut into
classes of characters that are rules of their own: each token is tried for one of them, and not once for each letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from toolgram.grammar.excepts import write_tree
from toolgram.grammar.ir import CharSet, Except, Expr, Literal, Ref, chars, choice, not_chars, seq
from toolgram.grammar.walk import fresh

_ALWAYS_APART = (chars(" "), chars((0x30, 0x39), (0x41, 0x5A), "_", (0x61, 0x7A)))
"""Cut apart in all grammars, so that XGrammar, which keeps the masks of rules, tries these tokens once for all."""


@dataclass(slots=True)
class Others:
    """The rules for strings of the same characters, of which some are left out."""

    raw: CharSet
    escaped: Expr
    rest: Ref
    """The rest of such a string, with its closing quote."""
    rules: dict[str, Expr]
    """Where rules are added."""
    _but: dict[str, Ref] = field(default_factory=dict[str, Ref])
    """By some characters, the rule for a character that is none of them and the rest."""

    def rule(self, expr: Except, inside: str) -> Ref:
        """The rule for such strings, which is named like the rule that it is in. `finish` must come after the last."""
        return write_tree(expr.texts, self._none_of, f"{inside}-key", self.rules)

    def _none_of(self, some: str) -> Ref:
        some = "".join(sorted(some))
        if some not in self._but:
            self._but[some] = self._added("but")
        return self._but[some]

    def finish(self) -> None:
        """Write the rules that these strings share: by now it is known which characters must be told apart."""
        escaped = seq(self.escaped, self.rest)
        classes = [(first, self._added("from", seq(each, self.rest))) for first, each in self._classes()]
        for some, ref in self._but.items():
            self.rules[ref.name] = choice(*(rule for first, rule in classes if first not in some), escaped)

    def _classes(self) -> Iterable[tuple[str, Expr]]:
        """The raw characters in classes that none of the rules tells apart, each with one of its characters."""
        together: dict[tuple[object, ...], list[str]] = {}
        for char in sorted(set().union(*self._but)):
            apart = tuple([char in charset for charset in _ALWAYS_APART])
            together.setdefault((apart, *[some for some in self._but if char in some]), []).append(char)
        named = [char for alike in together.values() for char in alike]
        left = not_chars(*named, *not_chars(*self.raw.ranges).ranges)
        for charset in (*_ALWAYS_APART, not_chars(*(pair for each in _ALWAYS_APART for pair in each.ranges))):
            outside = not_chars(*charset.ranges).ranges
            if ranges := not_chars(*outside, *not_chars(*left.ranges).ranges).ranges:
                yield chr(ranges[0][0]), _plain(CharSet(ranges))
        for alike in together.values():
            yield alike[0], _plain(chars(*alike))

    def _added(self, kind: str, body: Expr = Literal("")) -> Ref:
        name = fresh(f"{self.rest.name}-{kind}", self.rules)
        self.rules[name] = body
        return Ref(name)


def _plain(charset: CharSet) -> Expr:
    """A set of one character as a literal."""
    (low, high), *others = charset.ranges
    return charset if others or low < high else Literal(chr(low))
