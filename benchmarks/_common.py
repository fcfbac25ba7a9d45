"""What the benchmarks share: a realistic request, clearing all caches, timing, and tables."""

from __future__ import annotations

import functools
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

# The tests know how to load XGrammar without torch; benchmarks ask it too.
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import toolgram

CHATML = toolgram.ChatTemplate(
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    bos_token="<s>",  # noqa: S106 - not a password
    eos_token="<|im_end|>",  # noqa: S106 - not a password
)
STYLES = tuple(style for style in toolgram.styles() if style in _GENERIC) if (_GENERIC := ()) else ()
