r"""The grammars of the 2024 styles, as GBNF text: rules in alphabetical order, unused ones kept, one call a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgram.reference.lowering import Lowering, json_literal, literal
from toolgram.reference.turn_schema import turn_schema

Tools = Sequence[dict[str, Any]]

_START = "<|from|>assistant\n<|recipient|>"
_FROM = "<|from|>"
_CONTENT = "\n<|content|>"


def answer_grammar(schema: Any) -> str:
    """An answer in a schema, and nothing else."""
    lowering = Lowering()
    lowering.schema(schema, None)
    return lowering.text()


def thoughtful_steps_grammar(tools: Tools, answer: Any) -> str:
    """A turn of the thoughtful_steps style, whose result is in the schema `answer`."""
    calls = {
        "oneOf": [
            {
                "properties": {"name": {"const": tool["function"]["name"]}, "arguments": _parameters(tool)},
                "required": ["name", "arguments"],
            }
            for tool in tools
        ]
    }
    return answer_grammar(turn_schema(calls, answer))


def tagged_grammar(tools: Tools, *, escaped: bool) -> str:
    r"""Free text, then one call between tags; `escaped`: an underscore may be written `\_`, as Markdown has it."""
    lowering = Lowering()
    calls: list[str] = []
    for at, tool in enumerate(tools):
        name = tool["function"]["name"]
        rule = f"{name}-tool-call"
        spelled = f'"\\"" {_escapable(name)} "\\"" space' if escaped else json_literal(name)
        members = {
            "name": lowering.add(f"{rule}-name", spelled),
            "arguments": lowering.schema(_parameters(tool), f"{rule}-arguments", _pointer(at)),
        }
        calls.append(lowering.object(rule, members, {}))
    spell = _escapable if escaped else literal
    opener, closer = spell("<tool_call>"), spell("</tool_call>")
    content = lowering.add("content", _outside("<to"))
    call = lowering.add("tool-call", f"{opener} space ({' | '.join(calls)})  space {closer}")
    lowering.rules["root"] = f"{content}* {call}?"
    return lowering.text()


def functionary_grammar(tools: Tools) -> str:
    """Content and calls, each addressed to its recipient; the prompt holds the beginning of the first of them."""
    lowering = Lowering()
    calls: list[str] = []
    for at, tool in enumerate(tools):
        name = tool["function"]["name"]
        arguments = lowering.schema(_parameters(tool), f"{name}-args", _pointer(at))
        body = literal(f"{_CONTENT}\n")
        calls.append(lowering.add(f"{name}-call", f'{literal(name)} {body} {arguments} "\\n"'))
    start = lowering.add("start", literal(_START))
    text = lowering.add("not-from", _never(_FROM))
    first_content = lowering.add("content-without-start", f"{literal('all' + _CONTENT)} {text}*")
    first_call = lowering.add("tool-call-without-start", " | ".join(calls))
    content = lowering.add("content", f"{start} {first_content}")
    call = lowering.add("tool-call", f"{start} {first_call}")
    with_content = f"{first_content}   {content}*   ({call}+ {content}*)?"
    lowering.rules["root"] = f"{with_content} | {first_call} {call}* {content}*"
    return lowering.text()


def _parameters(tool: dict[str, Any]) -> Any:
    return tool["function"].get("parameters", {"type": "object"})


def _pointer(at: int) -> str:
    return f"/tools/{at}/function/parameters"


def _escapable(text: str) -> str:
    """The text with an optional backslash before each underscore."""
    first, *rest = text.split("_")
    pieces = [literal(first)] if first else []
    for piece in rest:
        pieces += ['"\\\\"?', '"_"', *([literal(piece)] if piece else [])]
    return " ".join(pieces)


def _outside(marker: str) -> str:
    """A piece of text that does not begin the marker; not every text without the marker is made of such pieces."""
    first = marker[0]
    options = [f"[^{first}]"]
    options += [f"{literal(marker[:at])} [^{marker[at]}{first}]" for at in range(1, len(marker))]
    return " | ".join(options)


def _never(marker: str) -> str:
    """A way into the marker and out again; it may stop anywhere in it, short of its end."""
    text = f"([^{marker[-1]}])"
    for char in reversed(marker[:-1]):
        text = f"([^{char}] | {literal(char)} {text}?)"
    return text
