"""Llama 3.1 to 3.3: a bare JSON object.

A turn (chat template of meta-llama/Llama-3.1-8B-Instruct)::

    {"name": "get_weather", "parameters": {"city": "Paris"}}

Tools that the template is given as built-in are called after <|python_tag|> ("Llama 3.1 model card and prompt
formats"), and the models sometimes write it before other calls too: where tools are given the template says
"Environment: ipython". A model is not kept from it::

    <|python_tag|>brave_search.call(query="weather in Paris")

After it Llama 3.3 writes calls of other tools in Python (meta-llama/llama-models#266), which are read::

    <|python_tag|>get_weather(city="Paris")

Nor is it kept from the form of OpenAI's API, which models write that saw tools in it (vllm-project/vllm#19024)::

    {"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.encodings import PYTHON
from toolgram.wire.format import (
    NOTHING_WRITTEN,
    Alt,
    Arguments,
    Call,
    Const,
    Content,
    Lenient,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    Object,
    Opt,
    Seq,
    WireFormat,
)

_TAG = Mark("<|python_tag|>")
CALL = Call(Object(("name", Name()), ("parameters", Arguments())))
TYPED = Call(Object(("type", Const("function")), ("name", Name()), ("parameters", Arguments())))
_BUILT_IN = Call(Seq(_TAG, Name(), Lenient(Lit(".call"), NOTHING_WRITTEN), Arguments(PYTHON)))


def _several(call: Node) -> Many:
    """One call as the template has it; models that make several put "; " between them, as vLLM's parser expects.

    Others have a comma or nothing there: nothing is what vLLM's template for Llama 4 in JSON writes into the history.
    """
    return Many(call, separator=Lenient(Lit("; "), Lit(", "), Lit("")), min=1)


_CALLS, _OWN = _several(CALL), _several(Alt(CALL, TYPED))

LLAMA_3 = ToolStyle(
    "llama_3",
    WireFormat(Alt(Lenient(_CALLS, Seq(_TAG, _CALLS), _BUILT_IN), Opt(Content()))),
    "a bare JSON object: Llama 3.1, 3.2, 3.3",
    own_ways=WireFormat(Alt(Lenient(Alt(_OWN, Seq(_TAG, _OWN)), _BUILT_IN), Opt(Content()))),
    calls_after_words=_CALLS,
)
