"""Which states of an automaton have the same future, so that one of them is enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

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
    return _Refinement(inverse, [{n for n in useful if ends[n]}, {n for n in useful if not ends[n]}]).refined()


def alike_but_for(missing: Iterable[tuple[int, int]], inverse: Inverse, usual: int) -> dict[int, int]:
    """The same where every state may be an end, and a step that is not in `inverse` leads to the state `usual`, but for
    those that are `missing`, of which the letter and the state that they would come from are given.

    So the steps that most states have need not be written down for each: where blocks agree in all others, in those
    to the block of `usual` they do as well, and it is never used to split.
    """
    refinement = _Refinement(inverse, [set(range(len(inverse)))], usual)
    refinement.split(missing)
    return refinement.refined()


class _Refinement:
    """Blocks of states that are split until those in one have the same future; steps from other states are left out."""

    def __init__(self, inverse: Inverse, blocks: Iterable[set[int]], usual: int | None = None) -> None:
        self._inverse = inverse
        self._usual = usual
        self._blocks = list(filter(None, blocks))
        self._block_of = {number: index for index, block in enumerate(self._blocks) for number in block}
        self._waiting = {index for index, block in enumerate(self._blocks) if usual not in block}

    def refined(self) -> dict[int, int]:
        """The blocks of all states, once those that wait were used to split, and what comes of that."""
        while self._waiting:
            self.split([step for number in self._blocks[self._waiting.pop()] for step in self._inverse[number]])
        return self._block_of

    def split(self, steps: Iterable[tuple[int, int]]) -> None:
        """Part those from which these steps, of a letter each, lead to a block, and those from which they do not."""
        sources: dict[int, list[int]] = defaultdict(list)
        for letter, source in steps:
            if source in self._block_of:
                sources[letter].append(source)
        for hit in sources.values():
            touched: dict[int, set[int]] = defaultdict(set)
            for number in hit:
                touched[self._block_of[number]].add(number)
            for index, part in touched.items():
                self._part(index, part)

    def _part(self, index: int, part: set[int]) -> None:
        block = self._blocks[index]
        rest = len(block) - len(part)
        if not rest:
            return
        if self._usual in part or (len(part) > rest and self._usual not in block):
            part = block - part
        block -= part
        for number in part:
            self._block_of[number] = len(self._blocks)
        # The smaller part is enough, and where the whole was waiting, both do.
        self._waiting.add(len(self._blocks))
        self._blocks.append(part)
