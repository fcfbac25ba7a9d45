"""Constraints under the names that other servers have for them: an answer without them is not what was asked for."""

from __future__ import annotations

from toolgram.conversation.fields import Fields, type_of
from toolgram.errors import InvalidRequest

_FOREIGN = (
    *("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"),  # vLLM
    *("json_schema", "ebnf"),  # llama-server; SGLang
)
OF_CHAT = ("response_format", "regex", "choice", "grammar")
"""Those that chat completions have, which other APIs do not."""


def refuse_constraints(body: Fields, known: str, further: tuple[str, ...] = ()) -> None:
    """Raises InvalidRequest for a constraint under another name than the `known` ones, `further` names included."""
    for key in (*_FOREIGN, *further):
        if key in body.further and type_of((body.model_extra or {})[key]) != "text":
            raise InvalidRequest(f"/{key}", f"is not known here: give {known}")
