"""Lark grammars of custom tools, as regular expressions: those whose language is regular, which most of them are.

A grammar in Lark (`lark-parser.readthedocs.io`, as OpenAI's custom tools take it) becomes one regular expression of
ECMA-262, which schemas can say and every engine can enforce::

    start: "x" "=" INT            ⟶   x=(?:[0-9]+)
    %import common.INT
"""

from __future__ import annotations

from toolgram.conversation.lark_patterns.pattern import pattern_of
from toolgram.conversation.lark_patterns.reader import read
from toolgram.errors import GrammarError

__all__ = ["as_pattern"]

_LONGEST = 1 << 16
"""Characters of a grammar: those of coding agents have less than 2,000."""


def as_pattern(text: str) -> str:
    """A regular expression for what a grammar in Lark accepts, to be matched with a whole text.

    How a lexer would cut the text is not looked at: a terminal may end wherever the grammar can go on.
    Raises GrammarError, with the offset where there is one, for what is malformed, for what is not read (templates,
    `%declare`, imports from elsewhere than `common`), for a rule that holds itself other than at its ends, and for what
    is longer than 65,536 characters or nested too deeply.
    """
    if len(text) > _LONGEST:
        raise GrammarError(f"a grammar may have at most {_LONGEST} characters, not {len(text)}", _LONGEST)
    try:
        return pattern_of(read(text))
    except RecursionError as error:
        raise GrammarError("the rules and groups are nested too deeply") from error
