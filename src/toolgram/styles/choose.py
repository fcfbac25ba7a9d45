"""The style for a template: the one asked for, detected, described or discovered, or else a generic one."""

from __future__ import annotations

from functools import lru_cache

from toolgram.errors import InvalidRequest, TemplateError
from toolgram.styles.base import ToolStyle
from toolgram.styles.detect import (
    comes_near,
    fit,
    misreads,
    reads_as_written,
    reads_more,
    writes_alike,
    writes_other_json,
)
from toolgram.styles.discovery import discover
from toolgram.styles.generic import COMPACT
from toolgram.styles.leading import that_begins, that_leads
from toolgram.styles.left_open import that_leaves_open
from toolgram.styles.registry import all_styles, find_style, no_such_style
from toolgram.styles.response_template.read import described_style
from toolgram.styles.spaced import that_spaces
from toolgram.styles.thinking import that_thinks
from toolgram.template.chat_template import ChatTemplate


def choose_style(template: ChatTemplate, style: str | ToolStyle | None = None) -> tuple[ToolStyle, str]:
    """The style for a template, and the reason in words.

    It is the one asked for, else the registered one that fits best, of several the one that is the model's, unless one
    that is discovered from the template reads more of its turns; else the one that the tokenizer describes, else the
    discovered one, else a generic one; a generic one has a place for reasoning where the template does.

    Raises InvalidRequest for a name that no style has.
    """
    chosen, why = _chosen(template, style)
    return _fitted(chosen, template), why


def _fitted(style: ToolStyle, template: ChatTemplate) -> ToolStyle:
    for fit_to in (that_leads, that_spaces, that_leaves_open, that_thinks, that_begins):
        style = fit_to(style, template)
    return style


def _chosen(template: ChatTemplate, style: str | ToolStyle | None) -> tuple[ToolStyle, str]:
    if isinstance(style, ToolStyle):
        return style, "it was given"
    if style is not None:
        found = find_style(style)
        if found is None:
            raise InvalidRequest("/style", no_such_style(style))
        return found, "it was asked for"
    best = max(all_styles(), key=lambda candidate: _fitness(template, candidate))
    if fit(template, best):
        if not template.capabilities.supports_tool_calls:
            return best, "the template shows tools, or asks for calls, as it does"
        of_model = f", and is that of {template.model}" if _is_of(best, template.model) else ""
        return _better(template, best) or (best, f"it reads the template's own rendering of a tool call{of_model}")
    described, trouble = _described(template)
    if described is not None:
        return described, "the tokenizer's response_template describes it"
    found = discover(template)
    near = _near(template)
    if found.style is None:
        return COMPACT, f"{found.why}, so that we ask for calls in a format of ours{near}{trouble}"
    kept = next((known for known in all_styles() if known.wire == found.style.wire and not known.is_generic), None)
    return kept or found.style, f"{found.why}{near}{trouble}"


def _better(template: ChatTemplate, style: ToolStyle) -> tuple[ToolStyle, str] | None:
    """The style that is found from the template, where one that reads its calls is that of another family."""
    others_json, fitted = writes_other_json(template, style), _fitted(style, template)
    found = discover(template) if others_json or misreads(template, fitted) else None
    if found is None or found.style is None:
        return None
    if others_json:
        return found.style, f"{found.why} ({style.name} reads it too, and writes other JSON)"
    if reads_more(template, found.style, fitted):
        return found.style, f"{found.why} ({style.name} reads its calls, and fewer of its turns)"
    return None


def _fitness(template: ChatTemplate, style: ToolStyle) -> tuple[int, bool, bool, bool]:
    """How well a style fits; of those that fit alike, the one that is the model's goes first, that writes such calls,
    and that reads them as its own."""
    found, is_of = fit(template, style), _is_of(style, template.model)
    if not found or not template.capabilities.supports_tool_calls:
        return found, is_of, False, False
    return found, is_of, writes_alike(template, style), reads_as_written(template, style)


def _is_of(style: ToolStyle, model: str) -> bool:
    """Whether a style is that of some models alone, and this one of them, however its name is spelled."""
    return any(_plainly(name) in _plainly(model) for name in style.models)


def _plainly(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


@lru_cache(maxsize=256)
def _near(template: ChatTemplate) -> str:
    """Says which native styles come near, if any do."""
    if not template.capabilities.supports_tool_calls:
        return ""
    by_format = {style.wire: style.name for style in reversed(all_styles()) if comes_near(template, style)}
    names = list(reversed(by_format.values()))
    verb = "comes" if len(names) == 1 else "come"
    return f"; {' and '.join(names)} {verb} near (`toolgram styles --why` says where it fails)" if names else ""


def _described(template: ChatTemplate) -> tuple[ToolStyle | None, str]:
    """The style of the tokenizer's response_template, if it reads what the template writes; else what is wrong with it.

    It comes after the registered styles, which spell out the whole turn and say what call ids look like.
    """
    try:
        style = described_style(template)
    except TemplateError as error:
        return None, f" ({error})"
    if style is None or fit(template, style) or not template.capabilities.supports_tool_calls:
        return style, ""
    return None, " (its response_template does not read it)"
