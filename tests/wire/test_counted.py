"""How many parameters a call may have is enforced between tags too."""

from __future__ import annotations

import json

import pytest

import toolgram
from toolgram.conversation.message import Message, ToolCall

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
PROPERTIES = {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "boolean"}, "d": {"type": "string"}}
VALUES = {"a": "x", "b": 1, "c": True, "d": "y"}


@pytest.mark.parametrize("style", ["qwen_xml", "glm_4_5", "minimax_m3"])
@pytest.mark.parametrize(
    ("low", "high", "required"), [(1, 2, []), (2, None, ["c"]), (0, 3, ["b"]), (3, 3, []), (5, None, [])]
)
def test_the_number_of_parameters(style: str, low: int, high: int | None, required: list[str]) -> None:
    parameters = {"type": "object", "properties": PROPERTIES, "required": required, "minProperties": low}
    parameters |= {} if high is None else {"maxProperties": high}
    request = {
        "messages": [{"role": "user", "content": "Hi?"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}],
        "tool_choice": "required",
    }
    if low > len(PROPERTIES):
        with pytest.raises(toolgram.InvalidRequest, match="no tool can be called"):
            toolgram.plan(request, toolgram.ChatTemplate(CHATML), style=style)
        return
    plan = toolgram.plan(request, toolgram.ChatTemplate(CHATML), style=style)
    assert plan.constraint is not None
    free = toolgram.plan(
        request
        | {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": PROPERTIES}}}]},
        toolgram.ChatTemplate(CHATML),
        style=style,
    )
    for chosen in range(2 ** len(VALUES)):
        arguments = {key: value for index, (key, value) in enumerate(VALUES.items()) if chosen >> index & 1}
        message = Message(tool_calls=(ToolCall("f", json.dumps(arguments)),))
        text = free.write(message)
        assert text is not None
        right = low <= len(arguments) <= (len(VALUES) if high is None else high) and {*required} <= arguments.keys()
        assert plan.constraint.grammar.accepts(text) is right
        assert plan.writable(message) is right
