"""Canonical types as expressions: the sentences are the type's values, each in one spelling, keys in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolgram.errors import UnsupportedSchema
from toolgram.grammar.ir import EMPTY, NOTHING, Expr, Ref, choice, optional, repeat, seq
from toolgram.schema import types
from toolgram.schema.spelling import RuleNames, Spelling, escapes, number_range, quoted, raw_chars, writable
from toolgram.schema.types import NEVER, Canonical, Type

MAX_ANY_ORDER = 6  # required keys in any order: 64 rules
_MAX_KEYS_ANY_ORDER = 10  # and 1024 with the optional ones
_INLINE_OPTIONAL = 3  # objects with more keys, all of them optional, get a rule for what may follow each
_NESTING = 8  # levels inside one expression before a rule breaks it


@dataclass(slots=True)
class Lowering:
    """Turns the types of one document into expressions, and collects the rules that these use.

    `expr` asks for an expression, `finish` gives all the rules; `capped` tells whether a digit cap came to bear.
    """

    canonical: Canonical
    spelling: Spelling
    names: RuleNames
    root_name: str
    any_order: bool = False
    capped: bool = False
    _rules: dict[str, Expr] = field(default_factory=dict[str, Expr])
    _named: dict[Type, Ref] = field(default_factory=dict[Type, Ref])
    _waiting: list[tuple[str, Callable[[], Expr]]] = field(default_factory=list[tuple[str, Callable[[], Expr]]])

    def expr(self, kind: Type, hint: str) -> Expr:
        """The expression of a type; rules that it needs get names like the hint."""
        match kind:
            case types.Anything():
                return self._any_value()
            case types.Word(text):
                return seq(text)
            case types.Text(value):
                return seq(quoted(value, self.spelling)) if writable(value) else NOTHING
            case types.String(low, high):
                return self._string(low, high)
            case types.Number():
                return self._number(kind)
            case types.Union(options):
                return choice(*(self.expr(option, f"{hint}-{n}") for n, option in enumerate(options, 1)))
            case types.Reference(key):
                target = self.canonical.resolve(kind)
                name = f"{self.root_name}-{key.rsplit('/', 1)[-1]}"
                return self._rule_of(target, name) if isinstance(target, types.Union) else self.expr(target, name)
            case types.Array((), types.Anything(), 0, None):
                self._any_value()
                return Ref(self.names.shared("json-array", self.spelling))
            case types.Object((), types.Anything()):
                self._any_value()
                return Ref(self.names.shared("json-object", self.spelling))
            case types.Array() | types.Object():
                return self._rule_of(kind, hint)

    def finish(self) -> dict[str, Expr]:
        """The rules of all that was asked for."""
        while self._waiting:
            name, make = self._waiting.pop(0)
            self._rules[name] = NOTHING  # holds its place, so that rules stand in the order of their use
            self._rules[name] = make()
        return self._rules

    def _body(self, kind: Type, name: str) -> Expr:
        match kind:
            case types.Object():
                return self._any_order(kind, name) if self.any_order else self._object(kind, name)
            case types.Array():
                return self._array(kind, name)
            case _:
                return self.expr(kind, name)

    def _rule_of(self, kind: Type, hint: str) -> Ref:
        """The rule of a type."""
        if kind not in self._named:
            self._named[kind] = self._later(hint, lambda name: self._body(kind, name))
        return self._named[kind]

    def _later(self, hint: str, make: Callable[[str], Expr]) -> Ref:
        """A rule that is written when all before it are: that is where recursion ends."""
        name = self.names.fresh(hint)
        self._waiting.append((name, lambda: make(name)))
        return Ref(name)

    def _rule(self, hint: str, body: Expr) -> Ref:
        name = self.names.fresh(hint)
        self._rules[name] = body
        return Ref(name)

    def _shared(self, hint: str, make: Callable[[], Expr]) -> Ref:
        name = self.names.shared(hint, self.spelling)
        if name not in self._rules:
            self._rules[name] = make()
        return Ref(name)

    # Leaves

    def _char(self, but: str = "") -> Expr:
        """One character of a string that is none of `but`."""
        if not but:
            return self._shared("string-char", lambda: choice(raw_chars("", self.spelling), self._escape()))
        raw = quoted(but, self.spelling) == f'"{but}"'
        return choice(raw_chars(but, self.spelling), self._escape() if raw else escapes(but, self.spelling))

    def _escape(self) -> Ref:
        return self._shared("string-escape", lambda: escapes("", self.spelling))

    def _rest_of_string(self) -> Ref:
        return self._shared("string-rest", lambda: seq(repeat(self._char()), '"'))

    def _string(self, low: int, high: int | None) -> Expr:
        def body() -> Expr:
            return seq('"', repeat(self._char(), low, high), '"')

        return self._shared("string", body) if (low, high) == (0, None) else body()

    def _number(self, kind: types.Number) -> Expr:
        capped = self.spelling.integer_digits is not None or (
            self.spelling.fraction_digits is not None and not kind.integer
        )
        self.capped |= capped and (kind.low is None or kind.high is None)
        if kind.low is None and kind.high is None:
            name = "integer" if kind.integer else "number"
            return self._shared(name, lambda: number_range(kind, self.spelling))
        return number_range(kind, self.spelling)

    def _any_value(self) -> Ref:
        """Any JSON value, in three rules that are the same for every document."""
        value, array, members = (
            Ref(self.names.shared(hint, self.spelling)) for hint in ("json-value", "json-array", "json-object")
        )
        if value.name not in self._rules:
            comma = self.spelling.item_separator
            string, number = self._string(0, None), self._number(types.Number())
            member = seq(string, self.spelling.key_separator, value)
            self._rules[value.name] = choice(members, array, string, number, "true", "false", "null")
            self._rules[members.name] = seq("{", optional(seq(member, repeat(seq(comma, member)))), "}")
            self._rules[array.name] = seq("[", optional(seq(value, repeat(seq(comma, value)))), "]")
        return value

    # Arrays

    def _array(self, kind: types.Array, name: str) -> Expr:
        comma = self.spelling.item_separator
        prefix = [self.expr(item, f"{name}-{index}") for index, item in enumerate(kind.prefix, 1)]
        rest = NOTHING if kind.rest == NEVER else self.expr(kind.rest, f"{name}-item")
        least = max(kind.min - len(prefix), 0)
        most = None if kind.max is None else kind.max - len(prefix)
        if not prefix:
            if most == 0:
                return seq("[]")
            more = None if most is None else most - 1
            full = seq("[", rest, repeat(seq(comma, rest), max(least - 1, 0), more), "]")
            return full if least else choice(full, "[]")
        tail = EMPTY if most == 0 else repeat(seq(comma, rest), least, most)
        for index in reversed(range(len(prefix))):
            tail = seq("" if index == 0 else comma, prefix[index], tail)
            if index >= kind.min:
                tail = optional(tail)
            if index and index % _NESTING == 0:
                tail = self._rule(f"{name}-from-{index + 1}", tail)
        return seq("[", tail, "]")

    # Objects

    def _members(self, kind: types.Object, name: str) -> list[tuple[types.Property, Expr]]:
        return [(item, self._member(item, name)) for item in kind.properties if item.value != NEVER]

    def _member(self, item: types.Property, name: str) -> Expr:
        if not writable(item.name):
            return NOTHING
        value = self.expr(item.value, f"{name}-{item.name}")
        return seq(quoted(item.name, self.spelling), self.spelling.key_separator, value)

    def _object(self, kind: types.Object, name: str) -> Expr:
        comma = self.spelling.item_separator
        members = self._members(kind, name)
        extra = self._extra(kind, name)
        more = EMPTY if extra == NOTHING else repeat(seq(comma, extra))
        anchor = next((index for index, (item, _) in enumerate(members) if item.required), None)
        if anchor is None:
            return seq("{", self._all_optional([member for _, member in members], extra, more, name), "}")
        before = [optional(seq(member, comma)) for _, member in members[:anchor]]
        after = [
            seq(comma, member) if item.required else optional(seq(comma, member))
            for item, member in members[anchor + 1 :]
        ]
        return seq("{", *before, members[anchor][1], *after, more, "}")

    def _all_optional(self, members: list[Expr], extra: Expr, more: Expr, name: str) -> Expr:
        """Any of the members, in order: whichever is the first has no comma before it."""
        options = [seq(extra, more)]
        tail = more
        for index in reversed(range(len(members))):
            options.append(seq(members[index], tail))
            tail = seq(optional(seq(self.spelling.item_separator, members[index])), tail)
            if index and len(members) > _INLINE_OPTIONAL:
                tail = self._rule(f"{name}-from-{index + 1}", tail)
        return optional(choice(*reversed(options)))

    def _extra(self, kind: types.Object, name: str) -> Expr:
        """One member with a key that is not declared."""
        if kind.rest == NEVER:
            return NOTHING
        key = self._key_but(sorted({item.name for item in kind.properties if writable(item.name)}), name)
        return self._rule(f"{name}-other", seq(key, self.spelling.key_separator, self.expr(kind.rest, f"{name}-other")))

    def _key_but(self, names: list[str], name: str) -> Expr:
        """Any string but these."""
        return seq('"', self._after_prefix(names, 0, f"{name}-other-key")) if names else self._string(0, None)

    def _after_prefix(self, names: Sequence[str], depth: int, hint: str) -> Expr:
        """The rest of a string, and its closing quote, that is none of `names`, which share their first characters."""
        branches: dict[str, list[str]] = {}
        for name in names:
            branches.setdefault(name[depth : depth + 1], []).append(name)
        options = [seq(self._char(but="".join(branches)), self._rest_of_string())]
        for first, group in branches.items():
            if first:
                spelled = quoted(first, self.spelling)[1:-1]
                options.append(seq(spelled, self._after_more(group, depth + 1, hint)))
        if "" not in branches:
            options.append(seq('"'))
        return choice(*options)

    def _after_more(self, names: Sequence[str], depth: int, hint: str) -> Expr:
        if depth % _NESTING:
            return self._after_prefix(names, depth, hint)
        return self._later(hint, lambda _: self._after_prefix(names, depth, hint))

    def _any_order(self, kind: types.Object, name: str) -> Expr:
        """The members in every order: a rule for each set of keys that is already written."""
        comma = self.spelling.item_separator
        members = self._members(kind, name)
        extra = self._extra(kind, name)
        needed = {index for index, (item, _) in enumerate(members) if item.required}
        if len(needed) > MAX_ANY_ORDER or len(members) > _MAX_KEYS_ANY_ORDER:
            reason = f"{len(members)} keys ({len(needed)} of them required) have too many orders"
            raise UnsupportedSchema("", "properties", reason)
        states: dict[frozenset[int], Expr] = {frozenset(range(len(members))): EMPTY} if extra == NOTHING else {}

        def follow(written: frozenset[int], before: str) -> Expr:
            options = [
                seq(before, member, state(written | {index}))
                for index, (_, member) in enumerate(members)
                if index not in written
            ]
            options.append(seq(before, extra, state(written)) if extra != NOTHING else NOTHING)
            return optional(choice(*options)) if needed <= written else choice(*options)

        def state(written: frozenset[int]) -> Expr:
            if written not in states:
                rule = self.names.fresh(f"{name}-with-{'-'.join(str(index + 1) for index in sorted(written))}")
                states[written] = Ref(rule)
                self._rules[rule] = NOTHING
                self._rules[rule] = follow(written, comma)
            return states[written]

        return seq("{", follow(frozenset(), ""), "}")
