"""Which states of an automaton have the same future, so that one of them is enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

Inverse = Sequence[Sequence[tuple[int, int]]]
"""For each state the steps that lead to it: the letter, and the state that they come from."""


def inverted(rows: Sequence[Mapping[int, int]]) -> Inverse:
    """Steps by letter, turned around."""
    inverse: list[list[tuple[int, int]]] = [[] for _ in rows]
    for number, row in enumerate(rows):
        for letter, target in row.items():
            inverse[target].append((letter, number))
    return inverse


def alike(useful: set[int], ends: Sequence[bool], inverse: Inverse) -> dict[int, int]:
    """Which states have the same future, by the number of their block (Hopcroft's refinement).

    A step that is missing leads to a sink, which need not be written down: both first blocks are used to split.
    """
    blocks = [part for part in ({n for n in useful if ends[n]}, {n for n in useful if not ends[n]}) if part]
    block_of = {number: index for index, block in enumerate(blocks) for number in block}
    waiting = set(range(len(blocks)))
    while waiting:
        sources: dict[int, list[int]] = defaultdict(list)
        for number in blocks[waiting.pop()]:
            for letter, source in inverse[number]:
                if source in useful:
                    sources[letter].append(source)
        for hit in sources.values():
            touched: dict[int, set[int]] = defaultdict(set)
            for number in hit:
                touched[block_of[number]].add(number)
            for index, part in touched.items():
                rest = len(blocks[index]) - len(part)
                if not rest:
                    continue
                if len(part) > rest:
                    part = blocks[index] - part
                blocks[index] -= part
                for number in part:
                    block_of[number] = len(blocks)
                waiting.add(len(blocks))  # the smaller part is enough, and where the whole was waiting, both do
                blocks.append(part)
    return block_of
