"""Discovery alone, on variants of all families' formats that nobody has seen, reads recorded turns put into them."""

from __future__ import annotations

import random

import toolgram
from conformance.test_chat_cases import cases, in_pieces, needs_cases
from toolgram.styles.discovery import discover
from unseen import FAMILIES, TURNS, VARIANTS, reads, turns


@needs_cases
def test_nearly_all_turns_are_read() -> None:
    every = list(turns(cases()))
    assert len(every) == len(FAMILIES) * VARIANTS * TURNS == 360
    unread = {f"{turn.variant.family} {turn.variant.number}": trouble for turn in every if (trouble := reads(turn))}
    assert len(unread) <= 15, unread


@needs_cases
def test_they_are_read_alike_in_pieces() -> None:
    for at, turn in enumerate(turns(cases())):
        if at % 7 == 0:
            template = turn.variant.template
            body = {"messages": [{"role": "user", "content": "Please do."}], "tools": turn.tools}
            plan = toolgram.plan(body, template, discover(template).style)
            assert in_pieces(plan, turn.text, random.Random(at), 5) == plan.parse(turn.text)
