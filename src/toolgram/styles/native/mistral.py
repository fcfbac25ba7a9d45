"""Mistral: `[TOOL_CALLS]`, in the three forms that its tokenizers have had.

Nemo (chat template of mistralai/Mistral-Nemo-Instruct-2407)::

    [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "a1b2c3d4e"}]

Small 3.2 (mistralai/Mistral-Small-3.2-24B-Instruct-2506)::

    [TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Paris"}

Ministral 3, Devstral and Magistral, with reasoning (mistralai/Ministral-3-14B-Reasoning-2512)::

    [THINK]The weather is needed.[/THINK][TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import thinking
from toolgram.wire.format import Arguments, Array, Call, CallId, Content, Many, Mark, Name, Object, Opt, Seq, WireFormat

_CALLS, _ARGS = Mark("[TOOL_CALLS]"), Mark("[ARGS]")
_JSON = Object(("name", Name()), ("arguments", Arguments()), ("id", CallId()))
_WITH_ID = Seq(_CALLS, Name(), Mark("[CALL_ID]"), CallId(), _ARGS, Arguments())
_PLAIN = Seq(_CALLS, Name(), _ARGS, Arguments())

MISTRAL_NEMO = ToolStyle(
    "mistral_nemo",
    WireFormat(Seq(Opt(Content()), Opt(Seq(_CALLS, Array(Call(_JSON)))))),
    "a JSON list after [TOOL_CALLS]: Mistral Nemo, Mistral 7B v0.3",
)
MISTRAL_SMALL = ToolStyle(
    "mistral_small",
    WireFormat(Seq(Opt(Content()), Many(Call(_WITH_ID)))),
    "[TOOL_CALLS] name [CALL_ID] id [ARGS] JSON: Mistral Small 3.2",
)
MINISTRAL = ToolStyle(
    "ministral",
    WireFormat(Seq(thinking("[THINK]", "[/THINK]"), Opt(Content()), Many(Call(_PLAIN)))),
    "[TOOL_CALLS] name [ARGS] JSON: Ministral 3, Magistral, Devstral",
    reasons=True,
)
