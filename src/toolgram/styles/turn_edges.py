"""Where a turn begins and ends: what the prompt opens, what renderings show, the stop strings."""

from __future__ import annotations

import re
from functools import lru_cache

from toolgram.conversation.events import ToolCallStart, Unreadable
from toolgram.conversation.message import Message
from toolgram.styles.base import ToolStyle
from toolgram.styles.probes import CONTENT, NEXT, ONE, CallProbe, TurnProbe, rendered
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import MARKER
from toolgram.wire import format as wire
from toolgram.wire.program import compile_format
from toolgram.wire.reader import Reader

_MOST_CUTS = 3


_MARK = re.compile(r"[<\[\]>]")


@lru_cache(maxsize=512)
def opening(turn: wire.Node, prompt: str) -> str:
    """The end of a prompt that is the fixed beginning of a turn; it is the same at every request."""
    return opened_by(turn, prompt)


def opened_by(turn: wire.Node, prompt: str, content: str = "", reasoning: str = "") -> str:
    """The longest end of a prompt that is the beginning of a turn which says just this so far; "" if there is none.

    A template writes it: what a reader takes besides does not count.
    """
    program = compile_format(wire.as_written(turn))
    places = [match.start() for match in _MARK.finditer(prompt)]
    if content and (at := prompt.rfind(content.strip())) >= 0:
        places.append(at)
    for place in places:
        reader = Reader(program)
        events = reader.feed(prompt[place:])
        message, held = Message.from_events(events), reader.held
        said = ((message.content or "") + (held.content or ""), (message.reasoning or "") + (held.reasoning or ""))
        readable = not any(isinstance(event, Unreadable | ToolCallStart) for event in events)
        if readable and stripped(said) == stripped((content, reasoning)):
            return prompt[place:]
    return ""


def stripped(texts: tuple[str, str]) -> tuple[str, ...]:
    return tuple(text.strip() for text in texts)


@lru_cache(maxsize=1024)
def rendered_turns(template: ChatTemplate, said: Message) -> tuple[str, ...]:
    """An assistant's turn as the template writes it, from every place where it may be said to begin.

    Its calls are of the tool that stands before every turn without calls too.
    """
    calls = tuple(CallProbe(call.name, call.arguments, ONE.id) for call in said.tool_calls)
    before, prompt = rendered(template, None), rendered(template, None, prompts=True)
    after = rendered(template, TurnProbe(calls, said.content or "", said.reasoning or ""))
    if before is None or prompt is None or after is None:
        return ()
    capabilities = template.capabilities
    first, last = _outside_marker(after, _common(before, after)), _common(prompt, after)
    last = last if last == len(prompt) else max(last, _through(after, prompt))
    stops = (*capabilities.stop, capabilities.turn_end.strip())
    tags = [match.span() for match in MARKER.finditer(after, first)]
    marks = (match.start() for match in _MARK.finditer(after, first, last + 1))
    starts = [at for at in marks if not any(begin < at < end for begin, end in tags)]
    places = dict.fromkeys((last, *reversed(starts), first))
    # Some templates write something behind every conversation, which is no part of the turn.
    always = _common(before[::-1], after[::-1])
    ends = (len(after), len(after) - always) if MARKER.search(after, len(after) - always) else (len(after),)
    texts = (text for end in ends for place in places for text in _before_stop(after[place:end], stops))
    return tuple(dict.fromkeys(texts))


def _outside_marker(text: str, at: int) -> int:
    """The place itself, or where the marker begins that it is in."""
    return next((match.start() for match in MARKER.finditer(text) if match.start() < at < match.end()), at)


def _common(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _through(text: str, prompt: str) -> int:
    """How far a text goes through the words of a prompt, but for white space, which some templates strew."""
    at = 0
    for word in prompt.split():
        start = _behind_space(text, at)
        if not text.startswith(word, start):
            break
        at = start + len(word)
    return at


def _behind_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _before_stop(text: str, stops: tuple[str, ...]) -> tuple[str, ...]:
    """The text up to a stop: the first, or a later one, since some families open a call with what ends their turns."""
    cuts = sorted(match.start() for stop in stops if stop for match in re.finditer(re.escape(stop), text))
    return tuple(text[:cut] for cut in cuts[:_MOST_CUTS]) or (text,)


@lru_cache(maxsize=512)
def stops(template: ChatTemplate, style: ToolStyle) -> tuple[str, ...]:
    """The strings at which a turn ends.

    One that is a mark of the style too does not tell an end from a call: what opens the next user's turn does.
    """
    marks = style.wire.marks
    found = template.capabilities.stop
    if not any(stop in marks for stop in found):
        return found
    shown = rendered(template, TurnProbe((), CONTENT), ending="next")
    if shown is None:
        return found
    between = shown.rpartition(CONTENT)[2].partition(NEXT)[0]
    return tuple(between.rstrip() if between.startswith(stop) and stop in marks else stop for stop in found)
