"""What may be best for a model: the styles that its template admits, and what can be varied in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from toolgram.bench.questions import questions
from toolgram.planning.plan import Plan, plan
from toolgram.planning.profile import Profile, template_hash
from toolgram.styles.choose import choose_style
from toolgram.styles.detect import speaks
from toolgram.styles.generic import GENERIC
from toolgram.styles.own_calls import with_own_calls
from toolgram.styles.registry import find_style
from toolgram.template.chat_template import ChatTemplate

_SHORT = 128  # tokens of reasoning


def styles(model: str, template: ChatTemplate, names: Sequence[str] = ()) -> tuple[Profile, ...]:
    """A profile of each named style, else one of the template's own, and of each generic style, with its announcement.

    Where the template itself announces them for a style, that style is no other than the template's own.
    """
    if names:
        return tuple(Profile(model, template_hash(template), name) for name in names)
    shown = template.with_tools
    usual, _ = choose_style(shown)
    first = Profile(model, template_hash(template), usual.name if find_style(usual.name) else None)
    others = (style for style in GENERIC if style.name != usual.name)
    can_show = shown.capabilities.supports_tools
    return (first, *(replace(first, style=each.name) for each in others if not (can_show and speaks(shown, each))))


def variants(profile: Profile, template: ChatTemplate) -> tuple[Profile, ...]:
    """The profile, and what else it may say: of calls in the model's own way, of several calls, and of reasoning."""
    style, _ = profile.choose_style(template.with_tools)
    made = _some_plan(profile, template)
    own = (False, True) if with_own_calls(style) is not style else (False,)
    reasoning = (None, 0, _SHORT) if made.format.reasoning else (None,)
    found = (
        replace(profile, own_calls=calls, parallel_tool_calls=parallel, reasoning_max_tokens=most)
        for calls, parallel, most in product(own, (None, not made.parallel), reasoning)
    )
    return tuple(dict.fromkeys(found))


def _some_plan(profile: Profile, template: ChatTemplate) -> Plan:
    return plan(questions("simple")[0].body("auto"), template, profile=profile)
