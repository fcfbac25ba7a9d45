"""The word functools and a JSON list: Firefunction v2, and Phi-4-mini where its template asks for it.

A turn of Firefunction (chat template of fireworks-ai/llama-3-firefunction-v2)::

    I will look that up. functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

and of Phi-4-mini (the chat templates of vLLM and SGLang)::

    functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Object, Opt, Seq, WireFormat

_CALL = Call(Object(("name", Name()), ("arguments", Arguments())))
# With its bracket: the word alone is one of Python, which answers may be about.
FUNCTOOLS_LIST = Seq(Mark("functools["), Many(_CALL, separator=Lit(", "), min=1), Lit("]"))

FUNCTOOLS = ToolStyle(
    "functools",
    WireFormat(Seq(Opt(Content()), Opt(FUNCTOOLS_LIST))),
    "functools and a JSON list, no space between: Phi-4-mini, where its template asks for it",
)
FIREFUNCTION = ToolStyle(
    "firefunction",
    WireFormat(Seq(Opt(Content()), Opt(Seq(Lit(" "), FUNCTOOLS_LIST)))),
    "functools and a JSON list: Firefunction v2",
)
