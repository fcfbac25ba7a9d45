"""What is wrong with a chat template, found by rendering: what was put in, and does not come out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from toolgram.errors import TemplateError
from toolgram.styles.base import ToolStyle
from toolgram.styles.choose import choose_style
from toolgram.styles.discovery import discover
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.sandbox import Raised

Level = Literal["error", "warning", "note"]
Json = dict[str, Any]

# Words that occur in no template; the ids are of nine letters and digits, for Mistral's templates take no others.
_SYSTEM, _USER, _ANSWER, _MORE, _LATER = "zqsystem", "zquser", "zqanswer", "zqmore", "zqlater"
_TOOL, _ABOUT, _CITY, _UNIT, _MEANING = "zqtool", "zqabout", "zqcity", "zqunit", "zqmeaning"
_FIRST, _SECOND = "zqfirst", "zqsecond"
_IDS = ("zqcall001", "zqcall002")
_RESULTS = ("zqresult1", "zqresult2")
_REASONING = "zqreason"
_DAYS = (datetime(2024, 1, 2), datetime(2025, 6, 7))
_ENCODED = "the arguments of calls are written as Python, or as JSON in a string"
_NAMELESS = "a call is rendered, and its name is missing"
_ONCE = "{{ call.function.arguments | tojson }}, once"
_FATAL = frozenset({"refuses-user", "drops-user"})
_CONSEQUENCES = {"drops-answer": ("after-result", "content-with-calls"), "order": ("result-order", "call-name")}
_MARKER = re.compile(r"<[^<>\n]*>|\[[^\[\]\n]*\]|[^<\[\n]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to know of a template: an error loses what was said, a warning may, a note says what it cannot do.

    `evidence` is what the template renders there, `mend` what to do about it.
    """

    code: str
    level: Level
    what: str
    evidence: str = ""
    mend: str = ""


def lint(template: ChatTemplate) -> tuple[Finding, ...]:
    """What is wrong with a template, and what it cannot do, the gravest first."""
    found = [*_conversation(template)]
    if not _FATAL & {each.code for each in found}:
        found += [*_tools(template), *_calls(template), *_further(template)]
    follow = set[str]().union(*(_CONSEQUENCES.get(each.code, ()) for each in found))
    kept = (each for each in found if each.code not in follow)
    return tuple(sorted(kept, key=lambda each: ("error", "warning", "note").index(each.level)))


def verdict(findings: Sequence[Finding], style: ToolStyle | None = None) -> str:
    """A sentence that says whether the template can be used; `style` is the one that it is used with, if known."""
    errors = [each for each in findings if each.level == "error"]
    if errors:
        return f"{len(errors)} {'error' if len(errors) == 1 else 'errors'}: {'; '.join(each.what for each in errors)}"
    lacking = {each.code for each in findings}
    if "no-calls" in lacking and style is not None and not style.is_generic:
        return "fit for conversations and for tools; it writes no calls: those of the history are put into the content"
    if "no-calls" in lacking:
        return "fit for conversations; it writes no calls, so that a generic style announces the tools"
    return "fit for conversations and for tools"


# Conversations


def _conversation(template: ChatTemplate) -> Iterator[Finding]:
    alone = _rendered(template, [_user()])
    if isinstance(alone, TemplateError):
        # Some take nothing but a list of parts, or another order; what they refuse is said by what they raise.
        yield Finding("refuses-user", "error", "it refuses a conversation of one user message", str(alone))
        return
    if _USER not in alone and _USER not in str(_rendered(template, [_user(parts=True)])):
        yield Finding("drops-user", "error", "the user's message is missing", alone, _print_of("message.content"))
        return
    yield from _roles(template)
    prompt = template.capabilities.generation_prompt
    if not prompt and (header := _header(template).strip()):
        mend = "{% if add_generation_prompt %}…{% endif %} at the end begins the model's turn"
        what = f"add_generation_prompt adds nothing, though turns begin with {header!r}"
        yield Finding("no-generation-prompt", "error", what, alone, mend)
    if not template.capabilities.stop:
        yield Finding(
            "no-end", "error", "nothing ends a turn of the assistant", _shown(template, [_user(), _said(_ANSWER)])
        )
    if prompt:
        yield from _same_header(template, prompt)


def _roles(template: ChatTemplate) -> Iterator[Finding]:
    said = [_user(), _said(_ANSWER), _user(_MORE)]
    turns = _shown(template, said)
    for word, code, what in (
        (_ANSWER, "drops-answer", "what the assistant said"),
        (_MORE, "drops-turn", "a later turn"),
    ):
        if word not in turns:
            yield Finding(code, "error", f"{what} is missing", turns, _print_of("message.content"))
    places = [turns.find(word) for word in (_USER, _ANSWER, _MORE)]
    if -1 not in places and places != sorted(places):
        yield Finding("order", "error", "turns are in another order than they were said in", turns)
    system = _rendered(template, [{"role": "system", "content": _SYSTEM}, _user()])
    if isinstance(system, TemplateError):
        yield Finding(
            "refuses-system", "note", "it refuses a system message, which becomes a part of the user's", str(system)
        )
    elif _SYSTEM not in system:
        yield Finding(
            "drops-system", "warning", "the system message is missing", system, _print_of("messages[0].content")
        )


def _same_header(template: ChatTemplate, prompt: str) -> Iterator[Finding]:
    """The assistant's turns must begin in the history as the generation prompt begins the next one."""
    begun = _header(template)
    head, other = (_MARKER.match(text.strip()) for text in (prompt, begun))
    if head and other and head[0] != other[0]:
        what = f"the generation prompt begins a turn with {head[0]!r}, the history with {other[0]!r}"
        yield Finding("generation-prompt", "warning", what, begun, "write both alike: a model goes on as it was shown")


def _header(template: ChatTemplate) -> str:
    """What begins a turn of the assistant in the history; "" where that cannot be told."""
    before = _shown(template, [_user()], add_generation_prompt=False)
    whole = _shown(template, [_user(), _said(_ANSWER), _user(_MORE)])
    return whole[len(before) : whole.find(_ANSWER)] if before and whole.startswith(before) and _ANSWER in whole else ""


# Tools


def _tools(template: ChatTemplate) -> Iterator[Finding]:
    if not template.capabilities.supports_tools:
        without, with_ = _shown(template, [_user()]), _shown(template, [_user()], tools=[_tool()])
        failed = _failed(_rendered(template, [_user()], tools=[_tool()]))
        if without and failed:
            mend = "a tool is {{ tool.function.name }}, its description, which may be none, and its parameters"
            yield Finding("tools-fail", "error", "tools cannot be shown", failed, mend)
        elif _TOOL in with_:
            yield Finding("second-tool", "error", "only the first tool is shown", with_, "loop over the tools")
        elif with_ and with_ != without:
            what = "tools are shown without their names"
            yield Finding("tool-name", "error", what, with_, _print_of("tool.function.name"))
        else:
            yield Finding("no-tools", "note", "it does not show tools")
        return
    messages = [_user()]
    if not template.capabilities.supports_tools_without_system:
        what = "tools are shown only beside a system message"
        text = _shown(template, messages, tools=[_tool()])
        mend = "show the tools where the first message is another, too; toolgram adds an empty one"
        yield Finding("tools-by-system", "warning", what, text, mend)
        messages = [{"role": "system", "content": ""}, _user()]
    text = _shown(template, messages, tools=[_tool()])
    if not text:
        return  # it wants more of a conversation than that
    for word, code, what, field in (
        (_ABOUT, "tool-description", "their descriptions", "tool.function.description"),
        (_UNIT, "tool-parameters", "their parameters", "tool.function.parameters"),
    ):
        if word not in text:
            yield Finding(code, "error", f"tools are shown without {what}", text, _print_of(field))
    if _UNIT in text and _MEANING not in text:
        what = "parameters are shown without their descriptions"
        yield Finding("parameter-description", "warning", what, text, _print_of("property.description"))


# Calls, and their results


def _calls(template: ChatTemplate) -> Iterator[Finding]:
    can = template.capabilities
    if not can.supports_tool_calls:
        yield from _no_calls(template)
        return
    form = can.tool_call_arguments or "object"
    one = _turn(template, _said("", _call(_FIRST, form)))
    if _TOOL not in one:
        mend = _print_of("call.function.name")
        yield Finding("call-name", "error", _NAMELESS, one, mend)
        return
    if can.supports_tool_results:
        yield from _results(template, form)
    else:
        yield Finding(
            "no-results", "warning", "it shows no results of tools, or refuses them", one, "render the role `tool`"
        )
    two = _turn(template, _said("", _call(_FIRST, form), _call(_SECOND, form, 1)))
    if can.supports_parallel_tool_calls:
        pass
    elif _FIRST in two and _SECOND not in two:
        yield Finding("second-call", "error", "of two calls the second is missing", two, "loop over message.tool_calls")
    else:
        yield Finding("one-call", "note", "it takes one call in a turn", two)
    if not can.supports_content_with_calls:
        text = _turn(template, _said(_ANSWER, _call(_FIRST, form)))
        yield Finding(
            "content-with-calls", "warning", "content beside calls is missing", text, _print_of("message.content")
        )
    if "None" in _turn(template, _said(None, _call(_FIRST, form))).replace("NoneType", ""):
        text = _turn(template, _said(None, _call(_FIRST, form)))
        yield Finding("prints-none", "warning", "null content is printed as None", text, "{{ message.content or '' }}")
    if choose_style(template)[0].is_generic:
        if any(sign in one for sign in (f"'{_CITY}': ", f'\\"{_CITY}\\"')):
            yield Finding("call-encoding", "error", _ENCODED, one, _ONCE)
        else:
            yield Finding("no-style", "warning", f"its calls cannot be read back: {discover(template).why}", one)


def _no_calls(template: ChatTemplate) -> Iterator[Finding]:
    """No calls, or such as lose what was said, or fail."""
    plain = _turn(template, _said(""))
    for form in ("object", "text"):
        text = _turn(template, _said("", _call(_FIRST, form)))
        shown = {word for word in (_TOOL, _FIRST) if word in text and text != plain}
        if shown == {_TOOL, _FIRST}:
            yield Finding("call-encoding", "error", _ENCODED, text, _ONCE)
        elif shown == {_TOOL}:
            mend = _print_of("call.function.arguments")
            yield Finding("call-arguments", "error", "a call is rendered, and its arguments are missing", text, mend)
        elif shown:
            yield Finding("call-name", "error", _NAMELESS, text, _print_of("call.function.name"))
        if shown:
            return
    if plain and (failure := _failure(template)):
        mend = "a call is {{ call.function.name }} and {{ call.function.arguments }}; its content may be none"
        yield Finding("call-fails", "error", "a call cannot be rendered", failure, mend)
    else:
        yield Finding("no-calls", "note", "it writes no calls")


def _failure(template: ChatTemplate) -> str:
    """Why no call is rendered, where the template fails on each of them; "" where it refuses one, or does not fail."""
    empty = None if template.capabilities.supports_null_content else ""
    said = [[_user(), _said(empty, _call(_FIRST, form))] for form in ("object", "text")]
    tried = [_failed(_rendered(template, messages, tools=tools)) for messages in said for tools in ([_tool()], None)]
    return tried[0] if all(tried) else ""


def _failed(rendered: str | TemplateError) -> str:
    """What went wrong; "" where nothing did, or where the template itself refuses."""
    is_failure = isinstance(rendered, TemplateError) and not isinstance(rendered.__cause__, Raised)
    return str(rendered) if is_failure else ""


def _results(template: ChatTemplate, form: str) -> Iterator[Finding]:
    calls = _said("", _call(_FIRST, form), _call(_SECOND, form, 1))
    if not template.capabilities.supports_parallel_tool_calls:
        return
    text = _shown(template, [_user(), calls, _result(0), _result(1), _said(_LATER)], tools=[_tool()])
    if not text:
        return
    missing = [result for result in _RESULTS if result not in text]
    if missing:
        yield Finding(
            "second-result", "error", "of two results one is missing", text, "render every message of role `tool`"
        )
    elif text.find(_RESULTS[0]) > text.find(_RESULTS[1]):
        yield Finding("result-order", "error", "results are in another order than they came in", text)
    if _LATER not in text:
        yield Finding("after-result", "error", "the answer that follows a result is missing", text)
    if (
        not template.capabilities.supports_tool_ids_in_results
        and not template.capabilities.supports_tool_names_in_results
    ):
        yield Finding("result-ids", "note", "results are told from each other by their order alone", text)


# The rest


def _further(template: ChatTemplate) -> Iterator[Finding]:
    if not template.capabilities.supports_reasoning:
        yield Finding("no-reasoning", "note", "it drops the reasoning of earlier turns")
    one, other = (_shown(template, [_user()], now=day, tools=[_tool()]) for day in _DAYS)
    if one != other:
        yield Finding(
            "date", "note", "it prints the date, so that a prompt is another one tomorrow", _difference(one, other)
        )
    plain = _shown(template, [_user("ü<b>&'")], tools=None)
    if plain and "ü<b>&'" not in plain and _USER not in plain:
        yield Finding(
            "escapes", "error", "it changes characters of what the user says", plain, "do not escape contents"
        )


def _difference(one: str, other: str) -> str:
    at = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    return one[max(0, at - 40) : at + 40]


def _user(text: str = _USER, *, parts: bool = False) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text}] if parts else text}


def _said(content: str | None, *calls: Json) -> Json:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


def _call(value: str, form: str, at: int = 0) -> Json:
    arguments: Any = {_CITY: value}
    if form == "text":
        arguments = json.dumps(arguments)
    return {"id": _IDS[at], "type": "function", "function": {"name": _TOOL, "arguments": arguments}}


def _result(at: int) -> Json:
    return {"role": "tool", "name": _TOOL, "tool_call_id": _IDS[at], "content": _RESULTS[at]}


def _tool(name: str = _TOOL) -> Json:
    properties = {_CITY: {"type": "string"}, _UNIT: {"type": "string", "description": _MEANING}}
    parameters = {"type": "object", "properties": properties, "required": [_CITY]}
    return {"type": "function", "function": {"name": name, "description": _ABOUT, "parameters": parameters}}


def _print_of(field: str) -> str:
    return f"print {{{{ {field} }}}}"


def _turn(template: ChatTemplate, message: Json) -> str:
    """An assistant's turn as it is rendered, "" if it is refused; beside the tools, which have names as well, where no
    call is shown without them."""
    if message.get("content", "") == "":
        message = {**message, "content": None if template.capabilities.supports_null_content else ""}
    first = ""
    for tools in (None, [_tool()]):
        text = _shown(template, [_user(), message, _user(_MORE)], tools=tools)
        text = text or _shown(template, [_user(), message], tools=tools)
        turn = text[text.rfind(_USER) + len(_USER) :] if text else ""
        if _FIRST in turn:
            return turn
        first = first or turn
    return first


def _shown(template: ChatTemplate, messages: Sequence[Json], **options: Any) -> str:
    """A conversation as it is rendered; "" where it is refused."""
    found = _rendered(template, messages, **options)
    return "" if isinstance(found, TemplateError) else found


def _rendered(
    template: ChatTemplate,
    messages: Sequence[Json],
    *,
    tools: Sequence[Json] | None = None,
    now: datetime = _DAYS[0],
    add_generation_prompt: bool = True,
) -> str | TemplateError:
    can = template.capabilities
    if can.requires_typed_content:
        messages = [_typed(message) for message in messages]
    try:
        variables = can.tool_variables(tools, now)
        return template.render(messages, add_generation_prompt=add_generation_prompt, now=now, **variables)
    except TemplateError as error:
        return error


def _typed(message: Json) -> Json:
    content = message["content"]
    return {**message, "content": [{"type": "text", "text": content}]} if isinstance(content, str) else message
