"""Cohere: Command R and R+, then Command R7B and Command A, all with a JSON list of actions.

A turn of Command R7B (chat template of CohereForAI/c4ai-command-r7b-12-2024)::

    <|START_THINKING|>The weather is needed.<|END_THINKING|><|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}
    ]<|END_ACTION|>

An answer stands between <|START_RESPONSE|> and <|END_RESPONSE|>, in later models <|START_TEXT|> and <|END_TEXT|>.

A turn of Command R (chat template of CohereForAI/c4ai-command-r-plus, "tool_use"; the model card has a space after
"Action:")::

    I will look that up.
    Action:
    ```json
    [
        {"tool_name": "get_weather", "parameters": {"city": "Paris"}}
    ]```

The template spreads each action over several lines; the models write it on one, as shown.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import thinking
from toolgram.wire.format import COUNT, Arguments, Call, Content, Lit, Many, Mark, Name, Object, Opt, Seq, WireFormat

_JSON = Object(("tool_call_id", COUNT), ("tool_name", Name()), ("parameters", Arguments()))
_ACTION = Seq(
    Mark("<|START_ACTION|>"),
    Lit("[\n    "),
    Many(Call(_JSON), separator=Lit(",\n    "), min=1),
    Lit("\n]"),
    Mark("<|END_ACTION|>"),
)
_THINKING = thinking("<|START_THINKING|>", "<|END_THINKING|>")


def _wire(answer: str) -> WireFormat:
    response = Seq(Mark(f"<|START_{answer}|>"), Content(), Mark(f"<|END_{answer}|>"))
    return WireFormat(Seq(_THINKING, Opt(response), Opt(_ACTION)))


_FENCED = Seq(
    Lit("\n"),
    Mark("Action:\n```json", ("Action: ```json", "Action:```json")),
    Lit("\n[\n    "),
    Many(Call(Object(("tool_name", Name()), ("parameters", Arguments()))), separator=Lit(",\n    "), min=1),
    Lit("\n]```"),
)

COMMAND_R7B = ToolStyle("command_r7b", _wire("RESPONSE"), "action and response tokens: Command R7B, Command A")
COMMAND_A_2 = ToolStyle("command_a_text", _wire("TEXT"), "action and text tokens: later Command models")
COMMAND_R = ToolStyle(
    "command_r",
    WireFormat(Seq(Mark("<|CHATBOT_TOKEN|>"), Opt(Content()), Opt(_FENCED))),
    "a fenced JSON list of actions: Command R, Command R+",
)
