"""How large grammars are, in rules and characters, for each generic style, and those of peers for the same tools."""

from __future__ import annotations

import re

import _peers as peers
import toolgram
from _common import CHATML, STYLES, request, show, tools

COUNTS = (1, 5, 30)
DIALECTS = ("gbnf", "lark", "ebnf")
_RULE = re.compile(r"^[\w-]+(?:\[[^\]]*\])?(?: ::=|:)", re.MULTILINE)

Size = tuple[int, int]  # rules, characters


def size(grammar: str) -> Size:
    """The rules and characters of a grammar as text, in any of the dialects."""
    return len(_RULE.findall(grammar)), len(grammar)


def sizes(style: str, count: int) -> dict[str, Size]:
    """The size in each dialect of the grammar for so many tools."""
    plan = toolgram.plan(request(tools(count)), CHATML, style)
    if plan.constraint is None:
        raise ValueError("a request with tools has a constraint")
    return {dialect: size(plan.constraint.grammar.to(dialect)) for dialect in DIALECTS}


def peer_sizes(count: int) -> dict[str, tuple[Size, str]]:
    """The size of what each peer makes for so many tools, and what that is."""
    many = tools(count)
    return {
        "llama.cpp": (size(peers.llama_gbnf(peers.calls_schema(many))), "GBNF of one call, no text around it"),
        "XGrammar": (size(str(peers.xgrammar_of_tools(many))), "EBNF of its structural tag for Qwen 3"),
        "llguidance": (size(peers.llguidance_lark(many)), "Lark, schemas left in it as %json, compiled inside"),
    }


def main() -> None:
    """Print both tables."""
    rows = [
        [style, count, *(number for pair in sizes(style, count).values() for number in pair)]
        for style in STYLES
        for count in COUNTS
    ]
    units = [f"{dialect} {unit}" for dialect in DIALECTS for unit in ("rules", "characters")]
    show("Grammars of toolgram: tools of 5 parameters, text and calls", ["style", "tools", *units], rows)
    peer_rows = [
        [name, count, rules, characters, what]
        for count in COUNTS
        for name, ((rules, characters), what) in peer_sizes(count).items()
    ]
    head = ["peer", "tools", "rules", "characters", "what it is"]
    show("Grammars of peers, for the same tools", head, sorted(peer_rows, key=lambda row: str(row[0])))


if __name__ == "__main__":
    main()
