"""Families that write one JSON list of calls, or a section of JSON objects.

Firefunction v2 (chat template of fireworks-ai/llama-3-firefunction-v2)::

    I will look that up. functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

Apriel 1.5 (ServiceNow-AI/Apriel-1.5-15b-Thinker)::

    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>

Hunyuan A13B (the chat template in vLLM's examples) writes the same without a line break before it.

Phi-4-mini, by the names of its tokens, since its own template writes no calls::

    <|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|/tool_call|>

and where its template asks for it (those of vLLM and SGLang)::

    functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

xLAM 2 (the chat templates in vLLM's examples), where a turn is either calls or an answer::

    [{"name": "get_weather", "arguments": {"city": "Paris"}}]

Granite 3.3 (ibm-granite/granite-3.3-2b-instruct; 3.0 is the same, 3.1 has <tool_call> as its mark)::

    <think>The weather is needed.</think><|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]

MiniMax M1 (MiniMaxAI/MiniMax-M1-80k)::

    <tool_calls>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_calls>

GigaChat 3 (ai-sage/GigaChat3-10B-A1.8B)::

    I will look that up.<|message_sep|>

    function call<|role_sep|>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.wire.format import (
    NOTHING_WRITTEN,
    Alt,
    Arguments,
    Array,
    Call,
    Content,
    Lenient,
    Lit,
    Many,
    Mark,
    Name,
    Object,
    Opt,
    Seq,
    WireFormat,
)

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))
_PHI_END = Lenient(Mark("<|/tool_call|>"), NOTHING_WRITTEN)
_LINES = Many(_CALL, separator=Lit("\n"), min=1)

FUNCTOOLS = ToolStyle(
    "functools",
    WireFormat(Seq(Opt(Content()), Opt(Seq(Mark("functools"), Array(_CALL))))),
    "functools and a JSON list, no space between: Phi-4-mini, where it is asked for it",
)
FIREFUNCTION = ToolStyle(
    "firefunction",
    WireFormat(Seq(Opt(Content()), Opt(Seq(Lit(" "), Mark("functools"), Array(_CALL))))),
    "functools and a JSON list: Firefunction v2",
)
APRIEL = ToolStyle(
    "apriel",
    WireFormat(Seq(Opt(Content()), Opt(Seq(Lit("\n"), Mark("<tool_calls>"), Array(_CALL), Mark("</tool_calls>"))))),
    "a JSON list between <tool_calls> tags: Apriel 1.5",
)
HUNYUAN = ToolStyle(
    "hunyuan",
    WireFormat(Seq(Opt(Content()), Opt(Seq(Mark("<tool_calls>"), Array(_CALL), Mark("</tool_calls>"))))),
    "a JSON list between <tool_calls> tags: Hunyuan A13B",
)
PHI_4_MINI = ToolStyle(
    "phi_4_mini",
    WireFormat(Seq(Opt(Content()), Opt(Seq(Mark("<|tool_call|>", ("functools",)), Array(_CALL), _PHI_END)))),
    "a JSON list between <|tool_call|> tokens: Phi-4-mini",
    announced_by="<|/tool|>",
)
XLAM = ToolStyle("xlam", WireFormat(Alt(Array(_CALL), Opt(Content()))), "a bare JSON list: xLAM 2")
GRANITE_3_3 = ToolStyle(
    "granite_3_3",
    WireFormat(
        Seq(
            think(after_opener="", before_closer="", after=""),
            Opt(Content()),
            Opt(Seq(Mark("<|tool_call|>", ("<tool_call>",)), Array(_CALL))),
        )
    ),
    "a JSON list behind <|tool_call|>: Granite 3.3",
    announced_by="<|tool_call|>",
    reasons=True,
)
MINIMAX_M1 = ToolStyle(
    "minimax_m1",
    WireFormat(
        Seq(Opt(Content()), Opt(Seq(Mark("<tool_calls>"), Lit("\n"), _LINES, Lit("\n"), Mark("</tool_calls>"))))
    ),
    "JSON objects between <tool_calls> tags: MiniMax M1",
)
GIGACHAT = ToolStyle(
    "gigachat",
    WireFormat(
        Seq(
            Opt(Content()),
            Opt(Seq(Mark("<|message_sep|>"), Lit("\n\nfunction call"), Mark("<|role_sep|>"), Lit("\n"), _CALL)),
        )
    ),
    "a JSON object in a message of its own: GigaChat 3",
)
