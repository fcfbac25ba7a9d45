"""What the 2024 profile was shown with: a conversation, two tools, an answer's schema, four chat templates, a date."""

from __future__ import annotations

from datetime import datetime
from typing import Any

NOW = datetime(2024, 3, 30)
BOS, EOS = "<s>", "</s>"

ANSWER: dict[str, Any] = {"type": "integer"}

TOOLS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": "superSecretTool",
            "description": "Adds two numbers",
            "parameters": {
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "say",
            "description": "Says something out loud (TTS)",
            "parameters": {
                "properties": {"text": {"description": "The text to say out loud", "type": "string"}},
                "required": ["text"],
            },
        },
    },
)

_CALL: dict[str, Any] = {
    "id": "call_531873",
    "type": "function",
    "function": {"name": "superSecretTool", "arguments": {"a": 2535, "b": 32222000403}},
}


def _message(role: str, content: str | None, **fields: Any) -> dict[str, Any]:
    """A message that names every field, as the profile prints them."""
    return {"role": role, "name": None, "tool_call_id": None, "content": content, "tool_calls": None} | fields


MESSAGES: tuple[dict[str, Any], ...] = (
    _message("user", "Add two numbers for the purpose of this test."),
    _message("assistant", None, tool_calls=[_CALL]),
    _message("tool", "32222002938", name="superSecretTool", tool_call_id="call_531873"),
    _message("assistant", "The sum of 2535 and 32222000403 is 42."),
)

TEMPLATES: dict[str, tuple[str, ...]] = {
    "mistral_instruct_v0_1": ("thoughtful_steps", "mixtral"),
    "functionary_v2_2": ("functionary_v2",),
    "hermes_2_pro_mistral": ("short", "long", "thoughtful_steps", "hermes_2_pro"),
    "llama2": ("short", "long", "thoughtful_steps", "hermes_2_pro"),
}
"""The templates (files of `templates/`), each with the styles it is shown in.

They are those of mistralai/Mistral-7B-Instruct-v0.1, meetkai/functionary-small-v2.2,
NousResearch/Hermes-2-Pro-Mistral-7B and meta-llama/Llama-2-7b-chat-hf.
"""

TITLES: dict[str, str] = {
    "short": "TOOLS_SHORT",
    "long": "TOOLS_LONG",
    "mixtral": "TOOLS_MIXTRAL",
    "thoughtful_steps": "TOOLS_THOUGHTFUL_STEPS",
    "hermes_2_pro": "TOOLS_HERMES_2_PRO",
    "functionary_v2": "TYPESCRIPT_FUNCTIONARY_V2",
}
"""What the styles were called."""
