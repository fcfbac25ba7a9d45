"""Constraints under names that other APIs have for them: an answer without them is not what was asked for."""

from __future__ import annotations

from toolgram.conversation.fields import Fields, type_of
from toolgram.conversation.formats import Forms
from toolgram.errors import InvalidRequest


def refuse_constraints(body: Fields, known: str) -> None:
    """Raises InvalidRequest for a constraint by a name of chat completions, where an API has it by the `known` one."""
    for key in Forms.model_fields:
        if key in body.further and type_of((body.model_extra or {})[key]) != "text":
            raise InvalidRequest(f"/{key}", f"is not known here: give {known}")
