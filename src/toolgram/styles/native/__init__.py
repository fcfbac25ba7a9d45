"""Styles that model families were trained on; their templates announce the tools."""

from toolgram.styles.native.gemma4 import GEMMA_4
from toolgram.styles.native.harmony import HARMONY
from toolgram.styles.native.hermes import HERMES
from toolgram.styles.native.pythonic import LFM2

NATIVE = (HERMES, HARMONY, GEMMA_4, LFM2)
