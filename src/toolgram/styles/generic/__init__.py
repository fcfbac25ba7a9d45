"""Styles that toolgram announces itself, for templates that cannot express tools."""

from toolgram.styles.generic.compact import COMPACT
from toolgram.styles.generic.functionary_v2 import FUNCTIONARY_V2
from toolgram.styles.generic.tagged import HERMES_2_PRO, LONG, MIXTRAL, SHORT
from toolgram.styles.generic.thoughtful_steps import THOUGHTFUL_STEPS

GENERIC = (LONG, SHORT, MIXTRAL, HERMES_2_PRO, THOUGHTFUL_STEPS, FUNCTIONARY_V2, COMPACT)
