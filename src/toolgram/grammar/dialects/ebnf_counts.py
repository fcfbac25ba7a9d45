"""Characters that are counted, in the shape that XGrammar compiles and masks quickly.

XGrammar looks through the vocabulary for each state in which most characters may come: a state for each number of them
takes 8 ms each. So more than a few are all read by three rules for one character, and rules that only refer to others
count: twice as many are a rule of two such rules. What a rule for one character cannot know is whether tokens of
several fit. XGrammar tries these at every mask, but for those that a lookahead takes. So there is a rule for where 16
characters more fit at least, one for where 4 do, and one for the last few, where masks take some 20 ms.

A lookahead may only say what holds wherever the rule is used, and XGrammar believes it of a rule that is used at one
place, before something else: hence a rule for that one place, and one for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgram.grammar.dialects.ebnf_steps import is_broad
from toolgram.grammar.ir import EMPTY, CharSet, Expr, Ref, choice, seq
from toolgram.grammar.walk import fresh

_FEW = 32
"""Strings of so many characters at most have a rule for each number of them: a model often comes to their ends."""
_MANY = 256
"""The same where they are out of a few, and the character that comes then may be one of them as well, as in
`[a-z-]{0,61} [a-z]`: after each of them the string may have ended, which a rule for one character knows nothing of, and
masks take 30 ms. Out of most characters, as before a tag that begins with a line break, masks take 1 ms, and the
grammar with a rule for each number seconds."""
FAR = 16
"""So many characters more make nearly all tokens fit."""
_LEVELS = (0, 4, FAR)
"""For how many characters more there is a rule for one character each."""


@dataclass(slots=True)
class Counts:
    """The rules for strings of the same characters that end in the same way."""

    options: tuple[Expr, ...]
    """What a character may be."""
    closer: Expr
    """What is read with them, where they end."""
    stop: CharSet
    """What comes first after them, the closer or what more there may be: one character."""
    rules: dict[str, Expr]
    """Where rules are added."""
    lookaheads: dict[str, str]
    """Where lookaheads are added: by the name of a rule that of the rule for what follows."""
    stem: str
    """How the names of the rules begin."""
    _made: dict[str, Ref] = field(default_factory=dict[str, Ref])

    @property
    def _is_open(self) -> bool:
        """Whether they are out of a few, and what comes first after them may be one of them as well."""
        if any(map(is_broad, self.options)):
            return False
        ranges = [pair for option in self.options if isinstance(option, CharSet) for pair in option.ranges]
        return any(low <= last and first <= high for low, high in ranges for first, last in self.stop.ranges)

    def so_many(self, low: int, high: int) -> Expr:
        """So many characters, and the closer."""
        if high <= (_MANY if self._is_open else _FEW):
            return self._few(low, high)
        far = high - FAR
        if low > far:
            return seq(self._times(far), self._near(low - far, FAR))
        if low:
            return seq(self._times(low), self.so_many(0, high - low))
        if not far:
            return self._near(0, high)
        return choice(self._at_most(far - 1), seq(self._times(far), self._near(0, FAR)))

    def _few(self, low: int, high: int) -> Expr:
        """So many, by a rule for each number of them, which looks through the vocabulary."""
        rest = self.closer
        for left in range(1, high + 1):
            least = max(low - high + left, 0)
            options = [seq(option, rest) for option in self.options]
            rest = self._rule(f"{least}-to-{left}-few", choice(*options, *([] if least else [self.closer])))
        return rest

    def _near(self, low: int, high: int) -> Ref:
        """So many, by a rule for each number of them, which refers to those for one character."""
        rest = self._close()
        for left in range(1, high + 1):
            least = max(low - high + left, 0)
            more = seq(self._one(left - 1), rest)
            rest = self._rule(f"{least}-to-{left}", choice(more, *([] if least else [self._close()])))
        return rest

    def _times(self, count: int) -> Ref:
        """Exactly so many, after which more fit: a power of two, and the rest."""
        if count == 1 or f"{count}" in self._made:
            return self._one(FAR) if count == 1 else self._made[f"{count}"]
        half = 1 << (count - 1).bit_length() - 1
        return self._rule(f"{count}", seq(self._times(half), self._times(count - half)))

    def _at_most(self, count: int) -> Ref:
        """So many at most, after which more fit, and the closer: fewer than a power of two, or that and the rest."""
        if count <= 0 or f"{count}-most" in self._made:
            return self._made[f"{count}-most"] if count > 0 else self._close()
        half = 1 << count.bit_length() - 1
        more = seq(self._times(half), self._at_most(count - half))
        return self._rule(f"{count}-most", choice(self._at_most(half - 1), more))

    def _one(self, after: int) -> Ref:
        """One character, after which so many more fit."""
        level = max(level for level in _LEVELS if level <= after)
        options = [seq(option, self._nothing()) for option in self.options]
        read = self._rule(f"before-{level}", choice(*options))
        if not level:
            return read
        if read.name not in self.lookaheads:
            self.lookaheads[read.name] = self._ahead(level).name
        return self._rule(f"one-{level}", seq(read, self._nothing()))

    def _ahead(self, count: int) -> Ref:
        """So many characters, or fewer and what comes then: where it ends XGrammar tries tokens that go on."""
        rest = self._nothing()
        stop = self._rule("stop", seq(self.stop, rest))
        for left in range(1, count + 1):
            rest = self._rule(f"ahead-{left}", choice(stop, seq(self._one(0), rest)))
        return rest

    def _close(self) -> Ref:
        return self._rule("close", seq(self.closer, self._nothing()))

    def _nothing(self) -> Ref:
        return self._rule("nothing", EMPTY)

    def _rule(self, kind: str, body: Expr) -> Ref:
        """The rule of this kind, which is made where there is none."""
        if kind not in self._made:
            self._made[kind] = Ref(fresh(f"{self.stem}-{kind}", self.rules))
            self.rules[self._made[kind].name] = body
        return self._made[kind]
