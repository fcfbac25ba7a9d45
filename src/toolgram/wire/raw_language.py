"""Strings of a schema as they stand between tags: characters as they are, without the mark that ends them."""

from __future__ import annotations

from toolgram.grammar.ir import Expr, Ref, Text
from toolgram.grammar.raw_text import RawText, raw_text
from toolgram.grammar.regular.automata import TooLarge
from toolgram.grammar.walk import renamed, size
from toolgram.schema import types
from toolgram.schema.writing.json_style import RuleNames

_LARGEST_INLINE = 4  # what is larger is one rule for the whole grammar


def raw_string(kind: types.String, mark: str, names: RuleNames, rules: dict[str, Expr], *, exact: bool) -> RawText:
    """The strings without this mark, as an expression over `rules`, and what of them is not exact."""
    try:
        raw = raw_text(mark, kind.automaton, kind.min, kind.max, exact=exact)
    except TooLarge:
        keyword = "maxLength" if kind.automaton is None else "pattern"
        return RawText(Text((mark,)), (), ((keyword, "any string between raw tags"),))
    key = kind, mark, exact
    new = {str(number): names.shared(f"raw-text-{number + 1}", key) for number in range(len(raw.bodies))}
    rules.update({new[str(number)]: renamed(body, new) for number, body in enumerate(raw.bodies)})
    expr = renamed(raw.expr, new)
    if size(expr) > _LARGEST_INLINE:
        name = names.shared("raw-text", key)
        rules[name] = expr
        expr = Ref(name)
    return raw._replace(expr=expr, bodies=())
