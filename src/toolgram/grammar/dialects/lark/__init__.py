"""Grammars in llguidance's Lark.

llguidance matches literals and terminals as greedy lexemes: `"a" "bc" | "ab" "d"` refuses "abc", since the lexer that
has read "ab" never comes back to "a". So the writer chooses its lexemes (`lower`), finds where one could run on
over the beginning of the next (`lexing`), and rewrites those places until there are none (`repair`). What was found of
a rule, or of the calls of a tool, is kept for other grammars that have it (`known`, `parts`).
Format: https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from toolgram.errors import GrammarError
from toolgram.grammar.components import components
from toolgram.grammar.dialects.lark.again import written_once
from toolgram.grammar.dialects.lark.among import apart, entered
from toolgram.grammar.dialects.lark.lower import lower
from toolgram.grammar.dialects.lark.nesting import shallow
from toolgram.grammar.dialects.lark.regex import count, terminal
from toolgram.grammar.dialects.lark.repair import repaired
from toolgram.grammar.dialects.lark.terminals import Names, terminals_of
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Fork,
    Lexeme,
    Loop,
    Node,
    Only,
    Row,
    Special,
    Tree,
    calls,
    is_among,
    is_empty,
    items_of,
    joints,
    lexemes,
)
from toolgram.grammar.hashing import found_once
from toolgram.grammar.ir import Expr, Literal, Rules
from toolgram.grammar.orders import MOST_MEMBERS, in_rules
from toolgram.work import give_way

_DEEPEST = 4_000  # levels of rules and of what is in them: llguidance 1.9 runs out of stack beyond some 5,000
_Piece = str | Call | Lexeme
"""A part of a line of Lark; calls and lexemes are written otherwise in each grammar."""
_Said = str | tuple[Call, str] | Lexeme
"""The same, a call with what is taken of members before it."""
_NAMED_ALREADY = {"root": "start", "start": "start_"}


def write_lark(rules: Rules) -> str:
    """The rules, tidy at least, as Lark that accepts the same strings.

    Raises GrammarError for rules that call one another in chains of thousands, which llguidance dies of, and for more
    than it takes.
    """
    lowered = lower(in_rules(rules, MOST_MEMBERS))
    give_way()
    tree, words = repaired(lowered.tree, lowered.words)
    give_way()
    _check_depth(tree)
    tree = written_once(entered(apart(shallow(tree))))
    given = Names()
    names = {name: given.give(_NAMED_ALREADY.get(name, name)) for name in tree}
    terminals, lines = terminals_of(filter(_has_terminal, lexemes(tree)), words)
    among = {name for name, node in tree.items() if is_among(node)}
    writing = _Writing(names, terminals, among)
    return "\n".join([*(writing.rule(name, node) for name, node in tree.items()), *lines]) + "\n"


def _has_terminal(lexeme: Lexeme) -> bool:
    """Whether a lexeme is written otherwise in each grammar: a literal is always spelled where it stands."""
    return not isinstance(lexeme.expr, Literal)


def _check_depth(tree: Tree) -> None:
    """Raises GrammarError where a way down through the rules is too long; in a circle of rules, the longest one."""
    if sum(map(joints, tree.values())) <= _DEEPEST:
        return
    depths: dict[str, int] = {}
    for group in components({name: calls(node) for name, node in tree.items()}):
        around = sum(_depth(tree[name], {}) for name in group) if len(group) > 1 else 0
        depth = around + max(_depth(tree[name], depths) for name in group)
        if depth > _DEEPEST:
            reason = f"{group[0]} leads through {depth} levels of rules, and llguidance takes {_DEEPEST} at most"
            raise GrammarError(f"{reason}: use a repetition, or fewer optional parts")
        depths.update(dict.fromkeys(group, depth))


def _depth(node: Node, depths: Mapping[str, int]) -> int:
    match node:
        case Call(name):
            return depths.get(name, 0)
        case Row(parts) | Fork(parts):
            return 1 + max((_depth(part, depths) for part in parts), default=0)
        case Loop(item):
            return 1 + _depth(item, depths)
        case _:
            return 0


class _Writing(NamedTuple):
    """What rules and lexemes are called, and the rules that are given which members are taken."""

    names: Mapping[str, str]
    terminals: Mapping[Expr, str]
    among: Container[str]

    def rule(self, name: str, node: Node) -> str:
        """A rule as Lark."""
        pattern = _among_members(node) if name in self.among else _by_itself(node)
        said = [self.terminals[each.expr] if isinstance(each, Lexeme) else self._call(*each) for each in pattern.open]
        return f"{self.names[name]}{pattern.text % tuple(said)}"

    def _call(self, call: Call, taken: str) -> str:
        name = self.names[call.name]
        return f"{name}::{taken if call.among else '0x0'}" if call.name in self.among else name


class _Pattern(NamedTuple):
    """A rule as Lark, with `%s` where what is `open` stands: lexemes, and calls with what is taken before them."""

    text: str
    open: tuple[Lexeme | tuple[Call, str], ...]


@found_once
def _by_itself(node: Node) -> _Pattern:
    return _pattern(": ", *_said(node, ""))


@found_once
def _among_members(node: Node) -> _Pattern:
    """The pattern of a rule that is given which members are taken."""
    said: list[_Said] = []
    for option in node.options if isinstance(node, Fork) else (node,):
        said += [" | ", *_option(option)] if said else _option(option)
    return _pattern("::_: ", *said)


def _option(node: Node) -> list[_Said]:
    """An option of such a rule, which may begin with an `Only`."""
    match items_of(node):
        case (Only(condition, takes), *_):
            taken = "_" if takes is None else f"set_bit({takes})"
            return [*_said(node, taken), *([f" %if {condition}"] if condition else [])]
        case _:
            return _said(node, "_")


def _pattern(*said: _Said) -> _Pattern:
    text = "".join([piece.replace("%", "%%") if isinstance(piece, str) else "%s" for piece in said])
    return _Pattern(text, tuple([piece for piece in said if not isinstance(piece, str)]))


def _said(node: Node, taken: str) -> list[_Said]:
    return [(piece, taken) if isinstance(piece, Call) else piece for piece in _pieces(node, 0)]


def _pieces(node: Node, tightness: int) -> list[_Piece]:
    """A node as Lark; in parentheses where something binds tighter around it (1: a row, 2: a repetition)."""
    if isinstance(node, Lexeme) and not _has_terminal(node):
        return [terminal(node.expr, {})]
    if isinstance(node, Lexeme | Call):
        return [node]
    if isinstance(node, Row):
        said = [item for item in node.items if not isinstance(item, Only)]
        pieces = _joined(said, " ", 1) or ['""']
        return ["(", *pieces, ")"] if tightness > 1 and len(said) > 1 else pieces
    if isinstance(node, Fork):
        full = [option for option in node.options if not is_empty(option)]
        pieces = _joined(full, " | ", 0)
        if len(full) < len(node.options):
            is_one = len(full) == 1 and isinstance(full[0], Lexeme | Special | Call)
            pieces = [*pieces, "?"] if is_one else ["(", *pieces, ")?"]
            return ["(", *pieces, ")"] if tightness > 1 else pieces
        return ["(", *pieces, ")"] if tightness else pieces
    if isinstance(node, Loop):
        pieces = [*_pieces(node.item, 2), count(node.min, node.max)]
        return ["(", *pieces, ")"] if tightness > 1 else pieces
    if isinstance(node, Special):
        return [f"<[{node.id}]>"]
    if isinstance(node, Only):
        return ['""']
    raise TypeError(f"what is sealed of {node.name} was not put in")


def _joined(nodes: Iterable[Node], separator: str, tightness: int) -> list[_Piece]:
    joined: list[_Piece] = []
    for node in nodes:
        if joined:
            joined.append(separator)
        joined += _pieces(node, tightness)
    return joined
