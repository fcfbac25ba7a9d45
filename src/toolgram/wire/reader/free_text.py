"""Free text: the marks at which it ends, and where each of them leads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from toolgram.wire.instructions import Exit, FreeAt, StopAt
from toolgram.wire.marks import Marks
from toolgram.wire.program import Program


@dataclass(frozen=True)
class FreeText:
    """Free text into a field: the marks that end it, and where each leads.

    `unreadable` says why the text is not what the format expects, "" where it is. Where the text has begun, and no
    mark stands first in it, it is `once_begun`, if that is given; reasoning may begin with white space.
    """

    marks: Marks
    exits: tuple[Exit, ...]
    field: str
    unreadable: str = ""
    may_stop: bool = True
    once_begun: FreeText | None = None

    @staticmethod
    @lru_cache(maxsize=1024)
    def of(
        exits: tuple[Exit, ...],
        field: str,
        unreadable: str = "",
        *,
        may_stop: bool = True,
        once_begun: FreeText | None = None,
    ) -> FreeText:
        """The free text that ends at any of these exits; where it has begun it is `once_begun`, if that is given."""
        texts = tuple(dict.fromkeys(exit_.text for exit_ in exits))
        holds = tuple(dict.fromkeys(exit_.before + exit_.text for exit_ in exits if exit_.before))
        return FreeText(Marks.of(texts, holds), exits, field, unreadable, may_stop, once_begun)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends it once it has begun, as the format writes it, but not by a call that nothing announces."""
        free = self.once_begun or self
        return tuple(exit_.before + exit_.text for exit_ in free.exits if not exit_.ahead)

    def closes_reasoning(self, mark: str) -> bool:
        """Whether this mark ends reasoning, and opens no call: it is none of the answer then, whatever follows."""
        ends = (exit_.text == mark and not (exit_.ahead or exit_.calls) for exit_ in self.exits)
        return self.field == "reasoning" and any(ends)

    def exits_at(self, mark: str, text: str) -> tuple[list[Exit], str]:
        """The exits whose marks begin with this one, and how much of the text before it is theirs, at its end."""
        exits = [exit_ for exit_ in self.exits if exit_.text.startswith(mark)]
        before = max((exit_.before for exit_ in exits if text.endswith(exit_.before)), key=len, default="")
        return exits, before


def with_exits(exits: tuple[Exit, ...], more: tuple[Exit, ...]) -> tuple[Exit, ...]:
    """The exits, and those of the others whose marks are not among theirs."""
    known = {exit_.text for exit_ in exits}
    return exits + tuple(exit_ for exit_ in more if exit_.text not in known)


def free_text_at(program: Program, at: int, others: tuple[Exit, ...]) -> FreeText:
    """The free text at a place of the program, which these other exits end too."""
    free = program.code[at]
    if not isinstance(free, FreeAt):
        raise TypeError("not at free text")
    exits = with_exits(program.free_exits(at), tuple(exit_ for exit_ in others if not exit_.first))
    may_stop = any(isinstance(program.code[next_], StopAt) for next_, _ in program.closure(free.next))
    text = FreeText.of(exits, free.field, may_stop=may_stop)
    if free.field != "reasoning":
        first = tuple(exit_ for exit_ in others if exit_.first)
        begin = FreeText.of(with_exits(exits, first), free.field, may_stop=may_stop, once_begun=text)
        return begin if first else text
    # A model may skip the reasoning that its prompt opens: what may begin a turn then comes first of all.
    home = program.home_exits
    if begun := tuple(exit_.text for exit_ in exits if exit_.ahead):
        home = tuple(exit_ for exit_ in home if not (exit_.calls or any(each.startswith(exit_.text) for each in begun)))
    return FreeText.of(with_exits(exits, home), free.field, may_stop=may_stop, once_begun=text)
