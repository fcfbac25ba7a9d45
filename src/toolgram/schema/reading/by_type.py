"""The keywords of JSON Schema that speak of one kind of value, as types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from toolgram.errors import InvalidSchema
from toolgram.grammar.regular import automata, to_expr
from toolgram.grammar.regular.automata import Automaton
from toolgram.grammar.regular.languages import without
from toolgram.grammar.regular.regex import (
    Malformed,
    TooLarge,
    Unsupported,
    pattern,
    pattern_uncounted,
    pattern_with_lengths,
)
from toolgram.schema import types
from toolgram.schema.reading import keywords
from toolgram.schema.reading.formats import format_automaton, is_exact
from toolgram.schema.reading.references import LATEST, Place
from toolgram.schema.types import ANY, NEVER, Property, Type
from toolgram.schema.types.intersect import intersect
from toolgram.schema.writing.notation import Encoding
from toolgram.schema.writing.number_style import decimal_of

_MAX_LANGUAGES = 16  # of keys, distinguished by the patterns that they match
_MAX_DIGITS = 60  # of a bound, without idle zeros: each takes an alternative inside the one before
_MANY_COUNTS = 15_000  # parts in which a pattern is written with its lengths; XGrammar looks through most for 4 s
_BEYOND_ALL = 2**31  # characters, items or members
BEYOND = (Malformed, Unsupported, TooLarge)


class NotYet(Exception):
    """A definition was asked for that is not made yet."""


class Normalizer(Protocol):
    """What the keywords need of the whole document.

    `definition` raises NotYet.
    """

    exact: bool
    encoding: Encoding

    def schema(self, place: Place) -> Type:
        """The type of a schema."""
        ...

    def meet(self, place: Place, stated: list[tuple[str, Type]]) -> Type:
        """The intersection of types, each with the keyword that states it."""
        ...

    def definition(self, key: str) -> Type:
        """What a reference refers to."""
        ...

    def unsupported(self, pointer: str, keyword: str, reason: str, enforced: str) -> None:
        """Refuses the keyword, or in relaxed mode notes what is enforced instead."""
        ...

    def check_text(self, place: Place, keyword: str, text: object) -> None:
        """Refuses a text that cannot be written."""
        ...


def string(n: Normalizer, place: Place, schema: keywords.Schema) -> Type:
    """Strings, by their lengths, pattern and format."""
    low, high = int(schema.get("minLength", 0)), _count(schema.get("maxLength"))
    if not n.encoding.counts_characters and high != 0:
        reason = f"between the quotes {n.encoding.quote!r} characters are not counted"
        for keyword, bound in (("minLength", low), ("maxLength", high)):
            if bound:
                n.unsupported(place.pointer, keyword, reason, "a string of any length")
        low, high = 0, None
    result, any_length = types.string(low, high), types.string(0, None)
    for keyword in ("pattern", "format"):
        text = schema.get(keyword)
        if not isinstance(text, str) or result == NEVER:
            continue
        alone = any_length == types.string(0, None)
        try:
            language = _language(n, place, keyword, text, high)
            longer = intersect(any_length, language, n.definition)
            if longer == NEVER and not (alone or n.exact):
                raise types.NoneKnown  # schemas say `format` of what only looks like it: a time without an offset
            try:
                result = _held(n, longer, low, high)
            except TooLarge:
                low, result = _longer(n, place, keyword, longer, low, high)
                high = None
            any_length = longer
        except BEYOND as error:
            apart = isinstance(error, types.NoneKnown) and not alone
            reason = "no string of it has the pattern" if apart else f"{error}" or "it has too many cases"
            n.unsupported(place.pointer, keyword, reason, "any string of the length" if alone else "the pattern alone")
    return result


def _held(n: Normalizer, kind: Type, low: int, high: int | None) -> Type:
    """Those of the strings that have `low` to `high` characters.

    Raises TooLarge, in relaxed mode also where counting takes pages: the states of the language once for each count.
    """
    made = intersect(types.string(low, high), kind, n.definition)
    if n.exact or not (isinstance(made, types.String) and isinstance(kind, types.String)):
        return made
    if made.automaton and made.automaton != kind.automaton and to_expr.written_size(made.automaton) > _MANY_COUNTS:
        raise TooLarge
    return made


def _longer(n: Normalizer, place: Place, keyword: str, kind: Type, low: int, high: int | None) -> tuple[int, Type]:
    """The strings of a pattern or a format, which says more of them than lengths do, with how many characters they have
    at least: `low`, or where that is too much as well, none. Lengths that are left out are told.

    Raises TooLarge where it is not for the number of cases that these strings cannot be held to the lengths.
    """
    bounded = low > 0 or high is not None
    language = kind.automaton if bounded and isinstance(kind, types.String) else None
    if language is None or not language.has_length(low, high):
        raise TooLarge
    least, made = low, kind
    try:
        made = _held(n, kind, low, None)
    except TooLarge:
        least = 0
    for bound, limits, what in (("minLength", (low - least, None), "short"), ("maxLength", (0, high), "long")):
        if not language.has_lengths_within(*limits):
            reason = f"with this {keyword} there are too many cases"
            n.unsupported(place.pointer, bound, reason, f"the {keyword}, however {what}")
    return least, made


def _language(n: Normalizer, place: Place, keyword: str, text: str, most: int | None) -> Type:
    """The strings of a pattern, or of a format that should have `most` characters.

    A pattern whose counts make it too large is without them in relaxed mode, which is told.
    """
    low, high = 0, None
    try:
        if keyword == "format":
            automaton = format_automaton(text, most)
        elif n.encoding.counts_characters:
            automaton, low, high = pattern_with_lengths(text)
        else:
            automaton = pattern(text)
    except TooLarge:
        automaton = None if n.exact or keyword == "format" else pattern_uncounted(text)
        if automaton is None:
            raise
        reason = "what it counts makes too many cases"
        n.unsupported(place.pointer, keyword, reason, "the pattern, with parts of any length")
    if automaton is not None and not n.encoding.escapes:
        automaton = automata.intersection(automaton, without((n.encoding.quote,)))
    return types.string(low, high, automaton, exact=keyword != "format" or is_exact(text))


def number(n: Normalizer, place: Place, schema: keywords.Schema, *, integer: bool) -> Type:
    """Numbers, by their bounds and their step."""
    result: Type = types.Number(integer)
    for keyword, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        flag = schema.get(strict)
        if isinstance(flag, bool) and place.draft not in (4, None):
            raise InvalidSchema(place.pointer, strict, "is not a number")
        bounds = [(schema.get(keyword), flag is True), (None if isinstance(flag, bool) else flag, True)]
        for value, is_open in bounds:
            if value is None:
                continue
            bound = decimal_of(value)
            if bound is None or len("".join(map(str, bound.as_tuple().digits)).rstrip("0")) > _MAX_DIGITS:
                reason = f"it has more than {_MAX_DIGITS} digits"
                n.unsupported(place.pointer, keyword, reason, "any number on that side")
                continue
            limits = (
                types.Number(low=bound, low_open=is_open)
                if keyword == "minimum"
                else types.Number(high=bound, high_open=is_open)
            )
            result = intersect(result, limits, n.definition)
    if "multipleOf" in schema:
        try:
            step = types.number(types.Number(multiple=decimal_of(schema["multipleOf"])))
            result = intersect(result, step, n.definition)
        except TooLarge:
            n.unsupported(place.pointer, "multipleOf", "it has too many remainders", "any number within the bounds")
    return result


def array(n: Normalizer, place: Place, schema: keywords.Schema) -> Type:
    """Arrays, by their items and length."""
    prefix: list[Type] = []
    rest_keyword = "items"
    if isinstance(schema.get("items"), list):
        if place.draft == LATEST:
            raise InvalidSchema(place.pointer, "items", "is not a schema")
        prefix = [n.schema(place.child("items", index)) for index in range(len(schema["items"]))]
        rest_keyword = "additionalItems"
    elif "prefixItems" in schema:
        prefix = [n.schema(place.child("prefixItems", index)) for index in range(len(schema["prefixItems"]))]
    rest = _others(n, place, schema, rest_keyword, "unevaluatedItems")
    low, high = int(schema.get("minItems", 0)), _count(schema.get("maxItems"))
    unique = place.pointer if schema.get("uniqueItems") else None
    return types.array(prefix, ANY if rest is None else rest, low, high, unique)


def objects(n: Normalizer, place: Place, schema: keywords.Schema) -> Type:
    """Objects, by their keys. Raises NotYet and TooLarge."""
    rest = _others(n, place, schema, "additionalProperties", "unevaluatedProperties")
    silent = rest is None and "patternProperties" not in schema
    rest = ANY if rest is None else rest
    patterns = list(_patterns(n, place, schema))
    keys: list[types.Keys] = []
    if any(automaton is None for automaton, _ in patterns):
        rest = types.union([rest, *(value for _, value in patterns)])
        patterns = []
    elif patterns:
        known = [(automaton, value) for automaton, value in patterns if automaton is not None]
        keys, rest = list(_languages(n, place, known, rest)), NEVER
    listed = types.Object((), rest, keys=tuple(keys))
    properties: list[Property] = []
    declared = schema.get("properties", {})
    required = dict.fromkeys(schema.get("required", ()))
    for name in dict.fromkeys((*declared, *required)):
        is_declared = name in declared
        n.check_text(place, "properties" if is_declared else "required", name)
        if is_declared:
            here = place.child("properties", name)
            matching = [("patternProperties", each) for one, each in patterns if one and one.accepts(name)]
            value, pointer = n.meet(here, [("properties", n.schema(here)), *matching]), here.pointer
        else:
            value, pointer = types.other_value_of(listed, name), place.pointer
        properties.append(Property(name, value, name in required, pointer))
    low, high = int(schema.get("minProperties", 0)), _count(schema.get("maxProperties"))
    result = types.object_type(properties, rest, silent=silent, keys=keys, low=low, high=high, counted=place.pointer)
    if schema.get("propertyNames", True) not in (True, {}):
        names = types.Object((), NEVER, silent=True, keys=(types.Keys(_names(n, place), ANY),))
        return intersect(result, names, n.definition)
    return result


def _patterns(n: Normalizer, place: Place, schema: keywords.Schema) -> Iterator[tuple[Automaton | None, Type]]:
    """The languages of `patternProperties` with their types; None is a language that is not known."""
    for text in schema.get("patternProperties", {}):
        value = n.schema(place.child("patternProperties", text))
        try:
            yield pattern(text), value
        except BEYOND as error:
            reason = f"{error}" or "it has too many cases"
            enforced = "a key that is not declared takes a value of any pattern or of additionalProperties"
            n.unsupported(place.pointer, "patternProperties", reason, enforced)
            yield None, value


def _languages(n: Normalizer, place: Place, patterns: list[tuple[Automaton, Type]], rest: Type) -> Iterator[types.Keys]:
    """Keys that match the same patterns, with the intersection of the types of these."""
    for automaton, values in cells(patterns):
        stated = [("patternProperties", value) for value in values]
        yield types.Keys(automaton, n.meet(place, stated) if stated else rest)


def cells(patterns: Iterable[tuple[Automaton, Type]]) -> list[tuple[Automaton, list[Type]]]:
    """All keys, cut into those that match the same patterns, with the types of these. Raises TooLarge."""
    cells: list[tuple[Automaton, list[Type]]] = [(automata.universal(), [])]
    for language, value in patterns:
        split = [
            part
            for automaton, values in cells
            for part in (
                (automata.intersection(automaton, language), [*values, value]),
                (automata.difference(automaton, language), values),
            )
        ]
        cells = [part for part in split if not part[0].is_empty]
        if len(cells) > _MAX_LANGUAGES:
            raise TooLarge
    return cells


def _names(n: Normalizer, place: Place) -> Automaton:
    """The keys that `propertyNames` admits."""
    kind = intersect(types.String(), n.schema(replace(place.child("propertyNames"), strings=True)), n.definition)
    options = kind.options if isinstance(kind, types.Union) else (kind,)
    result = automata.of_texts(option.value for option in options if isinstance(option, types.Text))
    for option in options:
        match option:
            case types.Text():
                pass
            case types.String(low, high, automaton):
                lengths = automata.of_length(low, high)
                both = lengths if automaton is None else automata.intersection(automaton, lengths)
                result = automata.union(result, both)
            case _:
                raise TypeError(f"{option} is no string")
    return result


def _others(n: Normalizer, place: Place, schema: keywords.Schema, keyword: str, unevaluated: str) -> Type | None:
    """The type of the items or keys that are not listed; None where the schema does not speak of them."""
    if keyword in schema:
        return n.schema(place.child(keyword))
    if unevaluated not in schema or schema[unevaluated] in (True, {}):
        return None
    return None if keywords.applies_others(schema) else n.schema(place.child(unevaluated))


def _count(value: float | None) -> int | None:
    """A bound of a length or a number of things; one that nothing comes near is none: engines refuse such numbers."""
    return None if value is None or value >= _BEYOND_ALL else int(value)
