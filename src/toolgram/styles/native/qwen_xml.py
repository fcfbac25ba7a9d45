"""Qwen3-Coder, Qwen 3.5, Nemotron 3: calls and parameters between tags.

A turn (chat template of Qwen/Qwen3.5-4B; Qwen3-Coder has no reasoning, Nemotron 3 fewer line breaks)::

    <think>
    The weather is needed.
    </think>

    I will look that up.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Paris
    </parameter>
    </function>
    </tool_call>
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.wire.encodings import Tagged
from toolgram.wire.format import (
    NOTHING_WRITTEN,
    Arguments,
    Break,
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

PARAMETERS = Tagged(
    "qwen_xml",
    open="<parameter=",
    after_key=(("", ">\n"),),
    close="\n</parameter>\n",
    python_words=True,
    followed_by="<",
    # The last value is not always closed (vllm-project/vllm#57699, ggml-org/llama.cpp#18077).
    unclosed="\n</function>\n</tool_call>",
)

_END = Lenient(Mark("</function>"), NOTHING_WRITTEN)
_FUNCTION = Seq(Mark("<function="), Name(), Lit(">\n"), Arguments(PARAMETERS), _END)
# Qwen3-Coder sometimes forgets the opening tag, and any of the closing ones.
_OPENING = Lenient(Seq(Mark("<tool_call>"), Lit("\n")), NOTHING_WRITTEN)
# Small and quantized ones forget the closing tag too (raullenchai/Rapid-MLX#1031), and Qwen 3.5 at times writes the
# JSON of Qwen 3 between them (ml-explore/mlx-swift-lm#529).
_CLOSING = Lenient(Seq(Lit("\n"), Mark("</tool_call>")), NOTHING_WRITTEN)
_JSON = Seq(Mark("<tool_call>"), Lit("\n"), Object(("name", Name()), ("arguments", Arguments())))
_CALL = Call(Seq(Lenient(Seq(_OPENING, _FUNCTION), _JSON), _CLOSING))

QWEN_XML = ToolStyle(
    "qwen_xml",
    WireFormat(Seq(think(), Opt(Content()), Opt(Seq(Break("\n\n"), Many(_CALL, separator=Lit("\n"), min=1))))),
    "parameters between tags: Qwen3-Coder, Qwen 3.5, Nemotron 3",
    calls_close_reasoning=True,  # as turns of Qwen 3.5 show
)
