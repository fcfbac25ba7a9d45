"""The situations in which every style is tested: tool choice, parallel calls, response schema, nasty texts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

import toolgram
from toolgram.caching import Document
from toolgram.conversation.events import ArgumentsDelta, ContentDelta, Event, ReasoningDelta, Unreadable
from toolgram.planning.turn_spec import CallableTool
from toolgram.wire.reader import Reader

CHATML = toolgram.ChatTemplate(
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    bos_token="<s>",  # noqa: S106 - not a password
    eos_token="<|im_end|>",  # noqa: S106 - not a password
)

HERMES = """\
{% if tools %}<|im_start|>system
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
<tool_call></tool_call><|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""As Qwen 2.5 and Qwen 2.5 Coder, which have the same template to the letter, write their turns."""

# For properties of hundreds of cases, which are made of the same pieces: `make fuzz` tries more, and others.
A_FEW = settings(max_examples=min(40, settings().max_examples // 4))

GENERIC = ("thoughtful_steps", "short", "long", "mixtral", "hermes_2_pro", "functionary_v2", "compact")


def tool(name: str, parameters: Any) -> dict[str, Any]:
    """A tool in OpenAI's shape."""
    return {"type": "function", "function": {"name": name, "description": f"Does {name}", "parameters": parameters}}


def callable_tools(parameters: Mapping[str, Any], *, strict: bool = False) -> tuple[CallableTool, ...]:
    """What decides how tools of these names and parameters are called, as they stand in a request."""
    return tuple(
        CallableTool(
            name,
            Document.of(schema or {"type": "object"}),
            strict,
            f"/tools/{at}/function",
            f"/tools/{at}/function/parameters",
        )
        for at, (name, schema) in enumerate(parameters.items())
    )


WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["C", "F", '"', "</tool_call>"]},
    },
    "required": ["city"],
}
NESTED = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"type": ["string", "null"], "maxLength": 5}, "maxItems": 3},
        "point": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
        'k"ey': {"type": "boolean"},
    },
}

# Names that begin one another, and characters that JSON or a tag would trip over.
TOOLS = [tool("get", None), tool("get_weather", WEATHER), tool('od"d\\näme 𝒻', NESTED)]
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "score": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["answer"],
}
TOOL_CHOICES: dict[str, Any] = {
    "none": "none",
    "auto": "auto",
    "required": "required",
    "named": {"type": "function", "function": {"name": "get_weather"}},
}


@dataclass(frozen=True)
class Situation:
    """A request in a style, made ready."""

    style: str
    choice: str
    parallel: bool
    answer: bool

    def __str__(self) -> str:
        words = [self.style, self.choice, "parallel" if self.parallel else "single"]
        return "-".join([*words, "schema"] if self.answer else words)

    @property
    def plan(self) -> toolgram.Plan:
        return planned(self)

    @property
    def tool_names(self) -> list[str]:
        """The tools that may be called."""
        if self.choice == "none":
            return []
        return ["get_weather"] if self.choice == "named" else [entry["function"]["name"] for entry in TOOLS]


@cache
def planned(situation: Situation) -> toolgram.Plan:
    """The plan of a situation."""
    request: dict[str, Any] = {
        "messages": [{"role": "user", "content": "What is the weather?"}],
        "tools": TOOLS,
        "tool_choice": TOOL_CHOICES[situation.choice],
        "parallel_tool_calls": situation.parallel,
    }
    if situation.answer:
        request["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER}}
    return toolgram.plan(request, CHATML, style=situation.style)


def situations(styles: tuple[str, ...] = GENERIC) -> list[Situation]:
    """All of them: style × tool choice × parallel × response schema."""
    return [Situation(*each) for each in itertools.product(styles, TOOL_CHOICES, (True, False), (False, True))]


def fed(reader: Reader, text: str, cuts: list[int] | None = None) -> list[Event]:
    """The events of a text, fed whole or in pieces of these lengths."""
    ends = list(itertools.accumulate(cuts or []))
    pieces = [text[a:b] for a, b in itertools.pairwise([0, *ends, max([len(text), *ends])])]
    return [event for piece in pieces for event in reader.feed(piece)] + reader.finish()


def joined(events: list[Event]) -> list[Event]:
    """The events with neighbouring pieces of one text put together."""
    result: list[Event] = []
    for event in events:
        match result[-1:], event:
            case [ContentDelta(a)], ContentDelta(b):
                result[-1] = ContentDelta(a + b)
            case [ReasoningDelta(a)], ReasoningDelta(b):
                result[-1] = ReasoningDelta(a + b)
            case [Unreadable(a, why)], Unreadable(b, _):
                result[-1] = Unreadable(a + b, why)
            case [ArgumentsDelta(i, a)], ArgumentsDelta(j, b) if i == j:
                result[-1] = ArgumentsDelta(i, a + b)
            case _:
                result.append(event)
    return result


# What may confuse a reader: whole and half markers of every style, quotes, control tokens, characters of all planes.
PIECES = (
    *("<tool_call>", "</tool_call>", "<tool_ca", "</tool", "<tool\\_call>", "\n<tool_call>\n{", "<|from|>", "<|from|"),
    *("<|recipient|>", "<|content|>", "all", "all\n<|content|>", "\n<|from|>assistant\n<|recipient|>", "<|im_end|>"),
    *(
        '<|"|>',
        '<|"',
        "<|tool_call>",
        "<tool_call|>",
        "<|tool_call_start|>",
        "<|end|>",
        "<|message|>",
        "=",
        "(",
        ")",
        "'",
    ),
    *("<|im_start|>", "</s>", "<s>", "[TOOL_CALLS]", "<think>", "</think>", "<function=f>", "<|channel|>", "<|start|>"),
    *(
        '{"name": "get", "arguments": {}}',
        '{"thought_about_next_step_only": "',
        '"next_step"',
        '{"result": ',
        "tool_calls",
    ),
    *(
        '"',
        "\\",
        '\\"',
        "\\u00e9",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "<",
        ">",
        "|",
        "\n",
        "\r\n",
        "\t",
        "\x00",
        "\x1f",
        "\x7f",
    ),
    *(" ", "a", "get_weather", "0", "-1.5e3", "é", "\u2028", "\ufeff", "😀", "𝒻", "\U0010ffff", "null", "true"),
)
nasty_text = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=8).map("".join)
plain_text = st.text(st.characters(codec="utf-8", exclude_characters="<|"), max_size=20)


@cache
def or_none(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str | None]:
    """These texts or none. A strategy that is made anew for each example takes longer than what it gives."""
    return st.none() | texts
