"""Calls that a model writes in its own way, where it may call or must: JSON in a fence, or bare JSON.

Answers in a schema may stand in the same ways there. What a call and an answer begin with alike must leave the model
both: where only a call could follow a fence, or a brace and a line break, they would be a promise of one.

::

    ```json
    {
      "name": "get_weather",
      "arguments": {
        "city": "Paris"
      }
    }
    ```
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from toolgram.styles.base import ToolStyle
from toolgram.wire.encodings import Encoding
from toolgram.wire.fences import in_a_fence
from toolgram.wire.format import (
    Alt,
    Arguments,
    Call,
    Content,
    Layout,
    Lit,
    Many,
    Name,
    NamedMark,
    Node,
    Object,
    Opt,
    Reasoning,
    Seq,
    WireFormat,
    holds,
    rebuild,
    walk,
)

_SPACES = ("  ", "    ")
"""With which lines of JSON begin, for each level: what people and programs use. Models do not keep to one."""
_MARGINS = tuple(f"\n{space}" for space in _SPACES)
_ON_LINES = Encoding("json", margins=tuple(f"\n{2 * space}" for space in _SPACES), last_margins=_MARGINS)


def _on_lines(before: str, space: str) -> Node:
    mark = NamedMark(f'{before}{{\n{space}"name": "', f'",\n{space}"arguments": ')
    return Call(Seq(mark, Arguments(_ON_LINES), Lit("\n}")))


def _on_a_line(before: str) -> Node:
    return Call(Seq(NamedMark(f'{before}{{"name": "', '", "arguments": '), Arguments(), Lit("}")))


def _in_one_fence(first: Node, another: Node) -> Node:
    """A call that opens a fence, and others that may stand in it too: a model that has more of them in mind does so."""
    return Seq(first, Many(Seq(Lit("\n"), another)), Lit("\n```"))


OWN_CALLS = Many(
    Alt(
        *(_in_one_fence(_on_lines("```json\n", space), _on_lines("", space)) for space in _SPACES),
        _in_one_fence(_on_a_line("```json\n"), _on_a_line("")),
        *(_on_lines("", space) for space in _SPACES),
        _on_a_line(""),
    ),
    separator=Lit("\n"),
    min=1,
)


def _after_words(space: str) -> Node:
    layout = Layout(Lit(f",\n{space}"), Lit(": "), Lit(f"\n{space}"), Lit("\n"))
    return _fenced(Object(("name", Name()), ("arguments", Arguments(_ON_LINES)), layout=layout))


def _fenced(call: Node) -> Node:
    return _in_one_fence(Call(Seq(Lit("```json\n"), call)), Call(call))


CALLS_AFTER_WORDS = Many(
    Alt(*map(_after_words, _SPACES), _fenced(Object(("name", Name()), ("arguments", Arguments())))),
    separator=Lit("\n"),
    min=1,
)
ANSWERS = Alt(Content(), Content(Encoding("json", margins=_MARGINS, last_margins=("\n",))))
"""An answer in JSON on one line, or with the members of its outermost object on lines of their own."""
OWN_ANSWERS = Alt(*ANSWERS.options, in_a_fence(ANSWERS))
_OWN_MARKS = {node.before for node in walk(OWN_CALLS) if isinstance(node, NamedMark)}


@lru_cache(maxsize=64)
def with_own_calls(style: ToolStyle) -> ToolStyle:
    """The style in which such calls are calls too; itself where they are already, or where no turn begins with text."""
    turn = _beside(style.wire.turn)
    if turn is None or style.own_ways is not None:
        return style
    return replace(style, own_ways=replace(style.wire, turn=turn), calls_after_words=CALLS_AFTER_WORDS)


@lru_cache(maxsize=64)
def with_own_answers(format_: WireFormat) -> WireFormat:
    """The format, whose answers in a schema may stand as such calls do; itself where none are in it."""
    named = {node.before for node in walk(format_.turn) if isinstance(node, NamedMark)}
    return replace(format_, turn=_answered(format_.turn)) if named & _OWN_MARKS else format_


def _answered(node: Node) -> Node:
    return OWN_ANSWERS if node == Content() else rebuild(node, _answered)


def _beside(turn: Node) -> Node | None:
    """The turn, or such calls in the place of all but its reasoning."""
    match turn:
        case Seq((Opt(thought), *rest)) if holds(thought, Reasoning) and _begins_with_text(rest):
            return Seq(Opt(thought), Alt(Seq(*rest), OWN_CALLS))
        case Seq((*items,)) if _begins_with_text(items):
            return Alt(turn, OWN_CALLS)
        case _:
            return None


def _begins_with_text(items: list[Node]) -> bool:
    return items[:1] == [Opt(Content())]
