"""Another call, or the end of the turn: where the model chooses, by the texts around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from toolgram.conversation.message import Message, ToolCall
from toolgram.planning.readable_names import some_id
from toolgram.planning.turn_spec import TurnSpec
from toolgram.styles.probes import common_prefix, common_suffix
from toolgram.wire import format as wire
from toolgram.wire.writer import write_freely

_KEY = "zqkey"  # in arguments: a mark behind it ends the call, or a part of it
_CALLS = (("a", f'{{"{_KEY}": "b"}}'), ("cd", f'{{"{_KEY}e": 1}}'))  # that have nothing in common


@dataclass(frozen=True)
class AnotherCall:
    """Behind `after`, the end of a call and the white space that comes before another one, a model calls with `opener`.

    That far it may come without meaning to: white space may stand before the end of its turn, too.
    """

    after: str
    opener: str

    def bind(self, vocabulary: Mapping[str, int]) -> tuple[int, ...]:
        """The tokens that the opener may begin with; `vocabulary` has the texts of tokens with their ids."""
        found = (vocabulary.get(self.opener[:end]) for end in range(1, len(self.opener) + 1))
        return tuple(token for token in found if token is not None)


def another_call_of(spec: TurnSpec) -> AnotherCall | None:
    """Where a turn may have another call.

    None where it may have one at most, and where no text of its own ends a call: in a list of JSON a brace may do so,
    or end an argument.
    """
    return _between_calls(spec.format) if spec.calls != "none" and spec.parallel else None


@lru_cache(maxsize=64)
def _between_calls(format_: wire.WireFormat) -> AnotherCall | None:
    first, second = (_behind_a_call(format_, *call) for call in _CALLS)
    bare = write_freely(format_, Message(tool_calls=(_call(format_, "a", "{}"),))) or ""
    if first is None or second is None:
        return None
    ended = common_suffix(first[0], second[0])
    after = next((ended[at:] for at in range(len(ended)) if ended[at:] in bare), "")
    way = common_prefix(first[1], second[1])
    opener = way.lstrip()
    return AnotherCall(after + way[: len(way) - len(opener)], opener) if after and opener else None


def _behind_a_call(format_: wire.WireFormat, name: str, arguments: str) -> tuple[str, str] | None:
    """A turn up to the mark that ends its first call, and how it goes on with another call, as it does in no end."""
    call = _call(format_, name, arguments)
    one, two = (write_freely(format_, Message(tool_calls=(call,) * count)) for count in (1, 2))
    if one is None or two is None:
        return None
    both = common_prefix(one, two)
    found = both.find(_KEY)
    marks = (node.text for node in wire.walk(format_.turn) if isinstance(node, wire.Mark))
    end = max((both.rfind(mark) + len(mark) for mark in marks if mark in both[found:]), default=0)
    alike = common_prefix(one[end:].lstrip(), two[end:].lstrip())
    return None if found < 0 or not end or alike else (two[:end], two[end:])


def _call(format_: wire.WireFormat, name: str, arguments: str) -> ToolCall:
    return ToolCall(name, arguments, some_id(name, format_))
