"""Qwen 2.5 Coder: as Hermes, and fenced or bare JSON.

Its chat template is that of Qwen 2.5, to the letter, and asks for `<tool_call>` tags; but unless it is made to, the
model writes a call as fenced JSON, or now and then as bare JSON, on lines as here, and nothing besides
(Qwen2.5-Coder-0.5B-Instruct: 59 of 60 turns; those of 7 to 32 billion parameters as well, as users of Ollama, vLLM and
llama.cpp report: ollama/ollama#12174, vllm-project/vllm#32926). As the template does not tell the models apart, the
model's name does. A turn::

    ```json
    {
      "name": "get_weather",
      "arguments": {
        "city": "Paris"
      }
    }
    ```

The history has calls between tags, as the template writes them. Beside a response schema the model writes calls in the
same ways, and answers may stand in a fence and on lines too.
"""

from __future__ import annotations

from dataclasses import replace

from toolgram.styles.native.hermes import HERMES
from toolgram.styles.own_calls import with_own_calls

QWEN_CODER = replace(
    with_own_calls(HERMES),
    name="qwen_coder",
    about="as hermes, and calls as fenced or bare JSON: Qwen 2.5 Coder",
    models=("Qwen2.5-Coder",),
)
