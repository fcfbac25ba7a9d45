"""Ways through a gap: between free text and bodies several parts of a format may come next, all are followed at once.

Each way is a `Thread`; one character at a time they go on, end, or are chosen, since a body or free text begins.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from toolgram.wire.instructions import (
    Action,
    ActionAt,
    AheadAt,
    ArgumentsAt,
    Exit,
    ForkAt,
    FreeAt,
    JsonAt,
    MarkAt,
    NameAt,
    StopAt,
    TextAt,
)
from toolgram.wire.program import Program

MAX_NAME = 256
_IN_ID = re.compile(r"[\w.:#+/=-]", re.ASCII)
_NAME = re.compile(r"[\w.:/-]+")
_WORD = re.compile(r"[\w-]+", re.ASCII)


class Thread(NamedTuple):
    """One way through a gap: the instruction it is at, how much of it has been read, what it did on its way."""

    at: int
    actions: tuple[Action, ...] = ()
    offset: int = 0
    captured: str = ""


def ways(program: Program, at: int, actions: tuple[Action, ...] = ()) -> list[Thread]:
    """The ways on from a place."""
    return [Thread(place, actions + more) for place, more in program.closure(at)]


def ways_past(program: Program, mark: str, exits: Iterable[Exit]) -> list[Thread]:
    """The ways on behind a mark, best first: amid the longer ones that begin with it, and past it."""
    own = [exit_ for exit_ in exits if not exit_.ahead]
    longer = [Thread(exit_.at, exit_.actions, len(mark)) for exit_ in own if exit_.text != mark]
    past = (ways(program, following(program, exit_.at), exit_.actions) for exit_ in own if exit_.text == mark)
    return [*longer, *chain.from_iterable(past)]


def following(program: Program, at: int) -> int:
    """The place after an instruction that one thing follows."""
    instruction = program.code[at]
    if isinstance(instruction, StopAt | ForkAt):
        raise TypeError("nothing single comes next")
    return instruction.next


def text_due(program: Program, thread: Thread, buffer: str, i: int) -> str:
    """The prescribed text that a way wants and that stands in the buffer, to the letter; "" if it does not."""
    match program.code[thread.at]:
        case MarkAt(text) | TextAt(text):
            due = text[thread.offset : thread.offset + len(buffer) - i]
            return due if buffer.startswith(due, i) else ""
        case _:
            return ""


def word_due(program: Program, threads: Sequence[Thread], buffer: str, i: int) -> str:
    """The rest of a word in the buffer, where all ways left are amid a name that goes on until the word ends."""
    if not all(thread.captured and _is_in_name(program, thread) for thread in threads):
        return ""
    longest = max(len(thread.captured) for thread in threads)
    word = _WORD.match(buffer, i, i + MAX_NAME - longest)
    return word[0] if word else ""


def awaits_name(program: Program, threads: Iterable[Thread]) -> bool:
    """Whether a word that comes next, whatever its letters, is a name on each way that it leaves open, or its end."""
    left = [way for way in threads if way.offset or way.captured or program.may_begin_word(way.at)]
    return all(_is_in_name(program, way) for way in left) and not all(way.captured for way in left)


def _is_in_name(program: Program, thread: Thread) -> bool:
    """Whether a way is before or amid a name that goes on as long as a word does."""
    match program.code[thread.at]:
        case NameAt("name") as name:
            return program.ends_words(name.next)
        case _:
            return False


def stepped(
    program: Program, threads: Iterable[Thread], char: str, tools: Iterable[str], *, after_calls: bool
) -> tuple[Thread | None, list[Thread]]:
    """All ways on by a character: the one that it chooses, if it does, and those that are alive.

    `tools` are the names of those that are offered; `after_calls` says that some were called.
    """
    alive: list[Thread] = []
    chosen: Thread | None = None
    for thread in threads:
        found = step(program, thread, char, alive)
        chosen = found if chosen is None else chosen
        if chosen is not None and not _is_text_beside_calls(program, chosen, char):
            break
    if not (char.isalnum() or char in "_.:/-"):
        alive = [way for way in alive if not (way.captured and _strays(program, way, char, tools, after_calls))]
    return chosen, alive


def after_text(program: Program, thread: Thread, taken: int) -> list[Thread]:
    """The ways on when so much of the prescribed text has been taken."""
    match program.code[thread.at]:
        case MarkAt(text, next_) | TextAt(text, next_) if thread.offset + taken == len(text):
            return ways(program, next_, thread.actions)
        case _:
            return [thread._replace(offset=thread.offset + taken)]


def first_exits(program: Program, threads: Iterable[Thread]) -> tuple[Exit, ...]:
    """The marks that these ways come to first."""
    return tuple(
        replace(exit_, actions=thread.actions + exit_.actions)
        for thread in threads
        if not thread.offset
        for exit_ in program.exits(thread.at)
    )


def step(program: Program, thread: Thread, char: str, alive: list[Thread]) -> Thread | None:
    """Take one character; a thread that is at a body or free text that begins with it is the chosen one."""
    match program.code[thread.at]:
        case MarkAt(text, next_):
            if text[thread.offset] == char:
                if thread.offset + 1 == len(text):
                    alive.extend(ways(program, next_, thread.actions))
                else:
                    alive.append(thread._replace(offset=thread.offset + 1))
            elif not thread.offset and char.isspace():
                alive.append(thread)
        case TextAt(text, next_):
            return _step_text(program, thread, text, next_, char, alive)
        case NameAt() as name:
            return _step_name(program, thread, name, char, alive)
        case ArgumentsAt() | JsonAt() as body:
            if char in body.first:
                return thread
            if char.isspace():
                alive.append(thread)
            elif isinstance(body, ArgumentsAt) and body.encoding.may_be_empty:
                return _step_all(program, ways(program, body.next, thread.actions), char, alive)
        case FreeAt():
            return thread
        case StopAt():
            if char.isspace():
                alive.append(thread)
        case AheadAt():
            pass  # only free text ends so
        case ActionAt() | ForkAt():
            raise TypeError("not a place to wait at")
    return None


def _step_text(
    program: Program, thread: Thread, text: str, next_: int, char: str, alive: list[Thread]
) -> Thread | None:
    """Prescribed text; white space in it may be missing, and more of it may stand before its words."""
    offset = thread.offset
    while offset < len(text) and text[offset] != char and text[offset].isspace():
        offset += 1
    if offset == len(text):
        return _step_all(program, ways(program, next_, thread.actions), char, alive)
    if text[offset] == char:
        if offset + 1 == len(text):
            alive.extend(ways(program, next_, thread.actions))
        else:
            alive.append(thread._replace(offset=offset + 1))
    elif char.isspace():
        alive.append(thread._replace(offset=offset))
    return None


def _step_name(program: Program, thread: Thread, name: NameAt, char: str, alive: list[Thread]) -> Thread | None:
    """A name or id: it may end here, if what follows begins so, or go on; an id, or a name said again, is one word.

    No mark stands in a name.
    """
    if thread.captured:
        said = name.form.replace("{id}", thread.captured) if name.action == "id" else thread.captured
        done = thread.actions if name.action == "closing" else (*thread.actions, (name.action, said))
        chosen = _step_all(program, ways(program, name.next, done), char, alive)
        if chosen is not None:
            return chosen
    if (char == "\n" and thread.captured) or len(thread.captured) == MAX_NAME:
        return None
    word = {"id": _IN_ID, "again": _NAME, "closing": _NAME}.get(name.action)
    if word is not None and not (char.isspace() or word.match(char)):
        return None
    if thread.captured or not char.isspace():
        thread = thread._replace(captured=thread.captured + char)
    if not thread.captured.endswith(program.marks):
        alive.append(thread)
    return None


def _strays(program: Program, way: Thread, char: str, tools: Iterable[str], after_calls: bool) -> bool:
    """Whether what stands in the place of a name is none, since this character, of no word, has come to it.

    A name is a word, or begins as that of one of the tools. Where calls were made, one of a tool that there is not may
    have spaces in it.
    """
    match program.code[way.at]:
        case NameAt("name") if way.captured.endswith(char) and not (after_calls and char == " "):
            return not any(tool.startswith(way.captured) for tool in tools)
        case _:
            return False


def _step_all(program: Program, threads: Iterable[Thread], char: str, alive: list[Thread]) -> Thread | None:
    for thread in threads:
        chosen = step(program, thread, char, alive)
        if chosen is not None:
            return chosen
    return None


def ended(program: Program, threads: Iterable[Thread]) -> Thread | None:
    """The way on which the turn may be over here, without white space that is still due; None where there is none."""
    for thread in threads:
        match program.code[thread.at]:
            case StopAt():
                return thread
            case FreeAt() as text if _stops(program, text.next):
                return thread
            case TextAt(text, next_) if text[thread.offset :].isspace():
                if _may_stop(program, next_):
                    return thread
            case _:
                pass
    return None


def without_arguments(program: Program, threads: Iterable[Thread]) -> tuple[Action, ...] | None:
    """What a way did that has come to a call's arguments, behind which the turn may be over; None where none has."""
    for thread in threads:
        instruction = program.code[thread.at]
        if isinstance(instruction, ArgumentsAt):
            for place, more in program.closure(instruction.next):
                if isinstance(program.code[place], StopAt):
                    return thread.actions + more
    return None


def _may_stop(program: Program, at: int) -> bool:
    """Whether a turn may end at a place, where free text may be empty."""
    places = [program.code[place] for place, _ in program.closure(at)]
    return any(isinstance(each, StopAt) or (isinstance(each, FreeAt) and _stops(program, each.next)) for each in places)


def _stops(program: Program, at: int) -> bool:
    return any(isinstance(program.code[place], StopAt) for place, _ in program.closure(at))


def calls_any(way: Thread, tools: Collection[str]) -> bool:
    """Whether a way has come to no name, or to that of a tool: what else looks like a call is the answer."""
    return all(_is_offered(text, tools) for action, text in way.actions if action == "name")


def shared_actions(threads: Sequence[Thread]) -> tuple[Action, ...]:
    """What all ways did, up to where the first of them differs."""
    first = threads[0].actions
    shared = 0
    while shared < len(first) and all(t.actions[: shared + 1] == first[: shared + 1] for t in threads):
        shared += 1
    return first[:shared]


def to_tell(threads: Sequence[Thread]) -> tuple[Action, ...]:
    """What may be told of what all ways did: but for a call that has neither begun its arguments nor ended, since that
    may be text that speaks of calls."""
    shared = shared_actions(threads)
    actions = [action for action, _ in shared]
    if "name" not in actions or "end" in actions[(named := len(actions) - 1 - actions[::-1].index("name")) :]:
        return shared
    return shared[: max((at for at in range(named) if actions[at] == "begin"), default=named)]


def _is_offered(name: str, tools: Collection[str]) -> bool:
    return name in tools if tools else bool(_NAME.fullmatch(name))


def free_text_way(program: Program, threads: Sequence[Thread]) -> Thread | None:
    """The way on which free text begins here, if all that stands before it are marks: it ends at them.

    None where a call may begin that no mark opens, which the first character tells.
    """
    for thread in threads:
        match program.code[thread.at]:
            case FreeAt():
                begins = (not each.offset and program.first_of_call(program.code[each.at]) for each in threads)
                return None if any(begins) else thread
            case MarkAt() if not thread.offset:
                continue
            case _:
                return None
    return None


class TextInstead(NamedTuple):
    """The way on which what looks like a call is text, and where in what was taken this begins.

    With `amid_mark` it looks like a call up to where a mark ends: there it is one.
    """

    way: Thread
    at: int
    amid_mark: bool


def _is_amid_mark(program: Program, way: Thread) -> bool:
    return way.offset > 0 and isinstance(program.code[way.at], MarkAt)


def past_marks(program: Program, threads: Iterable[Thread], instead: TextInstead) -> list[Thread]:
    """The ways that have come past the mark up to which their text could have been free; none where that is open."""
    return [way for way in threads if instead.amid_mark and not _is_amid_mark(program, way)]


def _is_text_beside_calls(program: Program, chosen: Thread, char: str) -> bool:
    """Whether free text is chosen where a call that no mark opens may begin with this character as well."""
    return isinstance(program.code[chosen.at], FreeAt) and char in program.first_characters


def text_instead(
    program: Program, chosen: Thread, char: str, alive: Collection[Thread], here: Iterable[str]
) -> TextInstead | None:
    """Free text that is also what calls begin with, without a mark or amid one: they come first. None where it is not.

    `here` is what was taken in the gap.
    """
    amid_mark = any(_is_amid_mark(program, way) for way in alive)
    may_be_call = bool(alive) and (amid_mark or char in program.first_characters)
    is_free = isinstance(program.code[chosen.at], FreeAt)
    return TextInstead(chosen, sum(map(len, here)), amid_mark) if is_free and may_be_call else None


def answer_instead(program: Program, threads: Iterable[Thread], chosen: Thread) -> Thread | None:
    """The way on which the JSON that begins is the answer, if there is one: the call only wins if it is one."""
    return next((way for way in threads if way != chosen and isinstance(program.code[way.at], FreeAt)), None)


def is_no_name(program: Program, threads: Iterable[Thread], text: str) -> bool:
    """Whether what stands in the place of a name is all that there is, or goes on over marks: then it is text."""
    names = [way.captured for way in threads]
    return all(name.strip() == text.strip() or any(mark in name for mark in program.marks) for name in names)


def awaited(program: Program, threads: Iterable[Thread]) -> str:
    """What these ways wait for, in words."""
    names: dict[str, None] = {}
    for thread in threads:
        instruction = program.code[thread.at]
        if isinstance(instruction, TextAt) and instruction.text.isspace():
            names[awaited(program, ways(program, instruction.next))] = None
            continue
        match instruction:
            case MarkAt(text) | TextAt(text):
                names[repr(text)] = None
            case NameAt():
                names["a tool's name"] = None
            case ArgumentsAt():
                names["arguments"] = None
            case JsonAt():
                names["a JSON object"] = None
            case _:
                names["the end"] = None
    return " or ".join(names) or "a tool call"
