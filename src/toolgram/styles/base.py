"""What a style is: how tools are announced, and the wire format in which the model then writes its turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from toolgram.conversation.patterns import as_given
from toolgram.json_texts import compact, pretty
from toolgram.wire.format import PLAIN, NamedMark, Node, WireFormat, holds, naming
from toolgram.wire.program import Program, compile_format


@dataclass(frozen=True)
class Announcement:
    """What a generic style announces: the tools as the request gives them, and the response schema if there is one."""

    tools: tuple[Any, ...]
    parallel: bool
    now: datetime
    answer: Any = None
    has_answer: bool = False


Announce = Callable[[Announcement], str]


@dataclass(frozen=True, eq=False)
class ToolStyle:
    """How a model family, or toolgram itself, writes tool calls. Compared by identity, so that caches need not hash it.

    `wire` is the format of the turns and `about` a short description. `announce` makes the format prompt of a generic
    style; a style without it relies on the template to show the tools. `framed` styles write every turn in their
    format, so the history is written in it too; the others frame only calls. `announced_by` is text with which the
    family's templates show tools: it identifies the family where the template does not write calls itself.
    `without_tools` is the format of a turn when no tools are announced: by default plain text for a generic style,
    which the model then knows nothing about, and the same format for a native one. `reasons` says that all models of
    the style reason, even where their templates leave the reasoning out of the history. `own_ways` is the format of a
    turn in which the model may call, where it may write calls in ways of its own too; the history has them as `wire`
    says. `calls_close_reasoning` says that the models at times begin a call where they should have
    closed their reasoning first, and mean it; those of other styles quote calls in their reasoning.
    `calls_after_words` may follow an answer, where the turn has no other calls at its end. `models` are what
    the models of the style are called, where their template is that of others too; it is the style of all if there are
    none.
    """

    name: str
    wire: WireFormat
    about: str
    announce: Announce | None = None
    framed: bool = False
    announced_by: str = ""
    without_tools: WireFormat | None = None
    reasons: bool = False
    own_ways: WireFormat | None = None
    calls_close_reasoning: bool = False
    calls_after_words: Node | None = None
    models: tuple[str, ...] = ()

    @property
    def is_generic(self) -> bool:
        """Whether the style announces the tools itself."""
        return self.announce is not None

    def format(self, *, with_tools: bool, tools: tuple[str, ...] = (), may_call: bool = False) -> WireFormat:
        """The wire format of a turn, with tools announced or without.

        `tools` are those that it may call, or must; with `may_call` in the ways of its own, too.
        """
        if may_call and tools and self.own_ways is not None:
            return _naming(self.own_ways, tools)
        if with_tools:
            return _naming(self.wire, tools)
        return self.without_tools or (PLAIN if self.is_generic else self.wire)

    def program(self, *tools: str) -> Program:
        """What reads turns in which these tools may be called."""
        return compile_format(_naming(self.wire, tools).turn)


def _naming(format_: WireFormat, tools: tuple[str, ...]) -> WireFormat:
    """The format, whose marks name these tools; most formats have none that do."""
    return replace(format_, turn=naming(format_.turn, tools)) if _names_tools(format_) else format_


@lru_cache(maxsize=512)
def _names_tools(format_: WireFormat) -> bool:
    return holds(format_.turn, NamedMark)


def answer_prompt(schema: Any) -> str:
    """Asks for an answer in a schema; one of any object is not shown, since small models repeat it as their answer."""
    if schema == {"type": "object"}:
        return "Please respond with a JSON object."
    return f"Please respond in JSON format with the following schema: {pretty(schema)}"


def plain_prompt(schema: Any) -> str:
    """Asks for an answer that is one of some texts, or matches a regular expression."""
    if "enum" in schema:
        return f"Please respond with one of these texts and nothing else: {', '.join(map(compact, schema['enum']))}"
    expression = as_given(schema["pattern"])
    return f"Please respond with nothing but a text that matches the regular expression {expression}"


def tool_list(tools: tuple[Any, ...]) -> str:
    """The tools, one after another, each over several lines."""
    return "\n".join(map(pretty, tools))
