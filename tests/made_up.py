"""Chat templates that no registered style was made for: families that are made up, or written in the manner of others.

Each is written by a small frame around how it writes its turns, so that what differs is what is seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import toolgram
from toolgram.styles.base import ToolStyle
from toolgram.styles.discovery import discover
from toolgram.styles.native import NATIVE

SHARED = Path(__file__).resolve().parents[2] / "shared" / "templates"


@dataclass(frozen=True)
class Family:
    """How a family writes a turn; Jinja, where `m` is the message and `c.function` a call's function."""

    calls: str
    content: str = "{{ m.content or '' }}"
    thought: str = ""
    header: str = "<|assistant|>\n"
    end: str = "<|end|>\n"
    prompt: str = ""

    @property
    def template(self) -> toolgram.ChatTemplate:
        return toolgram.ChatTemplate(
            "{% if tools %}<|system|>\nTools: {{ tools | tojson }}<|end|>\n{% endif %}"
            "{% for m in messages %}{% if m.role == 'assistant' %}"
            f"{self.header}{self.thought}{self.content}{{% if m.tool_calls %}}{self.calls}{{% endif %}}{self.end}"
            "{% else %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endif %}{% endfor %}"
            f"{{% if add_generation_prompt %}}{self.prompt or self.header}{{% endif %}}"
        )


def each(call: str, separator: str = "") -> str:
    """A call after the other."""
    between = f"{{{{ {separator!r} if not loop.last }}}}" if separator else ""
    return f"{{% for c in m.tool_calls %}}{call}{between}{{% endfor %}}"


def parameters(parameter: str) -> str:
    """A parameter after the other; strings as they are, other values as JSON."""
    return f"{{% for k, v in c.function.arguments.items() %}}{parameter}{{% endfor %}}"


NAME, JSON = "{{ c.function.name }}", "{{ c.function.arguments | tojson }}"
VALUE = "{{ v if v is string else v | tojson }}"
ESCAPED = "{{ (v if v is string else v | tojson) | e }}"
OBJECT = f'{{{{ "{{" }}}}"name": "{NAME}", "arguments": {JSON}{{{{ "}}" }}}}'
PARAMETERS = OBJECT.replace('arguments"', 'parameters"', 1)
THOUGHT = "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
PYTHON = (
    f"{NAME}({{% for k, v in c.function.arguments.items() %}}{{{{ k }}}}="
    "{{ v | tojson if v is string or v is mapping else v }}{% if not loop.last %}, {% endif %}{% endfor %})"
)
_CALL = "{'name': c.function.name, 'arguments': c.function.arguments}"
_FUNCTION = f"{{{{ {_CALL} | tojson }}}}"

MADE_UP = {
    "other keys in a list": Family(
        "<<CALLS>>["
        + each("{{ {'tool': c.function.name, 'input': c.function.arguments, 'ref': c.id} | tojson }}", ", ")
        + "]<</CALLS>>"
    ),
    "an attribute for the name, another for the id": Family(
        each(f'<call id="{{{{ c.id }}}}" tool="{NAME}">{JSON}</call>', "\n")
    ),
    "arguments before the name": Family(
        each("[[do]]{{ {'args': c.function.arguments, 'fn': c.function.name} | tojson }}[[/do]]")
    ),
    "keyed by the name": Family(
        "<|tools_prefix|>[" + each(f'{{{{ "{{" }}}}"{NAME}": {JSON}{{{{ "}}" }}}}', ", ") + "]<|tools_suffix|>"
    ),
    "named parameters in lines": Family(
        "<actions>\n"
        + each(f"<act {NAME}>\n" + parameters(f"<p {{{{ k }}}}>{VALUE}</p>\n") + "</act>\n")
        + "</actions>"
    ),
    "typed parameters": Family(
        each(
            f"<do:{NAME}>"
            + parameters("<arg key=\"{{ k }}\" is=\"{{ 'text' if v is string else 'data' }}\">" + VALUE + "</arg>")
            + "</do>"
        )
    ),
    "a fence": Family("\nI call:\n```tool\n" + each(_FUNCTION, "\n") + "\n```"),
    "Python, a line each": Family("<calls>" + each(PYTHON, "\n") + "</calls>"),
    "words of its own before each part": Family(
        each(f"@@{NAME}\n{JSON}"),
        content="{% if m.content %}@@user\n{{ m.content }}{% endif %}",
        prompt="<|assistant|>\n@@",
    ),
    "answers and thoughts between tags": Family(
        "<|tool|>" + each(f"{NAME} <|with|> {JSON}", " <|and|> ") + "<|/tool|>",
        content="{% if m.content %}<|say|>{{ m.content }}<|/say|>{% endif %}",
        thought="{% if m.reasoning_content %}<|muse|>{{ m.reasoning_content }}<|/muse|>{% endif %}",
    ),
    "the shape of the API": Family(
        "<invoke>" + each(f"{{{{ {{'type': 'function', 'function': {_CALL}}} | tojson }}}}", "\n") + "</invoke>"
    ),
    "a turn for each call": Family(each(f"<call>{OBJECT}</call>", "<|end|>\n<|assistant|>\n")),
    "calls that want results": Family(
        each(f"<ask>{NAME} {JSON}</ask>") + "{% if loop.last %}{{ raise_exception('no result') }}{% endif %}"
    ),
    "an index before the name": Family(
        "<todo>" + each(f'<item no="{{{{ loop.index }}}}" do="{NAME}">{JSON}</item>') + "</todo>"
    ),
    "JSON over several lines": Family(
        each(f"<run>\n{{{{ {_CALL} | tojson(indent=2) }}}}\n</run>", "\n"), header="### Assistant:\n", end="\n\n"
    ),
    "the name twice": Family(
        each(f"<call to={NAME}><do {NAME}>{JSON}</do></call>"),
    ),
    "the name before JSON that has it": Family(each(f"<|to|>{NAME}<|call|>{OBJECT}<|done|>")),
    "strings in a fence": Family(
        each(
            f'<do name="{NAME}">'
            + parameters(
                '<p name="{{ k }}">{% if v is string and "&" in v %}<![CDATA[{{ v }}]]>{% else %}{{ v }}{% endif %}</p>'
            )
            + "</do>"
        ),
    ),
    "printed by Python": Family(each(f"<do {NAME}>" + parameters("<p {{ k }}>{{ v }}</p>") + "</do>")),
    "a last turn without its end": Family(
        "<calls>[" + each(OBJECT, ", ") + "{% if not loop.last %}]</calls>{% endif %}",
    ),
    "names and keys as tags": Family(
        each(f"<{NAME}>\n" + parameters("<{{ k }}>" + VALUE + "</{{ k }}>\n") + f"</{NAME}>", "\n")
    ),
    "names as tags around JSON": Family(each(f"<|{NAME}|>{JSON}<|/{NAME}|>")),
    "names as tags inside a tag": Family(
        each(f"<do>\n<{NAME}>\n" + parameters("<{{ k }}>\n" + VALUE + "\n</{{ k }}>\n") + f"</{NAME}>\n</do>", "\n")
    ),
    "keys as tags in a section": Family(
        "<function_calls>\n"
        + each(
            f"<invoke>\n<tool_name>{NAME}</tool_name>\n<parameters>\n"
            + parameters("<{{ k }}>" + VALUE + "</{{ k }}>\n")
            + "</parameters>\n</invoke>\n"
        )
        + "</function_calls>"
    ),
    "values in attributes": Family(
        each(f'<call tool="{NAME}">' + parameters('<arg name="{{ k }}" value="' + VALUE + '"/>') + "</call>", "\n")
    ),
    "quoted values in attributes": Family(
        each(f'<call tool="{NAME}">' + parameters('<arg name="{{ k }}" value={{ v | tojson }} />') + "</call>")
    ),
    "quoted values between tags": Family(
        each(f"<call>{NAME}\n" + parameters("<key>{{ k }}</key><value>{{ v | tojson }}</value>\n") + "</call>")
    ),
    "quoted values, keys as tags": Family(
        each(f"<call {NAME}>" + parameters("<{{ k }}>{{ v | tojson }}</{{ k }}>") + "</call>")
    ),
    "escaped values in attributes": Family(
        each(f'<use tool="{NAME}">' + parameters(f'<arg name="{{{{ k }}}}" value="{ESCAPED}"/>') + "</use>", "\n")
    ),
    "escaped strings, keys as tags": Family(
        each(f"<@{NAME}>" + parameters("<{{ k }}>{{ v | e if v is string else v | tojson }}</{{ k }}>") + f"</@{NAME}>")
    ),
    "quoted and escaped values in attributes": Family(
        each(f'<do name="{NAME}">' + parameters('<with key="{{ k }}" value="{{ v | tojson | e }}" />') + "</do>", "\n")
    ),
    "compact JSON": Family(
        each('<f>{"n":"' + NAME + '","a":{{ c.function.arguments | tojson(separators=(",", ":")) }}}</f>')
    ),
}

# In the manner of families whose templates are public; from memory, so that details may differ.
IN_THE_MANNER_OF = {
    "Phi 4 mini": Family(
        "<|tool_call|>[" + each(OBJECT, ",") + "]<|/tool_call|>", header="<|assistant|>", end="<|end|>"
    ),
    "Jamba": Family(
        "<tool_calls>[\n    " + each(OBJECT, ",\n    ") + "\n]</tool_calls>",
        header="<|bom|><|assistant|> ",
        end="<|eom|>",
    ),
    "xLAM": Family("[" + each(OBJECT, ", ") + "]", header="<|im_start|>assistant\n", end="<|im_end|>\n"),
    "xLAM 2": Family(
        "[" + each(OBJECT, ", ") + "]",
        content="{{ m.content if m.content and not m.tool_calls }}",
        header="<|im_start|>assistant\n",
        end="<|im_end|>\n",
    ),
    "Llama 3": Family(
        each(PARAMETERS),
        content="{{ m.content if m.content and not m.tool_calls }}",
        header="<|start_header_id|>assistant<|end_header_id|>\n\n",
        end="<|eot_id|>",
    ),
    "ToolACE": Family("[" + each(PYTHON, ", ") + "]"),
    "HyperCLOVA X": Family(
        "<|im_start|>assistant -> tool/function_call\n[" + each(OBJECT, ", ") + "]<|im_end|>\n",
        content="{% if m.content %}<|im_start|>assistant\n{{ m.content }}<|im_end|>\n{% endif %}",
        thought="{% if m.reasoning_content %}<|im_start|>assistant/think\n"
        "{{ m.reasoning_content }}<|im_end|>\n{% endif %}",
        header="",
        end="",
        prompt="<|im_start|>assistant",
    ),
    "EXAONE": Family(
        each("<tool_call>" + OBJECT + "</tool_call>", "\n"),
        thought="<think>\n{{ m.reasoning_content or '' }}\n</think>\n\n",
        header="[|assistant|]\n",
        end="[|endofturn|]\n",
        prompt="[|assistant|]\n<think>\n",
    ),
    "Llama 4": Family(
        each(PARAMETERS),
        header="<|header_start|>assistant<|header_end|>\n\n",
        end="<|eot|>",
    ),
    "Granite 3": Family(
        "<|tool_call|>[" + each(OBJECT, ", ") + "]",
        header="<|start_of_role|>assistant<|end_of_role|>",
        end="<|end_of_text|>\n",
    ),
    "InternLM": Family(
        each(f"<|action_start|><|plugin|>\n{PARAMETERS}<|action_end|>", "\n"),
        header="<|im_start|>assistant\n",
        end="<|im_end|>\n",
    ),
    "Hunyuan": Family(
        "\n<tool_calls>\n" + each(f"<tool_call>{NAME}\n```json\n{JSON}\n```\n</tool_call>\n") + "</tool_calls>",
        content="<answer>\n{{ m.content or '' }}\n</answer>",
        thought="<think>\n{{ m.reasoning_content or '' }}\n</think>\n",
        header="<|startoftext|>",
        end="<|eos|>",
    ),
    "Seed-OSS": Family(
        each(
            f"<seed:tool_call>\n<function={NAME}>\n"
            + parameters("<parameter={{ k }}>" + VALUE + "</parameter>\n")
            + "</function>\n</seed:tool_call>",
            "\n",
        ),
        thought="{% if m.reasoning_content %}<seed:think>{{ m.reasoning_content }}</seed:think>{% endif %}",
        header="<seed:bos>assistant\n",
        end="<seed:eos>",
    ),
    "Step": Family(
        "<｜tool_calls_begin｜>"
        + each(
            f'<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{NAME}">'
            + parameters('<steptml:parameter name="{{ k }}">' + VALUE + "</steptml:parameter>")
            + "</steptml:invoke><｜tool_call_end｜>"
        )
        + "<｜tool_calls_end｜>",
        thought="{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n{% endif %}",
        header="<｜BOT｜>assistant\n",
        end="<｜EOT｜>",
    ),
    "Ernie": Family(
        each("\n<tool_call>\n" + OBJECT + "\n</tool_call>\n"),
        content="{% if m.content %}<response>\n{{ m.content }}\n</response>\n{% endif %}",
        thought=THOUGHT,
        header="<|im_start|>assistant\n",
        end="<|im_end|>\n\n",
    ),
    "MiniMax M2": Family(
        "\n<minimax:tool_call>\n"
        + each(
            f'<invoke name="{NAME}">\n'
            + parameters('<parameter name="{{ k }}">' + VALUE + "</parameter>\n")
            + "</invoke>\n"
        )
        + "</minimax:tool_call>",
        thought=THOUGHT,
        header="]~b]ai\n",
        end="[e~[\n",
        prompt="]~b]ai\n<think>\n",
    ),
    "Functionary 3.1": Family(
        each(f"<function={NAME}>{JSON}</function>"),
        header="<|start_header_id|>assistant<|end_header_id|>\n\n",
        end="<|eom_id|>",
    ),
    "Nemotron Nano 2": Family(
        "<TOOLCALL>[" + each(OBJECT, ", ") + "]</TOOLCALL>",
        header="<SPECIAL_11>Assistant\n",
        end="\n<SPECIAL_12>\n",
        prompt="<SPECIAL_11>Assistant\n<think>\n",
    ),
    "Olmo 3": Family(
        "<function_calls>" + each(PYTHON, "\n") + "</function_calls>",
        header="<|im_start|>assistant\n",
        end="<|im_end|>\n",
    ),
    "LongCat": Family(
        each(
            f"<longcat_tool_call>{NAME}\n"
            + parameters(
                "<longcat_arg_key>{{ k }}</longcat_arg_key>\n<longcat_arg_value>" + VALUE + "</longcat_arg_value>\n"
            )
            + "</longcat_tool_call>",
            "\n",
        ),
        thought="{% if m.reasoning_content %}<longcat_think>\n{{ m.reasoning_content }}\n</longcat_think>{% endif %}",
        header=" ASSISTANT:",
        end="</longcat_s>",
    ),
}

_QUOTED = (
    "{% for k, v in c.function.arguments.items() %}{{ k }}:<|q|>{{ v }}<|q|>{{ ',' if not loop.last }}{% endfor %}"
)
_STREWN = "  {% if m.content %}    {{ m.content }}  {% endif %}    "

# Not as a model should write, but clear enough to tell how it should.
CARELESS = {
    "all values between quotes": Family(each(f"<|do|>{NAME}{{{{ '{{' }}}}{_QUOTED}{{{{ '}}' }}}}<|done|>")),
    "quotes in quotes": Family(
        f"<calls>[{{% for c in m.tool_calls %}}{NAME}({{% for k, v in c.function.arguments.items() %}}{{{{ k }}}}="
        "{% if v is string %}'{{ v }}'{% else %}{{ v }}{% endif %}{{ ', ' if not loop.last }}{% endfor %})"
        "{{ ', ' if not loop.last }}{% endfor %}]</calls>"
    ),
    "strings without quotes": Family(
        "<calls>["
        + each(PYTHON.replace("{{ v | tojson if v is string or v is mapping else v }}", "{{ v }}"), ", ")
        + "]</calls>"
    ),
    "blanks strewn about": Family(
        each(f"   <|call|>   {NAME}   <|with|>  {JSON}  <|end_call|>  "),
        content=_STREWN,
        header="  <|assistant|>  ",
        prompt="   <|assistant|>    ",
    ),
}

LONG = "c.function.arguments | length > 2"

# What is written so that no format could be true of it.
IRREGULAR = {
    "only the first parameter": Family(
        each(
            f"<call>{NAME}:{{% for k, v in c.function.arguments.items() %}}"
            "{{ {k: v} | tojson if loop.first }}{% endfor %}</call>"
        )
    ),
    "names in capitals": Family(each(f"<call>{{{{ c.function.name | upper }}}} {JSON}</call>")),
    "a different tag for every other call": Family(
        "{% for c in m.tool_calls %}{% set tag = 'ab'[loop.index % 2] %}"
        f"<{{{{ tag }}}}>{OBJECT}</{{{{ tag }}}}>{{% endfor %}}"
    ),
    "keys without values": Family(each(f"<call>{NAME} {{{{ c.function.arguments.keys() | list | tojson }}}}</call>")),
    "values without keys": Family(each(f"<call>{NAME} {{{{ c.function.arguments.values() | list | tojson }}}}</call>")),
    "prose": Family(each(f"I call {NAME} where " + parameters("{{ k }} is " + VALUE + " and ") + "so on.")),
    "lines of keys and values": Family(each(f"call {NAME}\n" + parameters("{{ k }}: " + VALUE + "\n"))),
    "other words for short calls": Family(
        each(f"<{{{{ 'long' if {LONG} else 'short' }}}}>{OBJECT}</{{{{ 'long' if {LONG} else 'short' }}}}>")
    ),
    "calls with a header that no prompt opens": Family(
        "<|caller|>\n" + each(OBJECT, "\n") + "<|end|>\n",
        content="{% if m.content %}<|assistant|>\n{{ m.content }}<|end|>\n{% endif %}",
        header="",
        end="",
        prompt="<|assistant|>\n",
    ),
    "strings without their ends": Family(each(f"<call>{NAME}(" + parameters("{{ k }}=<" + VALUE) + ")</call>")),
}


@cache
def discovered() -> dict[str, ToolStyle]:
    """What is discovered of these templates, and of the shared ones where they are at hand: each format once."""
    templates = {name: family.template for name, family in (MADE_UP | IN_THE_MANNER_OF).items()}
    templates |= {path.stem: toolgram.ChatTemplate.from_file(path) for path in sorted(SHARED.glob("*.jinja"))}
    styles = {name: style for name, template in templates.items() if (style := discover(template).style)}
    once = {style.wire: (name, style) for name, style in reversed(styles.items())}
    native = {style.wire for style in NATIVE}
    return {
        f"found_{re.sub(r'[^a-z0-9]+', '_', name.lower())}": style
        for wire, (name, style) in once.items()
        if wire not in native
    }
