"""The rules of a grammar in Lark as one regular expression."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass, field

from toolgram.conversation.lark_patterns.tree import Choice, LarkGrammar, Name, Node, Pattern, Repeat, Sequence
from toolgram.errors import GrammarError
from toolgram.work import look

_MOST = 100_000
"""Characters of a regular expression: rules are written out wherever they are used."""
_MOST_WORK = 40 * _MOST
"""Characters that are written for it on the way."""


def pattern_of(grammar: LarkGrammar) -> str:
    """A regular expression of ECMA-262 for the rule `start`."""
    if "start" not in grammar.definitions:
        raise GrammarError("there is no rule named start", 0)
    return _Writer(grammar).named(Name("start", 0))


@dataclass(slots=True)
class _Writer:
    grammar: LarkGrammar
    skipped: str = field(init=False, default="")
    """What may stand after a terminal of a rule; not before the first, where llguidance has nothing ignored either."""
    _known: dict[str, str] = field(default_factory=dict[str, str])
    _work: int = 0
    _open: list[str] = field(default_factory=list[str])
    """The definitions that are being written, each within the one before."""

    def __post_init__(self) -> None:
        if self.grammar.ignored:
            options = "|".join([self._written(each, terminal=True) for each in self.grammar.ignored])
            self.skipped = f"(?:{options})*"

    def named(self, name: Name) -> str:
        """What stands for a rule or a terminal, in itself a whole."""
        if name.name not in self._known:
            self._known[name.name] = self._definition(name)
        return self._known[name.name]

    def _definition(self, name: Name) -> str:
        look()
        node = self.grammar.definitions.get(name.name)
        if node is None:
            raise GrammarError(f"{name.name} is not defined", name.at)
        if name.name in self._open:
            cycle = " → ".join([*self._open[self._open.index(name.name) :], name.name])
            raise GrammarError(f"{cycle}: a rule may hold itself only as the first or the last of an option", name.at)
        self._open.append(name.name)
        text = self._written(_unrolled(name.name, node), terminal=name.is_terminal)
        self._open.pop()
        if len(text) > _MOST:
            raise GrammarError(f"{name.name} is more than {_MOST} characters when written out", name.at)
        return self._counted(f"(?:{text})", name.at)

    def _written(self, node: Node, *, terminal: bool) -> str:
        match node:
            case Pattern(text):
                return self._token(text, terminal=terminal)
            case Name() if node.is_terminal:
                return self._token(self.named(node), terminal=terminal)
            case Name():
                if terminal:
                    raise GrammarError(f"a terminal cannot hold the rule {node.name}", node.at)
                return self.named(node)
            case Sequence(items):
                return "".join([self._written(item, terminal=terminal) for item in items])
            case Choice(options):
                return f"(?:{'|'.join([self._written(option, terminal=terminal) for option in options])})"
            case Repeat(item, low, high):
                most = "" if high is None else high
                return f"(?:{self._written(item, terminal=terminal)}){{{low},{most}}}"

    def _token(self, text: str, *, terminal: bool) -> str:
        return self._counted(text if terminal or not text else text + self.skipped)

    def _counted(self, text: str, at: int | None = None) -> str:
        self._work += len(text)
        if self._work > _MOST_WORK:
            raise GrammarError(f"more than {_MOST_WORK} characters are to be written out", at)
        return text


def _unrolled(name: str, node: Node) -> Node:
    """The same without options that begin or end with the rule itself.

    Where `x: x a x | x b | c x | d`, an x is a number of c, a d and a number of b, and any more of these after an a.
    """
    between: list[Node] = []
    after: list[Node] = []
    before: list[Node] = []
    others: list[Node] = []
    for option in node.options if isinstance(node, Choice) else (node,):
        items = option.items if isinstance(option, Sequence) else (option,)
        first, last = _is(items[:1], name), _is(items[-1:], name)
        if first and last and len(items) > 1:
            between.append(Sequence(items[1:-1]))
        elif first:
            after.append(Sequence(items[1:]))
        elif last:
            before.append(Sequence(items[:-1]))
        else:
            others.append(option)
    if not between and not after and not before:
        return node
    if not others:
        raise GrammarError(f"{name} never ends: each of its options holds it")
    one = Sequence((_any_of(before), Choice(tuple(others)), _any_of(after)))
    return Sequence((one, Repeat(Sequence((Choice(tuple(between)), one)), 0, None))) if between else one


def _is(items: Items[Node], name: str) -> bool:
    return any(isinstance(item, Name) and item.name == name for item in items)


def _any_of(options: Items[Node]) -> Node:
    return Repeat(Choice(tuple(options)), 0, None) if options else Sequence(())
