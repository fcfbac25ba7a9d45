"""Generic styles for models that think: the reasoning stands before the turn, as the template has it between tags."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.format import Content, Opt, Seq, WireFormat

_LINE = r"(?:\\n|\n)"  # in the source of a template it is written in either way
_OPENS = re.compile(rf"<think>({_LINE})?")
_CLOSES = re.compile(rf"</think>({_LINE}{{0,2}})")


@lru_cache(maxsize=256)
def that_thinks(style: ToolStyle, template: ChatTemplate) -> ToolStyle:
    """The style with a place for reasoning before each turn, where it has none and the template speaks of <think>.

    The line breaks around the tags are those of the template.
    """
    opens = _OPENS.findall(template.source)
    if not opens or not style.is_generic or style.wire.reasoning:
        return style
    # What is said of the tags in a sentence has no line breaks: those that the template writes itself count.
    line = "\n" if any(opens) else ""
    closes = [each.replace("\\n", "\n") for each in _CLOSES.findall(template.source)]
    head = think(after_opener=line, before_closer=line, after=max(closes, key=len, default="\n\n"))
    return replace(
        style,
        wire=replace(style.wire, turn=Seq(head, style.wire.turn)),
        without_tools=WireFormat(Seq(head, Opt(Content()))),
        reasons=True,
    )
