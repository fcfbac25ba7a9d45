"""Prints the vocabulary of wire formats: each node with what it is for, an example, and what is written by it."""

from __future__ import annotations

import json
import re

from toolgram import Message, ToolCall
from toolgram.turns import write_freely
from toolgram.wire import format as wire
from toolgram.wire.program import compile_format
from toolgram.wire.reader import Reader

CALL = ToolCall("get_time", '{"zone": "UTC"}')
ANSWER = Message("Noon.")
THOUGHT = Message("Noon.", "I know that.")
CALLS = Message(tool_calls=(CALL,))
TWICE = Message(tool_calls=(CALL, CALL))
NUMBERED = Message(tool_calls=(ToolCall(CALL.name, CALL.arguments, "a1b2c3d4e"),))

EXAMPLES = {
    'Seq(Lit("Answer: "), Content())': ANSWER,
    'Seq(Content(), Mark("<end>"))': ANSWER,
    "Content()": ANSWER,
    'Seq(Mark("<think>"), Reasoning(), Mark("</think>"), Content())': THOUGHT,
    'Call(Seq(Mark("<call>"), Name(), Mark("<args>"), Arguments()))': CALLS,
    'Call(Seq(Mark("<call>"), Name(), Arguments(PYTHON)))': CALLS,
    'Call(Seq(Mark("[CALL]"), Name(), Mark("[ID]"), CallId(), Mark("[ARGS]"), Arguments()))': NUMBERED,
    'Call(Object(("name", Name()), ("arguments", Arguments())))': CALLS,
    'Call(Object(("type", Const("function")), ("name", Name()), ("arguments", Arguments())))': CALLS,
    'Seq(Mark("<calls>"), Array(Call(Object(("name", Name()), ("arguments", Arguments())))))': TWICE,
    'Many(Call(Seq(Mark("<call>"), Name(), Arguments())), separator=Lit("\\n"))': TWICE,
    'Seq(Opt(Content()), Opt(Seq(Mark("<call>"), Call(Seq(Name(), Arguments())))))': CALLS,
    'Alt(Call(Seq(Mark("<call>"), Name(), Arguments())), Seq(Mark("<say>"), Content()))': ANSWER,
    'Chain(Opt(Seq(Mark("<think>"), Reasoning())), Opt(Seq(Mark("<say>"), Content())), join=Mark("<next>"))': THOUGHT,
}
"""An example of each node, and the message that is written by it."""


def node_of(source: str) -> wire.Node:
    """The node that an expression in Python makes."""
    return eval(source, vars(wire) | {"PYTHON": wire.Arguments.__module__ and _python()})  # noqa: S307 - our own examples


def _python() -> object:
    from toolgram.wire.arguments import PYTHON

    return PYTHON


def written(source: str, message: Message) -> str:
    """The message in the example's format; it reads back to the same message."""
    node = node_of(source)
    text = write_freely(wire.WireFormat(node), message)
    reader = Reader(compile_format(node))
    if text is None or Message.from_events([*reader.feed(text), *reader.finish()]) != message:
        raise AssertionError(f"{source} does not bring back {message}, but {text!r}")
    return text


def main() -> None:
    """Prints the nodes, then the examples."""
    for source, message in EXAMPLES.items():
        print(source, json.dumps(written(source, message)))


if __name__ == "__main__":
    main()
