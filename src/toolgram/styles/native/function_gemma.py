"""FunctionGemma: calls as Gemma 4's, strings between <escape> tags.

A turn (model card of google/functiongemma-270m-it)::

    <start_function_call>call:get_weather{city:<escape>Paris<escape>,days:3}<end_function_call>
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.encodings import Encoding
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Opt, Seq, WireFormat

NOTATION = Encoding(
    "function_gemma", quote="<escape>", escapes=False, bare_keys=True, item_separator=",", key_separator=":"
)

_CALL = Call(Seq(Mark("<start_function_call>"), Lit("call:"), Name(), Arguments(NOTATION), Mark("<end_function_call>")))

FUNCTION_GEMMA = ToolStyle(
    "function_gemma",
    WireFormat(Seq(Opt(Content()), Many(_CALL))),
    "call:f{k:v}, strings between <escape> tags: FunctionGemma",
)
