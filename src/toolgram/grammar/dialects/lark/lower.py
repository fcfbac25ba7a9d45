"""Grammar rules to Lark's rules and lexemes: strings in their quotes, other small spellings of values, and literals."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from string import ascii_letters, digits
from typing import NamedTuple

from toolgram.grammar.components import components
from toolgram.grammar.dialects.lark.among import any_order
from toolgram.grammar.dialects.lark.known import KnownRule, LoweredRule, known_rules
from toolgram.grammar.dialects.lark.linear import (
    LARGEST_LEXEME,
    has_more,
    has_set,
    is_short,
    regular,
    small_rules,
    without_references,
)
from toolgram.grammar.dialects.lark.numbers import is_number, numeric
from toolgram.grammar.dialects.lark.plainer import plainer
from toolgram.grammar.dialects.lark.quotes import DONE, START, Quotes
from toolgram.grammar.dialects.lark.raw import RawText, consists_of, holds_quotes
from toolgram.grammar.dialects.lark.strings import COLON, string, string_before
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Lexeme,
    Loop,
    Node,
    Row,
    Special,
    Tree,
    calls,
    factored,
    row,
)
from toolgram.grammar.ir import (
    EMPTY,
    CharSet,
    Choice,
    Except,
    Expr,
    Literal,
    Members,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    Token,
    children,
    choice,
    seq,
)
from toolgram.grammar.walk import names_in, size, uses
from toolgram.work import give_way

_LARGEST_WORD = 8  # a larger one is written once, by a name, where it is used more than once
_OF_NAMES = frozenset(ascii_letters + digits + "_")


class Lowered(NamedTuple):
    """A tree of lexemes, the root first, and the rules that lexemes refer to: regular, and not recursive."""

    tree: Tree
    words: Rules


def lower(rules: Rules) -> Lowered:
    """The rules (simplified, or tidy at least) as a tree of lexemes."""
    return _Lowering(*plainer(rules)).lowered()


class _Lowering:
    """Rules on their way to a tree of lexemes.

    In go the rules with tokens spelled out; `lowered` gives the tree that `root` needs, and the regular rules that
    its lexemes refer to. Which rules are regular, strings, numbers or raw text is found out first.
    """

    def __init__(self, rules: Rules, tokens: Iterable[str]) -> None:
        used = uses(rules)
        parts = components(used)
        self._rules = rules
        self._quotes = Quotes(rules, used, parts)
        self._regular, same_elsewhere = regular(rules, used, parts, self._are_texts)
        self._small = small_rules(self._regular)
        self._numeric = numeric(self._regular)
        self._lexicals: dict[int, Expr | None] = {}  # by identity: the expressions are those of `_rules`, and these
        self._made: list[Expr] = []
        self._raw = RawText(rules, used, self._regular, tokens)
        self._known = (
            known_rules(rules, used, parts, (self._raw.marks, self._quotes.kinds), self._raw.in_rules)
            if same_elsewhere
            else dict[str, KnownRule]()
        )
        self._rule = ""  # that is being lowered
        self._words: dict[Expr, Ref] = {}  # that were made for it
        self._members: dict[str, Node] = {}  # and rules for members in it

    def _are_texts(self, names: Iterable[str]) -> bool:
        """Whether rules that recur together spell text: that of a string, or raw text, which holds quotes too."""
        return all(map(self._quotes.stays_inside, names)) or any(holds_quotes(self._rules[name]) for name in names)

    def lowered(self) -> Lowered:
        tree: dict[str, Node] = {}
        words: dict[str, Expr] = {}
        waiting = ["root"]
        while waiting:
            name = waiting.pop()
            if name not in tree:
                tree[name], members, made = self._lowered_rule(name)
                tree.update(members)
                words.update(made)
                waiting.extend(reversed([inner for node in (tree[name], *members.values()) for inner in calls(node)]))
        return Lowered(tree, {**self._regular, **words})

    def _lowered_rule(self, name: str) -> LoweredRule:
        known = self._known.setdefault(name, KnownRule())
        if known.lowered is None:
            give_way()
            self._rule, self._words, self._members = name, {}, {}
            node = self._node(self._rules[name])
            known.lowered = LoweredRule(node, self._members, {ref.name: expr for expr, ref in self._words.items()})
        return known.lowered

    def _node(self, expr: Expr) -> Node:
        if not isinstance(expr, Literal) and is_number(expr, self._numeric):
            return Lexeme(self._word(expr, "number"))
        match expr:
            case Literal():
                return row(*self._row((expr,)))
            case Token(_, int(number)):
                return Special(number)
            case Ref(name):
                if self._is_string(expr):
                    return string(expr)
                spelled = self._lexical(expr)
                return Call(name) if spelled is None else Lexeme(spelled, name)
            case Sequence(items):
                return row(*self._row(items))
            case Choice(options):
                return self._fork(expr, options)
            case Repeat(item, least, most):
                spelled = self._lexical(expr)
                return Loop(self._node(item), least, most) if spelled is None else Lexeme(spelled)
            case Members():
                return self._any_order(expr)
            case _:
                return Lexeme(expr)

    def _fork(self, expr: Expr, options: tuple[Expr, ...]) -> Node:
        """The strings among the options are one lexeme."""
        strings: list[Expr] = []
        others: list[Expr] = []
        for option in options:
            (strings if self._is_string(option) else others).append(option)
        spelled = None if strings else self._lexical(expr)
        if spelled is not None:
            return Lexeme(spelled)
        quoted = [string(self._word(choice(*strings), "quoted"))] if strings else []
        return factored([*quoted, *map(self._node, others)])

    def _any_order(self, expr: Members) -> Node:
        number = f" {len(self._members) // 2 + 1}" if self._members else ""
        name, more = f"{self._rule} members{number}", f"{self._rule} more{number}"
        self._members |= {name: Row(()), more: Row(())}  # so that members inside of these get other names
        self._members |= any_order(expr, name, f"{self._rule} member{number}", more, self._node)
        return Call(name)

    def _is_string(self, expr: Expr) -> bool:
        return self._quotes.is_string(expr) and self._is_regular(expr)

    def _is_regular(self, expr: Expr) -> bool:
        """Whether the expression is regular, with all that it refers to."""
        return not has_more(expr) and all(map(self._regular.__contains__, names_in(expr)))

    def _word(self, expr: Expr, hint: str) -> Expr:
        """What a lexeme is made of: an expression without references, or a reference to one that may have some."""
        if isinstance(expr, Ref | Literal) or (size(expr) <= _LARGEST_WORD and not names_in(expr)):
            return expr
        if expr not in self._words:
            self._words[expr] = Ref(
                f"{hint} {len(self._words) + 1} in {self._rule}"
            )  # no rule of a grammar is called so
        return self._words[expr]

    def _row(self, items: Iterable[Expr]) -> Iterator[Node]:
        """The items with each string in its quotes as one lexeme, and what is between them as `_between` has it."""
        rest = deque(items)
        between: list[Expr] = []
        begins = True
        while rest:
            item = rest.popleft()
            if isinstance(item, Literal) and (opener := self._raw.opener_of(item.text, self._rule)):
                yield from self._between(between, begins=begins)
                yield Lexeme(Literal(opener))
                between, begins = [], False
                rest.appendleft(Literal(item.text.removeprefix(opener)))
                continue
            if isinstance(item, Literal):
                begin = self._quotes.string_begin(item.text)
                between += [Literal(item.text[:begin])] if begin else []
                if begin == len(item.text):
                    continue
                if (end := self._quotes.string_end(item.text, START, begin)) is not None:  # as nearly always
                    yield from self._between(between, begins=begins)
                    lexeme, left = string_before(Literal(item.text[begin:end]), item.text[end:])
                    yield lexeme
                    between, begins = [], False
                    if left:
                        rest.appendleft(Literal(left))
                    continue
                item = Literal(item.text[begin:])
            string = self._string_from(item, rest)
            if string is None:
                between.append(item)
            else:
                yield from self._between(between, begins=begins)
                yield string
                between, begins = [], False
        yield from self._between(between, begins=begins)

    def _string_from(self, first: Expr, rest: deque[Expr]) -> Lexeme | None:
        """The string that begins where `first` does, what it is made of taken from the rest; None if there is none."""
        states, parts = START, list[Expr]()
        for taken, item in enumerate(chain((first,), rest)):
            left = ""
            if isinstance(item, Literal):
                end = self._quotes.string_end(item.text, states)
                states = self._quotes.after_text(states, item.text) if end is None else DONE
                parts.append(Literal(item.text[:end]))
                left = "" if end is None else item.text[end:]
            else:
                states = self._quotes.after(states, item)
                parts.append(item)
            if not (states == DONE or self._quotes.is_inside(states)) or not self._is_regular(item):
                return None
            if states == DONE:
                for _ in range(taken):
                    rest.popleft()
                if not left and rest and isinstance(rest[0], Literal):
                    left = rest[0].text
                    rest.popleft()
                lexeme, left = string_before(self._word(seq(*parts), "quoted"), left)
                if left:
                    rest.appendleft(Literal(left))
                return lexeme
        return None

    def _between(self, items: list[Expr], *, begins: bool) -> Iterator[Node]:
        """Runs of lexical items are one lexeme each, with short literals between them; other literals are cut at marks,
        and what could run on over the marker after it takes it in."""
        place = 0
        while place < len(items):
            item = items[place]
            if isinstance(item, Ref) and place + 1 == len(items):  # as nearly all values of keys
                yield self._node(item)
                return
            end = self._number_end(items, place)
            if end > place + 1:
                yield Lexeme(self._word(seq(*items[place:end]), "number"))
            elif (string := self._between_marks(items, place)) is not None:
                end, before, lexeme, left = string
                yield from self._raw.lexemes(before, begins=begins and not place)
                yield lexeme
                yield from self._raw.lexemes(left, begins=False)
            elif isinstance(item, Literal):
                yield from self._raw.lexemes(item.text, begins=begins and not place)
            elif (until := self._until_colon(items, place) or self._until_marker(items, place)) is not None:
                end, lexeme, left = until
                yield lexeme
                yield from self._raw.lexemes(left, begins=False)
            elif (run := self._run(items, place)) is not None:
                end, spelled = run
                yield Lexeme(spelled)
            else:
                yield self._node(item)
            place = max(end, place + 1)

    def _until_colon(self, items: list[Expr], place: int) -> tuple[int, Node, str] | None:
        """The end of a key without quotes from here on, which with its colon is one lexeme, and what is left of the
        literal that the colon begins."""
        end = place
        while end < len(items) and not isinstance(items[end], Literal):
            end += 1
        closer = items[end] if end < len(items) else EMPTY
        colon = COLON.match(closer.text) if isinstance(closer, Literal) else None
        if colon is None or not isinstance(closer, Literal) or not all(map(self._is_name, items[place:end])):
            return None
        key = self._word(seq(*items[place:end]), "key")
        return end + 1, Lexeme(seq(key, colon[0]), tail=colon[0][1:], bare=True), closer.text[colon.end() :]

    def _between_marks(self, items: list[Expr], place: int) -> tuple[int, str, Node, str] | None:
        """As `_until_marker`, of raw text between two that are the same: what is before them in the literal here, and
        the text with both."""
        opener = items[place]
        if not (isinstance(opener, Literal) and place + 1 < len(items) and self._raw.ends_with_marker(opener.text)):
            return None
        match self._until_marker(items, place + 1, quoted=True):
            case end, Lexeme(Sequence((*_, Literal(mark))) as text), left if opener.text.endswith(mark):
                if self._raw.is_without(mark, seq(*items[place + 1 : end - 1])):
                    return end, opener.text.removesuffix(mark), Lexeme(seq(mark, text), tail=""), left
            case _:
                pass
        return None

    def _is_name(self, expr: Expr) -> bool:
        """Whether the expression is regular, and has no other characters than those of names."""
        if isinstance(expr, Ref):
            return expr.name in self._regular and self._is_name(self._regular[expr.name])
        if isinstance(expr, Literal):
            return _OF_NAMES.issuperset(expr.text)
        if isinstance(expr, CharSet):
            return consists_of(expr, _OF_NAMES)
        parts = children(expr)
        return bool(parts) and not isinstance(expr, Except) and all(map(self._is_name, parts))

    def _until_marker(self, items: list[Expr], place: int, *, quoted: bool = False) -> tuple[int, Node, str] | None:
        """The end of raw text from here on and of the literal with its marker, which are one lexeme, and what is left
        of that literal; the text alone before a special token, which none holds. Of a choice each option that is raw
        has a lexeme of its own. Between quotes (`quoted`) a number is text too."""
        at = next((at for at in range(place + 1, len(items)) if self._may_close(items[at])), place)
        closer, first = items[at], items[place]
        cut = self._raw.marker_end(closer.text) if isinstance(closer, Literal) else 0
        if isinstance(closer, Literal) and cut:
            marker, left = Literal(closer.text[:cut]), closer.text[cut:]
        elif isinstance(closer, Token):
            marker, left = closer, ""
        else:
            return None
        if all(map(self._is_regular, items[place:at])) and self._raw.are_raw(items[place:at], quoted=quoted):
            text = self._word(seq(*items[place:at]), "raw")
            if isinstance(marker, Token):
                return at, Lexeme(text), ""
            return at + 1, Lexeme(seq(text, marker), merged=1), left
        options = first.options if isinstance(first, Choice) and at == place + 1 else ()
        if any(self._is_regular(option) and self._raw.are_raw((option,)) for option in options):
            self._made.append(made := Choice(tuple(seq(option, marker) for option in options)))
            return at + 1, self._node(made), left
        return None

    def _may_close(self, expr: Expr) -> bool:
        """Whether raw text ends here, if it does anywhere: at a token, or a literal that is no short part of it."""
        if not isinstance(expr, Literal):
            return isinstance(expr, Token)
        return bool(self._raw.marker_end(expr.text)) or not is_short(expr.text)

    def _number_end(self, items: list[Expr], place: int) -> int:
        """The end of the run of items from here on that are parts of a number."""
        while place < len(items) and is_number(items[place], self._numeric):
            place += 1
        return place

    def _run(self, items: list[Expr], place: int) -> tuple[int, Expr] | None:
        """The end of the longest run of two or more lexical items from here on, and what they are together."""
        run: list[Expr] = []
        found: tuple[int, Expr] | None = None
        weight = 0
        for number in range(place, len(items)):
            item = items[number]
            spelled = None if isinstance(item, Ref | Text) else self._lexical(item)
            if spelled is None and run and isinstance(item, Literal) and is_short(item.text):
                run.append(item)
                continue
            if spelled is None:
                break
            run.append(spelled)
            weight += size(spelled)
            if weight > LARGEST_LEXEME:
                break
            if len(run) > 1:
                found = number + 1, seq(*run)
        return found

    def _lexical(self, expr: Expr) -> Expr | None:
        """The expression without references, if it spells a value: regular, small, and without long words."""
        if isinstance(expr, Literal):
            return None
        if id(expr) not in self._lexicals:
            spelled = without_references(expr, self._small)
            small = spelled is not None and has_set(spelled) and size(spelled) <= LARGEST_LEXEME
            self._lexicals[id(expr)] = spelled if small else None
        return self._lexicals[id(expr)]
