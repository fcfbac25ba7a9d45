"""LFM2: a list of Python calls.

A turn (chat template and model card of LiquidAI/LFM2-8B-A1B)::

    <|tool_call_start|>[get_weather(city="Paris", days=3), get_time()]<|tool_call_end|>
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.arguments import PYTHON
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Opt, Seq, WireFormat

_CALLS = Many(Call(Seq(Name(), Arguments(PYTHON))), separator=Lit(", "), min=1)
_LIST = Seq(Mark("<|tool_call_start|>"), Lit("["), _CALLS, Lit("]"), Mark("<|tool_call_end|>"))

LFM2 = ToolStyle("lfm2", WireFormat(Seq(Opt(Content()), Opt(_LIST))), "a list of Python calls: LFM2")
