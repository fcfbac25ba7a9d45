"""JSON values as sentences of a type's grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from toolgram.schema import types
from toolgram.schema.types import ANY, Canonical, Type
from toolgram.schema.writing.json_style import Frame, Spelling, quoted, writable
from toolgram.schema.writing.number_style import spell_number


def spell(value: object, spelling: Spelling | None = None) -> str:
    """The one spelling of a JSON value, whatever its number of digits.

    Raises ValueError for what is no JSON value: infinities, lone surrogates, keys that are no strings, other objects.
    """
    free = replace(spelling or Spelling(), integer_digits=None, fraction_digits=None)
    text = spell_as(Canonical(ANY, {}), value, free)
    if text is None:
        raise ValueError(f"no JSON value: {value!r}")
    return text


def spell_as(canonical: Canonical, value: object, spelling: Spelling) -> str | None:
    """The sentence of the type's grammar that denotes this JSON value, keys in the grammar's order.

    None where the value is not of the type, has no spelling within the digit caps, or nests too deeply to be written.
    """
    try:
        return _spell(canonical.root, value, spelling, canonical.resolve, outermost=True)
    except RecursionError:
        return None


def _spell(
    kind: Type, value: object, spelling: Spelling, resolve: Callable[[Type], Type], *, outermost: bool = False
) -> str | None:
    kind = resolve(kind)
    if isinstance(kind, types.Union):
        spelled = (_spell(option, value, spelling, resolve, outermost=outermost) for option in kind.options)
        return next((text for text in spelled if text is not None), None)
    if value is None or isinstance(value, bool):
        word = {None: "null", True: "true", False: "false"}[value]
        return spelling.encoding.word(word) if kind in (ANY, types.Word(word)) else None
    if isinstance(value, str):
        fits = kind in (ANY, types.Text(value)) or (isinstance(kind, types.String) and kind.admits(value))
        fits_notation = writable(value) and spelling.encoding.can_quote(value)
        return quoted(value, spelling) if fits and fits_notation else None
    if isinstance(value, int | float):
        kind = types.Number() if kind == ANY else kind
        return spell_number(kind, value, spelling) if isinstance(kind, types.Number) else None
    if isinstance(value, Mapping):
        kind = types.Object((), ANY) if kind == ANY else kind
        items = cast("Mapping[object, object]", value)
        frame = spelling.frame(outermost=outermost)
        return _spell_object(kind, items, spelling, resolve, frame) if isinstance(kind, types.Object) else None
    if isinstance(value, Sequence):
        kind = types.Array((), ANY) if kind == ANY else kind
        values = cast("Sequence[object]", value)
        if isinstance(kind, types.Items):
            return _spell_items(kind.states, values, spelling, resolve)
        return _spell_array(kind, values, spelling, resolve) if isinstance(kind, types.Array) else None
    return None


def _spell_object(
    kind: types.Object,
    value: Mapping[object, object],
    spelling: Spelling,
    resolve: Callable[[Type], Type],
    frame: Frame,
) -> str | None:
    declared = {item.name: item for item in kind.properties}
    if any(item.required and item.name not in value for item in kind.properties):
        return None
    if len(value) < kind.min or (kind.max is not None and len(value) > kind.max):
        return None
    last = [key for key in value if key not in declared and _is_some(kind.some, key, value[key], spelling, resolve)][
        -1:
    ]
    if kind.some and not last:
        return None
    others = [key for key in value if key not in declared and key not in last]
    if not all(isinstance(key, str) for key in value):
        return None
    in_order = spelling.encoding.ordered
    order = [*in_order(name for name in declared if name in value), *in_order(map(str, others)), *map(str, last)]
    members: list[str] = []
    for key in order:
        written = frame.key(key, spelling, declared=key in declared)
        expected = types.value_of(kind, key)
        if key in last:
            expected = types.union(one.value for one in kind.some if one.automaton.accepts(key))
        text = _spell(expected, value[key], spelling, resolve)
        if written is None or text is None:
            return None
        members.append(f"{written}{frame.between}{text}")
    return frame.text(members)


def _is_some(
    some: Iterable[types.Keys], key: object, value: object, spelling: Spelling, resolve: Callable[[Type], Type]
) -> bool:
    fitting = (one for one in some if isinstance(key, str) and one.automaton.accepts(key))
    return any(_spell(one.value, value, spelling, resolve) is not None for one in fitting)


def _spell_items(
    states: Sequence[types.ItemState],
    value: Sequence[object],
    spelling: Spelling,
    resolve: Callable[[Type], Type],
) -> str | None:
    written: dict[int, str] = {0: ""}  # for each state that the items may lead to
    for item in value:
        after: dict[int, str] = {}
        for number, text in written.items():
            for kind, target in states[number].edges:
                spelled = None if target in after else _spell(kind, item, spelling, resolve)
                if spelled is not None:
                    after[target] = f"{text}{spelling.item_separator if text else ''}{spelled}"
        written = after
    return next((f"[{text}]" for number, text in written.items() if states[number].accepts), None)


def _spell_array(
    kind: types.Array, value: Sequence[object], spelling: Spelling, resolve: Callable[[Type], Type]
) -> str | None:
    if len(value) < kind.min or (kind.max is not None and len(value) > kind.max):
        return None
    spelled = [_spell(types.item_at(kind, index), item, spelling, resolve) for index, item in enumerate(value)]
    if any(text is None for text in spelled):
        return None
    return "[" + spelling.item_separator.join(text for text in spelled if text is not None) + "]"
