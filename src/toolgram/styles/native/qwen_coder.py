"""Qwen 2.5 Coder: as Hermes, and fenced or bare JSON where the model may call or not.

Its chat template is that of Qwen 2.5, to the letter, and asks for `<tool_call>` tags; but unless it is made to, the
model writes a call as fenced JSON, or now and then as bare JSON, and nothing besides (Qwen2.5-Coder-0.5B-Instruct: 59
of 60 turns). As the template does not tell the models apart, this style has to be asked for. A turn::

    ```json
    {
      "name": "get_weather",
      "arguments": {
        "city": "Paris"
      }
    }
    ```

The history has calls between tags, as the template writes them.
"""

from __future__ import annotations

from toolgram.styles.base import ToolStyle
from toolgram.styles.native.common import think
from toolgram.styles.native.hermes import CALLS, HERMES
from toolgram.wire.encodings import Encoding
from toolgram.wire.format import Alt, Arguments, Call, Content, Lit, Many, NamedMark, Opt, Seq, WireFormat

_ON_LINES = Encoding("json", margin="\n    ", last_margin="\n  ")
_OWN_CALLS = Many(
    Alt(
        Call(Seq(NamedMark('```json\n{\n  "name": "', '",\n  "arguments": '), Arguments(_ON_LINES), Lit("\n}\n```"))),
        Call(Seq(NamedMark('```json\n{"name": "', '", "arguments": '), Arguments(), Lit("}\n```"))),
        Call(Seq(NamedMark('{"name": "', '", "arguments": '), Arguments(), Lit("}"))),
    ),
    separator=Lit("\n"),
    min=1,
)

QWEN_CODER = ToolStyle(
    "qwen_coder",
    HERMES.wire,
    "as hermes; where the model may call or not, also fenced or bare JSON: Qwen 2.5 Coder",
    in_auto=WireFormat(Seq(think(), Alt(Seq(Opt(Content()), CALLS), _OWN_CALLS))),
)
