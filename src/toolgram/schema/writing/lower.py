"""Canonical types as expressions: the sentences are the type's values, each in one spelling, required keys in order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from toolgram.errors import Relaxation, UnsupportedSchema
from toolgram.grammar.excepts import Letters, OtherTexts
from toolgram.grammar.ir import (
    NOTHING,
    CharSet,
    Choice,
    Except,
    Expr,
    Ref,
    Token,
    choice,
    not_chars,
    optional,
    repeat,
    seq,
)
from toolgram.grammar.ir import Text as FreeText
from toolgram.grammar.regular import to_expr
from toolgram.grammar.regular.automata import Automaton, intersection
from toolgram.grammar.regular.languages import without
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
    any_escape,
    escapes,
    quoted,
    raw_chars,
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
from toolgram.schema.writing.plain_strings import one_of, plain_string

_SHARED_SIZE = 12  # a larger language gets a rule
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
    _chars: dict[CharSet, Expr] = field(default_factory=dict[CharSet, Expr])
    _texts: dict[Hashable, Expr] = field(default_factory=dict[Hashable, Expr])
    _other: dict[str, Expr] = field(default_factory=dict[str, Expr])  # ends of strings, by what they do not begin with
    _rules: DocumentRules = field(init=False)
    _inner: Frame = field(init=False)

    def __post_init__(self) -> None:
        self._inner = self.spelling.frame()
        self._rules = DocumentRules(self.names, self.spelling)

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
                return self._text(value)
            case types.String(low, high, automaton):
                if automaton is None:
                    return self._string(low, high)
                quote = self._quote()
                return seq(quote, self._language(automaton, low, high), quote)
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

    def _char(self, but: str = "") -> Expr:
        """One character of a string that is none of `but`."""
        if not but:
            return self._rules.shared("string-char", lambda: choice(raw_chars("", self.spelling), self._any_escape()))
        raw = quoted(but, self.spelling) == f'"{but}"'
        return choice(raw_chars(but, self.spelling), self._escape() if raw else escapes(but, self.spelling))

    def _any_escape(self) -> Ref:
        return self._rules.shared("string-escape", lambda: any_escape(self.spelling))

    def _escape(self) -> Ref:
        """The one escape of a character that needs one: so none is spelled that is ruled out as it is."""
        if not self.spelling.free:
            return self._any_escape()
        return self._rules.shared("key-escape", lambda: escapes("", self.spelling))

    def _rest_but(self, but: str) -> Expr:
        """The rest of a string, of which the next character is none of `but`."""
        if but not in self._other:
            rest = self._rules.shared("string-rest", lambda: seq(repeat(self._char()), '"'))
            self._other[but] = seq(self._char(but), rest)
        return self._other[but]

    def _text(self, value: str) -> Expr:
        encoding = self.spelling.encoding
        if not writable(value) or not encoding.can_quote(value):
            return NOTHING
        if encoding.escapes:
            return seq(quoted(value, self.spelling))
        return seq(Token(encoding.quote), value, Token(encoding.quote))

    def _string(self, low: int, high: int | None) -> Expr:
        encoding = self.spelling.encoding

        def body() -> Expr:
            if encoding.escapes:
                return seq('"', repeat(self._char(), low, high), '"')
            quote = encoding.quote
            if (low, high) == (0, None):
                return seq(Token(quote), FreeText((quote,)), Token(quote))
            if not encoding.counts_characters:
                raise UnsupportedSchema("", "minLength" if low else "maxLength", "raw characters are not counted")
            return seq(Token(quote), repeat(not_chars(quote), low, high), Token(quote))

        return self._rules.shared("string", body) if (low, high) == (0, None) else body()

    def _quote(self) -> Expr | str:
        encoding = self.spelling.encoding
        return encoding.quote if encoding.escapes else Token(encoding.quote)

    def _language(self, automaton: Automaton, low: int = 0, high: int | None = None) -> Expr:
        """The texts of a language as a string holds them; a raw string does not hold its quote."""
        if not self.spelling.encoding.escapes:
            automaton = intersection(automaton, without((self.spelling.encoding.quote,)))
        return self._written(automaton, self._one_of, "text", low, high, plain_string)

    def _one_of(self, charset: CharSet) -> Expr:
        """One of these characters."""
        if charset not in self._chars:
            self._chars[charset] = self._one_char(charset)
        return self._chars[charset]

    def _one_char(self, charset: CharSet) -> Expr:
        made = one_of(charset, self.spelling)
        if made is None:
            return self._char()
        return self._rules.shared("string-char", lambda: made, charset) if isinstance(made, Choice) else made

    def _written(
        self,
        automaton: Automaton,
        char: Callable[[CharSet], Expr],
        hint: str,
        low: int = 0,
        high: int | None = None,
        known: Callable[[Automaton, Spelling, int, int | None], Expr | None] | None = None,
    ) -> Expr:
        """The texts of a language, as `known` has them, if it does; rules are the same wherever the language is."""
        key = (hint, automaton, low, high)
        if key not in self._texts:
            count = itertools.count(1)

            def rule(_: str, make: Callable[[], Expr]) -> Ref:
                return self._rules.shared_later(f"{hint}-{next(count)}", make, key)

            body = known and known(automaton, self.spelling, low, high)
            body = body or to_expr.expression(automaton, char, rule, hint, low, high)
            shared = to_expr.size(body) > _SHARED_SIZE
            self._texts[key] = self._rules.shared(hint, lambda: body, key) if shared else body
        return self._texts[key]

    def _number(self, kind: types.Number) -> Expr:
        capped = self.spelling.integer_digits is not None or (
            self.spelling.fraction_digits is not None and not kind.integer
        )
        self.capped |= capped and (kind.low is None or kind.high is None)
        if kind.multiple is not None or kind.broken:
            return self._written(multiples(kind, self.spelling), plain_char, "multiple")
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
            member = seq(self._key_but([], members.name, frame), frame.between, value)
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
        return seq(key, frame.between, self.expr(item.value, f"{name}-{item.name}"))

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
        return self._rules.rule(f"{name}-other", seq(key, frame.between, self.expr(kind.rest, f"{name}-other")))

    def _one_of_keys(self, keys: Iterable[types.Keys], name: str, frame: Frame) -> Expr:
        """One member with a key of these languages."""
        return choice(
            *(
                seq(self._key_of(one.automaton, frame), frame.between, self.expr(one.value, f"{name}-{number}"))
                for number, one in enumerate(keys, 1)
            )
        )

    def _key_of(self, automaton: Automaton, frame: Frame) -> Expr:
        """A key of this language; one that is not quoted is an identifier."""
        if frame.keys == "quoted":
            return seq('"', self._language(automaton), '"')
        return self._written(intersection(automaton, _IDENTIFIERS), plain_char, "key")

    def _key_but(self, names: list[str], name: str, frame: Frame) -> Expr:
        """Any key but these; one that is not quoted is an identifier."""
        hint = f"{name}-other-key"
        if frame.keys == "quoted":
            return self._string_but(names, hint) if names else self._string(0, None)
        written = (frame.key(other, self.spelling, declared=False) for other in names)
        taken = ["", *filter(None, written)]  # a bare key has a character at least
        return self._none_of(BARE_LETTERS, taken, hint)

    def _string_but(self, texts: list[str], hint: str) -> Expr:
        """Any string but these."""
        if all(quoted(text, self.spelling) == f'"{text}"' for text in texts):
            raw = raw_chars("", self.spelling)
            hint = "key-char" if self.spelling.free else "string-char"
            char = self._rules.shared(hint, lambda: choice(raw, self._escape()))
            return Except(char, raw, self._escape(), tuple(texts))

        def spelled(char: str) -> str:
            return quoted(char, self.spelling)[1:-1]

        letters = Letters(self._rest_but, self._rest_but, spelled, '"')
        return seq('"', self._none_of(letters, texts, hint))

    def _none_of(self, letters: Letters, texts: list[str], hint: str) -> Expr:
        others = OtherTexts(letters, lambda make: self._rules.later(hint, lambda _: make()))
        return others.after_prefix(texts)

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
