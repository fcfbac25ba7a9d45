"""What the reader makes of what models really write: mostly not what they were asked to."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from situations import joined
from toolgram import Message, ToolCall
from toolgram.conversation.events import (
    ContentDelta,
    Cut,
    Event,
    Finish,
    Prefill,
    ToolCallEnd,
    ToolCallStart,
    Unreadable,
)
from toolgram.styles.base import ToolStyle
from toolgram.styles.generic.functionary_v2 import FUNCTIONARY_V2
from toolgram.styles.generic.tagged import MIXTRAL, SHORT
from toolgram.styles.generic.thoughtful_steps import THOUGHTFUL_STEPS
from toolgram.styles.native.gemma4 import GEMMA_4
from toolgram.styles.native.harmony import HARMONY
from toolgram.styles.native.minimax_m1 import MINIMAX_M1
from toolgram.styles.native.pythonic import LFM2
from toolgram.wire.format import Arguments, Call, Content, Many, Mark, Name, Object, Opt, Seq, WireFormat
from toolgram.wire.program import compile_format
from toolgram.wire.reader import Reader


def read(style: ToolStyle, text: str, *, opened: str = "", size: int = 10**9) -> list[Event]:
    """The events of a text after a prompt that holds `opened` of the turn, fed in pieces of this size."""
    reader = Reader(compile_format(style.wire.turn), opened=opened)
    events = [event for at in range(0, len(text), size) for event in reader.feed(text[at : at + size])]
    return [*events, *reader.finish()]


def parse(style: ToolStyle, text: str, opened: str = "") -> Message:
    """The message, which is the same however the text is cut."""
    whole = read(style, text, opened=opened)
    assert joined(whole) == joined(read(style, text, opened=opened, size=1))
    return Message.from_events(whole)


def hermes(*bodies: str) -> str:
    """Calls as Hermes writes them around these texts."""
    return "\n".join(f"<tool_call>\n{body}\n</tool_call>" for body in bodies)


def gemma(*bodies: str) -> str:
    """Calls of Gemma 4, `'` standing for its quote."""
    return "".join("<|tool_call>call:" + body.replace("'", '<|"|>') + "<tool_call|>" for body in bodies)


def lfm2(body: str) -> str:
    """A list of calls of LFM2."""
    return f"<|tool_call_start|>[{body}]<|tool_call_end|>"


def one(arguments: str, name: str = "f", content: str | None = None) -> Message:
    """A message of one call."""
    return Message(content, None, (ToolCall(name, arguments),))


class Case(NamedTuple):
    """A text in a style and what it says; `opened` is what the prompt holds of it."""

    what: str
    style: ToolStyle
    text: str
    message: Message
    opened: str = ""


F = '{"name": "f", "arguments": {"a": 1}}'
G = '{"name": "g", "arguments": {}}'
RECIPIENT = "<|from|>assistant\n<|recipient|>"
ASSISTANT = "<|start|>assistant"

READ = [
    Case("a call", SHORT, hermes(F), one('{"a": 1}')),
    Case("text before", SHORT, "Hi.\n" + hermes(F), one('{"a": 1}', content="Hi.\n")),
    Case("text behind", SHORT, hermes(F) + "\nDone.", one('{"a": 1}', content="\nDone.")),
    Case("arguments first", SHORT, hermes('{"arguments": {"a": 1}, "name": "f"}'), one('{"a": 1}')),
    Case("a key behind", SHORT, hermes('{"name": "f", "arguments": {"a": 1}, "id": {"x": [1]}}'), one('{"a": 1}')),
    Case("a closer inside", SHORT, hermes(F.replace("1", '"</tool_call>"')), one('{"a": "</tool_call>"}')),
    Case(
        "a name in earlier arguments",
        SHORT,
        hermes(r'{"arguments": {"name": "g", "a": "\"name\": 1"}, "name": "f"}'),
        one(r'{"name": "g", "a": "\"name\": 1"}'),
    ),
    Case("escapes in the name", SHORT, hermes(r'{"name": "\u0066\"\n", "arguments": {}}'), one("{}", 'f"\n')),
    Case("no arguments", SHORT, hermes('{"name": "f"}'), one("{}")),
    Case("empty arguments", SHORT, hermes('{"name": "f", "arguments": {}}'), one("{}")),
    Case("arguments null", SHORT, hermes('{"name": "f", "arguments": null}'), one("{}")),
    Case("braces at the end", SHORT, hermes('{"name": "f", "arguments": {"a": {"b": {}}}}'), one('{"a": {"b": {}}}')),
    Case("arguments as a string", SHORT, hermes(r'{"name": "f", "arguments": "{\"a\": 1}"}'), one('{"a": 1}')),
    Case("parameters", SHORT, hermes('{"name": "f", "parameters": {"a": 1}}'), one('{"a": 1}')),
    Case("arguments twice", SHORT, hermes('{"name": "f", "arguments": {}, "arguments": {"a": 1}}'), one("{}")),
    Case("nested", SHORT, hermes('{"type": "function", "function": ' + F + "}"), one('{"a": 1}')),
    Case("a comma too many", SHORT, hermes('{"name": "f", "arguments": {"a": 1},}'), one('{"a": 1}')),
    Case("no spaces", SHORT, '<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>', one('{"a":1}')),
    Case("much space", SHORT, hermes('\n\n { "name" : "f",\t"arguments" :\n{"a": 1} } \n'), one('{"a": 1}')),
    Case("two calls", SHORT, hermes(F, G), Message(None, None, (ToolCall("f", '{"a": 1}'), ToolCall("g", "{}")))),
    Case(
        "an unknown name among others",
        SHORT,
        hermes(F, '{"name": "no such tool", "arguments": {}}', G),
        Message(None, None, (ToolCall("f", '{"a": 1}'), ToolCall("no such tool", "{}"), ToolCall("g", "{}"))),
    ),
    Case("the last brace is missing", SHORT, hermes(F[:-1]), one('{"a": 1}')),
    Case(
        "a closer is missing between calls",
        SHORT,
        f"<tool_call>\n{F}\n{hermes(G)}",
        Message("\n", None, (ToolCall("f", '{"a": 1}'), ToolCall("g", "{}"))),
    ),
    Case("a brace too many", SHORT, hermes(F + "}"), one('{"a": 1}', content="}")),
    Case("escaped tags", MIXTRAL, f"Hi<tool\\_call>\n{F}\n</tool\\_call>", one('{"a": 1}', content="Hi")),
    Case("half escaped tags", MIXTRAL, f"Hi<tool\\_call>\n{F}\n</tool_call>", one('{"a": 1}', content="Hi")),
    Case("to all", FUNCTIONARY_V2, "all\n<|content|>Hi", Message("Hi"), RECIPIENT),
    Case("to a tool", FUNCTIONARY_V2, 'f\n<|content|>{"a": 1}', one('{"a": 1}'), RECIPIENT),
    Case(
        "to all and to tools",
        FUNCTIONARY_V2,
        "all\n<|content|>Hi\n" + RECIPIENT + 'f\n<|content|>{"a": 1}\n' + RECIPIENT + "g\n<|content|>{}",
        Message("Hi", None, (ToolCall("f", '{"a": 1}'), ToolCall("g", "{}"))),
        RECIPIENT,
    ),
    Case("to nobody", FUNCTIONARY_V2, "Hello", Message("Hello"), RECIPIENT),
    Case("gemma", GEMMA_4, gemma("f{}", "g{}"), Message(None, None, (ToolCall("f", "{}"), ToolCall("g", "{}")))),
    Case(
        "gemma's values",
        GEMMA_4,
        gemma("f{k:'a\"}\\\n<tool_call|>',n:-1.5e3,b:true,x:null,l:['a',{m:false}]}"),
        one(r'{"k": "a\"}\\\n<tool_call|>", "n": -1.5e3, "b": true, "x": null, "l": ["a", {"m": false}]}'),
    ),
    Case("gemma with JSON", GEMMA_4, gemma('f{ "k": "v" , "n": 1 }'), one('{"k": "v", "n": 1}')),
    Case("gemma without quotes", GEMMA_4, gemma("f{k: v}"), one('{"k": "v"}')),
    Case(
        "python's values",
        LFM2,
        lfm2(r"""f(a=1, b="x\"y", c=None, d=[True, {"k": False}], e='it\'s', f=(1, 2), g=")]")"""),
        one('{"a": 1, "b": "x\\"y", "c": null, "d": [true, {"k": false}], "e": "it\'s", "f": [1, 2], "g": ")]"}'),
    ),
    Case(
        "python's values side by side, which nothing reads",
        LFM2,
        lfm2("f(a='b' 'c')"),
        Message(")", None, (ToolCall("f", '{"a": "b", "c"', incomplete=True),)),
    ),
    Case(
        "python, two calls, other spaces",
        LFM2,
        "Hi " + lfm2("f( a = 1 ),\n g()") + " bye",
        Message("Hi  bye", None, (ToolCall("f", '{"a": 1}'), ToolCall("g", "{}"))),
    ),
    Case(
        "harmony",
        HARMONY,
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>Hi<|end|>"
        '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}',
        Message("Hi", "Hm.", (ToolCall("f", '{"a": 1}'),)),
        ASSISTANT,
    ),
    Case(
        "harmony, the recipient first",
        HARMONY,
        ' to=functions.f<|channel|>commentary json<|message|>{"a": 1}',
        one('{"a": 1}'),
        ASSISTANT,
    ),
    Case("harmony without its headers", HARMONY, "Hello", Message("Hello"), ASSISTANT),
    Case("a prefilled answer", SHORT, " you.\n" + hermes(F), one('{"a": 1}', content="I see you.\n"), "I see"),
    Case("a prefilled call", SHORT, '"f", "arguments": {}}\n</tool_call>', one("{}"), '<tool_call>\n{"name": '),
]


@pytest.mark.parametrize("case", READ, ids=lambda case: case.what)
def test_what_is_read(case: Case) -> None:
    assert parse(case.style, case.text, case.opened) == case.message


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        '{"name": f}',
        '["a"]',
        '{"arguments": {"a": 1}}',
        '{"name": "", "arguments": {}}',
        '{"name": ["f"], "arguments": {}}',
        "{'name': 'f', 'arguments': {}}",
        "",
    ],
)
def test_what_is_no_call_is_kept_as_content(body: str) -> None:
    text = f"Hi {hermes(body)} bye"
    assert parse(SHORT, text) == Message(text)
    assert any(isinstance(event, Unreadable) for event in read(SHORT, text))
    assert parse(SHORT, f"{text}\n{hermes(F)}").tool_calls == (ToolCall("f", '{"a": 1}'),)


def test_what_a_prompt_holds_is_told_once() -> None:
    events = read(SHORT, " you.", opened="I see")
    assert events == [Prefill("I see"), ContentDelta(" you."), Finish("stop")]


CUT = [
    (SHORT, "", hermes(r'{"name": "f", "arguments": {"a": "x\"\u00e9", "b": [1, {"c": null}]}}', F)),
    (SHORT, "", hermes('{"arguments": {"a": 1}, "name": "f"}')),
    (GEMMA_4, "", gemma("f{a:'x<|',b:[1,{c:null}]}", "g{}")),
    (LFM2, "", lfm2(r'f(a="x\"\u00e9", b=[1, {"c": None}]), g()')),
    (HARMONY, ASSISTANT, '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": [1, {"b": "x"}]}'),
    (FUNCTIONARY_V2, RECIPIENT, 'f\n<|content|>{"a": [1, {"b": "x"}]}'),
    (
        THOUGHTFUL_STEPS,
        "",
        '{"thought_about_next_step_only": "Hm.", "next_step": {"tool_calls": [' + F + ", " + G + "]}}",
    ),
]


@pytest.mark.parametrize(("style", "opened", "text"), CUT, ids=lambda value: getattr(value, "name", ""))
def test_a_call_that_is_cut_off_keeps_what_arrived(style: ToolStyle, opened: str, text: str) -> None:
    whole = parse(style, text, opened)
    for end in range(len(text)):
        events = read(style, text[:end], opened=opened)
        message = Message.from_events(events)
        starts = [event for event in events if isinstance(event, ToolCallStart)]
        ends = [event for event in events if isinstance(event, ToolCallEnd)]
        assert len(message.tool_calls) == len(starts) <= len(whole.tool_calls)
        for at, (cut, full) in enumerate(zip(message.tool_calls, whole.tool_calls, strict=False)):
            assert cut.name == full.name
            assert full.arguments.startswith(cut.arguments)
            assert cut.arguments == full.arguments or at >= len(ends)
        last = events[-1]
        assert isinstance(last, Finish)
        assert len(starts) == len(ends) or not last.complete


def test_what_was_cut_before_its_name_is_told_and_none_of_the_content() -> None:
    text = '<tool_call>\n{"arguments": {"a": 1}, "na'
    for said in ("", "Hi.\n"):
        *_, cut, finish = read(SHORT, said + text)
        assert parse(SHORT, said + text) == Message(said or None)
        assert isinstance(cut, Cut)
        assert cut.text == text
        assert finish == Finish("stop", complete=False, dropped_calls=1)


def test_the_beginning_of_a_tag_is_text_unless_the_turn_was_cut_off() -> None:
    for end, dropped in (("<tool_", 1), ("<", 1)):
        reader = Reader(compile_format(SHORT.wire.turn))
        assert Message.from_events([*reader.feed(f"Hi {end}"), *reader.finish()]) == Message(f"Hi {end}")
        reader = Reader(compile_format(SHORT.wire.turn))
        events = [*reader.feed(f"Hi {end}"), *reader.finish(cut=True)]
        assert Message.from_events(events) == Message("Hi ")
        assert events[-1] == Finish("stop", complete=False, dropped_calls=dropped)


def test_a_call_that_was_cut_off_is_incomplete() -> None:
    text = hermes(F) + "\n" + hermes(G)
    assert not any(call.incomplete for call in parse(SHORT, text).tool_calls)
    assert [call.incomplete for call in parse(SHORT, text[:-20]).tool_calls] == [False, True]
    assert parse(SHORT, text[:-20]).to_openai()["tool_calls"][1]["incomplete"] is True


def kept(events: list[Event]) -> str:
    """The content, and what was cut off after it."""
    cut = "".join(event.text for event in events if isinstance(event, Cut))
    return (Message.from_events(events).content or "") + cut


@pytest.mark.parametrize(
    "piece", ["<tool_call>", "<tool_call>\n{", '<tool_call>{"arguments":{', "\n<tool_", "</tool_call>"]
)
def test_long_text_that_fails_again_and_again_is_kept(piece: str) -> None:
    text = piece * 3000
    assert kept(read(SHORT, text, size=7)) == text


def test_a_call_without_a_name_whose_closer_may_be_missing_is_kept() -> None:
    call = Call(Seq(Mark("<c>"), Object(("name", Name()), ("arguments", Arguments())), Opt(Mark("</c>"))))
    style = ToolStyle("lax", WireFormat(Seq(Opt(Content()), Many(call))), "calls whose closer may be missing")
    assert parse(style, '<c>{"name": "f"}') == one("{}")
    for text in ("<c>{} ", "<c>{} x", "<c>{}</c> \n", "<c>{}\n<", '<c>{"arguments": {}} <c>'):
        assert kept(read(style, text)) == text
        assert parse(style, text + '<c>{"name": "f"}') == one("{}", content=text)


def test_white_space_between_calls_is_no_content_where_the_text_ends_there() -> None:
    reader = Reader(compile_format(MINIMAX_M1.wire.turn))
    text = '<tool_calls>\n{"name": "f", "arguments": {}}\n'
    message = Message.from_events([*reader.feed(text), *reader.finish(cut=True)])
    assert (message.content, message.tool_calls) == (None, (ToolCall("f", "{}"),))
