"""`lint` on real templates: seeded defects are named, and what it says of the templates as they are is true of them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from jinja2.exceptions import SecurityError
from transformers.utils.chat_template_utils import render_jinja_template  # pyright: ignore[reportMissingTypeStubs]

from toolgram.errors import TemplateError
from toolgram.styles.choose import choose_style
from toolgram.styles.lint import lint, verdict
from toolgram.template.chat_template import ChatTemplate

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "templates"
FOUND = (Path(__file__).resolve().parents[1] / "golden/lint.txt").read_text().splitlines()
pytestmark = pytest.mark.skipif(not TEMPLATES.exists(), reason=f"there are no templates at {TEMPLATES}")

# A template, the cause, and what of its source becomes what. Of each kind of slip these are the first templates, in the
# order of the alphabet, which transformers then renders with something missing, or not at all.
SEEDS = [
    ("CohereForAI-c4ai-command-r-plus-tool_use", "tools-fail", "n\ndef ' + tool.name + '(", "n\ndef ' + tool.nam + '("),
    ("GLM-4.6", "call-fails", "tc.name", "tc.nam"),
    ("GLM-4.7-Flash", "call-fails", "tc.name", "tc.nam"),
    ("GigaChat3-10B-A1.8B", "tool-name", "_body = 'type ' ~ tool.name ~ ' = (_", "_body = 'type ' ~ tool.nam ~ ' = (_"),
    ("MiniMax-M1", "call-fails", "tool_call.function.name", "tool_call.function.nam"),
    ("Cohere2MoE", "call-fails", "['arguments']", "['argument']"),
    ("CohereForAI-c4ai-command-r-plus-tool_use", "call-fails", "call.arguments|t", "call.argument|t"),
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "call-fails", "['arguments']", "['argument']"),
    ("GLM-4.6", "call-arguments", ".arguments", ".argument"),
    ("GLM-4.7-Flash", "call-fails", ".arguments", ".argument"),
    ("Cohere2MoE", "no-generation-prompt", "if add_generation_prompt", "if add_generation_promt"),
    (
        "CohereForAI-c4ai-command-r-plus-tool_use",
        "no-generation-prompt",
        "if add_generation_prompt",
        "if add_generation_promt",
    ),
    ("GLM-4.6", "no-generation-prompt", "if add_generation_prompt", "if add_generation_promt"),
    ("GLM-4.6", "drops-system", "== 'system'", "== 'sistem'"),
    ("GLM-4.7-Flash", "drops-system", "== 'system'", "== 'sistem'"),
    ("HuggingFaceTB-SmolLM3-3B", "drops-system", '== "system"', '== "sistem"'),
    ("Kimi-K3", "drops-system", "ole == 'system' -", "ole == 'sistem' -"),
    ("Cohere2MoE", "no-results", "d == 'tool' ", "d == 'toool' "),
    ("CohereForAI-c4ai-command-r-plus-tool_use", "no-results", "== 'tool'", "== 'toool'"),
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "no-results", "wer == 'tool' a", "wer == 'toool' a"),
    ("GLM-4.6", "no-results", "== 'tool'", "== 'toool'"),
    (
        "CohereForAI-c4ai-command-r-plus-tool_use",
        "tools-fail",
        "}\n  {%- for param_name, param_fields in tool.parameters.properties|items %}\n ",
        "}\n  {%- for param_name, param_fields in tool.params.properties|items %}\n ",
    ),
    (
        "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        "tool-parameters",
        "' }}\n        {%- if tool.parameters is defined ",
        "' }}\n        {%- if tool.params is defined ",
    ),
    (
        "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
        "tools-fail",
        "(' }}\n    {%- for param_name, param_fields in tool.parameters.properties|items %}\n    ",
        "(' }}\n    {%- for param_name, param_fields in tool.params.properties|items %}\n    ",
    ),
    (
        "CohereForAI-c4ai-command-r-plus-tool_use",
        "tools-fail",
        ": ' + param_fields.description }}\n    {",
        ": ' + param_fields.descr }}\n    {",
    ),
    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "parameter-description", "elds.description i", "elds.descr i"),
    ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "tools-fail", "ol.description ", "ol.descr "),
    ("Cohere2MoE", "order", "for message in messages", "for message in messages | reverse"),
    (
        "CohereForAI-c4ai-command-r-plus-tool_use",
        "order",
        "for message in loop_messages",
        "for message in loop_messages | reverse",
    ),
    (
        "CohereForAI-c4ai-command-r7b-12-2024-tool_use",
        "order",
        "for message in messages",
        "for message in messages | reverse",
    ),
]
MISSED = {("CohereForAI-c4ai-command-r-plus-tool_use", "no-generation-prompt")}  # its tools come after the conversation


def source(stem: str) -> str:
    return (TEMPLATES / f"{stem}.jinja").read_text(encoding="utf-8")


@pytest.mark.parametrize(("stem", "code", "sound", "broken"), SEEDS)
def test_a_seeded_defect_is_named(stem: str, code: str, sound: str, broken: str) -> None:
    text = source(stem)
    assert text.count(sound) == 1
    before = {each.code for each in lint(ChatTemplate(text, "<s>", "</s>"))}
    found = lint(ChatTemplate(text.replace(sound, broken), "<s>", "</s>"))
    named = {each.code for each in found if each.level != "note"} - before
    assert (code in named) == ((stem, code) not in MISSED), named
    failed = [each.evidence for each in found if each.code in ("call-fails", "tools-fail")]
    assert all("line " in why for why in failed)  # of the template, where to look


def test_at_least_28_of_30_are_named() -> None:
    assert len(SEEDS) == 30
    assert len(SEEDS) - len(MISSED) >= 28


def call(number: int) -> dict[str, Any]:
    arguments = {"city": f"zqvalue{number}"}
    return {"id": f"zqcall00{number}", "type": "function", "function": {"name": "zqtool", "arguments": arguments}}


def conversation(content: str | None, calls: int, *, as_text: bool) -> tuple[list[Any], list[Any]]:
    """A turn with calls, and the tool that they call."""
    field = {"city": {"type": "string", "description": "A city."}}
    function = {"name": "zqtool", "description": "Tell.", "parameters": {"type": "object", "properties": field}}
    turn: Any = {"role": "assistant", "content": content, "tool_calls": [call(n) for n in range(1, calls + 1)]}
    for each in turn["tool_calls"] if as_text else ():
        each["function"]["arguments"] = json.dumps(each["function"]["arguments"])
    return [{"role": "user", "content": "Hi."}, turn], [{"type": "function", "function": function}]


def rendered(stem: str, content: str | None, calls: int = 1) -> str:
    """The turn in the form that the template takes, where it shows the first call; else what it shows of it."""
    template = ChatTemplate(source(stem), "<s>", "</s>")
    shown: list[str] = []
    for as_text in (False, True):
        messages, tools = conversation(content, calls, as_text=as_text)
        for given in (tools, None):
            with suppress(TemplateError):
                shown.append(template.render(messages, given))
    return max(shown, key=lambda text: "zqvalue1" in text)


@pytest.mark.parametrize("line", FOUND)
def test_what_is_said_of_a_well_known_template_is_true_of_it(line: str) -> None:
    stem, _, what = line.split(": ", 2)
    match what:
        case "content beside calls is missing":
            beside = rendered(stem, "zqbeside")
            assert not ("zqbeside" in beside and "zqvalue1" in beside)
            assert "zqvalue1" in rendered(stem, "") + rendered(stem, None)
        case "null content is printed as None":
            assert rendered(stem, None).count("None") > rendered(stem, "").count("None")
        case "of two calls the second is missing":
            two = rendered(stem, "", calls=2)
            assert ("zqvalue1" in two, "zqvalue2" in two) == (True, False)
        case "a call cannot be rendered":
            for as_text in (False, True):
                messages, tools = conversation("", 1, as_text=as_text)
                with pytest.raises(SecurityError):  # in transformers too
                    render_jinja_template(conversations=[messages], tools=tools, chat_template=source(stem))
        case _:
            pytest.fail(f"nothing proves this: {what}")


@pytest.mark.parametrize(
    ("name", "why", "says"),
    [
        ("LFM2-8B-A1B", "the template shows tools, or asks for calls, as it does", "put into the content"),
        ("Qwen3-Coder", "it reads the template's own rendering of a tool call", "fit for conversations and for tools"),
        ("microsoft-Phi-3.5-mini-instruct", "a format of ours", "a generic style announces the tools"),
    ],
)
def test_who_writes_the_calls_is_said(name: str, why: str, says: str) -> None:
    template = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")
    style, reason = choose_style(template)
    assert why in reason
    assert says in verdict(lint(template), style)
