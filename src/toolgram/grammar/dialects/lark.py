"""Grammars in llguidance's Lark.

llguidance matches literals and terminals as greedy lexemes: `"a" "bc" | "ab" "d"` refuses "abc", since the lexer that
has read "ab" never comes back to "a". So the writer chooses its lexemes, finds where one could run on over the
beginning of the next, and rewrites those places until there are none (`lark_network`, `lark_repair`).
Format: https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from toolgram.grammar.dialects.lark_lower import lower
from toolgram.grammar.dialects.lark_repair import repaired
from toolgram.grammar.dialects.lark_text import text_expression
from toolgram.grammar.dialects.lark_tree import Call, Fork, Lexeme, Loop, Node, Row, Special, leaves
from toolgram.grammar.ir import MAX_CODE_POINT, CharSet, Choice, Expr, Literal, Repeat, Rules, Sequence, Text, not_chars

_LONGEST_INLINE = 24
_QUOTED = re.compile(r'["\\\x00-\x1f\x7f]')
"""What is not itself between quotes."""
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def write_lark(rules: Rules) -> str:
    """The rules, as `simplify` leaves them, as Lark that accepts the same strings."""
    tree = repaired(lower(rules))
    names = {name: _rule_name(name) for name in tree}
    terminals = _terminals(tree)
    lines = [f"{names[name]}: {_node(node, names, terminals, 0)}" for name, node in tree.items()]
    lines += [f"{name}: /{regex}/" for regex, name in terminals.items()]
    return "\n".join(lines) + "\n"


def _rule_name(name: str) -> str:
    if name == "root":
        return "start"
    return "start_" if name == "start" else name.replace("-", "_")


def _terminals(tree: Mapping[str, Node]) -> dict[str, str]:
    """The regular expressions that get a name of their own, in order of first use."""
    named: dict[str, str] = {}
    taken: set[str] = set()
    for leaf in (leaf for node in tree.values() for leaf in leaves(node)):
        if not isinstance(leaf, Lexeme) or isinstance(leaf.expr, Literal):
            continue
        regex = _regex(leaf.expr, 0)
        if regex in named or (len(regex) <= _LONGEST_INLINE and not leaf.name):
            continue
        base = (leaf.name.replace("-", "_") or _kind(leaf.expr)).upper()
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        named[regex] = name
    return named


def _kind(expr: Expr) -> str:
    first = expr.items[0] if isinstance(expr, Sequence) else expr
    return "text" if isinstance(first, Text) else "lexeme"


def _node(node: Node, names: Mapping[str, str], terminals: Mapping[str, str], tightness: int) -> str:
    """A node as Lark; in parentheses where something binds tighter around it (1: a row, 2: a repetition)."""
    match node:
        case Lexeme(Literal(text)):
            return _quoted(text)
        case Lexeme(expr):
            regex = _regex(expr, 0)
            return terminals.get(regex, f"/{regex}/")
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
            text = f"({inner})" if isinstance(item, Loop) else inner
            return text + _count(least, most)


def _count(least: int, most: int | None) -> str:
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    if (least, most) == (0, 1):
        return "?"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _quoted(text: str) -> str:
    return f'"{_QUOTED.sub(_in_quotes, text)}"'


def _in_quotes(found: re.Match[str]) -> str:
    char = found[0]
    if char in '"\\':
        return "\\" + char
    return _NAMED_ESCAPES.get(char) or f"\\u{ord(char):04x}"


@lru_cache(maxsize=4096)
def _regex(expr: Expr, tightness: int) -> str:
    """An expression as a regular expression between slashes (1: inside a sequence, 2: under a repetition)."""
    match expr:
        case Literal(text):
            inner = "".join(map(_in_regex, text))
            return f"({inner})" if tightness > 1 and len(text) != 1 else inner
        case CharSet():
            return _class(expr)
        case Text():
            return _regex(text_expression(expr), tightness)
        case Sequence(items):
            inner = "".join(_regex(item, 1) for item in items)
            return f"({inner})" if tightness > 1 else inner
        case Choice(options):
            inner = "|".join(_regex(option, 0) for option in options)
            return f"({inner})" if tightness else inner
        case Repeat(item, least, most):
            inner = _regex(item, 2)
            return (f"({inner})" if isinstance(item, Repeat) else inner) + _count(least, most)
        case _:
            raise TypeError(f"not a regular expression: {expr!r}")


def _in_regex(char: str) -> str:
    if char in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[char]
    if not (" " <= char <= "~"):
        return f"\\x{{{ord(char):x}}}"
    return char if char.isalnum() or char in " <>_=:;,!@%'\"`" else "\\" + char


def _class(charset: CharSet) -> str:
    if len(charset.ranges) == 1 and charset.ranges[0][0] == charset.ranges[0][1]:
        return _in_regex(chr(charset.ranges[0][0]))
    outside = not_chars(*charset.ranges)
    if not outside.ranges:
        return "(?s:.)"
    if charset.ranges[-1][1] == MAX_CODE_POINT:
        return f"[^{_ranges(outside)}]"
    return f"[{_ranges(charset)}]"


def _ranges(charset: CharSet) -> str:
    return "".join(
        _in_regex(chr(low)) if low == high else f"{_in_regex(chr(low))}-{_in_regex(chr(high))}"
        for low, high in charset.ranges
    )
