"""An answer in a fence, as models write JSON: read so in every format, and written so where calls are."""

from __future__ import annotations

from toolgram.wire import format as wire

FENCES = ("```json", "```")


def in_a_fence(node: wire.Node) -> wire.Node:
    """The node in a fence, on lines of its own."""
    opener, closer = map(wire.Mark, FENCES)
    return wire.Seq(opener, wire.Lit("\n"), node, wire.Lit("\n"), closer)


def may_be_fenced(node: wire.Node) -> wire.Node:
    """The turn, whose answer in a schema may stand in a fence, as models write it that nothing constrains."""
    match node:
        case wire.Content():
            return wire.Lenient(node, in_a_fence(node))
        case wire.Call() | wire.Object() | wire.Array():
            return node
        case _:
            return wire.rebuild(node, may_be_fenced)
