"""The proof of a discovered format: it reads the template's renderings of turns that it was not built from."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from toolgram.conversation.events import ContentDelta, Event, ToolCallEnd, Unreadable
from toolgram.conversation.message import Message
from toolgram.schema.reading.normalize import normalize
from toolgram.styles.discovery.rewrite_check import differs, ways_to_quote
from toolgram.styles.probes import (
    CONTENT,
    REASONING,
    TAG,
    CallProbe,
    Scene,
    TurnProbe,
    call,
    parameters,
    tail,
    without_end,
)
from toolgram.wire import format as wire
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.program import Program, compile_format
from toolgram.wire.reader import Reader

_PLAIN = call("get_weather", {"city": "Oslo", "days": 3}, 11)
_NASTY = call(
    "zq-find_2",
    {"query": 'a "b" {c: [1]} d\'s <e> & é☃', "limit": -2.5, "exact": False, "options": {"deep": {"er": []}, "n": 1}},
    12,
)
_LIKE_JSON = call("save", {"text": "12", "lines": "one\ntwo", "tags": ["x", "y z"], "flag": True}, 13)
_NOTHING = call("now", {}, 14)
_AGAIN = call("get_weather", {"city": "Rome", "days": 1}, 15)
_NAMES = tuple(dict.fromkeys(probe.name for probe in (_PLAIN, _NASTY, _LIKE_JSON, _NOTHING, _AGAIN)))
_SPELT_ALIKE = (_PLAIN.name, _NOTHING.name)

_QUOTES = "\"'"
_NO_QUOTES = str.maketrans("", "", _QUOTES)

_TURNS = {
    "a call": TurnProbe((_PLAIN,)),
    "a call with values of all types": TurnProbe((_NASTY,)),
    "a call with strings that look like other values": TurnProbe((_LIKE_JSON,)),
    "a call without arguments": TurnProbe((_NOTHING,)),
    "two calls": TurnProbe((_NASTY, _PLAIN)),
    "three calls, two of one tool": TurnProbe((_PLAIN, _NOTHING, _AGAIN)),
    "an answer": TurnProbe((), CONTENT),
    "an answer and a call": TurnProbe((_PLAIN,), CONTENT),
    "reasoning and an answer": TurnProbe((), CONTENT, REASONING),
    "reasoning and a call": TurnProbe((_PLAIN,), "", REASONING),
    "reasoning, an answer and two calls": TurnProbe((_NASTY, _PLAIN), CONTENT, REASONING),
}


@dataclass(frozen=True)
class Reading:
    """A probe, and what went wrong when it was read; "" where it was read back to what was said."""

    probe: str
    wrong: str = ""


def readings(scene: Scene, format_: wire.WireFormat, header: str, openers: tuple[str, ...]) -> tuple[Reading, ...]:
    """How a format reads, and writes, all the probes that the template shows; its turns begin after `header`.

    `openers` are beginnings that a prompt may already hold, which the template then leaves out. Raises GrammarError if
    the marks of the format are ambiguous.
    """
    program = compile_format(wire.naming(format_.turn, _NAMES))
    several = scene.capabilities.supports_parallel_tool_calls
    either = any(isinstance(node, wire.Alt) and wire.holds(node, wire.Call) for node in wire.walk(format_.turn))
    keywords = any(encoding.notation.keyword_arguments for encoding in format_.encodings)
    found: list[Reading] = []
    for name, turn in _TURNS.items():
        if len(turn.calls) > 1 and not several:
            continue
        text, said = _as_shown(scene, turn, keywords=keywords)
        if text is None or said is None or (either and said.calls and said.content):
            continue
        if not text.startswith(header):
            found.append(Reading(name, "the turn begins differently"))
            continue
        last = max(text.rfind(word) + len(word) for word in _words(said))
        turn_text = without_end(scene, text, last)[len(header) :]
        wrong = _wrong(program, openers, turn_text, said, ways_to_quote(format_, said.calls))
        plain = said.calls and not said.content and all(probe.name in _SPELT_ALIKE for probe in said.calls)
        if not wrong and plain and (other := differs(format_, said.calls, turn_text)):
            wrong = f"it would be written {other!r}"
        # The template may split it into two turns.
        if not wrong or not any(stop in text[len(header) : last] for stop in scene.capabilities.stop if stop):
            found.append(Reading(name, wrong))
    return tuple(found)


def _as_shown(scene: Scene, turn: TurnProbe, *, keywords: bool) -> tuple[str | None, TurnProbe | None]:
    """A turn as the template writes it, and the part of it that is shown.

    Some templates do not escape the quotes inside a string, or write keyword arguments without quotes, which nobody
    could read: they are rendered again without such strings.
    """
    text = tail(scene, turn)
    calls = tuple(replace(probe, text=_legible(probe.arguments, text or "", keywords)) for probe in turn.calls)
    if [probe.arguments for probe in calls] != [probe.arguments for probe in turn.calls]:
        turn = replace(turn, calls=calls)
        text = tail(scene, turn)
    return text, None if text is None else _shown(turn, text)


def _legible(arguments: dict[str, Any], text: str, keywords: bool) -> str:
    """The arguments as JSON, without the strings that cannot be read from the text."""
    changed: dict[str, Any] = {}
    for key, value in arguments.items():
        if isinstance(value, str) and keywords and f"{key}={value}" in text:
            changed[key] = len(value)
        elif isinstance(value, str) and any(quote in value and quote + value + quote in text for quote in _QUOTES):
            changed[key] = value.translate(_NO_QUOTES)
    return json.dumps(arguments | changed, ensure_ascii=False)


def _shown(turn: TurnProbe, text: str) -> TurnProbe | None:
    """The part of a turn that the template shows; None if it drops the reasoning, or the calls beside an answer."""
    if any(probe.name not in text for probe in turn.calls):
        return None if turn.content and turn.content in text else turn
    if turn.reasoning not in text:
        return None  # without it the turn is another probe
    content = turn.content if turn.content in text else ""
    return replace(turn, content=content)


def _words(turn: TurnProbe) -> list[str]:
    return [word for word in (turn.content, turn.reasoning, *(probe.name for probe in turn.calls)) if word]


_Calls = tuple[CallProbe, ...]


def _wrong(program: Program, openers: tuple[str, ...], text: str, said: TurnProbe, meant: tuple[_Calls, ...]) -> str:
    """What goes wrong with the first opener; "" if nothing goes wrong with one of them."""
    wrongs = (_wrong_after(opened, program, text, said, meant) for opened in openers)
    first = next(wrongs)
    return first if first and all(wrongs) else ""


def _wrong_after(opened: str, program: Program, text: str, said: TurnProbe, meant: tuple[_Calls, ...]) -> str:
    reader = Reader(program, opened=opened, expected={probe.name: _expected(probe) for probe in said.calls})
    events = [*reader.feed(text), *reader.finish()]
    if said.calls:
        events = _without_leftover(events)
    unreadable = next((event for event in events if isinstance(event, Unreadable)), None)
    if unreadable is not None:
        return f"{unreadable.text[:60]!r} cannot be read: {unreadable.reason}"
    message = Message.from_events(events)
    read = [(each.name, _parsed(each.arguments)) for each in message.tool_calls]
    if read not in [[(each.name, _exact(each.arguments)) for each in calls] for calls in meant]:
        return f"the calls read {[(each.name, each.arguments) for each in message.tool_calls]}"
    content, reasoning = (message.content or "").strip(), (message.reasoning or "").strip()
    # Some templates write the content before a call as reasoning.
    if said.calls and not said.reasoning and reasoning == said.content:
        content, reasoning = reasoning, ""
    return "" if (content, reasoning) == (said.content, said.reasoning) else f"the texts read {content, reasoning}"


def _without_leftover(events: list[Event]) -> list[Event]:
    """The events without the tags after the last call, such as one that opens the tool's result."""
    last = max((at for at, event in enumerate(events) if isinstance(event, ToolCallEnd)), default=len(events))
    after = events[last:]
    text = TAG.sub("", "".join(event.text for event in after if isinstance(event, ContentDelta)))
    kept = [event for event in after if not (isinstance(event, Unreadable) and not TAG.sub("", event.text).strip())]
    return [*events[:last], *(event for event in kept if not isinstance(event, ContentDelta)), ContentDelta(text)]


@lru_cache(maxsize=64)
def _expected(probe: CallProbe) -> Expected:
    """The types of the probe's arguments, which tags do not show."""
    canonical = normalize(parameters(probe), mode="relaxed", closed=True, parameters=True).type
    return Expected(canonical, canonical.root)


def _parsed(text: str) -> Any:
    try:
        return _exact(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _exact(value: Any) -> Any:
    """The value in a form where True does not equal 1."""
    match value:
        case bool():
            return ("boolean", value)
        case dict():
            return {key: _exact(member) for key, member in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
        case list():
            return [_exact(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
        case _:
            return value
