"""Optional special tokens, written with the text beside them.

XGrammar up to 0.2.8, which vLLM 0.33 and SGLang 0.5 have, keeps what it finds of a rule for all others that differ from
it in the ids of their tokens alone: of `Token(1)?` and `Token(2)?`, each of which becomes a rule, one would admit what
the other does. With the text beside it in the same rule it is told from others.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolgram.grammar.ir import EMPTY, Choice, Expr, Literal, Rules, Sequence, Token, choice, is_empty, seq
from toolgram.grammar.walk import TOKEN, kinds_in, names_in, size, with_children

_LARGEST = 12  # parts of what is written twice


def beside_texts(rules: Rules) -> dict[str, Expr]:
    """The same rules, in which no optional token stands by itself where there is a text beside it."""
    return {name: _beside(expr) if kinds_in(expr) & TOKEN else expr for name, expr in rules.items()}


def _beside(expr: Expr) -> Expr:
    changed = with_children(expr, _beside)
    return seq(*_joined(changed.items)) if isinstance(changed, Sequence) else changed


def _joined(items: Iterable[Expr]) -> list[Expr]:
    """The items of a sequence, each optional token as one with what follows it, or else with what is before it."""
    left, done = list(items), list[Expr]()
    while left:
        item = left.pop(0)
        if not _is_optional_token(item):
            done.append(item)
        elif left and _tells(left[0]):
            done.append(_either(_some(item), left.pop(0), after=True))
        elif done and _tells(done[-1]):
            done.append(_either(_some(item), done.pop(), after=False))
        else:
            done.append(item)
    return done


def _either(token: Expr, text: Expr, *, after: bool) -> Expr:
    """A text with the token or without it; where there may be no text, either of them, both, or none."""
    some = _some(text)
    both = seq(token, some) if after else seq(some, token)
    return choice(both, text) if some is text else choice(both, some, token, EMPTY)


def _is_optional_token(expr: Expr) -> bool:
    return isinstance(expr, Choice) and EMPTY in expr.options and all(map(_is_token, filter(_is_there, expr.options)))


def _is_token(expr: Expr) -> bool:
    return isinstance(expr, Token) and expr.id is not None


def _is_there(expr: Expr) -> bool:
    return not is_empty(expr)


def _tells(expr: Expr) -> bool:
    """Whether it is some text, short enough to be written twice."""
    if isinstance(expr, Literal):
        return True
    plain = not names_in(expr) and not kinds_in(expr) & TOKEN
    return plain and isinstance(expr, Choice) and size(expr) <= _LARGEST


def _some(expr: Expr) -> Expr:
    """An optional expression where it is there; any other as it is."""
    if not isinstance(expr, Choice) or EMPTY not in expr.options:
        return expr
    return choice(*filter(_is_there, expr.options))
