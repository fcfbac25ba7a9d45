"""To call or not to call: with which texts a call begins, where the model chooses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from toolgram.caching import weighed
from toolgram.conversation.message import Message, ToolCall
from toolgram.planning.readable_names import some_id
from toolgram.planning.turn import CompiledTurn, compile_turn
from toolgram.planning.turn_spec import TurnSpec, light
from toolgram.styles.probes import common_prefix
from toolgram.template.markers import CONTROL
from toolgram.wire import format as wire
from toolgram.wire.allowed import allowed, closing_content, without_reasoning
from toolgram.wire.program import compile_format
from toolgram.wire.writer import write_freely

_BEGINS_JSON = re.compile(r'(?:```json\s*)?[\[{][\[{\s]*(?:"|\Z)')


@dataclass(frozen=True)
class Decision:
    """Where a model chooses whether to call: it does if it begins with one of `openers`, and else it answers.

    What a call and an answer begin with alike is none of them. With `at_once` this is the first choice of the turn: no
    reasoning may come before, and no call begins as the value of a response schema may.
    """

    openers: tuple[str, ...]
    at_once: bool

    def bind(self, vocabulary: Mapping[str, int]) -> tuple[int, ...]:
        """For each opener the longest token that it begins with, each token once; nothing for one that has none.

        `vocabulary` has the texts of tokens with their ids: control tokens alone are enough where calls begin so.
        """
        found = (
            vocabulary[opener[:end]]
            for opener in self.openers
            for end in [next((end for end in range(len(opener), 0, -1) if opener[:end] in vocabulary), 0)]
            if end
        )
        return tuple(dict.fromkeys(found))


@weighed(light)
def decision_of(spec: TurnSpec) -> Decision | None:
    """The decision of a turn; None where the model must call, or must not."""
    if spec.calls != "any":
        return None
    turn = compile_turn(spec)
    openers = tuple(dict.fromkeys(filter(None, _openers(turn))))
    told = tuple(opener for opener in openers if turn.answer is None or not _BEGINS_JSON.match(opener))
    return Decision(told, at_once=told == openers and turn.write(Message(reasoning=".")) is None)


def _openers(turn: CompiledTurn) -> Iterator[str]:
    """What a call begins with that an answer does not, as the format writes it and as the model does in its own way."""
    format_, opened = turn.spec.format, turn.opened
    calling = replace(format_, turn=closing_content(format_.turn, opened))
    one, other = (write_freely(calling, call) or "" for call in (_call("a", format_), _call("b", format_)))
    answer = write_freely(format_, Message(".")) or ""
    call = common_prefix(one, other)
    begun = len(opened) if call.startswith(opened) else 0
    first = call[max(begun, len(common_prefix(call, answer))) :]
    yield first
    yield from (node.before for node in wire.walk(format_.turn) if isinstance(node, wire.NamedMark))
    if not opened:
        yield from (token for token in _tokens_of_calls(format_) if not first.startswith(token))


def _tokens_of_calls(format_: wire.WireFormat) -> Iterator[str]:
    """The control tokens with which a turn of calls may begin, and none of others."""
    turn = without_reasoning(format_.turn)
    calls, others = (compile_format(allowed(turn, mode) or wire.NOTHING_WRITTEN) for mode in ("only", "none"))
    elsewhere = {mark.text for mark in others.exits(others.start)}
    for mark in calls.exits(calls.start):
        if not mark.before and CONTROL.fullmatch(mark.text) and mark.text not in elsewhere:
            yield mark.text


def _call(name: str, format_: wire.WireFormat) -> Message:
    return Message(tool_calls=(ToolCall(name, "{}", some_id(name, format_)),))
