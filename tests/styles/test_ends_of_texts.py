"""What ends a text is the tokenizer's, and no part of a style: the style of a template does not depend on it."""

from __future__ import annotations

import pytest

import toolgram
from toolgram.styles.choose import choose_style


@pytest.mark.parametrize("end", ["", "</s>", "<|end|>"])
def test_a_style_is_that_of_its_template_whatever_ends_a_text(end: str) -> None:
    """As Apriel's: its template has the tokenizer's own end behind that of a turn, and the line break before both."""
    template = toolgram.ChatTemplate(
        "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|{{ m.role }}|>\n{{ m.content or '' }}"
        "{% for call in m.tool_calls or [] %}{{ '\n<tool_calls>[' }}"
        '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}]</tool_calls>'
        "{% endfor %}{{ '\n<|end|>\n' }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
        eos_token=end,
    )
    assert choose_style(template)[0].name == "apriel"
