"""Why a style fits a chat template or does not: turn by turn, what the template writes and where the style loses it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from toolgram.conversation.events import ContentDelta, Event, ReasoningDelta, ToolCallEnd, Unreadable
from toolgram.conversation.message import Message, ToolCall
from toolgram.styles.base import ToolStyle
from toolgram.styles.choose import choose_style
from toolgram.styles.detect import (
    MOST_READ,
    announcement,
    asked_for,
    beginnings,
    fit,
    missing,
    not_asked_for,
    same_arguments,
    says,
)
from toolgram.styles.probes import CONTENT, ONE, REASONING, RESULT, TWO
from toolgram.styles.turn_edges import ShownTurn, shown_turn
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.program import Program
from toolgram.wire.reader import Reader
from toolgram.wire.writer import write_freely

_CALL = ToolCall(ONE.name, ONE.text, ONE.id)
_OTHER = ToolCall(ONE.name, ONE.text.replace("zqvalue", "zqother"), TWO.id)
_MORE = "more follows the calls"
_A_CALL, _A_RESULT = "a call", "a call and its result"
_TURNS = {
    _A_CALL: Message(tool_calls=(_CALL,)),
    "two calls": Message(tool_calls=(_CALL, _OTHER)),
    "an answer and a call": Message(CONTENT, tool_calls=(_CALL,)),
    _A_RESULT: Message(tool_calls=(_CALL,)),
    "reasoning and a call": Message(reasoning=REASONING, tool_calls=(_CALL,)),
    "an answer": Message(CONTENT),
    "reasoning and an answer": Message(CONTENT, REASONING),
}


@dataclass(frozen=True)
class Trial:
    """A turn as the template writes it (`text`), and what the style makes of that.

    `missing` says what the template leaves out of the turn; then nothing was tried. `lost_at` is the offset in the text
    at which the style loses what was said, None where it reads it back, and `trouble` says how. `read` is what the
    style makes of the whole text. `written` is the turn as the style writes it, None where it cannot.
    """

    turn: str
    missing: str = ""
    text: str = ""
    lost_at: int | None = None
    trouble: str = ""
    read: Message | None = None
    written: str | None = None

    @property
    def place(self) -> tuple[int, int]:
        """The line and the column at which it is lost, counted from 1."""
        before = self.text[: self.lost_at]
        return before.count("\n") + 1, len(before) - before.rfind("\n")


@dataclass(frozen=True)
class FitReport:
    """Whether a style fits a template: a verdict in a sentence, and the trials that show it.

    `announcement` says how the model is told about the tools; `chosen` is the style that the template gets, and `why`.
    """

    style: ToolStyle
    verdict: str
    announcement: str
    trials: tuple[Trial, ...]
    chosen: ToolStyle
    why: str


def explain_fit(template: ChatTemplate, style: ToolStyle) -> FitReport:
    """Tests a style as `choose_style` does, turn by turn."""
    chosen, why = choose_style(template)
    trials = tuple(_trials(template, style))
    verdict = _verdict(template, style, chosen, trials[0])
    return FitReport(style, verdict, _announced(template, style), trials, chosen, why)


def _trials(template: ChatTemplate, style: ToolStyle) -> Iterator[Trial]:
    program, opened = style.program(ONE.name), beginnings(template, style)
    for turn, said in _TURNS.items():
        shown = shown_turn(template, said, with_result=turn == _A_RESULT)
        if left_out := _left_out(shown, said, result=turn == _A_RESULT):
            yield Trial(turn, left_out)
            continue
        if turn == _A_RESULT:
            shown = _before_result(shown)
        trial = _furthest(program, opened, shown, said, goes_on=turn == _A_RESULT)
        yield replace(trial, turn=turn, written=write_freely(style.wire, said))


def _left_out(shown: ShownTurn, said: Message, *, result: bool) -> str:
    """What the template leaves out of a turn, in words; "" if it shows all of it."""
    if not shown.spans:
        return "the template refuses such a turn"
    words = {
        "the call": [call.name for call in said.tool_calls][:1],
        "the second call": ["zqother"] if len(said.tool_calls) > 1 else [],
        "the content": [said.content or ""],
        "the reasoning": [said.reasoning or ""],
        "the result": [RESULT] if result else [],
    }
    # The tool's name stands before the question as well, if the template shows tools.
    turn = shown.rendered[min(begin for begin, _ in shown.spans) :]
    missing = next((what for what, texts in words.items() if any(text not in turn for text in texts)), None)
    return "" if missing is None else f"the template leaves out {missing}"


def _before_result(shown: ShownTurn) -> ShownTurn:
    """The turn without the result that follows it."""
    ends = [(begin, shown.rendered.find(RESULT, begin), end) for begin, end in shown.spans]
    return replace(shown, spans=tuple((begin, end if at < 0 else min(at, end)) for begin, at, end in ends))


def _furthest(program: Program, opened: tuple[str, ...], shown: ShownTurn, said: Message, *, goes_on: bool) -> Trial:
    """The trial in which the style gets furthest, of all the places where the turn may begin and end.

    If the text `goes_on` after the turn, more may follow the calls.
    """
    tried: list[tuple[int, Trial]] = []
    for begin, end in shown.spans:
        text = shown.rendered[begin:end]
        for each in opened:
            trial = _tried(program, each, text, said)
            if trial.lost_at is None or (goes_on and trial.trouble == _MORE):
                return replace(trial, lost_at=None, trouble="")
            tried.append((begin + trial.lost_at, trial))
    return max(tried, key=lambda each: each[0])[1]


def _tried(program: Program, opened: str, text: str, said: Message) -> Trial:
    """One reading, character by character, until what was read can no longer become what was said."""
    whole = _read(Reader(program, opened=opened), text)
    trial = Trial("", text=text, read=Message.from_events(whole))
    if says(program, opened, text, said):
        return trial
    reader = Reader(program, opened=opened)
    events: list[Event] = []
    after_calls = len(text)
    for at, char in enumerate(text):
        events += (found := reader.feed(char))
        after_calls = at + 1 if any(isinstance(event, ToolCallEnd) for event in found) else after_calls
        if found and (trouble := _trouble(events, said)):
            held = _held_back(found, text, at)
            # What was held back might have become a marker; if it nearly did, that is the place to look at.
            near = next((mark for mark in program.marks if mark.startswith(held) and 2 * len(held) > len(mark)), "")
            if near:
                return replace(trial, lost_at=at, trouble=f"{trouble}, since it is not {near!r}")
            return replace(trial, lost_at=at - len(held), trouble=trouble)
    trouble = _trouble_at_end(whole, said)
    return replace(trial, lost_at=after_calls if trouble == _MORE else len(text), trouble=trouble)


def _read(reader: Reader, text: str) -> list[Event]:
    return [*reader.feed(text), *reader.finish()]


def _held_back(found: list[Event], text: str, at: int) -> str:
    """The text that was held back until this character showed that it is free text."""
    taken = found[-1].text if isinstance(found[-1], ContentDelta | ReasoningDelta) else ""
    return text[max(0, at + 1 - len(taken)) : at] if taken else ""


def _trouble(events: list[Event], said: Message) -> str:
    """Why a turn that was read as far as these events can no longer become what was said; "" if it can."""
    ends = [at for at, event in enumerate(events) if isinstance(event, ToolCallEnd)]
    if said.tool_calls and len(ends) >= len(said.tool_calls):
        events = events[: ends[len(said.tool_calls) - 1] + 1]  # what follows the calls is judged as a whole
    for event in events:
        if isinstance(event, Unreadable):
            wanted = event.reason.removeprefix("expected ") or "the end of the turn"
            return f"{wanted} was expected" if wanted != "a tool call" else "this makes no call of a tool"
    read = Message.from_events(events)
    for field, one, other in (("content", read.content, said.content), ("reasoning", read.reasoning, said.reasoning)):
        if not (other or "").startswith((one or "").strip()):
            return f"this is read as {field}"
    for call, meant in zip_longest(read.tool_calls, said.tool_calls):
        if call is not None and (meant is None or call.name != meant.name):
            return f"this is read as a call of {call.name!r}"
        if call is not None and not (call.incomplete or same_arguments(call.arguments, meant.arguments)):
            return f"the call ends here with other arguments, {call.arguments}"
    return ""


def _trouble_at_end(events: list[Event], said: Message) -> str:
    """What is wrong with a turn that was read to its end."""
    if trouble := _trouble(events, said):
        return trouble
    ends = [at for at, event in enumerate(events) if isinstance(event, ToolCallEnd)]
    read = Message.from_events(events[: ends[-1] + 1] if ends else events)
    if any(call.incomplete for call in read.tool_calls):
        return "the text ends, but the call does not"
    if len(read.tool_calls) < len(said.tool_calls):
        return "the text ends, and a call is missing" if read.tool_calls else "the text ends, and no call was read"
    for field, one, other in (("content", read.content, said.content), ("reasoning", read.reasoning, said.reasoning)):
        if (one or "").strip() != (other or ""):
            return f"the turn ends without its {field}"
    return _MORE


def _verdict(template: ChatTemplate, style: ToolStyle, chosen: ToolStyle, call: Trial) -> str:
    """In a sentence: whether the style fits, and whether it is chosen."""
    if style.is_generic:
        taken = "and is the style chosen" if style is chosen else f"but {chosen.name} is chosen"
        return f"{style.name} goes with any template, since it announces the tools itself, {taken}"
    if style.wire == chosen.wire:
        return f"{style.name} fits, and is the style chosen"
    if fit(template, style):
        return f"{style.name} fits, but {chosen.name} is chosen: {_better(template, style, chosen)}"
    return f"{style.name} does not fit: {_misfit(template, style, call)}"


def _better(template: ChatTemplate, style: ToolStyle, chosen: ToolStyle) -> str:
    """Why the chosen style is preferred to another one that fits."""
    ours, theirs = fit(template, style), fit(template, chosen)
    if ours == theirs:
        return "it fits as well, and comes first in the list"
    if theirs > MOST_READ or not template.capabilities.supports_tool_calls:
        return "the template asks the model for more of what it writes"
    if (theirs - 1) // 3 > (ours - 1) // 3:
        return "it reads more of the template's turns back"
    return "it also writes a call as the template does"


def _misfit(template: ChatTemplate, style: ToolStyle, call: Trial) -> str:
    """The first thing that is wrong."""
    if call.missing:
        lacking = not_asked_for(announcement(template), style)
        asked = f", nor does it ask the model for {_quoted(lacking[0])}" if lacking else " that could be read"
        return f"the template writes no calls{asked}"
    if call.lost_at is None:
        return f"its calls need {_quoted(missing(template, style))}, which the template does not write"
    line, column = call.place
    return f"it loses a call at line {line}, column {column}: {call.trouble}"


def _announced(template: ChatTemplate, style: ToolStyle) -> str:
    """How the model is told about the tools."""
    if style.is_generic:
        return f"{style.name} lists them, and says how to call them"
    if not template.capabilities.supports_tools:
        return "the template does not show them: they are listed in the system message"
    lacking = not_asked_for(announcement(template), style)
    if lacking and not fit(template, style):
        return f"the template shows them, but does not mention {_quoted(lacking[0])}, which {style.name} writes"
    asks = asked_for(announcement(template), style)
    return "the template shows them" + (f", and asks for calls as {style.name} writes them" if asks else "")


def _quoted(spellings: tuple[str, ...]) -> str:
    return " or ".join(map(repr, spellings))
