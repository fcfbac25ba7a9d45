"""Generic styles before templates that write white space between what the prompt ends with and an answer."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from toolgram.styles.base import PLAIN, ToolStyle
from toolgram.styles.probes import CONTENT, TurnProbe, scenes, tail
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.format import Break, Seq, WireFormat


@lru_cache(maxsize=256)
def that_begins(style: ToolStyle, template: ChatTemplate) -> ToolStyle:
    """The style without that white space in its answers: "ASSISTANT:", then " Hello.", is the answer "Hello.".

    The template writes it again into the history, which would have it twice.
    """
    lead = _lead(template) if style.is_generic else ""
    if not lead:
        return style

    def after(form: WireFormat) -> WireFormat:
        return replace(form, turn=Seq(Break(lead), form.turn))

    own_ways = style.own_ways and after(style.own_ways)
    return replace(style, wire=after(style.wire), without_tools=after(style.without_tools or PLAIN), own_ways=own_ways)


def _lead(template: ChatTemplate) -> str:
    """The white space between what opens a turn and its answer; "" where anything else or nothing stands there."""
    scene = next(scenes(template))
    answer, prompt = tail(scene, TurnProbe((), CONTENT)), tail(scene, None, prompts=True)
    if answer is None or prompt is None or not answer.startswith(prompt):
        return ""
    between = answer[len(prompt) :].partition(CONTENT)[0]
    return between if between.isspace() else ""
