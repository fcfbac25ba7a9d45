"""Masks for engines that are not ours."""

from toolgram.errors import needing

with needing("embedded", "a token mask"):
    import numpy as numpy
