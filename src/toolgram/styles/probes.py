"""Probes: turns made of words that occur in no template, rendered, and cut down to what the model itself writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from toolgram.errors import TemplateError
from toolgram.template.capabilities import Capabilities, with_reasoning
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import MARKER

QUESTION, CONTENT, REASONING, RESULT, NEXT = "zqquestion", "zqanswer", "zqthought", "zqresult", "zqnext"
TAG = re.compile(MARKER.pattern + r"|<[^<>\s][^<>\n]*>|\[[A-Z]+(?: [A-Z]+)+\]")
"""What looks like a tag of a template: a control token, anything between angle brackets on one line, [WORDS SO]."""

_NOW = datetime(2024, 1, 2)
# The names that change no text beside the thoughts, as MiniMax M3's `thinking_mode` does.
_THINKS: dict[str, Any] = {"enable_thinking": True, "thinking": True}
_JSON_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
_LONGEST_CLOSING = 60
_INDENTATION, _BETWEEN_TAGS = re.compile(" {2,}"), re.compile(r"(?<=>)\s+(?=<)")


@dataclass(frozen=True)
class Scene:
    """A template, and how its turns are looked at: at the end of a conversation, or `followed` by other turns.

    Some templates write the last turn differently from those before it, and not as the model does. Others let the
    indentation and line breaks of their source into the prompt: where the scene is `tidied`, these are removed.
    """

    template: ChatTemplate
    followed: bool = False
    tidied: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """The template's capabilities."""
        return self.template.capabilities


def scenes(template: ChatTemplate) -> Iterator[Scene]:
    """The ways to look at a template, the most likely first."""
    answer = tail(Scene(template), TurnProbe((), CONTENT)) or ""
    indented = _INDENTATION.search(answer) is not None
    yield Scene(template, tidied=indented)
    yield Scene(template, followed=True, tidied=indented)
    yield Scene(template, tidied=not indented)


@dataclass(frozen=True)
class CallProbe:
    """A call of a probe; its arguments are JSON text."""

    name: str
    text: str
    id: str

    @property
    def arguments(self) -> dict[str, Any]:
        return json.loads(self.text)


@dataclass(frozen=True)
class TurnProbe:
    """An assistant's turn to be rendered."""

    calls: tuple[CallProbe, ...] = ()
    content: str = ""
    reasoning: str = ""


def call(name: str, arguments: dict[str, Any], number: int) -> CallProbe:
    """A call with an id of nine letters and digits, which the strictest templates require."""
    return CallProbe(name, json.dumps(arguments, ensure_ascii=False), f"zqcall{number:03}")


def parameters(probe: CallProbe) -> dict[str, Any]:
    """The JSON Schema of a tool that takes these arguments."""
    return _schema(probe.arguments)


def _schema(value: Any) -> dict[str, Any]:
    """The JSON Schema of values like this one; some templates require a description of each."""
    schema: dict[str, Any] = {"type": _JSON_TYPES[type(value)], "description": "zqwhat"}
    if isinstance(value, dict):
        properties = {key: _schema(member) for key, member in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
        return {**schema, "properties": properties, "required": list(properties)}  # pyright: ignore[reportUnknownArgumentType] - JSON
    if isinstance(value, list) and value:
        return {**schema, "items": _schema(value[0])}
    return schema


def _tool(probe: CallProbe) -> dict[str, Any]:
    function = {"name": probe.name, "description": "zqdoes", "parameters": parameters(probe)}
    return {"type": "function", "function": function}


@lru_cache(maxsize=4096)
def tail(scene: Scene, turn: TurnProbe | None, *, prompts: bool = False) -> str | None:
    """The text after the question: the turn, or with `prompts` what opens one; None if the template refuses."""
    text = rendered(scene.template, turn, prompts=prompts, ending="next" if scene.followed and turn else "")
    if text is None and turn is not None and turn.calls and not scene.followed:
        text = rendered(scene.template, turn, ending="results")
    _, found, rest = re.split(f"{RESULT}|{NEXT}", text or "")[0].rpartition(QUESTION)
    if scene.tidied:
        rest = _BETWEEN_TAGS.sub("", _INDENTATION.sub("", rest))
    return rest if found else None


_Ending = Literal["", "results", "next", "later"]


def rendered(
    template: ChatTemplate,
    turn: TurnProbe | None,
    *,
    prompts: bool = False,
    ending: _Ending = "",
    thinks: bool = True,
) -> str | None:
    """The question and the turn as the template writes them; None if it refuses them.

    With the `ending` "results" the results of the turn's calls follow, with "next" another question as well, with
    "later" also its answer, and one more. Without `thinks` it is left to the template whether the model is asked to.
    """
    return _rendered(template, turn, prompts, ending, thinks)


@lru_cache(maxsize=4096)
def _rendered(
    template: ChatTemplate, turn: TurnProbe | None, prompts: bool, ending: _Ending, thinks: bool
) -> str | None:
    """Like `rendered`, with positional arguments, so that each conversation has one cache entry."""
    later = [_NEXT] if ending == "next" else [_NEXT, _ANSWER, _NEXT] if ending == "later" else []
    after = [*(_results(turn) if ending else ()), *later]
    capabilities = template.capabilities
    messages = [_QUESTION, *([_message(turn, capabilities)] if turn else []), *after]
    if capabilities.requires_typed_content:
        messages = [_in_parts(each) for each in messages]
    # The tools precede the question, and must be the same wherever turns are compared with what comes before them.
    called = {probe.name: _tool(probe) for probe in (turn.calls if turn else ())} or {ONE.name: _tool(ONE)}
    variables = capabilities.tool_variables([*called.values()] if capabilities.supports_tools else None, _NOW)
    variables |= _THINKS if thinks else {}
    try:
        return template.render(messages, add_generation_prompt=prompts, now=_NOW, **variables)
    except TemplateError:
        return None


def _results(turn: TurnProbe | None) -> list[dict[str, Any]]:
    calls = turn.calls if turn else ()
    return [{"role": "tool", "name": probe.name, "tool_call_id": probe.id, "content": RESULT} for probe in calls]


def _in_parts(message: dict[str, Any]) -> dict[str, Any]:
    text = message["content"]
    return {**message, "content": [{"type": "text", "text": text}]} if isinstance(text, str) else message


def _message(turn: TurnProbe, capabilities: Capabilities) -> dict[str, Any]:
    blank = None if turn.calls and capabilities.supports_null_content else ""
    message: dict[str, Any] = {"role": "assistant", "content": turn.content or blank}
    if turn.reasoning:
        message = with_reasoning(message, turn.reasoning, capabilities.reasoning_field)
    if turn.calls:
        text = capabilities.tool_call_arguments == "text"
        message["tool_calls"] = [
            {
                "id": probe.id,
                "type": "function",
                "function": {"name": probe.name, "arguments": probe.text if text else probe.arguments},
            }
            for probe in turn.calls
        ]
    return message


_QUESTION, _NEXT = {"role": "user", "content": QUESTION}, {"role": "user", "content": NEXT}
_ANSWER = {"role": "assistant", "content": RESULT}
# The keys are in alphabetical order, since some templates sort them.
ONE = call("zqfirst", {"zqkeya": "zqvalue", "zqkeyb": 7301}, 1)
TWO = call("zqsecond", {"zqkeyc": "zqdeep", "zqkeyd": 7302}, 2)


def without_end(scene: Scene, text: str, last: int) -> str:
    """A turn without what ends it; everything that was said comes before `last`.

    It ends at the first stop after that, else at the tag that ends a question, or where the template continues as it
    does after the question; text that closes every message is kept.
    """
    after = tail(scene, None) or ""
    ends = TAG.match(after.lstrip())
    stops = _places(text, scene.capabilities.stop, last) or _places(text, (ends[0],) if ends else (), last)
    stop = min(stops, default=len(text))
    same = len(text) - len(common_suffix(text[last:], after))
    if same >= stop:
        return text[:stop]
    between = text[same:stop]
    closes = len(between) <= _LONGEST_CLOSING and " " not in between and stops
    return text[:stop] if closes else text[:same]


def _places(text: str, words: tuple[str, ...], start: int) -> list[int]:
    """Where each of these words first occurs, from `start` on."""
    return [at for word in words if word and (at := text.find(word, start)) >= 0]


def common_prefix(one: str, other: str) -> str:
    """The common prefix of two texts, cut back so as not to split a tag."""
    end = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    for text in (one, other):
        end = min([end, *(match.start() for match in TAG.finditer(text) if match.start() < end < match.end())])
    return one[:end]


def common_suffix(one: str, other: str) -> str:
    """The common suffix of two texts, cut back so as not to split a tag, nor a pair of tags around a word."""
    pairs = enumerate(zip(reversed(one), reversed(other), strict=False))
    size = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    for text in (one, other):
        at = len(text) - size
        cut = (len(text) - match.end() for match in TAG.finditer(text) if match.start() < at < match.end())
        size = min([size, *cut])
    suffix = one[len(one) - size :]
    # Where tags come in pairs around a word, <|close|>call<|sep|>, the second belongs to what precedes it.
    before = [text[: len(text) - size][-1:] for text in (one, other)]
    tag = TAG.match(suffix) if all(char.isalnum() or char == '"' for char in before) else None
    return suffix[tag.end() :] if tag else suffix
