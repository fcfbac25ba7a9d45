"""What a template writes in the place of an image: the token that a server puts what it sees at."""

from __future__ import annotations

import re
from functools import lru_cache

from toolgram.errors import TemplateError
from toolgram.styles.probes import common_prefix, common_suffix
from toolgram.template.chat_template import ChatTemplate

_BEFORE, _AFTER, _MARK = ({"type": "text", "text": text} for text in ("zqbefore", "zqafter", "zqmark"))
_IMAGE = {"type": "image"}  # as vLLM gives one to templates, whatever the request has
_AS_DATA = re.compile(r"""["']type["']""")  # of a template that writes the parts of a message as they are


@lru_cache(maxsize=512)
def placeholder_of(template: ChatTemplate) -> str:
    """The text in the place of an image between two texts, `<|vision_start|><|image_pad|><|vision_end|>` say; "" where
    the template shows none, or not each as the same."""
    try:
        found = _found(template)
        return found if found.strip() and not _AS_DATA.search(found) and _is_of_each(template, found) else ""
    except TemplateError:
        return ""


def _found(template: ChatTemplate) -> str:
    plain, shown = _of_user(template, _BEFORE, _AFTER), _of_user(template, _BEFORE, _IMAGE, _AFTER)
    begin = len(common_prefix(plain, shown))
    end = len(common_suffix(plain[begin:], shown[begin:]))
    found = shown[begin : len(shown) - end]
    joint = plain.partition(_BEFORE["text"])[2].partition(_AFTER["text"])[0]  # it stands behind a mark, too
    return found.removesuffix(joint) or found


def _is_of_each(template: ChatTemplate, found: str) -> bool:
    """Whether two images are two of it, and all else is as with texts in their places: images may stand before all."""
    shown, marked = (_of_user(template, _BEFORE, each, _AFTER, each, _BEFORE) for each in (_IMAGE, _MARK))
    mark = _MARK["text"]
    return shown.count(found) == marked.count(mark) and shown.replace(found, "") == marked.replace(mark, "")


def _of_user(template: ChatTemplate, *parts: dict[str, str]) -> str:
    return template.render([{"role": "user", "content": list(parts)}])
