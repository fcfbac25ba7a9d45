"""Discovery: finds the style of a template that no registered style fits, from what the template renders.

Turns made of known words are rendered; the text around the words, which changes as they do, is the format. It is
accepted if it reads back the template's renderings of other turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from toolgram.errors import GrammarError
from toolgram.styles.base import ToolStyle
from toolgram.styles.discovery.build import build
from toolgram.styles.discovery.layout import Layout, layout
from toolgram.styles.discovery.proof import Reading, readings
from toolgram.styles.discovery.rewrite_check import goes_on
from toolgram.styles.probes import ONE, Scene, scenes, tail
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.format import WireFormat

NAME = "discovered"


@dataclass(frozen=True)
class Discovery:
    """What was found: a style and why it is trusted, or why there is none; and how the style reads the probes."""

    style: ToolStyle | None
    why: str
    readings: tuple[Reading, ...] = ()


@lru_cache(maxsize=256)
def discover(template: ChatTemplate) -> Discovery:
    """The style in which a template writes calls, proved on probes that it was not built from."""
    if not template.capabilities.supports_tool_calls:
        return Discovery(None, "the template writes no tool calls")
    tried: list[Discovery] = []
    for scene in scenes(template):
        tried.append(_discovered(scene))
        if tried[-1].style is not None:
            return tried[-1]
    return tried[0]


def _discovered(scene: Scene) -> Discovery:
    laid = layout(scene)
    if laid is None:
        return Discovery(None, "the template does not show a call, or an answer, as it was given")
    format_ = build(scene, laid)
    if format_ is None:
        return Discovery(None, "the template writes calls in no known notation, or without a marker")
    try:
        read = _readings(scene, laid, format_)
    except GrammarError as error:
        return Discovery(None, f"what the template writes is ambiguous: {error}")
    wrong = next((reading for reading in read if reading.wrong), None)
    if wrong is not None:
        return Discovery(None, f"the format found does not read {wrong.probe} of the template: {wrong.wrong}", read)
    prompt = tail(scene, None, prompts=True) or ""
    if not goes_on(format_, (ONE,), prompt.removeprefix(laid.header)):
        return Discovery(None, "no call of the format found may follow what the template's prompt opens", read)
    why = f"it was found from the template, and reads back {len(read)} other turns as the template renders them"
    style = ToolStyle(NAME, format_, "found from the chat template", reasons=laid.reasons)
    return Discovery(style, why, read)


def proof(template: ChatTemplate, style: ToolStyle) -> tuple[Reading, ...]:
    """How any style reads the probes that prove a discovery; nothing if the template shows no calls."""
    scene = next(scenes(template))
    laid = layout(scene) if scene.capabilities.supports_tool_calls else None
    return () if laid is None else _readings(scene, laid, style.wire)


def _readings(scene: Scene, laid: Layout, format_: WireFormat) -> tuple[Reading, ...]:
    openers = dict.fromkeys(("", laid.reasoning.before if laid.reasoning else ""))
    return readings(scene, format_, laid.header, tuple(openers))
