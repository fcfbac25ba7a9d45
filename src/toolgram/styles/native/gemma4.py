"""Gemma 4 and FunctionGemma: a notation that is neither JSON nor Python, whose strings have delimiters of their own.

A turn of Gemma 4 (chat template of google/gemma-4-31B-it)::

    <|channel>thought
    The weather is needed.<channel|><|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>

A turn of FunctionGemma (model card of google/functiongemma-270m-it)::

    <start_function_call>call:get_weather{city:<escape>Paris<escape>,days:3}<end_function_call>
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.encodings import Encoding
from toolgram.wire.format import (
    NOTHING_WRITTEN,
    Alt,
    Arguments,
    Call,
    Content,
    Lenient,
    Lit,
    Many,
    Mark,
    Name,
    Opt,
    Reasoning,
    Seq,
    WireFormat,
)

NOTATION = Encoding(
    "gemma",
    quote='<|"|>',
    escapes=False,
    bare_keys=True,
    item_separator=",",
    key_separator=":",
    sorts_keys=True,
    other_null="None",  # the template prints null as Python does, though no other word
)

_TOKEN = Mark("<|tool_call>")
# Of several calls in one pair of tokens the last alone is closed: where anything else stands before its token, that is
# none of the answer.
_CALLED = Mark("<tool_call|>")
_CALL = Call(Seq(Lit("call:"), Name(), Arguments(NOTATION), Lenient(_CALLED, NOTHING_WRITTEN)))
# Behind their thoughts, or where they have none, and between calls, the models at times forget the token.
_BARE = Many(_CALL, separator=Alt(_TOKEN, NOTHING_WRITTEN), min=1)

# The models sometimes repeat the channel tokens.
_OPEN, _CLOSE = Mark("<|channel>"), Mark("<channel|>")
_AGAIN, _STRAY = Lenient(NOTHING_WRITTEN, _OPEN), Lenient(NOTHING_WRITTEN, _CLOSE)
_REASONING = Opt(Seq(_OPEN, _AGAIN, Lit("thought\n"), Reasoning(), _CLOSE))

_SAID = Seq(Opt(Content()), _STRAY)

GEMMA_4 = ToolStyle(
    "gemma_4",
    WireFormat(Seq(_REASONING, _STRAY, _SAID, Many(Lenient(Seq(_TOKEN, _CALL), _CALLED)))),
    'call:f{k:v}, strings between <|"|>: Gemma 4',
    own_ways=WireFormat(Seq(_REASONING, _STRAY, Alt(Seq(_SAID, Opt(Lenient(Seq(_TOKEN, _BARE), _CALLED))), _BARE))),
    calls_close_reasoning=True,  # as turns show: ollama/ollama#18307, waybarrios/vllm-mlx#609
)

ESCAPED = Encoding(
    "function_gemma",
    quote="<escape>",
    escapes=False,
    bare_keys=True,
    item_separator=",",
    key_separator=":",
    other_null="None",
)

_FUNCTION_CALL = Call(
    Seq(Mark("<start_function_call>"), Lit("call:"), Name(), Arguments(ESCAPED), Mark("<end_function_call>"))
)

FUNCTION_GEMMA = ToolStyle(
    "function_gemma",
    WireFormat(Seq(Opt(Content()), Many(_FUNCTION_CALL))),
    "call:f{k:v}, strings between <escape> tags: FunctionGemma",
)
