"""A grammar for a turn, as engines take it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from toolgram.errors import GrammarError
from toolgram.grammar.dialects.structural_tag import write_structural_tag
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import (
    Choice,
    Expr,
    Members,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Token,
    children,
    choice,
    optional,
    seq,
)
from toolgram.grammar.walk import fresh, names_in, renamed

_Binding = tuple[tuple[tuple[str, int], ...], tuple[Token, ...]]
"""The markers that are tokens, and the tokens that may stand at the end."""


@dataclass(frozen=True)
class Constraint:
    """What the model's output must match: all of it, or from the first `trigger` on that the model writes.

    A constraint with a trigger is the lazy form, for engines whose masks are costly (llama.cpp: `grammar_lazy` and
    `grammar_triggers`): its grammar begins with the trigger.
    """

    grammar: Grammar
    trigger: str | None = None
    _lazy: Callable[[], Constraint] | None = field(default=None, repr=False, compare=False)
    _bound: dict[_Binding, Constraint] = field(
        default_factory=dict["_Binding", "Constraint"], init=False, repr=False, compare=False
    )

    def bind(self, vocabulary: Mapping[str, int], ends: Iterable[str] = ()) -> Constraint:
        """The same constraint with each marker that is one token of the vocabulary written as that token.

        `vocabulary` maps the text of special tokens to their ids. Each of `ends` that is in it may stand at the end:
        for engines that let a grammar end with an end token of their own alone, where the model's turns end with
        another one; that would be barred, and the model led on.
        """
        ids = tuple((text, vocabulary[text]) for text in self.markers if text in vocabulary)
        last = tuple(Token(text, vocabulary[text]) for text in ends if text in vocabulary)
        if (ids, last) not in self._bound:
            rules = {name: _bound(expr, dict(ids)) for name, expr in self.grammar.rules.items()}
            rules = _ended(rules, choice(*last)) if last else rules
            self._bound[ids, last] = Constraint(replace(self.grammar, rules=rules), self.trigger)
        return self._bound[ids, last]

    def lazy(self) -> Constraint:
        """The same constraint, but that it begins with the first call, at its trigger; to be bound after that.

        Raises GrammarError where the whole output must be constrained (a call is required, or an answer in a schema),
        and where no marker shows that a call begins.
        """
        if self.trigger is not None:
            return self
        if self._lazy is None:
            raise GrammarError("this constraint has no lazy form")
        return self._lazy()

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """The texts that are special tokens in some vocabularies, for which `bind` asks."""
        found = (part for expr in self.grammar.rules.values() for part in _parts(expr))
        return tuple(dict.fromkeys(part.text for part in found if isinstance(part, Token)))

    def structural_tag(self) -> dict[str, Any]:
        """The constraint as a structural tag of XGrammar 0.2, as vLLM and SGLang take it too."""
        format_ = deepcopy(self._format)
        if self.trigger is not None:
            # Not triggered_tags: what goes on to the end of the turn has no end tag.
            format_ = {"type": "dispatch", "rules": [[self.trigger, format_]], "loop": False}
        return {"type": "structural_tag", "format": format_}

    @cached_property
    def _format(self) -> dict[str, Any]:
        rules = self.grammar.rules
        if self.trigger is not None and isinstance(root := rules["root"], Sequence):
            rules = {**rules, "root": seq(*root.items[1:])}
        return write_structural_tag(rules)


def _parts(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in children(expr):
        yield from _parts(child)


def _ended(rules: Rules, end: Expr) -> dict[str, Expr]:
    """The rules with an end or none behind all that they match."""
    if any("root" in names_in(expr) for expr in rules.values()):  # which is no end where it is inside of itself
        names = {"root": fresh("turn", rules)}
        rules = {names.get(name, name): renamed(expr, names) for name, expr in rules.items()}
        return {"root": seq(Ref(names["root"]), optional(end)), **rules}
    return {**rules, "root": seq(rules["root"], optional(end))}


def _bound(expr: Expr, vocabulary: Mapping[str, int]) -> Expr:
    match expr:
        case Token(text):
            return Token(text, vocabulary.get(text))
        case Sequence(items):
            return Sequence(tuple(_bound(item, vocabulary) for item in items))
        case Choice(options):
            return Choice(tuple(_bound(option, vocabulary) for option in options))
        case Repeat(item):
            return replace(expr, item=_bound(item, vocabulary))
        case Members(items):
            return replace(expr, items=tuple(_bound(item, vocabulary) for item in items))
        case _:
            return expr
