"""Where a turn begins and ends: what the prompt opens, what renderings show, the stop strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from toolgram.conversation.events import Finish, ToolCallStart, Unreadable
from toolgram.conversation.message import Message, ToolCall
from toolgram.styles.base import ToolStyle
from toolgram.styles.probes import CONTENT, NEXT, ONE, RESULT, TWO, CallProbe, TurnProbe, rendered
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import CONTROL, MARKER
from toolgram.wire import format as wire
from toolgram.wire.program import compile_format
from toolgram.wire.reader import Reader
from toolgram.wire.writer import write_freely

_MOST_CUTS = 3


ONE_CALL = Message(tool_calls=(ToolCall(ONE.name, ONE.text, ONE.id),))
_MARK = re.compile(r"[<\[\]>]")
_SPACE = re.compile(r"\s+")


@lru_cache(maxsize=512)
def opening(turn: wire.Node, prompt: str) -> str:
    """The end of a prompt that is the fixed beginning of a turn, the same for every request."""
    return opened_by(turn, prompt)


def opened_by(turn: wire.Node, prompt: str, content: str = "", reasoning: str = "") -> str:
    """The longest end of a prompt that is the beginning of a turn saying just this so far; "" if there is none.

    The text comes from a template, so only what the format writes counts, not what a lenient reader would also accept.
    """
    program = compile_format(wire.as_written(turn))
    places = [match.start() for match in _MARK.finditer(prompt)]
    places += (at for mark in program.marks if (at := prompt.rfind(mark)) >= 0 and not _MARK.match(mark))
    if content and (at := prompt.rfind(content.strip())) >= 0:
        places.append(at)
    for place in sorted(places):
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


@dataclass(frozen=True)
class ShownTurn:
    """A conversation as a template renders it, and the (begin, end) of each text that may be the turn in question."""

    rendered: str
    spans: tuple[tuple[int, int], ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts themselves, the most likely first, without duplicates."""
        return tuple(dict.fromkeys(self.rendered[begin:end] for begin, end in self.spans))


def rendered_turns(template: ChatTemplate, said: Message) -> tuple[str, ...]:
    """An assistant's turn as the template writes it, cut at each place where it may begin and end."""
    return shown_turn(template, said).texts


@lru_cache(maxsize=1024)
def shown_turn(template: ChatTemplate, said: Message, *, with_result: bool = False) -> ShownTurn:
    """An assistant's turn in its conversation, as the last message or, `with_result`, followed by its calls' results.

    Its calls are of the tool that turns without calls are also rendered with. There is no span if the template refuses
    the conversation.
    """
    turn = _probe(said)
    before, prompt = rendered(template, None), rendered(template, None, prompts=True)
    after = rendered(template, turn, ending="results" if with_result else "")
    if before is None or prompt is None or after is None:
        return ShownTurn("", ())
    capabilities = template.capabilities
    first, last = _outside_marker(after, _common(before, after)), _common(prompt, after)
    last = last if last == len(prompt) else max(last, _through(after, prompt))
    stops = (*capabilities.stop, capabilities.turn_end.strip())
    tags = [match.span() for match in MARKER.finditer(after, first)]
    marks = (match.start() for match in _MARK.finditer(after, first, last + 1))
    starts = [at for at in marks if not any(begin < at < end for begin, end in tags)]
    places = dict.fromkeys((last, *reversed(starts), first))
    # Some templates write something after every conversation that is no part of the turn.
    always = _common(before[::-1], after[::-1])
    ends = (len(after), len(after) - always) if MARKER.search(after, len(after) - always) else (len(after),)
    spans = ((place, cut) for end in ends for place in places for cut in _before_stop(after, place, end, stops))
    return ShownTurn(after, tuple(dict.fromkeys(spans)))


def after_prompts(template: ChatTemplate, said: Message) -> Iterator[str]:
    """What follows the prompt where an assistant's turn begins with it: of a model that is asked to think, and else."""
    for thinks in (True, False):
        prompt = rendered(template, None, prompts=True, thinks=thinks)
        whole = rendered(template, _probe(said), thinks=thinks)
        if prompt is not None and whole is not None and whole.startswith(prompt):
            yield whole[len(prompt) :]


def _probe(said: Message) -> TurnProbe:
    calls = tuple(CallProbe(call.name, call.arguments, call.id or ONE.id) for call in said.tool_calls)
    return TurnProbe(calls, said.content or "", said.reasoning or "")


def _outside_marker(text: str, at: int) -> int:
    """The place itself, or the beginning of the marker that it falls inside."""
    return next((match.start() for match in MARKER.finditer(text) if match.start() < at < match.end()), at)


def _common(one: str, other: str) -> int:
    """The length of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _through(text: str, prompt: str) -> int:
    """How far a text repeats a prompt, ignoring white space, which some templates write irregularly."""
    at = 0
    for word in prompt.split():
        start = _after_space(text, at)
        if not text.startswith(word, start):
            break
        at = start + len(word)
    return at


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _before_stop(text: str, begin: int, end: int, stops: tuple[str, ...]) -> tuple[int, ...]:
    """Where the stops are: the first and later ones too, since some families open a call with what ends their turns."""
    turn = text[begin:end]
    cuts = sorted(begin + match.start() for stop in stops if stop for match in re.finditer(re.escape(stop), turn))
    return tuple(cuts[:_MOST_CUTS]) or (max(begin, end),)


@lru_cache(maxsize=512)
def stops(template: ChatTemplate, style: ToolStyle, ends: tuple[str, ...]) -> tuple[str, ...]:
    """The strings at which a turn with these ends is stopped.

    An end that is also a mark of the style cannot tell the end from a call; what opens the next user's turn can.
    """
    marks = style.wire.marks
    if not any(end in marks for end in ends):
        return ends
    between = _before_the_next(template)
    return tuple(between.rstrip() if between.startswith(end) and end in marks else end for end in ends)


@lru_cache(maxsize=512)
def opens_results(template: ChatTemplate, style: ToolStyle) -> tuple[str, ...]:
    """The control token that a template writes right behind calls, before their results: a turn of calls ends with it.

    As in the templates of GLM (`<|observation|>`) and Gemma 4 (`<|tool_response>`), whose models generate these. None
    where the turn ends before it, or where it is a part of the calls, as what each of several is closed with.
    """
    written = write_freely(style.wire, ONE_CALL) or ""
    one, both = (rendered(template, TurnProbe(calls), ending="results") or "" for calls in ((ONE,), (ONE, TWO)))
    closing, behind = (_between(text.partition(RESULT)[0], _last(ONE)) for text in (written, one))
    found = MARKER.match(behind, len(closing)) if closing and behind.startswith(closing) else None
    ends = [_SPACE.sub("", stop) for stop in template.capabilities.stop]
    if found is None or any(end in behind for end in ends):
        return ()
    opener, separator = found[0], _between(both.partition(RESULT)[0], _last(ONE), _last(TWO))
    is_text = any(map(CONTROL.fullmatch, ends)) and not CONTROL.fullmatch(opener)  # the model's tokens look otherwise
    of_calls = opener in separator or any(opener in mark or mark in opener for mark in style.wire.marks)
    return () if is_text or of_calls else (opener,)


def _last(call: CallProbe) -> str:
    """The last argument of a call, which is a number: it looks the same however a template escapes."""
    *_, last = call.arguments.values()
    return str(last)


def _between(text: str, first: str, second: str = "") -> str:
    """What stands behind a word, up to another or to the end, without white space, which templates write irregularly.

    Nothing where a word is not there.
    """
    before = text.rpartition(second)[0] if second else text
    return _SPACE.sub("", before.rpartition(first)[2]) if first in before else ""


@lru_cache(maxsize=256)
def promise(template: ChatTemplate, style: ToolStyle) -> tuple[str, str] | None:
    """The mark with which a template ends an answer though in the style only a call may follow it, and what follows.

    That is all up to the next user's text. None where an answer's end is told from a call.
    """
    between, written = _before_the_next(template), write_freely(style.wire, Message(CONTENT))
    mark = next((mark for mark in style.wire.marks if between.startswith(mark)), None)
    if mark is None or written is None or not written.endswith(CONTENT):
        return None
    reader = Reader(compile_format(style.wire.turn))
    end = [*reader.feed(written + mark), *reader.finish()][-1]
    return None if isinstance(end, Finish) and end.complete else (mark, between.removeprefix(mark))


def _before_the_next(template: ChatTemplate) -> str:
    """What a template writes between an answer and the next user's text; "" where it refuses the conversation."""
    shown = rendered(template, TurnProbe((), CONTENT), ending="next")
    return "" if shown is None else shown.rpartition(CONTENT)[2].partition(NEXT)[0]
