"""White space that a template writes between what its prompts end with and a turn, where the style has other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from toolgram.conversation.message import Message
from toolgram.styles.base import PLAIN, ToolStyle
from toolgram.styles.probes import CONTENT, REASONING, TurnProbe, scenes, tail
from toolgram.styles.turn_edges import after_prompts
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.format import Break, Content, Lit, Node, Opt, Seq, WireFormat, holds
from toolgram.wire.writer import write_freely

_SAID = Message(CONTENT), Message(CONTENT, REASONING)


@lru_cache(maxsize=256)
def that_begins(style: ToolStyle, template: ChatTemplate) -> ToolStyle:
    """A generic style without that white space in its answers: "ASSISTANT:", then " Hello.", is the answer "Hello.".

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


@lru_cache(maxsize=256)
def that_leads(style: ToolStyle, template: ChatTemplate) -> ToolStyle:
    """A native style, the parts of whose turns may begin with that white space too.

    GLM 4.5 breaks the line before its thoughts, and the prompts of GLM 4.5V have done so already (chat templates of
    both, as Xinference has them).
    """
    if style.is_generic:
        return style
    leads = tuple(dict.fromkeys(_other_leads(style, template)))
    return replace(style, wire=_led(style.wire, leads)) if leads else style


def _other_leads(style: ToolStyle, template: ChatTemplate) -> Iterator[str]:
    """The white space with which the template begins turns that the style begins with other, and else alike."""
    for said in _SAID:
        written = write_freely(style.wire, said)
        if written is None:
            continue
        own, rest = _begun(written, said)
        leads = (_begun(text, said) for text in after_prompts(template, said))
        yield from (lead for lead, begun in leads if begun == rest and lead != own)


def _begun(turn: str, said: Message) -> tuple[str, str]:
    """The white space that a turn begins with, and what stands there up to its first text."""
    text = turn.lstrip()
    return turn[: len(turn) - len(text)], text.partition(said.reasoning or CONTENT)[0].strip()


def _led(form: WireFormat, leads: tuple[str, ...]) -> WireFormat:
    """The format, in which each part that begins with white space of its own, or a place for it, may begin so too."""

    def part(node: Node) -> Node:
        match node:
            case Opt(item):
                return Opt(part(item))
            case Seq((Lit(text) as first, *rest)) if not text.strip():
                others = (*first.others, *(lead for lead in leads if lead != text and lead not in first.others))
                # None of an answer, of which the reader would take it for a part.
                breaks = () if text or not holds(node, Content) else tuple(map(Break, others))
                return Seq(*breaks, Lit(text, others), *rest)
            case _:
                return node

    turn = form.turn
    return replace(form, turn=Seq(*map(part, turn.items)) if isinstance(turn, Seq) else turn)
