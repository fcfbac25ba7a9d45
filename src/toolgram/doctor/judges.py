"""What shows that a question is to be answered with yes or with no."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toolgram.chat import allows
from toolgram.conversation.events import ArgumentsDelta
from toolgram.conversation.message import Message, ToolCall
from toolgram.doctor.probe import Judge, Judgement, Seen
from toolgram.errors import GrammarError
from toolgram.planning.plan import Plan, same_message
from toolgram.template.markers import MARKER

_SHOWN = 64  # characters of what a model wrote
_TAGS = ("<think", "</think", "<reasoning", "<|channel|>", "[THINK]")


def quoted(text: str) -> str:
    """A text in quotes, in one line, shortened; what cannot be seen is escaped."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def told(message: Message) -> str:
    """What a message says, in one line: its calls, else its text."""
    return ", ".join(map(_call, message.tool_calls)) or quoted(message.content or "")


def _call(call: ToolCall) -> str:
    return f"{quoted(call.name)[1:-1]}({quoted(call.arguments)[1:-1]}{' …' if call.incomplete else ''})"


def one(judge: Callable[[Seen], Judgement]) -> Judge:
    """The judge of a single request."""
    return lambda seen: judge(seen[0])


def _judged(holds: bool, evidence: str) -> Judgement:
    return ("yes" if holds else "no"), evidence


# Turns


@one
def answers(seen: Seen) -> Judgement:
    """It says something."""
    return _judged(bool((seen.whole.message.content or "").strip()), told(seen.whole.message))


@one
def ends(seen: Seen) -> Judgement:
    """The turn ends before `max_tokens`."""
    reply = seen.whole
    count = reply.usage.completion_tokens
    if reply.finish_reason == "length":
        return "no", f"it was cut off after {count} tokens: {quoted('…' + reply.text[-_SHOWN + 1 :])}"
    return "yes", f"after {count} tokens" if count else told(reply.message)


def clean(seen: tuple[Seen, ...]) -> Judgement:
    """What is said holds no control tokens and no tags of reasoning."""
    for each in seen:
        content = each.whole.message.content or ""
        control = MARKER.search(content)
        if tag := control[0] if control else next((tag for tag in _TAGS if tag in content), ""):
            return "no", f"{quoted(tag)} is in {quoted(content)}"
    return "yes", f"none in {len(seen)} answers"


def same(seen: tuple[Seen, ...]) -> Judgement:
    """All answers are the same."""
    first, *others = (each.whole.text for each in seen)
    other = next((text for text in others if text != first), None)
    if other is not None:
        return "no", f"{quoted(first)}, then {quoted(other)}"
    return "yes", f"{len(seen)} times {quoted(first)}"


def cut_after(tokens: int) -> Judge:
    """The answer is cut off after so many tokens."""

    def judge(seen: Seen) -> Judgement:
        reply = seen.whole
        count = max(reply.usage.completion_tokens, seen.pieces)
        if count > tokens:
            return "no", f"{count} tokens, not {tokens}: {quoted(reply.text)}"
        if reply.finish_reason != "length":
            return "untried", f"it ended before: {quoted(reply.text)}"
        return "yes", f"cut off after {count} tokens: {quoted(reply.text)}"

    return one(judge)


def stops_at(word: str) -> Judge:
    """The answer ends before this word."""

    def judge(seen: Seen) -> Judgement:
        text = seen.whole.text
        if word in text:
            return "no", f"{quoted(word)} is in {quoted(text)}"
        if seen.whole.stopped_by != word and seen.whole.finish_reason == "length":
            return "untried", f"it never came to {quoted(word)}: {quoted(text)}"
        return "yes", f"it ends with {quoted(text[-20:])}"

    return one(judge)


def streams(seen: tuple[Seen, ...]) -> Judgement:
    """Answers come in pieces, and what was read from these is what the whole texts say."""
    for each in seen:
        read, whole = _without_ids(Message.from_events(each.events)), _parsed(each)
        if each.whole.finish_reason != "length" and not same_message(read, whole):
            return "no", f"the pieces say {told(read)}, the whole says {told(whole)}"
    counts = [each.pieces for each in seen]
    return _judged(min(counts) > 1, f"{' and '.join(map(str, counts))} pieces of text, read alike")


def _parsed(seen: Seen) -> Message:
    lenient = seen.free and seen.plan.constraint is not None
    return _without_ids(seen.plan.parse(seen.whole.text, lenient=lenient))


def _without_ids(message: Message) -> Message:
    return replace(message, tool_calls=tuple(replace(call, id=None) for call in message.tool_calls))


def repeats(text: str) -> Judge:
    """The answer is this text, to the letter."""

    def judge(seen: Seen) -> Judgement:
        content = (seen.whole.message.content or "").strip()
        if content != text and "\ufffd" not in content:
            return "untried", f"it said something else: {quoted(content)}"
        return _judged(content == text, quoted(content))

    return one(judge)


def stays_text(copies: int) -> Judge:
    """Control tokens in a user's message, which only the second request has, cost as many tokens as text does."""

    def judge(seen: tuple[Seen, ...]) -> Judgement:
        without, with_ = (each.whole.usage.prompt_tokens for each in seen)
        if not without or any(each.whole.usage.estimated for each in seen):
            return "untried", "the server does not tell how many tokens a prompt has"
        each = (with_ - without) / copies
        return _judged(each > 1.5, f"each of {copies} in a message is {each:.3g} tokens; as a control token it is one")

    return judge


def mentions(*words: str) -> Judge:
    """The answer has one of these words, and is text: no markers are in it."""

    def judge(seen: Seen) -> Judgement:
        content = (seen.whole.message.content or "").lower()
        said = any(word.lower() in content for word in words)
        return _judged(said and not MARKER.search(content), told(seen.whole.message))

    return one(judge)


# Grammars


def kept(seen: tuple[Seen, ...]) -> Judgement:
    """The texts are sentences of their grammars, or beginnings of such where they were cut off."""
    for each in seen:
        if not _in_grammar(each.plan, each.whole.text, cut=each.whole.finish_reason == "length"):
            return "no", f"the grammar forbids {quoted(each.whole.text)}, to {_question(each.plan)}"
    return "yes", "; ".join(f"{quoted(each.whole.text)}, to {_question(each.plan)}" for each in seen)


def _question(plan: Plan) -> str:
    return quoted(str(plan.request.messages[-1]["content"]))


def _in_grammar(plan: Plan, text: str, *, cut: bool) -> bool:
    if plan.constraint is None:
        return True
    if not cut:
        return plan.constraint.grammar.accepts(text)
    try:
        return plan.constraint_after(text) is not None
    except GrammarError:
        return False


@one
def valid(seen: Seen) -> Judgement:
    """The message is one that the request allows: its calls, and the form and schema of each."""
    reply = seen.whole
    if reply.finish_reason == "length":
        cut = _in_grammar(seen.plan, reply.text, cut=True)
        return _judged(cut, f"cut off, {'and' if cut else 'not'} valid so far: {told(reply.message)}")
    return _judged(allows(seen.plan, reply.message), told(reply.message))


def in_time(judge: Judge) -> Judge:
    """As another judge; the evidence is how long it took."""

    def timed(seen: tuple[Seen, ...]) -> Judgement:
        outcome, evidence = judge(seen)
        return outcome, f"{evidence}, in {seen[0].seconds:.1f} s"

    return timed


# Calls


def calls(*names: str) -> Judge:
    """These tools are called, and no others."""

    def judge(seen: Seen) -> Judgement:
        called = sorted(call.name for call in seen.whole.message.tool_calls)
        return _judged(called == sorted(names), told(seen.whole.message))

    return one(judge)


def calls_with(name: str, arguments: Mapping[str, Any]) -> Judge:
    """The tool is called, and these are among its arguments."""

    def judge(seen: Seen) -> Judgement:
        found = [_arguments(call) for call in seen.whole.message.tool_calls if call.name == name]
        right = any(arguments.items() <= each.items() for each in found)
        return _judged(right, told(seen.whole.message))

    return one(judge)


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    try:
        return {key: value for key, value in json.loads(call.arguments).items() if not isinstance(value, (list, dict))}
    except (ValueError, AttributeError):
        return {}


@one
def ends_after_call(seen: Seen) -> Judgement:
    """The turn ends after the call, by itself."""
    reply = seen.whole
    return _judged(reply.finish_reason == "tool_calls" and len(reply.message.tool_calls) == 1, told(reply.message))


@one
def arguments_stream(seen: Seen) -> Judgement:
    """Arguments come while they are written."""
    pieces = sum(isinstance(event, ArgumentsDelta) for event in seen.events)
    if not seen.whole.message.tool_calls:
        return "untried", f"it did not call: {told(seen.whole.message)}"
    return _judged(pieces > 1, f"{pieces} pieces of {told(seen.whole.message)}")


# Reasoning


@one
def reasons(seen: Seen) -> Judgement:
    """There is reasoning, apart from the answer."""
    message = seen.whole.message
    if not (message.reasoning or "").strip():
        return "no", f"none; the answer is {told(message)}"
    return "yes", quoted(message.reasoning or "")


@one
def closes_reasoning(seen: Seen) -> Judgement:
    """The reasoning was closed at its bound, and an answer follows."""
    message, usage = seen.whole.message, seen.whole.usage
    if not usage.reasoning_closed:
        return "untried", f"it reasoned for {usage.reasoning_tokens} tokens alone: {told(message)}"
    return _judged(bool(message.content or message.tool_calls), told(message))


# Several at once, and what is good to have


def all_end(seen: tuple[Seen, ...]) -> Judgement:
    """All are answered."""
    slowest = max(each.seconds for each in seen)
    good = sum(bool(each.whole.text.strip()) for each in seen)
    return _judged(good == len(seen), f"{good} of {len(seen)} were, in {slowest:.1f} s")


def goes_on(seen: tuple[Seen, ...]) -> Judgement:
    """After a client that left, the next one is answered."""
    left, after = seen
    return _judged(after.reply is not None, f"left after {left.pieces} pieces; the next: {told(after.whole.message)}")


def remembers(seen: tuple[Seen, ...]) -> Judgement:
    """Of a prompt that was read before, less is read again."""
    usage = seen[-1].whole.usage
    return _judged(
        usage.cached_tokens > 0, f"{usage.cached_tokens} of {usage.prompt_tokens} tokens were left from before"
    )


@one
def forces(seen: Seen) -> Judgement:
    """Tokens that the grammar leaves no choice for are not sampled."""
    usage = seen.whole.usage
    if not usage.forward_passes:
        return "no", "the server tells of none"
    return _judged(usage.forced_tokens > 0, f"{usage.forced_tokens} of {usage.completion_tokens} tokens were forced")


@one
def weighs(seen: Seen) -> Judgement:
    """The odds of a call are known where the model chooses."""
    odds = seen.whole.call_log_odds
    return ("no", "it does not tell them") if odds is None else ("yes", f"log odds {odds:+.1f}")
