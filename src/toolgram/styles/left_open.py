"""Calls in a section that a template does not always close.

Behind one call those of deepseek-ai/DeepSeek-R1-Distill-Llama-8B and DeepSeek V2.5 leave it open.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from toolgram.styles.base import ToolStyle
from toolgram.styles.detect import fit
from toolgram.styles.turn_edges import ONE_CALL, shown_turn
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.format import Call, Many, Mark, Node, Opt, Seq, WireFormat, holds, rebuild


@lru_cache(maxsize=256)
def that_leaves_open(style: ToolStyle, template: ChatTemplate) -> ToolStyle:
    """The style, whose turns may end without the mark behind their calls where the template's do.

    A model that ends so, as its history does, would have to write the mark, or another call.
    """
    closer = _closer(style.wire.turn)
    if closer is None or style.is_generic or not template.capabilities.supports_tool_calls or not fit(template, style):
        return style
    shown = shown_turn(template, ONE_CALL)
    if not shown.spans or closer.text in shown.rendered:
        return style
    own_ways = style.own_ways and _left_open(style.own_ways, closer)
    return replace(style, wire=_left_open(style.wire, closer), own_ways=own_ways)


def _closer(turn: Node) -> Mark | None:
    """The mark that stands behind all calls."""
    match turn:
        case Seq((*_, Many() as calls, Mark() as closer)) if holds(calls, Call):
            return closer
        case Seq((*_, last)) | Opt(last):
            return _closer(last)
        case _:
            return None


def _left_open(form: WireFormat, closer: Mark) -> WireFormat:
    def changed(node: Node) -> Node:
        return Opt(node) if node == closer else rebuild(node, changed)

    return replace(form, turn=changed(form.turn))
