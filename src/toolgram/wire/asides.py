"""Words to the user among a model's thoughts, which a turn may hold wherever nothing else is asked of it.

gpt-oss begins with a few words on the commentary channel, ends that message, and goes on with thoughts, or an answer
(ggml-org/llama.cpp#27720). If only a call could follow, the end of its message would be a promise of one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from toolgram.wire import format as wire


@lru_cache(maxsize=512)
def with_asides(format_: wire.WireFormat) -> wire.WireFormat:
    """The format, whose messages to the user may stand among thoughts, in any order, if the reader takes them there."""
    match format_.turn:
        case wire.Chain((wire.Many(wire.Lenient(thought, (answer,))) as many, wire.Opt(last), *rest), join, closes) if (
            last == answer
        ):
            either = replace(many, item=wire.Alt(thought, answer))
            return replace(format_, turn=wire.Chain(either, *rest, join=join, closes=closes))
        case _:
            return format_
