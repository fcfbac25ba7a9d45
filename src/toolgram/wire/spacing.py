"""White space around free text, as a grammar has it: what a style writes there is not asked of the model.

Templates of one family differ in the white space around the tags of reasoning, and a reader takes any. Beside free text
it is text like any other, so that a grammar need not say anything of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from toolgram.wire import format as wire


@dataclass(frozen=True)
class Spacing:
    """What a turn leaves free: whether its content is free text, and whether there may be `less` after reasoning.

    Content is none where it is the value of a schema, or begins with nothing that a call may begin with.
    """

    free_content: bool
    less: bool

    def loosened(
        self, node: wire.Node, *, before: bool = False, after: bool = False, closing: bool = False
    ) -> wire.Node:
        """The node without prescribed white space beside free text; of what follows reasoning there may be less.

        Free text stands directly `before` the node, or `after` it; `closing` it comes after the reasoning of a part.
        """
        match node:
            case wire.Lit(text, others) if not "".join((text, *others)).strip():
                if before or after:
                    return wire.NOTHING_WRITTEN
                return _up_to(node) if closing and self.less and text else node
            case wire.Seq(items):
                return self._row([item for item in items if item != wire.Lit("")], before, after, closing)
            case wire.Opt() | wire.Alt() | wire.Lenient():
                return wire.rebuild(node, partial(self.loosened, before=before, after=after, closing=closing))
            case _:
                return node

    def _row(self, items: list[wire.Node], before: bool, after: bool, closing: bool) -> wire.Node:
        free = [before, *map(self._is_free, items), after]
        made: list[wire.Node] = []
        for at, item in enumerate(items):
            made.append(self.loosened(item, before=free[at], after=free[at + 2], closing=closing))
            closing = closing or isinstance(item, wire.Reasoning)
        return wire.Seq(*made)

    def _is_free(self, node: wire.Node) -> bool:
        match node:
            case wire.Reasoning():
                return True
            case wire.Content():
                return self.free_content
            case wire.Opt(item):
                return self._is_free(item)
            case wire.Seq(items):
                said = [item for item in items if not (isinstance(item, wire.Lit) and item.text.strip() == "")]
                return len(said) == 1 and self._is_free(said[0])
            case _:
                return False


def _up_to(space: wire.Lit) -> wire.Node:
    """The white space, one line break, or nothing."""
    texts = dict.fromkeys((space.text, "\n", *space.others))
    return wire.Opt(wire.Alt(*map(wire.Lit, texts)))
