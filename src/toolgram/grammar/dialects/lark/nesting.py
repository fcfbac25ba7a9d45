"""Rules of Lark that are not nested too deeply: what is, becomes a rule of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgram.grammar.dialects.lark.tree import Fork, Loop, Node, Row, Tree, call_of, depth
from toolgram.grammar.walk import fresh

_DEEPEST = 24  # levels in one rule: llguidance 1.9 takes 28 parentheses, one in another


def shallow(tree: Tree) -> Tree:
    """The same rules, and those that what is nested too deeply in them became."""
    cutting = _Cutting(dict(tree))
    for name, node in tree.items():
        if depth(node) >= _DEEPEST:
            cutting.rules[name] = cutting.cut(node, name)[0]
    return cutting.rules


@dataclass
class _Cutting:
    """Adds to the rules; a part that stands in several places becomes one rule."""

    rules: dict[str, Node]
    _known: dict[int, tuple[Node, int]] = field(default_factory=dict[int, tuple[Node, int]])

    def cut(self, node: Node, rule: str) -> tuple[Node, int]:
        """The node with calls of rules in the place of what is too deep, and how many levels are left in it."""
        if id(node) in self._known:
            return self._known[id(node)]
        match node:
            case Row(items) | Fork(items):
                inner = [self.cut(item, rule) for item in items]
                changed = any(new is not item for (new, _), item in zip(inner, items, strict=True))
                made: Node = type(node)(tuple(new for new, _ in inner)) if changed else node
                depth = 1 + max((depth for _, depth in inner), default=0)
            case Loop(item, least, most):
                new, depth = self.cut(item, rule)
                made, depth = node if new is item else Loop(new, least, most), depth + 1
            case _:
                return node, 0
        if depth >= _DEEPEST:
            name = fresh(f"{rule}-within", self.rules)
            self.rules[name] = made
            made, depth = call_of(name, made), 0
        self._known[id(node)] = made, depth
        return made, depth
