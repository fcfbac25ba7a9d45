"""What of a request decides the turn that it allows, and what reads such a turn."""

from __future__ import annotations

from toolgram.caching import Document, made_of
from toolgram.conversation.answers import GivenGrammar
from toolgram.conversation.request import Request, Tool
from toolgram.grammar.hashing import HashedOnce, value
from toolgram.wire import format as wire
from toolgram.wire.allowed import Calls, without_calls, without_reasoning
from toolgram.wire.fences import FENCES, may_be_fenced
from toolgram.wire.program import Program, compile_format

_CALLS: dict[str, Calls] = {"none": "none", "auto": "any", "required": "only"}


@value
class CallableTool:
    """What of a tool decides how it is called; `pointer` and `schema_pointer` are where it stands in the request."""

    name: str
    parameters: Document
    strict: bool
    pointer: str
    schema_pointer: str
    custom: bool = False


@value
class Answer:
    """A schema that the answer must match, and where it stands; a `plain` answer is the text itself, not JSON."""

    schema: Document
    strict: bool
    pointer: str
    plain: bool = False


@value
class TurnSpec(HashedOnce):
    """What decides a turn's grammar: the tools that may be called, how, and the schema or the grammar of the answer.

    Equal requests share one grammar. `opened` is the part of the turn that the prompt holds already; where the
    reasoning is not `reasoning_apart` it stays in the content, tags and all. `tail` is white space that the template
    writes between a call and the end of its turn.
    """

    format: wire.WireFormat
    tools: tuple[CallableTool, ...]
    calls: Calls
    parallel: bool
    answer: Answer | None
    stops: tuple[str, ...]
    opened: str = ""
    reasoning_apart: bool = True
    tail: str = ""
    grammar: GivenGrammar | None = None

    @property
    def form(self) -> Answer | GivenGrammar | None:
        """What the answer must be; None where any text will do."""
        return self.answer or self.grammar


def turn_spec(
    request: Request, format_: wire.WireFormat, stops: tuple[str, ...], *, parallel: bool, opened: str, tail: str
) -> TurnSpec:
    """What of a request decides its turn's grammar."""
    tools = tuple(map(_callable, request.callable_tools))
    answer = request.response_format
    calls = _CALLS[request.tool_choice.mode] if tools else "none"
    return TurnSpec(
        format=format_,
        tools=tools,
        calls=calls,
        parallel=parallel,
        answer=answer and Answer(Document.of(answer.schema), answer.strict, answer.pointer, answer.plain),
        stops=stops,
        opened=opened,
        reasoning_apart=request.reasoning_format != "none",
        tail=tail,
        grammar=request.grammar,
    )


def _callable(tool: Tool) -> CallableTool:
    """What of a tool decides how it is called: one that declares no parameters takes an object."""
    parameters = Document.of({"type": "object"} if tool.parameters is None else tool.parameters)
    return CallableTool(tool.name, parameters, tool.strict, tool.pointer, tool.schema_pointer, tool.custom)


def weight(spec: TurnSpec) -> int:
    """How many bytes are kept for a turn, roughly."""
    answers = () if spec.answer is None else (spec.answer.schema,)
    grammars = () if spec.grammar is None else (spec.grammar.gbnf,)
    return made_of(*(tool.parameters for tool in spec.tools), *answers, *grammars)


def light(spec: TurnSpec) -> int:
    """As `weight`, for what is little beside the grammar of the turn, which it may share."""
    return weight(spec) // 8


def reading_program(spec: TurnSpec) -> Program:
    """What reads the turn: where no call is allowed, the marks of calls are plain text; what stops it is none of it."""
    turn = (without_calls(spec.format) if spec.calls == "none" else spec.format).turn
    if not spec.reasoning_apart:
        turn = without_reasoning(turn)
    if spec.answer is not None and not spec.answer.plain and _may_be_fenced(turn, spec.stops):
        turn = may_be_fenced(turn)
    stops = map(wire.Mark, _apart(turn, spec.stops))
    return compile_format(wire.Seq(turn, wire.Lenient(wire.NOTHING_WRITTEN, *stops)))


def _may_be_fenced(turn: wire.Node, stops: tuple[str, ...]) -> bool:
    """Whether an answer that stands in a fence can be told from all else, and the format does not have it so anyway."""
    texts = (*FENCES, *stops)
    return not set(FENCES).intersection(wire.WireFormat(turn).marks) and _apart(turn, texts) == texts


def _apart(turn: wire.Node, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the texts that can be marks beside the marks of a turn, since none stands inside another."""
    marks = {*wire.WireFormat(turn).marks, *texts}
    return tuple(text for text in texts if not any(text in mark[1:] or mark in text[1:] for mark in marks))
