"""JSON text that a model wrote."""

from __future__ import annotations

import json


def is_json(text: str) -> bool:
    """Whether a text is a whole JSON value; one that is nested deeper than Python reads is taken for one."""
    try:
        json.loads(text)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True
