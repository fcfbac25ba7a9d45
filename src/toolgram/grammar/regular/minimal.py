"""Which states of an automaton have the same future, so that one of them is enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

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
    first = [part for part in ({n for n in useful if ends[n]}, {n for n in useful if not ends[n]}) if part]
    return _Refinement(inverse, first).by_blocks(set(range(len(first))), useful)


def alike_but_for(missing: Sequence[tuple[int, int]], inverse: Inverse, usual: int) -> dict[int, int]:
    """The same where every state may be an end, and a step that is not in `inverse` leads to the state `usual`, but for
    those that are `missing`, of which the letter and the state that they would come from are given.

    So the steps that most states have need not be written down for each: where blocks agree in all others, in those
    to the block of `usual` they do as well, and it is never used to split.
    """
    refinement = _Refinement(inverse, [set(range(len(inverse)))], usual)
    refinement.split(missing)
    return refinement.by_blocks(set(range(1, len(refinement.blocks))), None)


class _Refinement:
    """Blocks of states that are split until those in one have the same future."""

    def __init__(self, inverse: Inverse, blocks: list[set[int]], usual: int | None = None) -> None:
        self._inverse = inverse
        self._usual = usual
        self.blocks = blocks
        self.block_of = {number: index for index, block in enumerate(blocks) for number in block}
        self._waiting: set[int] = set()

    def by_blocks(self, waiting: set[int], useful: Container[int] | None) -> dict[int, int]:
        """The blocks of all states, once those that wait were used to split, and what comes of that."""
        self._waiting = waiting
        while waiting:
            steps = (step for number in self.blocks[waiting.pop()] for step in self._inverse[number])
            self.split(steps if useful is None else (step for step in steps if step[1] in useful))
        return self.block_of

    def split(self, steps: Iterable[tuple[int, int]]) -> None:
        """Part those from which these steps, of a letter each, lead to a block, and those from which they do not."""
        sources: dict[int, list[int]] = defaultdict(list)
        for letter, source in steps:
            sources[letter].append(source)
        for hit in sources.values():
            touched: dict[int, set[int]] = defaultdict(set)
            for number in hit:
                touched[self.block_of[number]].add(number)
            for index, part in touched.items():
                self._part(index, part)

    def _part(self, index: int, part: set[int]) -> None:
        block = self.blocks[index]
        rest = len(block) - len(part)
        if not rest:
            return
        if self._usual in part or (len(part) > rest and self._usual not in block):
            part = block - part
        block -= part
        for number in part:
            self.block_of[number] = len(self.blocks)
        # The smaller part is enough, and where the whole was waiting, both do.
        self._waiting.add(len(self.blocks))
        self.blocks.append(part)
