"""Text without some markers, in the shape that XGrammar compiles quickly.

XGrammar has an automaton of its own for it, a dispatch that excludes the markers, which looks through the vocabulary
once: rules for its states take 10 ms each, and there are dozens of them. It begins where nothing of a marker has been
seen. Where something has, the states up to the one in which nothing has are rules.

The automaton is one of bytes: it takes bytes that are no UTF-8, and may end inside of a character, of which the rest is
for a text that comes next. That is as if all of the character were in that one, unless a marker begins with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgram.grammar.dialects.bnf import text_rule, text_stem
from toolgram.grammar.ir import EMPTY, START, Expr, Ref, Text, choice, seq
from toolgram.grammar.until import automaton
from toolgram.grammar.walk import fresh


@dataclass(slots=True)
class Texts:
    """The rules for all texts of a grammar."""

    rules: dict[str, Expr]
    """Where rules are added."""
    _made: dict[Text, Ref] = field(default_factory=dict[Text, Ref])

    def rule(self, text: Text) -> Ref:
        """The rule for a text."""
        if text not in self._made:
            if text.seen:
                self._made[text] = self._begun(text)
            elif text.without and all(marker[0].isascii() for marker in text.without):
                self._made[text] = self._named(f"{text_stem(self.rules, 1)}-0", text)
            else:
                self._made[text] = text_rule(text, self.rules)
        return self._made[text]

    def _begun(self, text: Text) -> Ref:
        """The rule for a text before which something of a marker has been seen."""
        states = automaton(text.without, text.seen)
        home = states[0].edges[0][1]  # where a character leads that no marker has there
        free = self.rule(Text(tuple(marker for marker in text.without if not marker.startswith(START))))
        stem = text_stem(self.rules, len(states))
        refs = [free if number == home else Ref(f"{stem}-{number}") for number in range(len(states))]
        for ref, state in zip(refs, states, strict=True):
            if ref != free:
                self.rules[ref.name] = choice(*(seq(charset, refs[target]) for charset, target in state.edges), EMPTY)
        return refs[0]

    def _named(self, name: str, body: Expr) -> Ref:
        ref = Ref(fresh(name, self.rules))
        self.rules[ref.name] = body
        return ref
