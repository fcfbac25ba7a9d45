"""Mistakes that models make whatever their template shows: the reader accepts them, and nothing writes them."""

from __future__ import annotations

from toolgram.styles.discovery.to_nodes import as_one
from toolgram.styles.probes import TAG
from toolgram.template.markers import CONTROL
from toolgram.wire.format import NOTHING_WRITTEN, Lenient, Lit, Mark, Node, Reasoning, Seq


def header_again(header: str) -> tuple[Node, ...]:
    """The control token at the end of a header, which a model may repeat.

    It does not count if it closes a pair around words, as in <|open|>assistant<|close|>.
    """
    tags = list(TAG.finditer(header))
    if not tags or header[tags[-1].end() :].strip():
        return ()
    words = header[tags[-2].end() if len(tags) > 1 else 0 : tags[-1].start()]
    return () if words.strip() else _at_times(tags[-1][0])


def opened_reasoning(found: tuple[Node, ...]) -> Node:
    """Reasoning between tags: the token that opens it may be repeated, and the one that closes it may stand alone."""
    at = found.index(Reasoning())
    opener, closer = _only_mark(found[:at]), _only_mark(found[at:])
    if opener is not None:
        found = (found[0], *_at_times(opener.text), *found[1:]) if found[0] == opener else found
    item = as_one(found)
    return item if closer is None or not _at_times(closer.text) else Lenient(item, closer)


def _only_mark(found: tuple[Node, ...]) -> Mark | None:
    marks = [node for node in found if isinstance(node, Mark)]
    return marks[0] if len(marks) == 1 else None


def opener_forgotten(opener: tuple[Node, ...], rest: tuple[Node, ...]) -> tuple[Node, ...]:
    """The opener and the rest; a single tag may be missing before another tag, which says as much."""
    marks = [node for node in opener if not (isinstance(node, Lit) and not node.text.strip())]
    if len(marks) != 1 or not isinstance(marks[0], Mark):
        return (*opener, *rest)
    return (Lenient(Seq(*opener), NOTHING_WRITTEN), *rest)


def first_forgotten(found: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes of a call; if it begins with two tags, the first may be missing."""
    second = next((at for at, node in enumerate(found) if at and isinstance(node, Mark)), None)
    return found if second is None else opener_forgotten(found[:second], found[second:])


def _at_times(text: str) -> tuple[Node, ...]:
    return (Lenient(NOTHING_WRITTEN, Mark(text)),) if CONTROL.fullmatch(text) else ()
