"""Builds the wire format that a template's renderings show."""

from __future__ import annotations

from dataclasses import replace

from toolgram.styles.discovery.calls import Calls, calls
from toolgram.styles.discovery.layout import Around, Layout
from toolgram.styles.discovery.model_mistakes import header_again, opened_reasoning
from toolgram.styles.discovery.to_nodes import Piece, as_one, nodes, with_mark
from toolgram.styles.probes import Scene
from toolgram.wire.format import Alt, Break, Chain, Content, Lenient, Many, Mark, Node, Opt, Reasoning, Seq, WireFormat

_SEPARATORS = (", ", ": ")


def build(scene: Scene, laid: Layout) -> WireFormat | None:
    """The format in which a template writes turns of this layout; None if its calls have no known one."""
    called = calls(scene, laid)
    if called is None:
        return None
    turn = _chain(laid, called) if laid.lead else _sequence(laid, called)
    return None if turn is None else WireFormat(turn, *called.notation.separators)


def _sequence(laid: Layout, called: Calls) -> Node | None:
    """Reasoning, an answer and calls, each of which may be missing."""
    parts: list[Node] = [] if called.bare else [*header_again(laid.opener)]
    if laid.reasoning is not None and (laid.reasons or not called.bare):
        found = _around(laid.reasoning, Reasoning())
        if found is None:
            return None
        skipped = as_one(nodes([laid.reasoning.after.strip()]))
        parts.append(Opt(Alt(skipped, as_one(found)) if laid.closes_no_reasoning else opened_reasoning(found)))
    around = _around(laid.content, Content())
    if around is None:
        return None
    content = as_one(around)
    closing = (Opt(as_one(nodes([laid.closing]))),) if laid.closing else ()
    if called.bare:
        return as_one((*parts, Alt(called.node, Opt(content)), *closing))
    return Seq(*parts, Opt(content), _after_break(called.node, laid.line_break), *closing)


def _after_break(calls: Node, text: str) -> Node:
    """Calls that may be missing, and white space before them where they follow an answer."""
    match calls:
        case Opt(item) if text:
            return Opt(Seq(Break(text), item))
        case Many(min=0) if text:
            return Opt(Seq(Break(text), replace(calls, min=1)))
        case _:
            return calls


def _chain(laid: Layout, called: Calls) -> Node | None:
    """Parts that all begin alike, joined where there are several; a mark that joins them may close the last one too."""
    lead = with_mark([laid.lead], _SEPARATORS)
    if lead is None:
        return None

    def part(around: Around, field: Content | Reasoning) -> Node:
        after: list[Piece] = [around.before.removeprefix(laid.lead), field, around.after]
        marked = with_mark(after, _SEPARATORS) if laid.lead_of_marks and isinstance(field, Reasoning) else None
        return Seq(*lead, *(marked or nodes(after)))

    answer, join = part(laid.content, Content()), as_one(nodes([laid.join]))
    if laid.reasoning is None:
        return Chain(Opt(answer), called.node, join=join)
    # Models think more than once, and say things in between.
    thoughts = Many(Lenient(part(laid.reasoning, Reasoning()), answer))
    return Chain(thoughts, Opt(answer), called.node, join=join, closes=isinstance(join, Mark))


def _around(around: Around, field: Content | Reasoning) -> tuple[Node, ...] | None:
    """The field with the text around it; free text absorbs the white space at its ends."""
    before = around.before if around.before.strip() else ""
    pieces: list[Piece] = [before, field, around.after if around.after.strip() else ""]
    return with_mark(pieces, _SEPARATORS) if before else nodes(pieces)
