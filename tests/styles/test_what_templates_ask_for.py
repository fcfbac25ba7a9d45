"""Templates that write no calls themselves get the style that their words ask for."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import WEATHER, tool
from toolgram.styles.detect import not_asked_for
from toolgram.styles.native.hermes import HERMES

ASKING = """\
<|im_start|>system
{% for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}For each call, return a JSON object between tags:
<tool_call>
SCHEMA
</tool_call>
<|im_end|>
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Rain?"}],
    "tools": [tool("get_weather", WEATHER)],
}


@pytest.mark.parametrize(
    ("schema", "style"),
    [
        ('{"name": <function-name>, "arguments": <args-dict>}', "hermes"),
        ("{'arguments': <args-dict>, 'name': <function-name>}", "hermes"),
        ("{name: <function-name>, arguments: <args-dict>}", "compact"),
    ],
)
def test_json_is_asked_for_in_the_quotes_of_json_or_python(schema: str, style: str) -> None:
    made = toolgram.plan(BODY, toolgram.ChatTemplate(ASKING.replace("SCHEMA", schema)))
    assert made.style.name == style
    assert made.prompt.count("Does get_weather") == 1
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    assert made.constraint is not None
    assert made.constraint.grammar.accepts(text)
    assert made.parse(text).tool_calls[0].name == "get_weather"


def test_keys_that_are_missing_are_named_as_the_style_writes_them() -> None:
    assert not_asked_for("<tool_call>{'name': 1}</tool_call>", HERMES) == (('"arguments"',),)


BARE = """\
<|system|>{% for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}Call functions so: functools[{"name": <function-name>, "arguments": <args-dict>}]<|end|>
{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for call in m.tool_calls or [] %}
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
{% endfor %}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""


def test_the_history_has_calls_as_the_template_asks_for_them() -> None:
    """Phi-4-mini's templates write bare JSON there: a model that went on so would call nobody."""
    call = {"type": "function", "id": "1", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    turns = [
        *BODY["messages"],
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "Rain."},
    ]
    made = toolgram.plan({**BODY, "messages": turns}, toolgram.ChatTemplate(BARE))
    assert made.style.name == "functools"
    assert made.prompt.endswith(
        '<|assistant|>Let me see.functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]<|end|>\n'
        "<|tool|>Rain.<|end|>\n<|assistant|>"
    )
