"""Strings that are none of some, in the shape that XGrammar masks quickly.

"Any character but some, then the rest" stands at each letter of the keys that an object declares. It is cut into
classes of characters that are rules of their own: each token is tried for one of them, and not once for each letter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgram.grammar.excepts import write_tree
from toolgram.grammar.ir import EMPTY, CharSet, Choice, Except, Expr, Literal, Ref, chars, choice, not_chars, seq
from toolgram.grammar.walk import fresh

_ALWAYS_APART = (chars(" "), chars((0x30, 0x39), (0x41, 0x5A), "_", (0x61, 0x7A)))
"""Cut apart in all grammars, so that XGrammar, which keeps the masks of rules, tries these tokens once for all."""
_OTHERS = not_chars(*(pair for each in _ALWAYS_APART for pair in each.ranges))


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
        unnamed, named = self._classes()
        always = self._added("always", Choice((*map(self._from, unnamed), seq(self.escaped, self.rest))))
        classes = [(alike[0], self._from(chars(*alike))) for alike in named]
        for some, ref in self._but.items():
            self.rules[ref.name] = choice(always, *[rule for first, rule in classes if first not in some])

    def _from(self, charset: CharSet) -> Ref:
        return self._added("from", seq(_plain(charset), self.rest))

    def _classes(self) -> tuple[list[CharSet], list[list[str]]]:
        """The raw characters in classes that none of the rules tells apart: those that all rules have, and others."""
        together: dict[tuple[object, ...], list[str]] = {}
        for char in sorted({char for some in self._but for char in some}):
            apart = tuple([char in charset for charset in _ALWAYS_APART])
            together.setdefault((apart, *[some for some in self._but if char in some]), []).append(char)
        taken = (*self._but, *not_chars(*self.raw.ranges).ranges)
        classes = [not_chars(*taken, *not_chars(*each.ranges).ranges) for each in (*_ALWAYS_APART, _OTHERS)]
        return [each for each in classes if each.ranges], list(together.values())

    def _added(self, kind: str, body: Expr = EMPTY) -> Ref:
        name = fresh(f"{self.rest.name}-{kind}", self.rules)
        self.rules[name] = body
        return Ref(name)


def _plain(charset: CharSet) -> Expr:
    """A set of one character as a literal."""
    (low, high), *others = charset.ranges
    return charset if others or low < high else Literal(chr(low))
