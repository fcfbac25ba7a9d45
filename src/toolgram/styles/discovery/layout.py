"""How a template lays out a turn: what stands before, between and after its reasoning, its answer and its calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from itertools import islice

from toolgram.styles.discovery.renderings import Tails, first_of_call, last_of_call
from toolgram.styles.probes import CONTENT, REASONING, TAG, Scene, TurnProbe, common_prefix, common_suffix, tail

_THINK = ("<think>", "</think>")
_WORD = re.compile(r"[A-Za-z]{3,}")
_CLOSING_WORDS = frozenset(("end", "close", "stop"))


@dataclass(frozen=True)
class Around:
    """The text before and after a part of a turn."""

    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Layout:
    """A turn after its header: each part with the text around it, as the template renders it.

    `opener` is the header without what ends the question.
    Each part begins with `lead`, and `join` stands between two of them; both are empty if the parts simply follow one
    another. `one_call` and `two_calls` are the calls of turns that say nothing else; `closing` may close a turn.
    Without `reasons` the template shows no reasoning, which is then placed where most models have it. With
    `closes_no_reasoning` a turn without reasoning begins with the tag that closes reasoning. `calls_follow_answers`:
    a turn may have both, with white space between that calls alone have not: `line_break`.
    """

    header: str
    reasoning: Around | None
    content: Around
    one_call: str
    two_calls: str | None
    closing: str
    lead: str = ""
    join: str = ""
    closes_no_reasoning: bool = False
    calls_follow_answers: bool = True
    reasons: bool = False
    opener: str = ""
    line_break: str = ""

    @property
    def lead_of_marks(self) -> str:
        """The `lead` after which other parts need marks of their own, since an answer begins there without any."""
        return self.lead if not self.content.before.removeprefix(self.lead).strip() else ""


def layout(scene: Scene) -> Layout | None:
    """The layout of a template's turns; None if it does not show a call, or an answer, as it was given."""
    said = Tails.of(scene)
    if said is None:
        return None
    header = _header(said)
    hidden = None if said.thinks else _hidden_reasoning(said, scene, header)
    if hidden is not None:
        opener = hidden.before.rstrip()
        header = header.rstrip().removesuffix(opener) if header.rstrip().endswith(opener) else header
    elif said.thinks is not None:
        header = _before_opener(header, said.thinks)
    lead = _lead(header, said)
    return _chained(said, header.removesuffix(lead), lead) if lead else _in_a_row(said, header, hidden)


def _chained(said: Tails, header: str, lead: str) -> Layout:
    """Parts that begin with the same words and differ in what follows them."""
    before_calls = said.call[len(header) : first_of_call(said.call)]
    closing = _closing(said)
    content = Around(said.content[len(header) :].partition(CONTENT)[0], _content_closer(said, closing))
    shown = None if said.thinks is None else said.thinks[len(header) :].partition(REASONING)[0]
    between = said.to_call or said.thought_to_call or ""
    join = between.removesuffix(before_calls).removeprefix(content.after)
    one, two = _calls(said, before_calls, closing)
    reasoning = None if shown is None else Around(shown)
    return Layout(header, reasoning, content, one, two, closing, lead, join, reasons=shown is not None)


def _in_a_row(said: Tails, header: str, hidden: Around | None) -> Layout:
    """Reasoning, an answer and calls, one after another."""
    closing = _closing(said)
    before_content = said.content[len(header) :].partition(CONTENT)[0]
    content = Around(before_content, _content_closer(said, closing))
    reasoning = hidden or Around(*_THINK)
    reasons = hidden is not None or said.thinks is not None
    if said.thinks is not None:
        before = said.thinks[len(header) :].partition(REASONING)[0]
        after, opener = _between_reasoning_and_answer(said, content)
        reasoning, content = Around(before, after), Around(opener, content.after)
    wraps = (reasoning.before, reasoning.after)
    content = Around(_without(content.before, wraps), content.after)
    before_calls = said.call[len(header) : first_of_call(said.call)]
    before_calls = _without(before_calls, (*wraps, content.before, content.after))
    spaced = _with_space(before_calls, said.to_call)
    one, two = _calls(said, spaced, closing)
    opened = said.prompt[len(header) :].strip()
    closes = not opened and _closes_first(reasoning, before_content)
    follow = said.to_call is not None
    return Layout(
        header,
        reasoning,
        content,
        one,
        two,
        closing,
        closes_no_reasoning=closes,
        calls_follow_answers=follow,
        reasons=reasons,
        opener=header.removeprefix(said.question_end),
        line_break="" if content.after else _line_break(spaced, said.to_call),
    )


def _calls(said: Tails, before: str, closing: str) -> tuple[str, str | None]:
    """The calls of a turn with one and of a turn with two, after the text `before` the first of them."""
    one = before + said.call[first_of_call(said.call) :].removesuffix(closing)
    if said.calls is None:
        return one, None
    return one, before + said.calls[first_of_call(said.calls) :].removesuffix(closing)


# The beginning and the end of a turn


def _header(said: Tails) -> str:
    """What every turn begins with, or what opens it in a prompt, if that is longer."""
    header = reduce(common_prefix, [text for text in (said.call, said.thinks) if text], said.content)
    opens = said.prompt.removeprefix(said.question_end)
    return header if opens and header.endswith(opens) else common_prefix(header, said.prompt)


def _before_opener(header: str, thinks: str) -> str:
    """The header without the tag that opens the reasoning, where every turn seems to begin with it."""
    shown, _, rest = thinks.partition(REASONING)
    if shown[len(header) :].strip():
        return header
    closers = (rest[: match.end()] for match in TAG.finditer(rest))
    places = (_opener_of(closer, shown) for closer in islice(closers, 2))
    return next((header[:at] for at in places if at is not None), header)


def _lead(header: str, said: Tails) -> str:
    """What every part of a turn begins with: the end of the header, and what precedes a call that follows content."""
    before = said.call[len(header) : first_of_call(said.call)]
    shared = common_suffix(header + before, said.to_call or said.thought_to_call or "")
    lead = shared.removesuffix(before) if shared.endswith(before) else ""
    most = max(len(header) - len(said.question_end), 0)
    lead = lead[max(len(lead) - most, 0) :]
    return lead if lead.strip() else ""


def _closing(said: Tails) -> str:
    """What closes a turn, whether it ends with an answer or with a call; it may close a question as well."""
    shared = common_suffix(said.after_content, said.call[last_of_call(said.call) :])
    if TAG.search(shared) and (said.to_call or "").startswith(shared):
        return ""  # it closes each part of a turn
    alike = common_suffix(shared, said.question_close)
    return next((closing for closing in (alike, shared) if TAG.search(closing)), "")


# Reasoning and answers


def _hidden_reasoning(said: Tails, scene: Scene, header: str) -> Around | None:
    """The reasoning of a template that leaves it out of the history.

    Such a template opens it in the prompt, or removes it from an answer that has it between the usual tags.
    """
    opened = re.search(r"<([A-Za-z_:]+)>(\s*)\Z", said.prompt)
    if opened is None or f"</{opened[1]}>" not in said.content:
        opened = re.search(r"<([A-Za-z_:]+)>(\s*)", said.prompt[max(len(header) - len(_THINK[0]), 0) :])
    if opened is not None:
        space = opened[2]
        return Around(opened[0], f"{space}</{opened[1]}>{space * 2}")
    opener, closer = _THINK
    inside = f"{opener}{REASONING}{closer}"
    taken = tail(scene, TurnProbe((), f"{inside}{CONTENT}"))
    return Around(opener, closer) if taken and CONTENT in taken and inside not in taken else None


def _opener_of(closer: str, text: str) -> int | None:
    """Where the last tag begins that corresponds to a closing tag: `<think>` to `</think>`."""
    words = {word.lower() for word in _WORD.findall(closer)} - _CLOSING_WORDS
    starts = [match.start() for match in TAG.finditer(text)]
    for at in reversed(starts):
        if words and words <= {word.lower() for word in _WORD.findall(text[at:])}:
            return at
    return None


def _content_closer(said: Tails, closing: str) -> str:
    """The tag that closes the content, if there is one: it occurs at the end of the turn and before a call."""
    after = said.after_content.removesuffix(closing)
    closer = after if said.to_call is None else common_prefix(after, said.to_call)
    return closer.strip() if TAG.search(closer) else ""


def _between_reasoning_and_answer(said: Tails, content: Around) -> tuple[str, str]:
    """What closes the reasoning, and what opens the content: found here if possible, else unchanged."""
    to_answer, to_call = said.thought_to_answer, said.thought_to_call
    if to_answer and to_call:
        if said.to_call and to_call == to_answer + said.to_call and content.after:
            # An empty answer is written as well: its tags show where it begins.
            at = _opener_of(content.after, to_answer)
            if at is not None:
                return to_answer[:at], to_answer[at:]
        own = to_answer.removesuffix(content.before)
        if content.before.strip() and own != to_answer and TAG.search(own) and to_call.startswith(own):
            return own, content.before
        after = common_prefix(to_answer, to_call)
        return after if TAG.search(after) else _through_tag(after), content.before
    if to_answer:
        own = common_suffix(to_answer, content.before)
        return _through_tag(to_answer.removesuffix(own) if own != to_answer else to_answer), content.before
    return _through_tag(to_call or ""), content.before


def _through_tag(text: str) -> str:
    """The text up to the end of its first tag, and the space after that."""
    tag = TAG.search(text)
    if tag is None:
        return text
    rest = text[tag.end() :]
    return text[: len(text) - len(rest.lstrip())]


def _closes_first(reasoning: Around, before: str) -> bool:
    """Whether content without reasoning follows what closes the reasoning, though nothing opened it."""
    opener, closer = reasoning.before.strip(), reasoning.after.strip()
    return bool(opener and closer) and before.strip().startswith(closer) and opener not in before


# Text without what belongs elsewhere


def _without(text: str, wraps: tuple[str, ...]) -> str:
    """The text without these prefixes, one after another, as far as it has them; white space may differ."""
    for wrap in wraps:
        words = wrap.strip()
        rest = text.lstrip()
        if words and rest.startswith(words):
            text = rest.removeprefix(words).removeprefix(wrap[len(wrap.rstrip()) :])
    return text


def _with_space(before: str, between: str | None) -> str:
    """What precedes the calls, with only the white space that it has both after content and after nothing."""
    words = before.lstrip()
    space = before[: len(before) - len(words)]
    if between is None or not between.endswith(words):
        return before
    other = between.removesuffix(words)
    return common_suffix(space, other[len(other.rstrip()) :]) + words


def _line_break(before: str, between: str | None) -> str:
    """The white space between an answer and calls that is not `before` calls alone."""
    rest = (between or "").removesuffix(before)
    return rest if rest.isspace() else ""
