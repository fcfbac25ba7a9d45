"""How a template lays out a turn: what stands before, between and behind its reasoning, its answer and its calls."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice

from toolgram.styles.discovery.probes import (
    CONTENT,
    REASONING,
    TAG,
    CallProbe,
    TurnProbe,
    call,
    common_prefix,
    common_suffix,
    tail,
    without_end,
)
from toolgram.template.chat_template import ChatTemplate

# The keys stand in alphabetical order, in which some templates sort them.
ONE = call("zqfirst", {"zqkeya": "zqvalue", "zqkeyb": 7301}, 1)
TWO = call("zqsecond", {"zqkeyc": "zqdeep", "zqkeyd": 7302}, 2)
_THINK = ("<think>", "</think>")
_PRINTED = re.compile("[\"']thinking[\"']")  # in a list of parts that is written as Python or JSON has it
_WORD = re.compile(r"[A-Za-z]{3,}")
_CLOSING_WORDS = frozenset(("end", "close", "stop"))


@dataclass(frozen=True)
class Around:
    """The text before and behind a part of a turn."""

    before: str = ""
    behind: str = ""


@dataclass(frozen=True)
class Layout:
    """A turn behind its header: each part with the text around it, as the template renders it.

    Each part begins with `lead`, and `join` stands between two of them; both are empty where the parts simply follow one
    another. `one_call` and `two_calls` are the calls of turns that say nothing else; `closing` may close a turn.
    """

    header: str
    lead: str
    join: str
    reasoning: Around | None
    content: Around
    one_call: str
    two_calls: str | None
    closing: str


def layout(template: ChatTemplate) -> Layout | None:
    """The layout of a template's turns; None where it does not show a call, or an answer, as it was said."""
    said = _Tails.of(template)
    return None if said is None else _laid_out(said, template)


def _laid_out(said: _Tails, template: ChatTemplate) -> Layout:
    header = _header(said)
    hidden = None if said.thinks else _hidden_reasoning(said, template, len(header))
    if hidden is not None:
        header = header.removesuffix(hidden.before.rstrip())
    elif said.thinks:
        header = _before_opener(header, said)
    first = _first_of_call(said.call)
    lead = _lead(header, said.call[len(header) : first], said.before_call, len(said.question_end))
    header = header.removesuffix(lead)
    closing = _closing(said)
    behind_content = _closer(said.content.partition(CONTENT)[2].removesuffix(closing), said.before_call)
    before_content = said.content[len(header) :].partition(CONTENT)[0]
    before_calls = said.call[len(header) : first]
    join = ""
    if lead:
        join = (said.before_call or "").removesuffix(before_calls).removeprefix(behind_content)
        reasoning = said.thinks and Around(said.thinks[len(header) :].partition(REASONING)[0])
        content = Around(before_content, behind_content)
    else:
        reasoning, content = hidden, Around(before_content, behind_content)
        if said.thinks:
            reasoning, content = _apart(said, header, content)
        wraps = (reasoning.before, reasoning.behind) if reasoning else ()
        content = replace(content, before=_without(content.before, wraps))
        before_calls = _without(before_calls, (*wraps, content.before, content.behind))
        before_calls = _with_space(before_calls, said.before_call)

    def calls(text: str | None) -> str | None:
        return None if text is None else before_calls + text[_first_of_call(text) :].removesuffix(closing)

    return Layout(
        header=header,
        lead=lead,
        join=join,
        reasoning=reasoning or None,
        content=content,
        one_call=calls(said.call) or "",
        two_calls=calls(said.calls),
        closing=closing,
    )


def _header(said: _Tails) -> str:
    """What every turn begins with, or, where the template tells more, what opens it in a prompt."""
    header = reduce(common_prefix, [text for text in (said.call, said.thinks) if text], said.content)
    opens = said.prompt.removeprefix(said.question_end)
    return header if opens and header.endswith(opens) else common_prefix(header, said.prompt)


def _closing(said: _Tails) -> str:
    """What closes a turn, whether it ends with an answer or with a call; a question may be closed so too."""
    shared = common_suffix(said.content.partition(CONTENT)[2], said.call[_last_of_call(said.call) :])
    closing = common_suffix(shared, said.question_close) or shared
    return closing if TAG.search(closing) else ""


def _hidden_reasoning(said: _Tails, template: ChatTemplate, header: int) -> Around | None:
    """The reasoning of a template that leaves it out of the history.

    It opens it in the prompt, or takes it out of an answer that holds it between the usual tags.
    """
    opened = re.search(r"<([A-Za-z_:]+)>(\s*)", said.prompt[max(header - len(_THINK[0]), 0) :])
    if opened is not None:
        space = opened[2]
        return Around(opened[0], f"{space}</{opened[1]}>{space * 2}")
    opener, closer = _THINK
    inside = f"{opener}{REASONING}{closer}"
    taken = tail(template, TurnProbe(content=f"{inside}{CONTENT}"))
    return Around(opener, closer) if taken and CONTENT in taken and inside not in taken else None


def _before_opener(header: str, said: _Tails) -> str:
    """The header without the tag that opens the reasoning, where every turn seems to begin with it."""
    shown, _, rest = (said.thinks or "").partition(REASONING)
    if shown[len(header) :].strip():
        return header
    closers = (rest[: match.end()] for match in TAG.finditer(rest))
    places = (opener_of(closer, shown) for closer in islice(closers, 2))
    return next((header[:at] for at in places if at is not None), header)


def opener_of(closer: str, text: str) -> int | None:
    """Where in a text its last tag begins that has the words of a closing tag: `<think>` for `</think>`."""
    words = {word.lower() for word in _WORD.findall(closer)} - _CLOSING_WORDS
    starts = [match.start() for match in TAG.finditer(text)]
    for at in reversed(starts):
        if words and words <= {word.lower() for word in _WORD.findall(text[at:])}:
            return at
    return None


def _lead(header: str, before: str, between: str | None, least: int) -> str:
    """What every part of a turn begins with: it ends the header, and stands before a call behind content too."""
    if between is None:
        return ""
    shared = common_suffix(header + before, between)
    lead = shared.removesuffix(before) if shared.endswith(before) else ""
    lead = lead[max(len(lead) - (len(header) - least), 0) :]
    return lead if lead.strip() else ""


def _closer(behind: str, between: str | None) -> str:
    """The tag that closes the content, if there is one: it stands at the turn's end as before a call."""
    closer = behind if between is None else common_prefix(behind, between)
    return closer.strip() if TAG.search(closer) else ""


def _apart(said: _Tails, header: str, content: Around) -> tuple[Around, Around]:
    """Reasoning that is shown, and content: what stands between them, told apart."""
    shown = (said.thinks or "")[len(header) :]
    before = shown.partition(REASONING)[0]
    to_answer = said.reasoning and _between(said.reasoning, REASONING, said.reasoning.index(CONTENT))
    to_call = said.reasoning_call and _between(said.reasoning_call, REASONING, _first_of_call(said.reasoning_call))
    if to_answer and to_call and said.before_call and to_call == to_answer + said.before_call and content.behind:
        # An empty answer is written too: its own tags tell where it begins.
        at = opener_of(content.behind, to_answer)
        if at is not None:
            return Around(before, to_answer[:at]), replace(content, before=to_answer[at:])
    if to_answer and to_call:
        behind = common_prefix(to_answer, to_call)
    elif to_answer:
        own = common_suffix(to_answer, content.before)
        behind = to_answer.removesuffix(own) if own != to_answer else to_answer
    else:
        behind = to_call or ""
    if not (to_answer and to_call) or not TAG.search(behind):
        closer = TAG.search(behind)
        behind = behind[: closer.end()] if closer else behind
    return Around(before, behind), content


def _between(text: str, word: str, end: int) -> str:
    return text[text.index(word) + len(word) : end]


def _without(text: str, wraps: tuple[str, ...]) -> str:
    """The text without these at its beginning, one after the other, as far as they stand there; space is lenient."""
    for wrap in wraps:
        words = wrap.strip()
        rest = text.lstrip()
        if words and rest.startswith(words):
            text = rest.removeprefix(words).removeprefix(wrap[len(wrap.rstrip()) :])
    return text


def _with_space(before: str, between: str | None) -> str:
    """What stands before the calls, with the space that it has behind content as behind nothing."""
    words = before.lstrip()
    space = before[: len(before) - len(words)]
    if between is None or not between.endswith(words):
        return before
    other = between.removesuffix(words)
    return common_suffix(space, other[len(other.rstrip()) :]) + words


def _first_of_call(text: str) -> int:
    """Where something of the first call stands first: its name, its id, or a key or value."""
    return min(at for word in (ONE.name, ONE.id, *ONE.arguments) if (at := text.find(word)) >= 0)


def _last_of_call(text: str) -> int:
    """Where the first call has been said."""
    return max(text.rindex(word) + len(word) for word in (ONE.name, *_words(ONE)))


@dataclass(frozen=True)
class _Tails:
    """What is rendered behind the question: turns with content, reasoning, a call, and some of these together."""

    prompt: str
    content: str
    call: str
    content_call: str | None
    reasoning: str | None
    reasoning_call: str | None
    reasoning_content_call: str | None
    calls: str | None
    question_end: str
    question_close: str

    @property
    def thinks(self) -> str | None:
        """A turn that shows its reasoning."""
        return self.reasoning or self.reasoning_call or self.reasoning_content_call

    @property
    def before_call(self) -> str | None:
        """What stands between an answer and a call behind it."""
        if self.content_call is None:
            return None
        at, first = self.content_call.index(CONTENT), _first_of_call(self.content_call)
        return self.content_call[at + len(CONTENT) : first] if at < first else None

    @staticmethod
    def of(template: ChatTemplate) -> _Tails | None:
        def draw(words: tuple[str, ...], turn: TurnProbe) -> str | None:
            text = tail(template, turn)
            if text is None or any(text.count(word) != 1 for word in words):
                return None
            last = max(text.index(word) + len(word) for word in words)
            return without_end(template, text, last)

        prompt, question = tail(template, None, prompts=True), tail(template, None) or ""
        turns = (TurnProbe(content=CONTENT), TurnProbe((ONE,)), TurnProbe((ONE,), CONTENT), TurnProbe((ONE, TWO)))
        content, alone, content_call, calls = (draw(_said_in(turn), turn) for turn in turns)
        if prompt is None or content is None or alone is None:
            return None
        thinking = (TurnProbe((), CONTENT, REASONING), TurnProbe((ONE,), "", REASONING), TurnProbe((ONE,), CONTENT, REASONING))
        thoughts = [draw(_said_in(turn), turn) for turn in thinking]
        if not any(thoughts):
            parts = [draw(_said_in(turn), replace(turn, in_parts=True)) for turn in thinking]
            thoughts = [text if text and not _PRINTED.search(text) else None for text in parts]
        return _Tails(
            prompt=prompt,
            content=content,
            call=alone,
            content_call=content_call,
            reasoning=thoughts[0],
            reasoning_call=thoughts[1],
            reasoning_content_call=thoughts[2],
            calls=calls,
            question_end=common_prefix(prompt, question),
            question_close=without_end(template, question, 0),
        )


def _said_in(turn: TurnProbe) -> tuple[str, ...]:
    """All that a turn says."""
    words = [word for probe in turn.calls for word in (probe.name, *_words(probe))]
    return tuple(word for word in (turn.content, turn.reasoning, *words) if word)


def _words(probe: CallProbe) -> tuple[str, ...]:
    """What of the arguments is looked for in a rendering."""
    return tuple(str(value) for value in probe.arguments.values())
