"""A style that announces tools as TypeScript, in half the tokens of their JSON, and asks for calls as `long` does.

The announcement of a tool::

    // The weather of a city.
    type get_weather = (_: {
    // Name of the city
    city: string,
    unit?: "C" | "F"
    }) => any;
"""

from __future__ import annotations

from toolgram.schema.typescript import signatures
from toolgram.styles.base import Announcement, ToolStyle, answer_prompt
from toolgram.styles.generic.tagged import TAGGED

_BEFORE = "You can call these functions, declared in TypeScript:\n\n"
_AFTER = """

Leave out optional arguments (`?`) that the user does not ask for. Call a function like this:
<tool_call>
{"name": <function-name>, "arguments": <args-dict>}
</tool_call>"""


def _announce(about: Announcement) -> str:
    functions = [tool["function"] for tool in about.tools]
    listed = signatures((f["name"], f.get("description"), f.get("parameters")) for f in functions)
    text = _BEFORE + "\n".join(listed) + _AFTER
    return f"{text}\n\n{answer_prompt(about.answer)}" if about.has_answer else text


COMPACT = ToolStyle("compact", TAGGED, "lists the tools as TypeScript and explains <tool_call> tags", _announce)
