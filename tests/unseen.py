"""Chat templates that nobody has seen: ten variants of each family's format, and real turns put into them.

A variant has other tags, spacing, order, separators and special tokens than its family, or plain words in their place.
A turn in it is what a model said in another format, as the template renders it, or with a slip that models make.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random
from typing import Any, NamedTuple

import toolgram
from made_up import ESCAPED, JSON, NAME, PYTHON, VALUE, Family, each, parameters
from toolgram.styles.discovery import discover

VARIANTS, TURNS = 10, 2

# Tags of ten kinds each: plain and special, of one word or two, with all kinds of brackets.
_CALL = [
    ("<tool_use>", "</tool_use>"),
    ("<|call_start|>", "<|call_end|>"),
    ("[DO]", "[/DO]"),
    ("<｜action▁begin｜>", "<｜action▁end｜>"),
    ("<invoke_tool>", "</invoke_tool>"),
    ("<|fn|>", "<|/fn|>"),
    ("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    ("<x:call>", "</x:call>"),
    ("<|request>", "<request|>"),
    ("<run>", "</run>"),
]
_SECTION = [
    ("<tool_uses>", "</tool_uses>"),
    ("<|calls_begin|>", "<|calls_end|>"),
    ("[ACTIONS]", "[/ACTIONS]"),
    ("<｜actions▁begin｜>", "<｜actions▁end｜>"),
    ("<requests>", "</requests>"),
    ("<|fns|>", "<|/fns|>"),
    ("[TOOL_REQUESTS]", "[END_TOOL_REQUESTS]"),
    ("<x:calls>", "</x:calls>"),
    ("<|requests>", "<requests|>"),
    ("<todo>", "</todo>"),
]
_THINK = [
    ("<think>\n", "\n</think>\n\n"),
    ("<|thought|>", "<|/thought|>"),
    ("[REASON]", "[/REASON]"),
    ("<｜think▁begin｜>", "<｜think▁end｜>"),
    ("<thinking>", "</thinking>\n"),
    ("<|muse_start|>", "<|muse_end|>"),
    ("<reasoning>\n", "\n</reasoning>\n"),
    ("<x:think>", "</x:think>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<think>", "</think>"),
]
_FRAME = [
    ("<|assistant|>\n", "<|end|>\n"),
    ("<|im_start|>assistant\n", "<|im_end|>\n"),
    ("[/INST]", "</s>"),
    ("<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    ("<start_of_turn>model\n", "<end_of_turn>\n"),
    ("<|bot|>", "<|eot|>"),
    ("### Assistant:\n", "\n<|stop|>\n\n"),
    ("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"),
    ("<|turn>model\n", "<turn|>\n"),
    ("<bot>: ", "</bot>\n"),
]
_BETWEEN = ["\n", "", "", "", "\n\n", " ", "\n", "", "", "\n"]
_INSIDE = ["\n", "", " ", "", "\n", "", "\n", "", "", "\n"]
_BEFORE = ["", "\n", "", "", "\n\n", "", "\n", "", "", "\n"]
_NAME_KEY = ["name", "tool", "function", "fn", "name", "action", "tool_name", "name", "call", "do"]
_ARGUMENTS_KEY = ["arguments", "input", "args", "params", "parameters", "input", "arguments", "args", "with", "inputs"]


class Variant(NamedTuple):
    """A family's format with other words; `section` is what its calls stand in, `ids` whether it shows ids."""

    family: str
    number: int
    written: Family
    section: tuple[str, str] | None = None
    ids: str = ""
    reasons: bool = True

    @property
    def template(self) -> toolgram.ChatTemplate:
        return self.written.template


def _text(text: str) -> str:
    """A text in Jinja, whatever is in it."""
    return f"{{{{ {text!r} }}}}" if text else ""


def _thought(at: int) -> str:
    opener, closer = _THINK[at]
    said = "{{ m.reasoning_content }}"
    return f"{{% if m.reasoning_content %}}{_text(opener)}{said}{_text(closer)}{{% endif %}}"


def _family(at: int, calls: str, **more: str) -> Family:
    """The frame of a variant; in every third the prompt opens the reasoning, which each turn then shows."""
    header, end = _FRAME[at]
    opener = _THINK[at][0]
    values = {"thought": _thought(at), "header": header, "end": end, "calls": calls}
    if at % 3 == 0 and "thought" not in more:
        said = "{{ m.reasoning_content or '' }}"
        values |= {"prompt": header + opener, "thought": f"{_text(opener)}{said}{_text(_THINK[at][1])}"}
    return Family(**{**values, **more})


def _object(at: int, *, id_key: str = "") -> str:
    """A call as JSON, in every fourth variant with its arguments first."""
    name, arguments = f"{_NAME_KEY[at]!r}: c.function.name", f"{_ARGUMENTS_KEY[at]!r}: c.function.arguments"
    members = [arguments, name] if at % 4 == 3 else [name, arguments]
    if id_key:
        members.insert(0, f"{id_key!r}: c.id")
    return f"{{{{ {{{', '.join(members)}}} | tojson }}}}"


def _objects(at: int) -> Variant:
    """Each call as JSON between tags: Hermes."""
    opener, closer = _CALL[at]
    call = _text(opener + _INSIDE[at]) + _object(at) + _text(_INSIDE[at] + closer)
    return Variant("objects", at, _family(at, _text(_BEFORE[at]) + each(call, _BETWEEN[at])))


def _list(at: int) -> Variant:
    """All calls in a JSON list between tags: Hunyuan, Granite 3."""
    opener, closer = _SECTION[at]
    calls = _text(_BEFORE[at] + opener + "[") + each(_object(at), ", ") + _text("]" + closer)
    return Variant("list", at, _family(at, calls))


def _list_with_ids(at: int) -> Variant:
    """All calls in a JSON list after a tag, with their ids: Mistral Nemo."""
    opener, _ = _SECTION[at]
    calls = _text(opener + "[") + each(_object(at, id_key=("id", "call_id")[at % 2]), ", ") + _text("]")
    return Variant("list with ids", at, _family(at, calls), ids="{id}")


_PARAMETER = [
    ("<parameter={}>\n", "\n</parameter>\n"),
    ("<|arg|>{}<|is|>", "<|/arg|>"),
    ("[ARG {}]", "[/ARG]"),
    ("<｜arg｜>{}<｜is｜>", "<｜arg▁end｜>"),
    ('<param name="{}">', "</param>\n"),
    ("<|key|>{}<|value|>", "<|/value|>"),
    ("<arg {}>", "</arg>\n"),
    ('<x:arg key="{}">', "</x:arg>"),
    ("<|arg>{}<|eq|>", "<arg|>"),
    ("<p {}>\n", "\n</p>\n"),
]
_NAMED = [
    ("<function={}>\n", "</function>\n"),
    ("{}", ""),
    ("{} ", ""),
    ("{}<｜sep｜>", ""),
    ('<tool name="{}">\n', "</tool>\n"),
    ("<|name|>{}<|args|>", ""),
    ("{}\n", ""),
    ('<x:do tool="{}">', "</x:do>"),
    ("call:{} ", ""),
    ("<do {}>\n", "</do>\n"),
]


def _around(words: tuple[str, str], inside: str, what: str) -> str:
    """Jinja of something in between words, with what is named in the place of the braces."""
    before, _, after = words[0].partition("{}")
    return _text(before) + inside + _text(after) + what + _text(words[1])


def _tagged(at: int) -> Variant:
    """A parameter between tags of its own: Qwen3-Coder, GLM, MiniMax M2."""
    opener, closer = _CALL[at]
    inside = parameters(_around(_PARAMETER[at], "{{ k }}", VALUE))
    call = _text(opener + _INSIDE[at]) + _around(_NAMED[at], NAME, inside) + _text(closer)
    return Variant("tagged", at, _family(at, _text(_BEFORE[at]) + each(call, _BETWEEN[at])))


def _typed(at: int) -> Variant:
    """Parameters that say whether they are strings, in a section: DeepSeek V3.2."""
    (begin, end), (opener, closer) = _SECTION[at], _CALL[at]
    word, yes, no = ("string", "true", "false") if at % 2 else ("kind", "text", "json")
    kind = f"{{{{ {yes!r} if v is string else {no!r} }}}}"
    parameter = _text('<arg key="') + "{{ k }}" + _text(f'" {word}="') + kind + _text('">') + VALUE + _text("</arg>\n")
    call = _text(opener) + _around(('<tool name="{}">\n', "</tool>\n"), NAME, parameters(parameter)) + _text(closer)
    calls = _text(_BEFORE[at] + begin + _INSIDE[at]) + each(call, _BETWEEN[at]) + _text(_INSIDE[at] + end)
    return Variant("typed", at, _family(at, calls), section=(begin, end))


_SEPARATOR = [
    "<|with|>",
    "<|sep|>",
    "[ARGS]",
    "<｜sep｜>",
    "\n",
    "<|args|>",
    " <with> ",
    "<x:args>",
    "<|eq|>",
    "\n```json\n",
]


def _named(at: int) -> Variant:
    """A name, a separator and JSON, in a section: DeepSeek V3.1."""
    (begin, end), (opener, closer) = _SECTION[at], _CALL[at]
    close = "\n```" if _SEPARATOR[at].endswith("json\n") else ""
    call = _text(opener) + NAME + _text(_SEPARATOR[at]) + JSON + _text(close + closer)
    calls = _text(_BEFORE[at] + begin) + each(call, _BETWEEN[at]) + _text(end)
    return Variant("named", at, _family(at, calls), section=(begin, end))


def _one_mark(at: int) -> Variant:
    """A mark, a name, another mark and JSON, with nothing around: Ministral."""
    opener, separator = _CALL[at][0], ("[ARGS]", "<|args|>", "<args>")[at % 3]
    return Variant("one mark", at, _family(at, each(_text(opener) + NAME + _text(separator) + JSON)))


def _with_id(at: int) -> Variant:
    """A mark each for the name, the id and JSON: Mistral Small."""
    opener, id_, separator = _CALL[at][0], ("[ID]", "<|id|>", "<id>")[at % 3], ("[ARGS]", "<|args|>", "<args>")[at % 3]
    parts = [NAME, _text(id_) + "{{ c.id }}"]
    call = _text(opener) + "".join(parts) + _text(separator) + JSON
    return Variant("with an id", at, _family(at, each(call)), ids="{id}")


def _counted(at: int) -> Variant:
    """An id that holds the name and a number, in a section: Kimi K2."""
    (begin, end), (opener, closer) = _SECTION[at], _CALL[at]
    form = ("functions.{name}:{n}", "{name}:{n}", "tools.{name}#{n}", "call/{name}/{n}")[at % 4]
    id_ = form.format(name=NAME, n="{{ loop.index0 }}")
    call = _text(opener) + id_ + _text(_SEPARATOR[at % 4]) + JSON + _text(closer)
    calls = _text(_BEFORE[at] + begin) + each(call, _BETWEEN[at]) + _text(end)
    return Variant("counted", at, _family(at, calls), section=(begin, end), ids=form)


def _python(at: int) -> Variant:
    """Calls as Python writes them, in a list or in lines: LFM2, Olmo 3."""
    begin, end = _SECTION[at]
    listed = at % 2
    calls = each(PYTHON, ", " if listed else "\n")
    around = ("[", "]") if listed else ("", "")
    return Variant("python", at, _family(at, _text(_BEFORE[at] + begin + around[0]) + calls + _text(around[1] + end)))


def _actions(at: int) -> Variant:
    """A list of actions over several lines that counts them, and an answer between tags: Command R7B."""
    begin, end = _SECTION[at]
    say, said = ("<|say|>", "<|/say|>") if at % 2 else ("<answer>", "</answer>")
    name, arguments = f"{_NAME_KEY[at]!r}: c.function.name", f"{_ARGUMENTS_KEY[at]!r}: c.function.arguments"
    action = f"{{{{ {{'id': loop.index0 | string, {name}, {arguments}}} | tojson }}}}"
    calls = _text(begin + "[\n    ") + each(action, ",\n    ") + _text("\n]" + end)
    content = f"{{% if m.content %}}{_text(say)}{{{{ m.content }}}}{_text(said)}{{% endif %}}"
    return Variant("actions", at, _family(at, calls, content=content), ids="{n}")


_QUOTES = ['<|"|>', "<|q|>", "<esc>", "<｜str｜>", "<quote>", "<|s|>", "<|'|>", "<x:s>", "<|text|>", "<str>"]


def _quoted(at: int) -> Variant:
    """A notation whose strings have delimiters of their own: Gemma 4."""
    opener, closer = _CALL[at]
    quote = _text(_QUOTES[at])
    value = f"{{% if v is string %}}{quote}{{{{ v }}}}{quote}{{% else %}}{{{{ v | tojson }}}}{{% endif %}}"
    inside = parameters(f"{{{{ k }}}}:{value}{{{{ ',' if not loop.last }}}}")
    call = _text(opener + ("call:", "", "do ")[at % 3]) + NAME + _text("{") + inside + _text("}" + closer)
    return Variant("quoted", at, _family(at, each(call, _BETWEEN[at])))


_HEADERS = ["@@{}\n", ">>>{}\n", "<|to|>{}<|msg|>", "[TO {}]", "<|recipient|>{}\n<|content|>"]


def _recipients(at: int) -> Variant:
    """Parts with recipients: Functionary."""
    header, end = _FRAME[at]
    words = _HEADERS[at % 5]
    user = ("user", "all")[at // 5]
    calls = each(_around((words, ""), NAME, JSON))
    content = f"{{% if m.content %}}{_text(words.replace('{}', user))}{{{{ m.content }}}}{{% endif %}}"
    family = Family(calls, content=content, header=header, end=end, prompt=header + words.partition("{}")[0])
    return Variant("recipients", at, family, reasons=False)


_CHANNELS = ["<|start|>{}<|sep|>", "<|open|>{}<|close|>", "<|part|>{}\n", "[PART {}]", "<x:part {}>"]


def _channels(at: int) -> Variant:
    """Parts with headers, each with an end: Kimi K3, harmony."""
    header, end = _FRAME[at]
    words, done = _CHANNELS[at % 5], ("<|done|>", "[/PART]", "<|/part|>", "</x:part>", "<|end_part|>")[at // 2]

    def part(name: str, inside: str) -> str:
        return _text(words.replace("{}", name)) + inside + _text(done)

    thought = f"{{% if m.reasoning_content %}}{part('thought', '{{ m.reasoning_content }}')}{{% endif %}}"
    content = f"{{% if m.content %}}{part('answer', '{{ m.content }}')}{{% endif %}}"
    before, _, after = words.partition("{}")
    call = _text(before + "call to=") + NAME + _text(after) + JSON + _text(done)
    return Variant("channels", at, Family(each(call), content, thought, header, end))


_KEY_TAGS = [
    ("<{}>", "</{}>"),
    ("<{}>\n", "\n</{}>\n"),
    ("[{}]", "[/{}]"),
    ("<arg:{}>", "</arg:{}>\n"),
    ("<|{}|>", "<|/{}|>"),
    ("<p.{}>", "</p.{}>"),
    ("<{}>", "</{}>\n"),
    ("<x:{}>", "</x:{}>"),
    ("<@{}>", "</@{}>"),
    ("  <{}>", "</{}>\n"),
]


def _key_tags(at: int) -> str:
    """Jinja of parameters whose keys are tags; in every third all values are JSON."""
    opener, closer = _KEY_TAGS[at]
    value = "{{ v | tojson }}" if at % 3 == 2 else VALUE
    return parameters(_around((opener, ""), "{{ k }}", value) + _around((closer, ""), "{{ k }}", ""))


def _keys(at: int) -> Variant:
    """Keys as tags: Claude 2, fine-tunes for agents."""
    opener, closer = _CALL[at]
    call = _text(opener + _INSIDE[at]) + _around(_NAMED[at], NAME, _key_tags(at)) + _text(closer)
    return Variant("keys as tags", at, _family(at, _text(_BEFORE[at]) + each(call, _BETWEEN[at])))


_NAME_TAGS = [
    ("<{}>", "</{}>"),
    ("<{}>\n", "</{}>"),
    ("<|{}|>", "<|/{}|>"),
    ("<tool:{}>", "</tool:{}>"),
    ("<{}> ", "</{}>"),
    ("<@{}>\n", "</@{}>\n"),
    ("<｜{}｜>", "<｜/{}｜>"),
    ("<x.{}>", "</x.{}>"),
    ("<{}>\n", "\n</{}>"),
    ("<{}>\n\n", "</{}>\n"),
]


def _names(at: int) -> Variant:
    """Names as tags, around keys as tags or JSON, and in every fourth inside another tag: Cline, Roo Code."""
    (opener, closer), (begin, end) = _NAME_TAGS[at], _CALL[at] if at % 4 == 3 else ("", "")
    inside = JSON if at % 2 == 0 else _key_tags(at)
    call = _around((opener, ""), NAME, inside) + _around((closer, ""), NAME, "")
    calls = each(_text(begin) + call + _text(end), _BETWEEN[at])
    return Variant("names as tags", at, _family(at, _text(_BEFORE[at]) + calls))


_ATTRIBUTES = [
    ('<arg name="{}" value="', '"/>'),
    ("<arg name='{}' value='", "' />\n"),
    ('<param key="{}" value=', "/>"),
    ('<p k="{}" v="', '"></p>\n'),
    ('<argument={} value="', '" />'),
    ('<set "{}" to=', ">\n"),
    ('<x:arg name="{}" value="', '"/>\n'),
    ('<with {}="', '"/>'),
    ('<arg name="{}" value=', " />"),
    ('  <arg name="{}" value="', '"/>\n'),
]


def _attributes(at: int) -> Variant:
    """Keys and values as attributes: JSON where the template writes no quotes, in every fourth escaped as in HTML."""
    words, (opener, closer) = _ATTRIBUTES[at], _CALL[at]
    value = "{{ v | tojson }}" if words[0].endswith("=") else ESCAPED if at % 4 == 3 else VALUE
    inside = parameters(_around(words, "{{ k }}", value))
    call = _text(opener) + _around(('<tool name="{}">\n', "</tool>\n"), NAME, inside) + _text(closer)
    return Variant("attributes", at, _family(at, _text(_BEFORE[at]) + each(call, _BETWEEN[at])))


FAMILIES: tuple[Callable[[int], Variant], ...] = (
    _objects,
    _list,
    _list_with_ids,
    _tagged,
    _typed,
    _named,
    _one_mark,
    _with_id,
    _counted,
    _python,
    _actions,
    _quoted,
    _recipients,
    _channels,
    _keys,
    _names,
    _attributes,
    lambda at: _tagged(at)._replace(family="tagged in a section", **_in_section(at)),
)


def _in_section(at: int) -> dict[str, Any]:
    """Tagged parameters with a section around their calls: MiniMax M2, Step."""
    begin, end = _SECTION[at]
    inside = parameters(_around(_PARAMETER[at], "{{ k }}", VALUE))
    call = _text(_CALL[at][0]) + _around(_NAMED[at], NAME, inside) + _text(_CALL[at][1])
    calls = _text(_BEFORE[at] + begin + _INSIDE[at]) + each(call, _BETWEEN[at]) + _text(_INSIDE[at] + end)
    return {"written": _family(at, calls), "section": (begin, end)}


def variants() -> list[Variant]:
    """All of them."""
    return [family(at) for family in FAMILIES for at in range(VARIANTS)]


@dataclass(frozen=True)
class Turn:
    """A turn of a variant: the text that a model would write, the tools it had, and what it says."""

    variant: Variant
    slip: str
    text: str
    tools: list[Any]
    said: dict[str, Any]


_SLIPS = ("as it is", "no section", "section left open")


def turns(recorded: list[dict[str, Any]]) -> Iterator[Turn]:
    """Recorded turns put into all variants: for each some that call, of which one has a slip where there may be one."""
    calling = cycle(_usable(recorded))
    for variant in variants():
        picked = list(islice(calling, TURNS))
        slips = [_SLIPS[0]] * TURNS
        if variant.section is not None:
            slips[-1] = _SLIPS[1 + variant.number % 2]
        for slip, (tools, said) in zip(slips, picked, strict=True):
            yield _put(variant, slip, tools, said)


def _usable(recorded: list[dict[str, Any]]) -> list[tuple[list[Any], dict[str, Any]]]:
    """What models said that called tools, each once, in an order of its own; their tools are beside."""
    found: dict[str, tuple[list[Any], dict[str, Any]]] = {}
    for case in recorded:
        said, tools = case["expect"], case["request"]["tools"]
        if case["is_partial"] or not said["tool_calls"] or not tools or "<think>" in said["reasoning_content"]:
            continue
        names = [tool["function"]["name"] for tool in tools]
        calls = [(call["name"], json.loads(call["arguments"])) for call in said["tool_calls"]]
        if all(name in names and isinstance(arguments, dict) for name, arguments in calls):
            kept = {key: (said.get(key) or "").strip() for key in ("content", "reasoning_content")}
            found.setdefault(json.dumps([kept, calls]), (tools, {**kept, "calls": calls}))
    order = list(found.values())
    Random(7).shuffle(order)
    return order


def _put(variant: Variant, slip: str, tools: list[Any], said: dict[str, Any]) -> Turn:
    """What was said as the variant's template renders it, less what its prompt holds and what ends the turn."""
    calls = [
        {"id": _id(variant, name, at), "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(said["calls"])
    ]
    thought = said["reasoning_content"] if variant.reasons else ""
    message = {"role": "assistant", "content": said["content"], "reasoning_content": thought, "tool_calls": calls}
    question = {"role": "user", "content": "Please do."}
    template, family = variant.template, variant.written
    prompt = template.render([question], tools=tools, add_generation_prompt=True)
    whole = template.render([question, message], tools=tools, add_generation_prompt=False)
    if not whole.startswith(prompt):
        raise ValueError(f"{variant.family} {variant.number}: a turn does not begin as its prompt does")
    text = whole.removeprefix(prompt)
    text = text[: text.rindex(family.end.strip())].removesuffix("\n" if family.end[0] == "\n" else "")
    if slip != _SLIPS[0] and variant.section is not None:
        begin, end = variant.section
        text = text.replace(begin, "", 1) if slip == _SLIPS[1] else text
        text = text[: text.rindex(end)]
    shown = [call["id"] if variant.ids else None for call in calls]
    return Turn(variant, slip, text, tools, {**said, "reasoning_content": thought, "ids": shown})


def _id(variant: Variant, name: str, at: int) -> str:
    """The id of a call, in the form that the variant shows, or any."""
    return (variant.ids or "{id}").format(name=name, n=at, id=f"abcdef{at:03}")


def reads(turn: Turn) -> str:
    """What goes wrong when discovery alone reads a turn; "" where nothing does."""
    found = discover(turn.variant.template)
    if found.style is None:
        return f"no style: {found.why}"
    body = {"messages": [{"role": "user", "content": "Please do."}], "tools": turn.tools}
    try:
        plan = toolgram.plan(body, turn.variant.template, found.style)
    except toolgram.ToolgramError as error:
        return f"no plan: {error}"
    message = plan.parse(turn.text)
    said = turn.said
    calls = [(call.name, _parsed(call.arguments)) for call in message.tool_calls]
    if calls != [(name, arguments) for name, arguments in said["calls"]]:
        return f"calls {calls}, content {message.content!r}, reasoning {message.reasoning!r}"
    if (message.content or "").strip() != said["content"]:
        return f"content {message.content!r}"
    if (message.reasoning or "").strip() != said["reasoning_content"]:
        return f"reasoning {message.reasoning!r}"
    ids = [call.id for call in message.tool_calls]
    return "" if ids == said["ids"] else f"ids {ids}"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
