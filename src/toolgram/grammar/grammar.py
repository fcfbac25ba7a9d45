"""A grammar as users see it: rules, what was relaxed to make them, and what can be done with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from toolgram.errors import GrammarError, Relaxation
from toolgram.grammar import dialects, matcher
from toolgram.grammar.ir import Expr, Rules
from toolgram.grammar.orders import in_rules
from toolgram.grammar.shape import Lengths, longest, shortest
from toolgram.grammar.simplify import factored, shortened
from toolgram.grammar.walk import uses
from toolgram.work import undisturbed


@dataclass(frozen=True)
class Grammar:
    """Named expressions, of which `root` is the start; immutable, and safe to share between threads."""

    rules: Mapping[str, Expr]
    relaxations: tuple[Relaxation, ...] = ()
    _known: Lengths = field(default_factory=dict[str, "int | None"], compare=False, repr=False)
    # lengths of the shortest sentences of some rules, and of all those that these use

    @undisturbed()
    def to(self, dialect: str) -> str:
        """The grammar as text in "gbnf", "lark" (llguidance) or "ebnf" (XGrammar).

        Raises GrammarError for a dialect that is not known, or a grammar that it cannot express.
        """
        if dialect not in self._texts:
            if dialect not in dialects.WRITERS:
                raise GrammarError(f"no dialect {dialect!r}; there are {', '.join(sorted(dialects.WRITERS))}")
            try:
                rules = self._simple if dialect in dialects.FACTORED else self._short
                self._texts[dialect] = dialects.WRITERS[dialect](rules)
            except RecursionError as error:
                raise GrammarError(f"the grammar is nested too deeply to be written as {dialect}") from error
        return self._texts[dialect]

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {}

    @cached_property
    def _simple(self) -> Rules:
        rules = in_rules(self.rules)
        return factored(self._short if rules is self.rules else shortened(rules))

    @cached_property
    def _short(self) -> Rules:
        return shortened(self.rules, self._known)

    @cached_property
    def _matcher(self) -> matcher.Matcher:
        return matcher.Matcher(self.rules)

    @cached_property
    def shortest(self) -> int:
        """How many characters its shortest sentence has. Raises GrammarError where it has none."""
        length = shortest(self.rules, uses(self.rules))["root"]
        if length is None:
            raise GrammarError("the grammar has no sentence")
        return length

    @cached_property
    def longest(self) -> int | None:
        """How many bytes its longest sentence has in UTF-8, free text (`Text`) aside; None where there is no bound."""
        return longest(self.rules)

    def accepts(self, text: str) -> bool:
        """Whether the whole text is a sentence of the grammar."""
        return self._matcher.accepts(text)

    def sample(self, seed: int) -> str:
        """A random sentence; the same seed gives the same sentence."""
        return self._matcher.sample(seed)

    def after(self, text: str) -> Grammar:
        """The grammar of what may follow `text`. Raises GrammarError where nothing may."""
        rules = self._matcher.after(text)
        return Grammar(rules, self.relaxations, self._matcher.known_of(rules))
