"""gpt-oss: channels and recipients in message headers, the "harmony" format.

A turn (openai/harmony, "OpenAI Harmony response format"; the template ends the prompt with `<|start|>assistant`)::

    <|channel|>analysis<|message|>The weather is needed.<|end|><|start|>assistant<|channel|>commentary
    to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}

(on one line).
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.wire.format import (
    NOTHING_WRITTEN,
    Alt,
    Arguments,
    Call,
    Chain,
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

_CHANNEL, _MESSAGE = Mark("<|channel|>"), Mark("<|message|>")
# The models sometimes address a message to themselves.
_TO_ITSELF = Lenient(NOTHING_WRITTEN, Seq(_CHANNEL, Lit("commentary to=assistant")))
_LEAD = Seq(Mark("<|start|>"), Lit("assistant"), _TO_ITSELF)
# The model card puts calls on the commentary channel; the models put some on any other (vllm-project/vllm#42454).
_CALL_CHANNEL = Seq(_CHANNEL, Lenient(Alt(Lit("commentary"), Lit("analysis"), Lit("final")), Lit("comment")))
# They leave the namespace out in long contexts, too, name the channel or the tool again (ollama/ollama#12132,
# vllm-project/vllm#51977), or say what the call's JSON is of (thinking-machines-lab/tinker-cookbook#947).
_TOOL = Seq(Lenient(Lit(" to=functions."), Lit(" to=")), Name())
_TO = Lenient(
    Alt(
        Seq(_TOOL, _CALL_CHANNEL, Lenient(NOTHING_WRITTEN, _TOOL)),
        Seq(_CALL_CHANNEL, _TOOL, Lenient(NOTHING_WRITTEN, _CALL_CHANNEL)),
    ),
    Seq(_CALL_CHANNEL, Lit(" "), Mark("<|constrain|>"), Lit("functions."), Name()),
)
_JSON = Seq(Lit(" "), Opt(Mark("<|constrain|>")), Lit("json"))
# What a message holds, as the models name it besides: calls are "code" to them at times.
_OTHERS = ("JSON", "code", "text", "markdown", "python", "response")
_TYPE = Opt(Lenient(_JSON, *(Seq(Lit(" "), Opt(Mark("<|constrain|>")), Lit(other)) for other in _OTHERS)))

# What is said to somebody is no call of a tool.
_SAID_TO = Lenient(NOTHING_WRITTEN, Lit(" to=user"), Lit(" to=assistant"))
_THOUGHT = Seq(_LEAD, _SAID_TO, _CHANNEL, Lit("analysis"), _SAID_TO, _MESSAGE, Reasoning())
_ANSWER = Seq(_LEAD, _SAID_TO, _CHANNEL, Alt(Lit("final"), Lit("commentary")), _SAID_TO, _TYPE, _MESSAGE, Content())

WIRE = WireFormat(
    Chain(
        Many(Lenient(_THOUGHT, _ANSWER)),
        Opt(_ANSWER),
        Many(Call(Seq(_LEAD, _TO, _TYPE, _MESSAGE, Arguments()))),
        join=Lenient(Mark("<|end|>"), NOTHING_WRITTEN),
        closes=True,  # the last message too, at times, though "<|return|>" and "<|call|>" end a turn
    ),
    item_separator=", ",
    key_separator=": ",
)

HARMONY = ToolStyle("harmony", WIRE, "channels and recipients in headers: gpt-oss")
