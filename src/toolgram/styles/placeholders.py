"""What a template writes in the place of an image: the token that a server puts what it sees at."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from toolgram.errors import TemplateError
from toolgram.styles.probes import common_prefix, common_suffix
from toolgram.template.chat_template import ChatTemplate

_BEFORE, _AFTER = "zqbefore", "zqafter"
_IMAGE = {"type": "image"}  # as vLLM gives one to templates, whatever the request has
_AS_DATA = re.compile(r"""["']type["']""")  # of a template that writes the parts of a message as they are


@lru_cache(maxsize=512)
def placeholder_of(template: ChatTemplate) -> str:
    """The text in the place of an image between two texts, `<|vision_start|><|image_pad|><|vision_end|>` say; "" where
    the template shows none."""
    before, after = ({"type": "text", "text": text} for text in (_BEFORE, _AFTER))
    try:
        plain, shown = (_of_user(template, parts) for parts in ([before, after], [before, _IMAGE, after]))
    except TemplateError:
        return ""
    begin = len(common_prefix(plain, shown))
    end = len(common_suffix(plain[begin:], shown[begin:]))
    found = shown[begin : len(shown) - end]
    joint = plain.partition(_BEFORE)[2].partition(_AFTER)[0]  # which stands behind a mark, too
    return "" if _AS_DATA.search(found) or not found.strip() else found.removesuffix(joint)


def _of_user(template: ChatTemplate, parts: list[dict[str, Any]]) -> str:
    return template.render([{"role": "user", "content": parts}])
