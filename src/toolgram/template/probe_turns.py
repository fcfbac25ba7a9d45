"""Small conversations that probe a chat template, made of words that occur in none."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]

SYSTEM, LATE, USER, MORE, ANSWER, RESULT = "zqsystem", "zqlate", "zquser", "zqmore", "zqanswer", "zqresult"
REASONING, NAME, OTHER, KEY, VALUE, SECOND = "zqreason", "zqname", "zqother", "zqkey", "zqvalue", "zqsecond"
SENDER = "zqsender"
CALL_ID, CALL_ID_2 = "zqcall001", "zqcall002"  # nine letters and digits: Mistral's templates take nothing else
LONG_ID = "call_zqcall0000000000001"


def tool(name: str) -> Message:
    """A tool that takes a text."""
    properties = {KEY: {"type": "string", "description": "A text."}}
    parameters = {"type": "object", "properties": properties, "required": [KEY]}
    return {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": parameters}}


TOOLS = [tool(NAME), tool(OTHER)]


def system(content: str = SYSTEM) -> Message:
    """A message of the system's."""
    return {"role": "system", "content": content}


def user(content: Any = USER) -> Message:
    """A user's message."""
    return {"role": "user", "content": content}


def assistant(**fields: Any) -> Message:
    """An answer of the assistant."""
    return {"role": "assistant", "content": ANSWER, **fields}


def result(content: str = RESULT, name: str = NAME, id_: str = CALL_ID) -> Message:
    """The result of a call."""
    return {"role": "tool", "name": name, "tool_call_id": id_, "content": content}


def call(value: str, form: str | None, name: str = NAME, id_: str = CALL_ID) -> Message:
    """A call, its arguments as an object, or as JSON text where `form` is "text"."""
    arguments = {KEY: value}
    function = {"name": name, "arguments": json.dumps(arguments) if form == "text" else arguments}
    return {"id": id_, "type": "function", "function": function}
