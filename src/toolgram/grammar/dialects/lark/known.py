"""Rules that were lowered before: a rule that leads to the same rules has the same lexemes in every grammar."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from toolgram.caching import TOGETHER, remembers
from toolgram.grammar.dialects.lark.tree import Node, Tree
from toolgram.grammar.hashing import HashedOnce, facts_of
from toolgram.grammar.ir import Expr, Rules
from toolgram.grammar.walk import Uses, weight


class LoweredRule(NamedTuple):
    """What a rule is in lexemes, with the rules that were made for members in it, and the words for lexemes."""

    node: Node
    members: Tree
    words: Mapping[str, Expr]


@dataclass(slots=True, eq=False)
class KnownRule:
    """A rule with all that it leads to, which is the same wherever that is; `lowered` once it was."""

    lowered: LoweredRule | None = None


def known_rules(
    rules: Rules, used: Uses, components: Iterable[Sequence[str]], among: Hashable, each: Mapping[str, Hashable]
) -> dict[str, KnownRule]:
    """What is known of each rule, in grammars that are alike in what `among` says.

    `components`: the rules that lead to one another, each after those that it leads to; `each`: what more says how one
    is lowered.
    """
    around = _known(("among", among), 0)
    found: dict[str, KnownRule] = {}
    for component in components:
        inside = sorted(component)
        others = dict.fromkeys(part for name in inside for part in used[name] if part not in component)
        leads_to = (around, *map(found.__getitem__, others))
        if len(inside) == 1:
            (name,) = inside
            found[name] = _known_by_itself(rules[name], (name, each.get(name), *leads_to))
            continue
        whole = [*((name, rules[name]) for name in inside), *leads_to]
        share = sum(weight(rules[name]) for name in inside) // len(inside)
        for name in inside:
            found[name] = _known((name, each.get(name), *whole), share)
    return found


def _known_by_itself(expr: Expr, key: tuple[Hashable, ...]) -> KnownRule:
    """What is known of one rule, which is kept with the very expression, too: that is found sooner."""
    if not isinstance(expr, HashedOnce):
        return _known((expr, *key), weight(expr))
    facts = facts_of(expr)
    kept: tuple[tuple[Hashable, ...], KnownRule] | None = facts.get(_known)
    if kept is None or kept[0] != key:
        facts[_known] = kept = key, _known((expr, *key), weight(expr))
    return kept[1]


@remembers
def _known(key: tuple[Hashable, ...], weight: int) -> KnownRule:
    known = TOGETHER.recall(_known, key)
    if known is None:
        known = KnownRule()
        TOGETHER.note(_known, key, known, weight)
    return known
