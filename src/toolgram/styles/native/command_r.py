"""Command R and R+: an action as a fenced JSON list.

A turn (chat template of CohereForAI/c4ai-command-r-plus, "tool_use"; the model card has a space behind "Action:")::

    I will look that up.
    Action:
    ```json
    [
        {"tool_name": "get_weather", "parameters": {"city": "Paris"}}
    ]```

The template writes each action over several lines; the models write it on one, or so.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Object, Opt, Seq, WireFormat

_CALL = Call(Object(("tool_name", Name()), ("parameters", Arguments())))
_ACTION = Seq(
    Lit("\n"),
    Mark("Action:\n```json", ("Action: ```json", "Action:```json")),
    Lit("\n[\n    "),
    Many(_CALL, separator=Lit(",\n    "), min=1),
    Lit("\n]```"),
)

COMMAND_R = ToolStyle(
    "command_r",
    WireFormat(Seq(Mark("<|CHATBOT_TOKEN|>"), Opt(Content()), Opt(_ACTION))),
    "a fenced JSON list of actions: Command R, Command R+",
)
