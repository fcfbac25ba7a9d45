"""Every situation of the 2024 profile, as values: which template, in which style, with tools and without."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from toolgram.json_texts import pretty
from toolgram.reference.grammars import answer_grammar, functionary_grammar, tagged_grammar, thoughtful_steps_grammar
from toolgram.reference.situation import ANSWER, BOS, EOS, MESSAGES, NOW, TEMPLATES, TITLES, TOOLS
from toolgram.reference.turn_schema import ANY_CALL, turn_schema
from toolgram.styles.base import Announcement, ToolStyle, answer_prompt
from toolgram.styles.generic import FUNCTIONARY_V2, HERMES_2_PRO, LONG, MIXTRAL, SHORT, THOUGHTFUL_STEPS
from toolgram.styles.generic.thoughtful_steps import announce_turn
from toolgram.template.adapt import adapt
from toolgram.template.chat_template import ChatTemplate

_STYLES = {style.name: style for style in (SHORT, LONG, MIXTRAL, HERMES_2_PRO, THOUGHTFUL_STEPS, FUNCTIONARY_V2)}
_GRAMMARS: Mapping[str, Callable[[], str]] = {
    "short": lambda: tagged_grammar(TOOLS, escaped=False),
    "long": lambda: tagged_grammar(TOOLS, escaped=False),
    "hermes_2_pro": lambda: tagged_grammar(TOOLS, escaped=False),
    "mixtral": lambda: tagged_grammar(TOOLS, escaped=True),
    "thoughtful_steps": lambda: thoughtful_steps_grammar(TOOLS, ANSWER),
    "functionary_v2": lambda: functionary_grammar(TOOLS),
}


@dataclass(frozen=True, slots=True)
class Situation:
    """What one request became; the format prompt is no part of the prompt."""

    title: str
    prompt: str
    format_prompt: str
    grammar: str


@dataclass(frozen=True, slots=True)
class StyleReport:
    """A template in one style."""

    title: str
    situations: tuple[Situation, ...]


@dataclass(frozen=True, slots=True)
class TemplateReport:
    """A template in each of its styles."""

    name: str
    source: str
    parallel_tool_calls: bool
    styles: tuple[StyleReport, ...]


def template_reports() -> tuple[TemplateReport, ...]:
    """The four templates of the profile with their eleven styles, each with tools and without."""
    return tuple(_template_report(name, styles) for name, styles in TEMPLATES.items())


def _template_report(name: str, styles: tuple[str, ...]) -> TemplateReport:
    source = (files("toolgram.reference") / "templates" / f"{name}.jinja").read_text(encoding="utf-8")
    template = ChatTemplate(source, BOS, EOS)
    return TemplateReport(
        name=name,
        source=source,
        parallel_tool_calls=template.capabilities.supports_parallel_tool_calls,
        styles=tuple(StyleReport(TITLES[style], _situations(template, _STYLES[style])) for style in styles),
    )


def _situations(template: ChatTemplate, style: ToolStyle) -> tuple[Situation, Situation]:
    return (
        Situation("with tools", _prompt(template, framed=style.framed), _format_prompt(style), _GRAMMARS[style.name]()),
        Situation("without tools", _prompt(template, framed=False), answer_prompt(ANSWER), answer_grammar(ANSWER)),
    )


def _prompt(template: ChatTemplate, *, framed: bool) -> str:
    """The conversation, its calls as text of the content; `framed`: in the JSON that thoughtful_steps asks for."""
    messages = [_framed_result(message) for message in MESSAGES] if framed else MESSAGES
    adapted = adapt(messages, template.capabilities, call_text=_framed_calls if framed else _tagged_calls)
    return template.render(adapted, now=NOW)


def _tagged_calls(message: Mapping[str, Any]) -> str:
    calls = "\n".join(
        f"<tool_call>{json.dumps(call, ensure_ascii=False)}</tool_call>" for call in message["tool_calls"]
    )
    return f"{message['content']}\n{calls}" if message["content"] else calls


def _framed_calls(message: Mapping[str, Any]) -> str:
    return _framed(message["content"], {"tool_calls": message["tool_calls"]})


def _framed_result(message: Mapping[str, Any]) -> Mapping[str, Any]:
    if message["role"] != "assistant" or message["tool_calls"]:
        return message
    return {**message, "content": _framed("", {"result": message["content"]})}


def _framed(thought: str, step: Mapping[str, Any]) -> str:
    return pretty({"thought_about_next_step_only": thought, "next_step": step})


def _format_prompt(style: ToolStyle) -> str:
    """How the style announces the tools; of the answer's schema only thoughtful_steps told."""
    if style is THOUGHTFUL_STEPS:
        return announce_turn(TOOLS, turn_schema(ANY_CALL, ANSWER))
    if style.announce is None:
        raise TypeError(f"{style.name} does not announce tools")
    return style.announce(Announcement(TOOLS, parallel=False, now=NOW))
