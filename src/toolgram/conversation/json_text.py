"""JSON text that a model wrote, or a client."""

from __future__ import annotations

import json

_NONE = ("", "null", "[]")


def is_json(text: str) -> bool:
    """Whether a text is a whole JSON value; one that is nested deeper than Python reads is taken for one."""
    try:
        json.loads(text)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def arguments_meant(text: str) -> str:
    """The arguments that a client means by a text: JSON text in JSON text is what it says, and null, or the empty list
    of languages whose lists are their objects, is no arguments. Any other text stays as it is.
    """
    bare = text.strip()
    if bare.startswith('"'):
        try:
            inside: object = json.loads(bare)
        except ValueError:
            return text
        inner = inside.strip() if isinstance(inside, str) else ""
        return "{}" if inner in _NONE else inner if inner.startswith("{") else text
    return "{}" if bare in _NONE else text
