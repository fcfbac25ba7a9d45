"""Prints the vocabulary of wire formats: each node with its purpose, an example, and what the example writes."""

from __future__ import annotations

import inspect
from typing import get_args

from toolgram import Message, ToolCall
from toolgram.wire import format as wire
from toolgram.wire.program import compile_format
from toolgram.wire.reader import Reader
from toolgram.wire.writer import write_freely

CALL = ToolCall("get_time", '{"zone": "UTC"}')
ANSWER = Message("Noon.")
THOUGHT = Message("Noon.", "I know that.")
CALLS = Message(tool_calls=(CALL,))
TWICE = Message(tool_calls=(CALL, CALL))
NUMBERED = Message(tool_calls=(ToolCall(CALL.name, CALL.arguments, "a1b2c3d4e"),))

EXAMPLES: dict[type[wire.Node], tuple[str, Message]] = {
    wire.Lit: ('Seq(Lit("Answer: "), Content())', ANSWER),
    wire.Break: (
        'Seq(Opt(Content()), Opt(Seq(Break("\\n"), Call(Seq(Mark("<call>"), Name(), Arguments())))))',
        Message("Hm.", None, (CALL,)),
    ),
    wire.Mark: ('Seq(Content(), Mark("<end>"))', ANSWER),
    wire.NamedMark: ('Call(Seq(NamedMark("<call ", ">", tools=("get_time",)), Arguments()))', CALLS),
    wire.CallAhead: (
        'Seq(Mark("<think>"), Reasoning(), Alt(Mark("</think>"), CallAhead("<call>", ("get_time{",))), Opt(Content()))',
        THOUGHT,
    ),
    wire.Content: ("Content()", ANSWER),
    wire.Reasoning: ('Seq(Mark("<think>"), Reasoning(), Mark("</think>"), Content())', THOUGHT),
    wire.Name: ('Call(Seq(Mark("<call>"), Name(), Mark("<args>"), Arguments()))', CALLS),
    wire.CallId: ('Call(Seq(Mark("[CALL]"), Name(), Mark("[ID]"), CallId(), Mark("[ARGS]"), Arguments()))', NUMBERED),
    wire.Arguments: ('Call(Seq(Mark("<call>"), Name(), Arguments()))', CALLS),
    wire.Call: ('Seq(Content(), Call(Seq(Mark("<call>"), Name(), Arguments())))', Message("Hm.", None, (CALL,))),
    wire.Seq: ('Seq(Lit("The answer:"), Lit("\\n"), Content())', ANSWER),
    wire.Alt: ('Alt(Call(Seq(Mark("<call>"), Name(), Arguments())), Seq(Mark("<say>"), Content()))', ANSWER),
    wire.Opt: ('Seq(Opt(Content()), Opt(Call(Seq(Mark("<call>"), Name(), Arguments()))))', CALLS),
    wire.Many: ('Many(Call(Seq(Mark("<call>"), Name(), Arguments())), separator=Lit("\\n"))', TWICE),
    wire.Chain: (
        'Chain(Opt(Seq(Mark("<think>"), Reasoning())), Opt(Seq(Mark("<say>"), Content())), join=Mark("<next>"))',
        THOUGHT,
    ),
    wire.Lenient: ('Call(Seq(Lenient(Mark("<call>"), Mark("<tool>")), Name(), Arguments()))', CALLS),
    wire.Const: (
        'Call(Object(("type", Const("function")), ("name", Name()), ("arguments", Arguments())))',
        CALLS,
    ),
    wire.Object: ('Call(Object(("name", Name()), ("arguments", Arguments())))', CALLS),
    wire.Array: ('Array(Call(Object(("name", Name()), ("arguments", Arguments()))))', TWICE),
}
"""For each node, an expression that uses it, and a message to write in it."""


def written(source: str, message: Message) -> str:
    """The message in the format of an expression; it must read back to the same message."""
    node: wire.Node = eval(source, vars(wire).copy())  # noqa: S307 - the expressions above
    text = write_freely(wire.WireFormat(node), message)
    reader = Reader(compile_format(node))
    if text is None or Message.from_events([*reader.feed(text), *reader.finish()]) != message:
        raise AssertionError(f"{source} writes {text!r}, which does not read back to {message}")
    return text


def main() -> None:
    """Prints the nodes as a table, with their docstrings."""
    print("\n| Node | What it is | Example | What is written |\n|---|---|---|---|")
    for node in get_args(wire.Node):
        source, message = EXAMPLES[node]
        about = " ".join((inspect.getdoc(node) or "").split())
        print("|", " | ".join((f"`{node.__name__}`", about, f"`{source}`", f"`{written(source, message)!r}`")), "|")
    print()


if __name__ == "__main__":
    main()
