"""Lists of Python calls.

Llama 3.2 and 4 and ToolACE write nothing but the list, or an answer ("Llama 4 model card and prompt formats"; Llama 4
sometimes puts <|python_start|> and <|python_end|> around it)::

    [get_weather(city="Paris", days=3), get_time()]

A turn of LFM2 (chat template and model card of LiquidAI/LFM2-8B-A1B)::

    <|tool_call_start|>[get_weather(city="Paris", days=3), get_time()]<|tool_call_end|>
"""

from __future__ import annotations

from dataclasses import replace

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.wire.encodings import PYTHON
from toolgram.wire.format import Alt, Arguments, Call, Content, Lenient, Lit, Many, Mark, Name, Opt, Seq, WireFormat

_CALLS = Many(Call(Seq(Name(), Arguments(PYTHON))), separator=Lit(", "), min=1)
_BARE = Seq(Lit("["), _CALLS, Lit("]"))
_LIST = Seq(Mark("<|tool_call_start|>"), _BARE, Mark("<|tool_call_end|>"))

_WIRE = WireFormat(Seq(think(after_opener="", before_closer="", after=""), Opt(Content()), Opt(_LIST)))

_TAGGED = Seq(Mark("<|python_start|>"), _BARE, Mark("<|python_end|>"))

PYTHONIC = ToolStyle(
    "pythonic",
    WireFormat(Alt(Lenient(_BARE, _TAGGED), Opt(Content()))),
    "a bare list of Python calls: Llama 3.2 and 4, ToolACE",
    own_ways=WireFormat(Alt(_BARE, _TAGGED, Opt(Content()))),
    calls_after_words=_BARE,
)
LFM2 = ToolStyle("lfm2", _WIRE, "a list of Python calls: LFM2", announced_by="<|tool_list_start|>")
LFM2_5 = replace(LFM2, name="lfm2_5", about="a list of Python calls: LFM2.5", announced_by="List of tools: [")
