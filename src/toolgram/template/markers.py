"""What looks like a control token of a model: the one place that says so.

No form is common to all, and a model may have any text as a control token. So the known forms are listed here, and what
else a template writes, or a vocabulary contains, counts as well: `control_pattern`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from jinja2 import nodes

from toolgram.template.sandbox import environment

# Each form: the characters that it may begin with, and what follows.
_BARRED = (
    "<",
    r"(?:\|[^<>|\s]+\|?>|[^<>|\s]*\|>|｜[^<>｜\s]+｜>)",
)  # <|im_end|>, <|tool_call>, <tool_call|>, <｜User｜>
_TAG = ("<", r"/?[A-Za-z_][^<>\s]*>")  # </s>, <start_of_turn>, <mm:think>, <function=f>
_PLAIN_TAG = ("<", r"/?[A-Za-z_]+(?::[A-Za-z_]+)?>")  # those without the name of a tool or parameter
_WORD = ("[", r"/?[A-Z][A-Z_]*\]")  # [INST], [/INST], [A]
_MINIMAX = ("[]", r"(?:[a-z]?~[!a-z]{0,3}[\[\]]|<\][a-z]{1,16}\[>\[)")  # ]~b], ]~!b[, [e~[, ]<]minimax[>[
# Brackets of any kind around something with a letter in it, as code has them too: [i], <T>, ◁think▷.
_BRACKETED = ("<[]◁⟦【«", r"(?=[^\s<>\[\]]*[^\W\d_])[^\s\"'`,{}<>\[\]◁▷⟦⟧【】«»]{1,64}[>\[\]▷⟧】»]")


def _written(*forms: tuple[str, str]) -> str:
    return "|".join(f"[{re.escape(firsts)}]{rest}" for firsts, rest in forms)


MARKER = re.compile(_written(_BARRED, _TAG, _WORD, _MINIMAX))
"""What looks like a control token where a template's own text is read."""

DOUBLED = re.compile(f"<(?:{MARKER.pattern})>|{MARKER.pattern}")
"""The same, with a second pair of angle brackets where there is one: <</A>> is no `</A>` in other text."""

CONTROL = re.compile(_written(_BARRED))
"""A control token by its form alone: <|channel|>, <|channel>, <channel|>. It is never meant as text."""

TOKEN = re.compile(f"({_written(_BARRED, _PLAIN_TAG, _WORD, _MINIMAX)})")
"""What models have as single tokens, in one group."""

_ANY = re.compile(_written(_BARRED, _TAG, _WORD, _MINIMAX, _BRACKETED))
_BRACKETED_WITHIN = re.compile(f"(?=({_written(_BRACKETED)}))")  # one may begin inside another
_SENTENCE_ENDS = ("<s>", "</s>")


class Source(Protocol):
    """What is needed of a chat template here: its text, and the tokens that come with it."""

    @property
    def source(self) -> str: ...

    @property
    def bos_token(self) -> str: ...

    @property
    def eos_token(self) -> str: ...

    @property
    def control_tokens(self) -> tuple[str, ...]: ...


@lru_cache(maxsize=256)
def control_strings(template: Source) -> frozenset[str]:
    """What may be control tokens of this template: its special tokens, those of its model, and lookalikes."""
    known = {template.bos_token, template.eos_token, *template.control_tokens, *_SENTENCE_ENDS}
    for constant in _constants(template.source):
        known.update(MARKER.findall(constant), _BRACKETED_WITHIN.findall(constant))
    # In JSON, a quote in a control string is escaped.
    known |= {json.dumps(text, ensure_ascii=False)[1:-1] for text in known}
    return frozenset(text for text in known if text.strip())


@lru_cache(maxsize=256)
def control_pattern(template: Source, more: frozenset[str] = frozenset()) -> re.Pattern[str]:
    """Everything that may be a control token, of other models too, and `more`; for use where too much does no harm."""
    return _any_of(control_strings(template) | more, _BARRED, _TAG, _WORD, _MINIMAX, _BRACKETED)


@lru_cache(maxsize=256)
def likely_pattern(template: Source) -> re.Pattern[str]:
    """What is likely a control token of this template's model; for use where other text must stay as it is."""
    return _any_of(control_strings(template), _BARRED, _MINIMAX)


def odd(tokens: Iterable[str]) -> tuple[str, ...]:
    """Those control tokens of a vocabulary that have none of the known forms; white space is no control token."""
    return tuple(token for token in tokens if len(token.strip()) > 1 and not _ANY.fullmatch(token))


def _any_of(known: Iterable[str], *forms: tuple[str, str]) -> re.Pattern[str]:
    """The known texts, the longest first, then the forms."""
    # With one alternative per first character, the search can skip to those characters.
    by_first: dict[str, list[str]] = {}
    for text in sorted(known, key=lambda text: (-len(text), text)):
        by_first.setdefault(text[0], []).append(re.escape(text[1:]))
    for firsts, rest in forms:
        for first in firsts:
            by_first.setdefault(first, []).append(rest)
    return re.compile("|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in by_first.items()))


@lru_cache(maxsize=256)
def _constants(source: str) -> tuple[str, ...]:
    """All text in the template: the text between its tags, and the strings inside them."""
    tree = environment().parse(source)
    texts = [node.data for node in tree.find_all(nodes.TemplateData)]
    values = (node.value for node in tree.find_all(nodes.Const))
    return (*texts, *(value for value in values if isinstance(value, str)))
