"""Grammars in llguidance's Lark.

llguidance matches literals and terminals as greedy lexemes: `"a" "bc" | "ab" "d"` refuses "abc", since the lexer that
has read "ab" never comes back to "a". So the writer chooses its lexemes (`lark_lower`), finds where one could run on
over the beginning of the next (`lark_follow`, `lark_network`), and rewrites those places until there are none
(`lark_repair`).
Format: https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from toolgram.grammar.dialects.lark_lower import lower
from toolgram.grammar.dialects.lark_regex import count, regex, terminal
from toolgram.grammar.dialects.lark_repair import repaired
from toolgram.grammar.dialects.lark_tree import Call, Fork, Lexeme, Loop, Node, Row, Special, leaves
from toolgram.grammar.ir import Expr, Literal, Ref, Rules, Sequence, Text
from toolgram.grammar.walk import names_in

_LONGEST_INLINE = 24
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_Key = TypeVar("_Key", str, Expr)


def write_lark(rules: Rules) -> str:
    """The rules, tidy at least, as Lark that accepts the same strings."""
    lowered = lower(rules)
    tree, words = repaired(lowered.tree, lowered.words), lowered.words
    names = _named(tree, ("start" if name == "root" else "start_" if name == "start" else name for name in tree))
    lexemes = [leaf for node in tree.values() for leaf in leaves(node) if isinstance(leaf, Lexeme)]
    wanted = _terminals(lexemes, words)
    terminals = _named(wanted, map(str.upper, wanted.values()))
    of_word = {expr.name: name for expr, name in terminals.items() if isinstance(expr, Ref)}
    rows = [f"{names[name]}: {_node(node, names, terminals, 0)}" for name, node in tree.items()]
    for expr, name in terminals.items():
        rows.append(f"{name}: {terminal(words[expr.name] if isinstance(expr, Ref) else expr, of_word)}")
    return "\n".join(rows) + "\n"


def _named(keys: Iterable[_Key], wanted: Iterable[str]) -> dict[_Key, str]:
    """Different names that Lark can have, as near as can be to those wanted."""
    given: dict[_Key, str] = {}
    taken: set[str] = set()
    for key, name in zip(keys, wanted, strict=True):
        base = candidate = _NOT_IN_NAMES.sub("_", name)
        number = 1
        while candidate in taken:
            number += 1
            candidate = f"{base}_{number}"
        taken.add(candidate)
        given[key] = candidate
    return given


def _terminals(lexemes: Iterable[Lexeme], words: Rules) -> dict[Expr, str]:
    """The expressions that get a name as terminals, in order of first use, with what they might be called."""
    wanted: dict[Expr, str] = {}
    for expr, name, tail in dict.fromkeys((lexeme.expr, lexeme.name, lexeme.tail) for lexeme in lexemes):
        waiting = names_in(expr)[::-1]
        if waiting and not isinstance(expr, Ref):
            wanted.setdefault(expr, "key" if tail else "lexeme")
        elif not (waiting or isinstance(expr, Literal)) and (name or len(regex(expr)) > _LONGEST_INLINE):
            wanted.setdefault(expr, name or _kind(expr))
        while waiting:
            word = waiting.pop()
            if Ref(word) not in wanted:
                wanted[Ref(word)] = word
                waiting.extend(names_in(words[word])[::-1])
    return wanted


def _kind(expr: Expr) -> str:
    first = expr.items[0] if isinstance(expr, Sequence) else expr
    return "text" if isinstance(first, Text) else "lexeme"


def _node(node: Node, names: Mapping[str, str], terminals: Mapping[Expr, str], tightness: int) -> str:
    """A node as Lark; in parentheses where something binds tighter around it (1: a row, 2: a repetition)."""
    match node:
        case Lexeme(expr):
            return terminals.get(expr) or terminal(expr, {})
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
