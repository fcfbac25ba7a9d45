"""Grammars in llguidance's Lark.

llguidance matches literals and terminals as greedy lexemes: `"a" "bc" | "ab" "d"` refuses "abc", since the lexer that
has read "ab" never comes back to "a". So the writer chooses its lexemes (`lark_lower`), finds where one could run on
over the beginning of the next (`lark_follow`, `lark_network`), and rewrites those places until there are none
(`lark_repair`).
Format: https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md
"""

from __future__ import annotations

from collections.abc import Mapping

from toolgram.grammar.dialects.lark_lower import lower
from toolgram.grammar.dialects.lark_regex import count
from toolgram.grammar.dialects.lark_repair import repaired
from toolgram.grammar.dialects.lark_terminals import Names, terminals_of
from toolgram.grammar.dialects.lark_tree import Call, Fork, Lexeme, Loop, Node, Row, Special, leaves
from toolgram.grammar.ir import Expr, Rules

_NAMED_ALREADY = {"root": "start", "start": "start_"}


def write_lark(rules: Rules) -> str:
    """The rules, tidy at least, as Lark that accepts the same strings."""
    lowered = lower(rules)
    tree = repaired(lowered.tree, lowered.words)
    given = Names()
    names = {name: given.give(_NAMED_ALREADY.get(name, name)) for name in tree}
    lexemes = [leaf for node in tree.values() for leaf in leaves(node) if isinstance(leaf, Lexeme)]
    terminals, lines = terminals_of(lexemes, lowered.words, lowered.excepts)
    rows = (f"{names[name]}: {_node(node, names, terminals, 0)}" for name, node in tree.items())
    return "\n".join([*rows, *lines]) + "\n"


def _node(node: Node, names: Mapping[str, str], terminals: Mapping[Expr, str], tightness: int) -> str:
    """A node as Lark; in parentheses where something binds tighter around it (1: a row, 2: a repetition)."""
    match node:
        case Lexeme(expr):
            return terminals[expr]
        case Special(number):
            return f"<[{number}]>"
        case Call(name):
            return names[name]
        case Row(items):
            text = " ".join(_node(item, names, terminals, 1) for item in items) or '""'
            return f"({text})" if tightness > 1 and len(items) > 1 else text
        case Fork(options):
            text = " | ".join(_node(option, names, terminals, 0) for option in options)
            return f"({text})" if tightness else text
        case Loop(item, least, most):
            inner = _node(item, names, terminals, 2)
            return (f"({inner})" if isinstance(item, Loop) else inner) + count(least, most)
