"""Openers that models forget, or misspell: what follows is a call for the reader, and where they may call for the
grammar.

Qwen3-Coder leaves out `<tool_call>` in every fifth call or so, most of all after some words, and goes on with
`<function=…>` (QwenLM/Qwen3-Coder#475, ollama/ollama#17742). A grammar without that would not turn it back: the model
has begun its call, and would be led from it into some text. Kimi K2 writes the tag of its section in the singular, the
distilled DeepSeek R1 with other signs between the words (ggml-org/llama.cpp#17376, #11607): text never holds what is
read as a tag, so that but for its last sign such a tag would be written, and then something else.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from toolgram.wire import format as wire


@lru_cache(maxsize=512)
def without_forgotten(format_: wire.WireFormat) -> wire.WireFormat:
    """The format, in which what opens a call or a section of them need not be there where the reader misses nothing.

    That is so where a mark follows it, at which all text before ends too. And each mark may stand in any of the ways in
    which it is read.
    """
    return replace(format_, turn=_admitted(format_.turn))


def _admitted(node: wire.Node) -> wire.Node:
    match node:
        case wire.Mark(aliases=(_, *_)):
            return wire.Alt(*map(wire.Mark, node.spellings))
        case wire.Seq(items):
            return wire.Seq(*(
                wire.Alt(_admitted(item.item), wire.NOTHING_WRITTEN)
                if isinstance(item, wire.Lenient) and _may_be_forgotten(item) and _begins_with_mark(items[at + 1 :])
                else _admitted(item)
                for at, item in enumerate(items)
            ))  # fmt: skip
        case _:
            return wire.rebuild(node, _admitted)


def _may_be_forgotten(node: wire.Lenient) -> bool:
    marked = any(isinstance(part, wire.Mark) for part in wire.walk(node.item))
    return marked and wire.NOTHING_WRITTEN in node.others


def _begins_with_mark(nodes: tuple[wire.Node, ...]) -> bool:
    match nodes[:1]:
        case (wire.Mark(),):
            return True
        case (wire.Seq(items),):
            return _begins_with_mark(items)
        case (wire.Many(item) | wire.Call(item),):
            return _begins_with_mark((item,))
        case _:
            return False
