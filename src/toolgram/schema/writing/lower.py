"""Canonical types as expressions: the sentences are the type's values, each in one spelling, required keys in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from toolgram.errors import Relaxation, UnsupportedSchema
from toolgram.grammar.excepts import OtherTexts
from toolgram.grammar.ir import (
    NOTHING,
    Expr,
    Ref,
    choice,
    optional,
    repeat,
    seq,
)
from toolgram.grammar.regular.automata import Automaton, intersection
from toolgram.grammar.regular.regex import pattern
from toolgram.schema import types
from toolgram.schema.types import NEVER, Canonical, Type
from toolgram.schema.writing.any_order import any_order, too_many
from toolgram.schema.writing.array_items import array_items, next_items
from toolgram.schema.writing.document_rules import DocumentRules
from toolgram.schema.writing.json_style import (
    Frame,
    RuleNames,
    Spelling,
    writable,
)
from toolgram.schema.writing.number_style import multiples, number_range
from toolgram.schema.writing.object_members import (
    BARE_LETTERS,
    all_members,
    are_counted,
    plain_char,
    some_members,
    unplaced,
)
from toolgram.schema.writing.strings import Languages, Strings

_IDENTIFIERS = pattern("^[A-Za-z_][A-Za-z0-9_]*$")


@dataclass(slots=True)
class Lowering:
    """Turns the types of one document into expressions, and collects the rules that these use.

    `expr` asks for an expression, `finish` gives all the rules; `capped` says whether a digit cap came to bear. What
    has too many orders, or a key that the notation cannot write, is refused, or, where it need not be `exact`, noted in
    `relaxations`. Both raise TooLarge where a document has too many rules.
    """

    canonical: Canonical
    spelling: Spelling
    names: RuleNames
    root_name: str
    any_order: bool = False
    exact: bool = True
    part: bool = False
    capped: bool = False
    relaxations: list[Relaxation] = field(default_factory=list[Relaxation])
    _named: dict[tuple[Type, Frame], Ref] = field(default_factory=dict[tuple[Type, Frame], Ref])
    _rules: DocumentRules = field(init=False)
    _languages: Languages = field(init=False)
    _strings: list[Strings] = field(init=False)  # between each kind of quotes
    _inner: Frame = field(init=False)

    def __post_init__(self) -> None:
        self._inner = self.spelling.frame()
        self._rules = DocumentRules(self.names, self.spelling)
        self._languages = Languages(self._rules)
        self._strings = [
            Strings(each, self._rules, self._languages, each.encoding.quote if number else None)
            for number, each in enumerate(self.spelling.by_quote)
        ]

    def expr(self, kind: Type, hint: str, frame: Frame | None = None) -> Expr:
        """The expression of a type; rules that it needs get names like the hint.

        An object that is not inside of another value may be written in a `frame` of its own.
        """
        frame = frame or self._inner
        match kind:
            case types.Anything():
                return self._any_value() if frame == self._inner else self.expr(types.EVERY_KIND, hint, frame)
            case types.Word(text):
                return choice(*self.spelling.encoding.words(text))
            case types.Text(value):
                return self._quoted(lambda strings: strings.text(value))
            case types.String(low, high, automaton):
                return self._string(low, high) if automaton is None else self._string_of(automaton, low, high)
            case types.Number():
                return self._number(kind)
            case types.Union(options):
                parts = enumerate(unplaced(options), 1)
                return choice(*(self.expr(option, f"{hint}-{n}", frame) for n, option in parts))
            case types.Reference(key):
                target = self.canonical.resolve(kind)
                name = f"{self.root_name}-{key.rsplit('/', 1)[-1]}"
                is_union = isinstance(target, types.Union)
                return self._rule_of(target, name, frame) if is_union else self.expr(target, name, frame)
            case types.Array((), types.Anything(), 0, None):
                self._any_value()
                return Ref(self._rules.shared_name("json-array"))
            case types.Object((), types.Anything(), _, (), 0, None, ()) if frame == self._inner:
                self._any_value()
                return Ref(self._rules.shared_name("json-object"))
            case types.Array() | types.Items() | types.Object():
                return self._rule_of(kind, hint, frame)

    def finish(self) -> dict[str, Expr]:
        """The rules of all that was asked for."""
        return self._rules.finish()

    def _body(self, kind: Type, name: str, frame: Frame) -> Expr:
        match kind:
            case types.Object():
                if self.spelling.encoding.sorts_keys:
                    declared = {item.name: item for item in kind.properties}
                    kind = replace(
                        kind, properties=tuple(map(declared.__getitem__, self.spelling.encoding.ordered(declared)))
                    )
                members = self._any_order if self.any_order else self._object
                return frame.around(members(kind, name, frame))
            case types.Array():
                return self._array(kind, name)
            case types.Items(states):
                return self._items(states, name)
            case _:
                return self.expr(kind, name, frame)

    def _rule_of(self, kind: Type, hint: str, frame: Frame) -> Ref:
        """The rule of a type; a part that means the same everywhere has one rule in the whole grammar."""
        if (kind, frame) not in self._named:
            everywhere = (self.part or hint != self.root_name) and types.stands_alone(kind)
            key = (self.spelling, self.any_order, kind, frame) if everywhere else None
            self._named[kind, frame] = self._rules.later(hint, lambda name: self._body(kind, name, frame), key)
        return self._named[kind, frame]

    # Leaves

    def _string(self, low: int, high: int | None) -> Expr:
        def made() -> Expr:
            return self._quoted(lambda strings: strings.every(low, high))

        return self._rules.shared("string", made) if (low, high) == (0, None) else made()

    def _string_of(self, automaton: Automaton, low: int = 0, high: int | None = None) -> Expr:
        return self._quoted(lambda strings: strings.of(automaton, low, high))

    def _quoted(self, make: Callable[[Strings], Expr]) -> Expr:
        """What is made of strings between one kind of quotes, between any."""
        first, *others = map(make, self._strings)
        return choice(first, *others) if others else first

    def _number(self, kind: types.Number) -> Expr:
        capped = self.spelling.integer_digits is not None or (
            self.spelling.fraction_digits is not None and not kind.integer
        )
        self.capped |= capped and (kind.low is None or kind.high is None)
        if kind.multiple is not None or kind.broken:
            return self._languages.written(multiples(kind, self.spelling), plain_char, "multiple")
        if kind.low is None and kind.high is None:
            name = "integer" if kind.integer else "number"
            return self._rules.shared(name, lambda: number_range(kind, self.spelling))
        return number_range(kind, self.spelling)

    def _any_value(self) -> Ref:
        """Any JSON value, in three rules that are the same for every document."""
        value, array, members = (
            Ref(self._rules.shared_name(hint)) for hint in ("json-value", "json-array", "json-object")
        )
        if value.name not in self._rules.made:
            comma, frame = self._inner.comma, self._inner
            string, number = self._string(0, None), self._number(types.Number())
            words = (each for word in ("true", "false", "null") for each in self.spelling.encoding.words(word))
            member = frame.member(self._key_but([], members.name, frame), value)
            several = optional(seq(member, repeat(seq(comma, member))))
            self._rules.made[value.name] = choice(members, array, string, number, *words)
            self._rules.made[members.name] = seq(frame.opener, several, frame.closer)
            self._rules.made[array.name] = seq("[", optional(seq(value, repeat(seq(comma, value)))), "]")
        return value

    # Arrays

    def _array(self, kind: types.Array, name: str) -> Expr:
        prefix = [self.expr(item, f"{name}-{index}") for index, item in enumerate(kind.prefix, 1)]
        rest = NOTHING if kind.rest == NEVER else self.expr(kind.rest, f"{name}-item")

        def rule(number: int, tail: Expr) -> Ref:
            return self._rules.rule(f"{name}-from-{number}", tail)

        return array_items(kind, prefix, rest, self.spelling.item_separator, rule)

    def _items(self, states: Sequence[types.ItemState], name: str) -> Expr:
        rules = [Ref(self._rules.name(f"{name}-{number}")) for number in range(1, len(states) + 1)]
        self._rules.made.update((rule.name, NOTHING) for rule in rules)  # as in `finish`
        steps = [[(self.expr(item, f"{name}-item"), rules[to]) for item, to in state.edges] for state in states]
        for rule, state, ways in zip(rules, states, steps, strict=True):
            self._rules.made[rule.name] = next_items(ways, self.spelling.item_separator, may_end=state.accepts)
        return seq("[", next_items(steps[0], "", may_end=states[0].accepts), "]")

    # Objects

    def _members(self, kind: types.Object, name: str, frame: Frame) -> list[tuple[types.Property, Expr]]:
        return [(item, self._member(item, name, frame)) for item in kind.properties if item.value != NEVER]

    def _member(self, item: types.Property, name: str, frame: Frame) -> Expr:
        if not writable(item.name):
            return NOTHING
        key = frame.key(item.name, self.spelling, declared=True)
        if key is None:
            reason = f"the notation {self.spelling.encoding.name} cannot write the key {item.name!r}"
            if self.exact:
                raise UnsupportedSchema(item.pointer, "properties", reason)
            left_out = "no object, which needs it" if item.required else "no such key"
            self.relaxations.append(Relaxation(item.pointer, "properties", f"{left_out}: {reason}", "stricter"))
            return NOTHING
        quoted = frame.keys == "quoted"
        written = self._quoted(lambda strings: strings.text(item.name)) if quoted else key
        return frame.member(written, self.expr(item.value, f"{name}-{item.name}"))

    def _object(self, kind: types.Object, name: str, frame: Frame) -> Expr:
        """The members of an object, each in its place or later; where they are counted, in order."""
        comma = frame.comma
        members = self._members(kind, name, frame)
        extra = self._extra(kind, name, frame)
        if are_counted(kind):
            last = self._one_of_keys(kind.some, name, frame)
            return some_members(kind, members, extra, last, comma, partial(self._rules.rule, f"{name}-from"))
        return all_members(members, extra, comma, least=kind.min)

    def _extra(self, kind: types.Object, name: str, frame: Frame) -> Expr:
        """One member with a key that is not declared."""
        if kind.keys:
            return self._rules.rule(f"{name}-other", self._one_of_keys(kind.keys, name, frame))
        if kind.rest == NEVER:
            return NOTHING
        key = self._key_but(sorted({item.name for item in kind.properties if writable(item.name)}), name, frame)
        return self._rules.rule(f"{name}-other", frame.member(key, self.expr(kind.rest, f"{name}-other")))

    def _one_of_keys(self, keys: Iterable[types.Keys], name: str, frame: Frame) -> Expr:
        """One member with a key of these languages."""
        return choice(
            *(
                frame.member(self._key_of(one.automaton, frame), self.expr(one.value, f"{name}-{number}"))
                for number, one in enumerate(keys, 1)
            )
        )

    def _key_of(self, automaton: Automaton, frame: Frame) -> Expr:
        """A key of this language; one that is not quoted is an identifier."""
        if frame.keys == "quoted":
            return self._string_of(automaton)
        return self._languages.written(intersection(automaton, _IDENTIFIERS), plain_char, "key")

    def _key_but(self, names: list[str], name: str, frame: Frame) -> Expr:
        """Any key but these; one that is not quoted is an identifier."""
        hint = f"{name}-other-key"
        if frame.keys == "quoted":
            if not names:
                return self._string(0, None)
            return self._quoted(lambda strings: strings.but(names, hint))
        written = (frame.key(other, self.spelling, declared=False) for other in names)
        taken = ["", *filter(None, written)]  # a bare key has a character at least
        others = OtherTexts(BARE_LETTERS, lambda make: self._rules.later(hint, lambda _: make()))
        return others.after_prefix(taken)

    def _any_order(self, kind: types.Object, name: str, frame: Frame) -> Expr:
        """The members in every order, if there are not too many."""
        ordered = are_counted(kind) or any(item.required for item in kind.properties)  # else all orders are there
        if ordered and (reason := too_many(kind)):
            pointer = kind.properties[0].pointer.rpartition("/properties/")[0]
            if self.exact:
                raise UnsupportedSchema(pointer, "properties", reason)
            self.relaxations.append(
                Relaxation(pointer, "properties", "required keys in the order of the schema alone", "stricter")
            )
            return self._object(kind, name, frame)
        members = self._members(kind, name, frame)
        extra, some = self._extra(kind, name, frame), self._one_of_keys(kind.some, name, frame)

        def rule(hint: str, make: Callable[[], Expr]) -> Ref:
            return self._rules.later(f"{name}-with-{hint}", lambda _: make())

        return any_order(kind, members, extra, some, frame.comma, rule)
