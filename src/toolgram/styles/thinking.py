"""Styles for models that think: reasoning stands between the tags that the template has, whatever the style's are."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from toolgram.conversation.message import Message
from toolgram.errors import GrammarError
from toolgram.styles.base import ToolStyle
from toolgram.styles.detect import beginnings, says
from toolgram.styles.native.common import think, thinking
from toolgram.styles.probes import CONTENT, REASONING, TAG, TurnProbe, common_prefix, common_suffix, scenes, tail
from toolgram.styles.turn_edges import rendered_turns
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.format import Content, Node, Opt, Seq, WireFormat, only_reasons, rebuild

_LINE = r"(?:\\n|\n)"  # in the source of a template it is written in either way
_OPENS = re.compile(rf"<think>({_LINE})?")
_CLOSES = re.compile(rf"</think>({_LINE}{{0,2}})")
_OPENED = re.compile(r"(\s*)(?:<([A-Za-z_:]+)>|\[([A-Z_]+)\])(\s*)")
_SAID = Message(CONTENT, REASONING)


@dataclass(frozen=True)
class _Tags:
    """The tags around reasoning, with the white space after each and before the second."""

    opener: str
    closer: str
    inside: tuple[str, str] = ("", "")
    after: str = ""

    @property
    def node(self) -> Node:
        """Reasoning between them, which a turn may have."""
        before, behind = self.inside
        return thinking(self.opener, self.closer, after_opener=before, before_closer=behind, after=self.after)


@lru_cache(maxsize=256)
def that_thinks(style: ToolStyle, template: ChatTemplate) -> ToolStyle:
    """The style with a place for reasoning as the template has it, where it does not read that itself.

    A generic one has it before each turn where the template speaks of <think>, with the line breaks of the template;
    any one has it between other tags that the template shows, or opens in its prompts.
    """
    if style.is_generic and style.wire.reasoning:
        return style
    head = _spoken_of(template.source) if style.is_generic else None
    if head is not None:
        return _thinking_so(style, head)
    tags = _shown(template)
    if tags is None or tags.opener in style.wire.marks or _reads(template, style):
        return style
    changed = _thinking_so(style, tags.node)
    try:
        reads = _reads(template, changed)
    except GrammarError:  # the tags are part of other ones of the style
        return style
    return changed if reads or not template.capabilities.supports_reasoning else style


def _thinking_so(style: ToolStyle, head: Node) -> ToolStyle:
    """The style with its reasoning written so; a generic one has it without tools as well."""

    def swapped(node: Node) -> Node:
        if isinstance(node, Opt) and only_reasons(node):
            return head
        return rebuild(node, swapped)

    def thinks(form: WireFormat) -> WireFormat:
        return replace(form, turn=swapped(form.turn) if form.reasoning else Seq(head, form.turn))

    plain = WireFormat(Seq(head, Opt(Content()))) if style.is_generic else style.without_tools
    own_ways = style.own_ways and thinks(style.own_ways)
    return replace(style, wire=thinks(style.wire), without_tools=plain, own_ways=own_ways, reasons=True)


def _reads(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the style reads reasoning as the template shows it before an answer."""
    program, opened = style.program(), beginnings(template, style)
    return any(says(program, each, text, _SAID) for text in rendered_turns(template, _SAID) for each in opened)


def _spoken_of(source: str) -> Node | None:
    opens = _OPENS.findall(source)
    if not opens:
        return None
    # What is said of the tags in a sentence has no line breaks: those that the template writes itself count.
    line = "\n" if any(opens) else ""
    closes = [each.replace("\\n", "\n") for each in _CLOSES.findall(source)]
    return think(after_opener=line, before_closer=line, after=max(closes, key=len, default="\n\n"))


@lru_cache(maxsize=256)
def _shown(template: ChatTemplate) -> _Tags | None:
    """The tags between which a template shows reasoning, or which it opens in its prompts; None if it does neither."""
    scene = next(scenes(template))
    answer, prompt = tail(scene, TurnProbe((), CONTENT)), tail(scene, None, prompts=True)
    if answer is None or prompt is None or CONTENT not in answer:
        return None
    thought = (tail(scene, TurnProbe((), CONTENT, REASONING)) or "") if template.capabilities.supports_reasoning else ""
    before, found, after = thought.partition(REASONING)
    if found and CONTENT in after:
        return _around(answer.partition(CONTENT)[0], before, after.partition(CONTENT)[0])
    header = common_prefix(answer, prompt)
    # A prompt that begins otherwise than a turn opens no more than the turn.
    opened = _OPENED.fullmatch(prompt, len(header)) if header.strip() else None
    if opened is None:
        return None
    _, tag, word, space = opened.groups()
    opener, closer = (f"<{tag}>", f"</{tag}>") if tag else (f"[{word}]", f"[/{word}]")
    return _Tags(opener, closer, (space, space), space * 2)


def _around(header: str, before: str, between: str) -> _Tags | None:
    """The tags in the texts before reasoning, and between it and an answer that alone begins with the header."""
    opener = before[len(common_prefix(header, before)) :]
    if not TAG.search(opener):  # every turn begins with it
        opener = before[max((match.start() for match in TAG.finditer(before)), default=len(before)) :]
    own = between.removesuffix(common_suffix(header, between))
    closer = TAG.search(own) or TAG.search(between)
    if closer is None or between[: closer.start()].strip() or not TAG.fullmatch(opener.strip()):
        return None
    rest = between[closer.end() :]
    space = rest[: len(rest) - len(rest.lstrip())]
    return _Tags(opener.strip(), closer[0], (opener[len(opener.rstrip()) :], between[: closer.start()]), space)
