"""Functionary 2.2: every part of the turn is addressed to a recipient, "all" or a tool.

A turn (model card of meetkai/functionary-small-v2.2; its template ends the prompt with the first `<|recipient|>`)::

    <|from|>assistant
    <|recipient|>all
    <|content|>I will look that up.
    <|from|>assistant
    <|recipient|>get_weather
    <|content|>{"city": "Paris"}

The tools are announced as TypeScript declarations.
"""

from __future__ import annotations

from toolgram.schema.typescript import declarations
from toolgram.styles.base import Announcement, ToolStyle, answer_prompt
from toolgram.wire.format import Arguments, Call, Chain, Content, Lit, Many, Mark, Name, Opt, Seq, WireFormat

LEAD = Seq(Mark("<|from|>"), Lit("assistant\n"), Mark("<|recipient|>"))

WIRE = WireFormat(
    Chain(
        Opt(Seq(LEAD, Lit("all\n"), Mark("<|content|>"), Content())),
        Many(Call(Seq(LEAD, Name(), Lit("\n"), Mark("<|content|>"), Arguments()))),
        join=Lit("\n"),
    ),
)


def _announce(about: Announcement) -> str:
    functions = [tool["function"] for tool in about.tools]
    prompt = declarations((f["name"], f.get("description"), f.get("parameters")) for f in functions)
    return f"{prompt}\n\n{answer_prompt(about.answer)}" if about.has_answer else prompt


FUNCTIONARY_V2 = ToolStyle(
    "functionary_v2", WIRE, "TypeScript declarations, parts addressed to recipients", _announce, without_tools=WIRE
)
