"""The 2024 profile: the prompts, format prompts and grammars that the ancestor of this system printed.

What it shares with the core, it takes from there: templates, the adaptation of conversations, announcements. What the
core has mended since is frozen here: history of calls as text, the schema of a turn, the grammars. Only the command
line uses it.
"""

from toolgram.reference.profile import Situation, StyleReport, TemplateReport, template_reports
from toolgram.reference.situation import MESSAGES

__all__ = ["MESSAGES", "Situation", "StyleReport", "TemplateReport", "template_reports"]
