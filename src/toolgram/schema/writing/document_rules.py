"""The rules of one document, in the order of their use: some are the same in the whole grammar, some wait."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from toolgram.grammar.ir import NOTHING, Expr, Ref
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.work import TooLarge

MAX_RULES = 50_000


@dataclass(slots=True)
class DocumentRules:
    """Collects the rules of one document; `made` are those that are written.

    `rule` and `finish` raise TooLarge where there are more than MAX_RULES.
    """

    names: RuleNames
    spelling: Spelling
    made: dict[str, Expr] = field(default_factory=dict[str, Expr])
    _waiting: deque[tuple[str, Callable[[], Expr]]] = field(default_factory=deque[tuple[str, Callable[[], Expr]]])
    _refs: dict[str, Ref] = field(default_factory=dict[str, Ref])  # of the shared rules that have no key
    _within: Hashable = None  # the key of the rule that is being made, or part of which is
    _parts: Counter[Hashable] = field(default_factory=Counter[Hashable])

    def finish(self) -> dict[str, Expr]:
        """The rules of all that was asked for."""
        while self._waiting:
            name, make = self._waiting.popleft()
            self.made[name] = NOTHING  # holds its place, so that rules stand in the order of their use
            self.made[name] = make()
            self._check_size()
        return self.made

    def _check_size(self) -> None:
        if len(self.made) + len(self._waiting) > MAX_RULES:
            raise TooLarge

    def name(self, hint: str) -> str:
        """A new name; within a rule that is the same in the whole grammar, the same in each of its makings."""
        if self._within is None:
            return self.names.fresh(hint)
        self._parts[self._within, hint] += 1
        return self.names.known(hint, (self._within, hint, self._parts[self._within, hint]))

    def rule(self, hint: str, body: Expr) -> Ref:
        """A rule that is written now."""
        self._check_size()
        name = self.name(hint)
        self.made[name] = body
        return Ref(name)

    def later(self, hint: str, make: Callable[[str], Expr], key: Hashable = None) -> Ref:
        """A rule that is written when all before it are: that is where recursion ends.

        With a key it is the same in the whole grammar, and so is all that it alone consists of.
        """
        name = self.name(hint) if key is None else self.names.known(hint, key)
        within = self._within if key is None else key

        def made() -> Expr:
            self._within = within
            return make(name)

        self._waiting.append((name, made))
        return Ref(name)

    def shared(self, hint: str, make: Callable[[], Expr], key: Hashable = None) -> Ref:
        """The rule that is the same wherever spelling, hint and key are, written now."""
        if key is None and (known := self._refs.get(hint)):
            return known
        name = self.shared_name(hint, key)
        if name not in self.made:
            self.made[name] = make()
        ref = Ref(name)
        if key is None:
            self._refs[hint] = ref
        return ref

    def shared_later(self, hint: str, make: Callable[[], Expr], key: Hashable) -> Ref:
        """The rule that is the same wherever spelling, hint and key are, written when all before it are."""
        name = self.shared_name(hint, key)
        self._waiting.append((name, make))
        return Ref(name)

    def shared_name(self, hint: str, key: Hashable = None) -> str:
        """The name of a rule that is the same wherever spelling, hint and key are."""
        return self.names.shared(hint, (self.spelling, key) if key else self.spelling)
